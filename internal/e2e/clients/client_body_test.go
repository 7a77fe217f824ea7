package clients

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestResponsesWithoutBody checks that a response without a body does not hold its host if the
// program does not close it.
func TestResponsesWithoutBody(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, scheme := range []string{"http", "https"} {
		for name, test := range map[string]struct {
			method string
			answer any
		}{
			"HEAD":      {http.MethodHead, robotstest.Page()},
			"204":       {http.MethodGet, status(http.StatusNoContent)},
			"304":       {http.MethodGet, status(http.StatusNotModified)},
			"empty 200": {http.MethodGet, status(http.StatusOK)},
		} {
			if scheme == "https" && name == "empty 200" {
				continue // HTTP/2 has a body of a type of its own
			}
			t.Run(scheme+"/"+name, func(t *testing.T) {
				sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": test.answer}}
				kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
					next := web.Transport()
					next.ForceAttemptHTTP2 = scheme == "https"
					defer next.CloseIdleConnections()
					p, client := kit.NewRobots(t, web, collyrobots.MaxInFlightPerHost(1))
					client.Transport = p.Transport(next)
					for i := range 3 {
						req, err := http.NewRequest(test.method, fmt.Sprint(scheme, "://a.test/", i), nil)
						kit.Must(t, err)
						_, err = client.Do(req)
						kit.Must(t, err)
					}
					kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 1s /0, 2s /1, 3s /2")
				})
			})
		}
	}
}

// upgrade answers with status 101 and then repeats each line in upper case.
func upgrade(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "shout")
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, lines, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		io.WriteString(conn, strings.ToUpper(line))
	}
}

// TestUpgradedConnection checks that the connection of a response with status 101 works in both
// directions, as a websocket client uses it, and that it does not hold its host.
func TestUpgradedConnection(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 5\n", "/socket": upgrade, "*": 200}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web, collyrobots.MaxInFlightPerHost(1))
		req := kit.NewRequest(t, "http://a.test/socket")
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "shout")
		resp, err := client.Do(req)
		kit.Must(t, err)
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if !ok || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got status %d and a body of type %T", resp.StatusCode, resp.Body)
		}
		answers := bufio.NewReader(conn)
		for i := range 3 {
			_, err := fmt.Fprintf(conn, "line %d\n", i)
			kit.Must(t, err)
			answer, err := answers.ReadString('\n')
			if want := fmt.Sprintf("LINE %d\n", i); answer != want || err != nil {
				t.Errorf("got %q, %v; want %q", answer, err, want)
			}
			_, err = kit.Get(client, fmt.Sprint("http://a.test/", i))
			kit.Must(t, err)
		}
		kit.Must(t, conn.Close())
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 5s /socket, 10s /0, 15s /1, 20s /2")
	})
}

// TestBodyReadByAnotherGoroutine checks that the crawl of other hosts continues while a goroutine
// reads a slow body, and that the host of this body has the next request after that.
func TestBodyReadByAnotherGoroutine(t *testing.T) {
	slow := func(w http.ResponseWriter, _ *http.Request) {
		for range 20 {
			io.WriteString(w, "part\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}
	}
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\n", "/slow": slow, "*": 200},
		"b.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\n"),
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web)
		resp, err := client.Get("http://a.test/slow")
		kit.Must(t, err)
		read := make(chan int64)
		go func() {
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			read <- n
		}()
		for i := range 3 {
			_, err := kit.Get(client, fmt.Sprint("http://b.test/", i))
			kit.Must(t, err)
		}
		_, err = kit.Get(client, "http://a.test/next")
		kit.Must(t, err)
		if n := <-read; n != 100 {
			t.Errorf("read %d bytes, want 100", n)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2s /slow, 22s /next")
		kit.WantSchedule(t, web, "b.test", "2s /robots.txt, 4s /0, 6s /1, 8s /2")
	})
}

// TestHeaderChangedAfterRoundTrip changes the header of a request after RoundTrip has returned,
// while another request waits for the robots.txt that the first request has caused to be read.
func TestHeaderChangedAfterRoundTrip(t *testing.T) {
	robots := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Second)
		w.WriteHeader(http.StatusForbidden)
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "*": 200}}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req := kit.NewRequest(t, "http://a.test/1").WithContext(ctx)
		go kit.Get(client, "http://a.test/2")
		synctest.Wait()
		_, err := client.Do(req)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		for i := range 100 {
			req.Header.Set(fmt.Sprint("X-", i), "value")
			time.Sleep(100 * time.Millisecond)
		}
	})
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "*": 200}}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req := kit.NewRequest(t, "http://a.test/1").WithContext(ctx)
		time.AfterFunc(500*time.Millisecond, func() { kit.Get(client, "http://a.test/2") })
		_, err := client.Do(req)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		for i := range 100 {
			req.Header.Set(fmt.Sprint("X-", i), "value")
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// TestClientWithoutUserAgent checks that a request without a User-Agent header obeys the group for
// the name that net/http sends.
func TestClientWithoutUserAgent(t *testing.T) {
	robots := "User-agent: Go-http-client\nDisallow: /1\n\nUser-agent: *\nDisallow: /2\n"
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, robots)}, func(t *testing.T, web *robotstest.Web) {
		p, err := collyrobots.New(kit.Quiet())
		kit.Must(t, err)
		defer p.Close()
		client := &http.Client{Transport: p.Transport(web.Transport())}
		for i := range 3 {
			resp, err := client.Get(fmt.Sprint("http://a.test/", i))
			if (err != nil) != (i == 1) {
				t.Errorf("/%d: got error %v", i, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		req := kit.NewRequest(t, "http://a.test/2")
		req.Header["User-Agent"] = nil // net/http sends none
		_, err = client.Do(req)
		if err == nil {
			t.Error("/2 without a User-Agent header was not denied")
		}
	})
}

// TestTurnsUnderMaxInFlightPerHost checks that turns that are never ended expire under
// MaxInFlightPerHost as well.
func TestTurnsUnderMaxInFlightPerHost(t *testing.T) {
	for _, opts := range [][]collyrobots.Option{
		{collyrobots.MaxInFlightPerHost(1)}, {collyrobots.MaxInFlightPerHost(1), collyrobots.MinDelay(5 * time.Second)}, {collyrobots.DelayFromEnd(true), collyrobots.MinDelay(5 * time.Second)},
	} {
		kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
			p := kit.NewTurns(t, web, opts...)
			began := time.Now()
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				_, err := p.Acquire(ctx, kit.NewRequest(t, "http://a.test/1"))
				cancel()
				kit.Must(t, err)
			}
			if took := time.Since(began); took > time.Hour {
				t.Errorf("three turns took %v", took)
			}
		})
	}
}
