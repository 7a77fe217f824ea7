package collyrobots_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// slowly answers after a while, and counts how many it answers at once.
func slowly(d time.Duration, under, most *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n := under.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer under.Add(-1)
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}

func TestRequestsInFlight(t *testing.T) {
	cases := []struct {
		name, robots string
		opts         []collyrobots.Option
		most         int32
		gap          time.Duration
	}{
		{"no delay", noDenys, nil, 4, 0},
		{"one under a delay", "User-agent: *\nCrawl-delay: 0.1", nil, 1, 300 * time.Millisecond},
		{"MaxInFlight", "User-agent: *\nCrawl-delay: 0.1", []collyrobots.Option{collyrobots.MaxInFlight(2)}, 2, 100 * time.Millisecond},
		{"MaxInFlight without a delay", noDenys, []collyrobots.Option{collyrobots.MaxInFlight(3)}, 3, 0},
		{"DelayFromEnd", "User-agent: *\nCrawl-delay: 0.1", []collyrobots.Option{collyrobots.DelayFromEnd()}, 1, 400 * time.Millisecond},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var under, most atomic.Int32
			s := site{"/robots.txt": tc.robots}
			for i := range 4 {
				s[fmt.Sprint("/", i)] = slowly(300*time.Millisecond, &under, &most)
			}
			onWire(t, map[string]site{"a.test": s}, func(t *testing.T, w *wire) {
				c := w.start(t, async, tc.opts...)
				for i := range 4 {
					c.Visit(fmt.Sprint("http://a.test/", i))
				}
				c.Wait()
				if most.Load() != tc.most || len(c.pages) != 4 {
					t.Errorf("%d requests at once for %d pages, want %d for 4", most.Load(), len(c.pages), tc.most)
				}
				hits := w.hits("a.test")[1:] // robots.txt is answered at once
				for i := 1; i < len(hits); i++ {
					if gap := hits[i].at.Sub(hits[i-1].at); gap < tc.gap && tc.name != "MaxInFlight" {
						t.Errorf("gap %v, want %v", gap, tc.gap)
					}
				}
			})
		})
	}
}

// A sync spider visits from its callbacks: whatever it holds must have been given back by then.
func TestVisitsFromEveryCallback(t *testing.T) {
	onWire(t, map[string]site{"a.test": pages(6, "User-agent: *\nCrawl-delay: 10")}, visitsFromEveryCallback)
}

func visitsFromEveryCallback(t *testing.T, w *wire) {
	c := w.start(t, nil)
	next := 0
	visit := func() {
		if next < 5 {
			next++
			c.Visit(fmt.Sprint("http://a.test/", next))
		}
	}
	c.OnResponse(func(*colly.Response) { visit() })
	c.OnHTML("html", func(*colly.HTMLElement) { visit() })
	c.OnScraped(func(*colly.Response) { visit() })
	c.OnError(func(*colly.Response, error) { visit() })
	c.Visit("http://a.test/missing")
	w.keepsGap(t, "a.test", 10*time.Second, 7)
}

func TestRetryAfterHoldsTheHost(t *testing.T) {
	asked := 0
	s := pages(3, noDenys)
	s["/0"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	onWire(t, map[string]site{"a.test": s}, func(t *testing.T, w *wire) {
		c := w.start(t, nil)
		c.OnError(func(r *colly.Response, _ error) {
			d, err := c.robots.Check(t.Context(), "http://a.test/1")
			if left := time.Until(d.NotBefore); err != nil || left != 10*time.Minute {
				t.Errorf("Check: not before %v from now (%v), want 10m", left, err)
			}
			if s := c.robots.Stats().Hosts[0]; s.Throttled != 1 || s.NotBefore != d.NotBefore {
				t.Errorf("Stats: %+v", s)
			}
			r.Request.Retry()
		})
		c.Visit("http://a.test/0")
		hits := w.hits("a.test")
		if len(hits) != 3 || hits[2].at.Sub(hits[1].at) != 10*time.Minute {
			t.Errorf("a.test was asked for %s, the last time after %v", w.uris("a.test"), hits[len(hits)-1].at.Sub(hits[1].at))
		}
		if !strings.Contains(c.logged.String(), "slowing down") {
			t.Errorf("log: %s", c.logged)
		}
	})
}

func TestManyComplaintsAtOnceAreOneIncident(t *testing.T) {
	s := site{"/robots.txt": noDenys}
	for i := range 10 {
		s[fmt.Sprint("/", i)] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(100 * time.Millisecond) // so that all are under way
			w.WriteHeader(http.StatusServiceUnavailable)
		})
	}
	onWire(t, map[string]site{"a.test": s}, manyComplaints)
}

func manyComplaints(t *testing.T, w *wire) {
	c := w.start(t, async)
	c.robots.Check(t.Context(), "http://a.test/")
	for i := range 10 {
		c.Visit(fmt.Sprint("http://a.test/", i))
	}
	c.Wait()
	d, _ := c.robots.Check(t.Context(), "http://a.test/")
	if s := c.robots.Stats().Hosts[0]; s.Throttled != 1 || d.BackOff < time.Second || d.BackOff > 1500*time.Millisecond || d.Delay != d.BackOff {
		t.Errorf("%+v, %v", s, d)
	}
}

// The pages of a host that asks for more than MaxDelay are told to OnDenied, from where they can be tried again once it asks for less.
func TestASkippedHostCanBeRetried(t *testing.T) {
	sites := map[string]site{"a.test": pages(2, "")}
	onWire(t, sites, func(t *testing.T, w *wire) {
		sites["a.test"]["/robots.txt"] = changing(time.Hour, "User-agent: *\nCrawl-delay: 3600\n", "User-agent: *\nCrawl-delay: 1\n")
		var skipped []error
		c := w.start(t, nil, collyrobots.MaxDelay(time.Minute, collyrobots.Skip), collyrobots.OnDenied(func(r *colly.Request, err error) {
			skipped = append(skipped, err)
			time.Sleep(90 * time.Minute)
			r.Retry()
		}))
		c.Visit("http://a.test/0")
		if got, want := w.uris("a.test"), "/robots.txt /robots.txt /0"; got != want {
			t.Errorf("a.test was asked for %s, want %s", got, want)
		}
		denied := (*collyrobots.DisallowedError)(nil)
		if len(skipped) != 1 || !errors.As(skipped[0], &denied) || denied.Decision.Reason != collyrobots.ReasonDelay ||
			denied.Decision.CrawlDelay != time.Hour || !strings.Contains(skipped[0].Error(), "1h0m0s") {
			t.Errorf("OnDenied was told %v", skipped)
		}
		if log := c.logged.String(); strings.Count(log, "over MaxDelay") != 1 || !strings.Contains(log, "skipped=true") {
			t.Errorf("log: %s", log)
		}
	})
}
