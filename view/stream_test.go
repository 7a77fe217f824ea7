package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A slowClient records when messages arrive. After a given time it no longer accepts any.
type slowClient struct {
	*httptest.ResponseRecorder
	began    time.Time
	times    []string
	until    time.Duration // if 0, the client accepts everything
	deadline time.Time
}

func (c *slowClient) Write(b []byte) (int, error) {
	if c.until != 0 && time.Since(c.began) >= c.until {
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	c.times = append(c.times, time.Since(c.began).String())
	return c.ResponseRecorder.Write(b)
}

func (c *slowClient) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

// watch opens a stream and waits until it ends. It returns the client and how long the stream
// lasted.
func watch(h *Page, until time.Duration) (*slowClient, time.Duration) {
	r := httptest.NewRequest("GET", "/events", nil)
	r.Host = "localhost"
	c := &slowClient{ResponseRecorder: httptest.NewRecorder(), began: time.Now(), until: until}
	h.ServeHTTP(c, r)
	return c, time.Since(c.began)
}

// TestMessages checks that a message arrives at once, then every two seconds, and twice a second
// while there are events. A stream ends after a minute.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(nil, Options{})
		go func() {
			time.Sleep(10 * time.Second)
			for range 1000 { // in one second
				h.recorder.hear(started("a.test", 0, 0))
				time.Sleep(time.Millisecond)
			}
		}()
		c, took := watch(h, 0)
		got := strings.Join(c.times, " ")
		if !strings.HasPrefix(got, "0s 2s 4s 6s 8s 10s 10.5s 11s ") || len(c.times) > 35 {
			t.Errorf("messages after %s", got)
		}
		if took < streamTime || took > streamTime+quietTime {
			t.Errorf("the stream ended after %v", took)
		}
	})
}

// TestSlowClientIsDropped checks that a stream ends if the client no longer reads.
func TestSlowClientIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(nil, Options{})
		if _, took := watch(h, 4*time.Second); took != 4*time.Second+writeTime {
			t.Errorf("the client was dropped after %v", took)
		}
		if n := h.streams.open.Load(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// TestMessagesContainOnlyChanges checks that each dot is sent once, unless it changes.
func TestMessagesContainOnlyChanges(t *testing.T) {
	c, _, h := newCrawl(t, robotstest.Sites{"a.test": robotstest.Pages(9, ""), "b.test": robotstest.Pages(1, "")}, collyrobots.MinDelay(time.Millisecond))
	c.Visit("http://a.test/1")
	h.settle(t, 4)
	q, told := question{sort: "host", n: 1}, cursor{}
	first := h.stateFor(q, &told)
	again := h.stateFor(q, &told)
	if host := first.Hosts[0]; !host.Fresh || len(host.Starts) != 2 || first.Denials == nil {
		t.Errorf("%+v", first)
	}
	if host := again.Hosts[0]; host.Fresh || len(host.Starts) != 0 || again.Denials != nil {
		t.Errorf("%+v", again)
	}
	c.Visit("http://a.test/2")
	h.settle(t, 6)
	if more := h.stateFor(q, &told); len(more.Hosts[0].Starts) != 1 && len(more.Hosts[0].Starts) != 2 { // two close starts are one dot
		t.Errorf("%+v", more)
	}
	c.Visit("http://b.test/0")
	h.settle(t, 10)
	q.reverse = true
	if other := h.stateFor(q, &told); other.Hosts[0].Stats.Host != "b.test" || !other.Hosts[0].Fresh {
		t.Errorf("%+v", other)
	}
}

// settle waits until the recorder has received a given number of events.
func (h *Page) settle(t *testing.T, events uint64) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); h.recorder.count() < events; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d events, want %d", h.recorder.count(), events)
		}
	}
	h.sampler = sampler{}
}

// TestHundredPagesOpenedAndLeft checks that a crawl continues while many streams are opened and
// closed.
func TestHundredPagesOpenedAndLeft(t *testing.T) {
	c, _, h := newCrawl(t, robotstest.Sites{"a.test": robotstest.Pages(300, "User-agent: *\nDisallow: /7\n")})
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ctx, leave := context.WithCancel(context.Background())
	var pages sync.WaitGroup
	for range 100 {
		pages.Go(func() {
			for i := range 2 {
				if err := readMessage(ctx, client, server.URL+"/events"); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("page %d: %v", i, err)
				}
			}
		})
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://a.test/")
	pages.Wait()
	leave()
	end := time.Now().Add(5 * time.Second)
	for st := stateOf(t, h, ""); st.Totals.Pages != 300-11+1; st = stateOf(t, h, "") { // except 7 and 70 to 79; the state may be a little old
		if time.Now().After(end) {
			t.Fatalf("%d pages", st.Totals.Pages)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for ; h.streams.open.Load() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d streams are open", h.streams.open.Load())
		}
	}
}

// readMessage opens a stream, reads one message and closes the stream.
func readMessage(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if !json.Valid([]byte(data)) {
				return fmt.Errorf("not JSON: %.100s", data)
			}
			return nil
		}
	}
	return fmt.Errorf("status %d, no message: %v", resp.StatusCode, lines.Err())
}

// TestTooManyPages checks that a stream beyond the limit is rejected.
func TestTooManyPages(t *testing.T) {
	h := New(nil, Options{})
	h.streams.open.Store(maxStreams)
	if w := get(h, "/events"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d", w.Code)
	}
	if n := h.streams.open.Load(); n != maxStreams {
		t.Errorf("%d streams", n)
	}
}

// TestPause checks that a stream spends at most one fiftieth of its time on messages.
func TestPause(t *testing.T) {
	var s streams
	s.open.Store(1)
	for _, test := range []struct {
		open       int32
		took, want time.Duration
	}{
		{1, time.Millisecond, interval},
		{1, 40 * time.Millisecond, 2 * time.Second},
		{1, time.Hour, 5 * time.Second},
		{160, time.Millisecond, 10 * time.Second},
	} {
		s.open.Store(test.open)
		if got := s.pause(test.took); got != test.want {
			t.Errorf("%d open, %v: %v, want %v", test.open, test.took, got, test.want)
		}
	}
}

// TestHundredThousandHosts checks that responses and memory are bounded for a crawl of very many
// hosts.
func TestHundredThousandHosts(t *testing.T) {
	_, p, h := newCrawl(t, robotstest.Sites{"a.test": nil}, collyrobots.IgnoreRobots(collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}), collyrobots.MinDelay(time.Second))
	for i := range 100_000 {
		if _, err := p.Check(t.Context(), fmt.Sprintf("http://h%d.test/", i)); err != nil {
			t.Fatal(err)
		}
	}
	began, before := time.Now(), heap()
	w := get(h, "/state.json?q=h999&sort=host")
	t.Logf("%d bytes after %v", w.Body.Len(), time.Since(began))
	if st := stateOf(t, h, "q=h999&sort=host"); st.Known < 99_000 || st.Matching != 111 || len(st.Hosts) != rows || st.Hosts[0].Stats.Host != "h999.test" {
		t.Errorf("%d known, %d matching, %d shown", st.Known, st.Matching, len(st.Hosts))
	}
	if w.Body.Len() > 100_000 {
		t.Errorf("the state has %d bytes", w.Body.Len())
	}
	if w := get(h, "/"); w.Body.Len() > 100_000 {
		t.Errorf("the page has %d bytes", w.Body.Len())
	}
	if used := heap() - before; used > 4<<20 {
		t.Errorf("%d MB are kept when no page is open", used>>20)
	}
}
