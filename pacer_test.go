package collyrobots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// A memoryPacer is a Pacer for plugins of one process, by the contract of the interface: one holder
// a host while a delay is in force anywhere, the longest delay of late between the end of one
// request and the start of the next.
type memoryPacer struct {
	ttl time.Duration // of a lease
	err error         // what Acquire returns; nil: it works
	bad any           // what Acquire panics with; nil: it does not

	mu      sync.Mutex
	changed chan struct{} // closed when something has changed
	hosts   map[string]*memoryHost
	out     int // leases that were not released
	asked   int
}

type memoryHost struct {
	holder    *memoryLease
	end       time.Time // of the last request
	delay     time.Duration
	until     time.Time // when delay is forgotten
	notBefore time.Time
}

type memoryLease struct {
	pacer    *memoryPacer
	host     *memoryHost
	deadline time.Time
	released bool
}

// shared returns a pacer whose leases last for 30 s, and sees to it that all of them are released
// in the end.
func shared(t *testing.T) *memoryPacer {
	p := &memoryPacer{ttl: 30 * time.Second, changed: make(chan struct{}), hosts: make(map[string]*memoryHost)}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.out != 0 {
			t.Errorf("%d leases were not released", p.out)
		}
	})
	return p
}

func (p *memoryPacer) Acquire(ctx context.Context, host string, delay time.Duration) (collyrobots.Lease, error) {
	for {
		lease, wait, changed, err := p.try(host, delay)
		if lease != nil || err != nil {
			return lease, err
		}
		select {
		case <-time.After(wait):
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *memoryPacer) try(name string, delay time.Duration) (collyrobots.Lease, time.Duration, chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.bad != nil {
		panic(p.bad)
	}
	if p.err != nil {
		return nil, 0, nil, p.err
	}
	now, h := time.Now(), p.hosts[name]
	if h == nil {
		h = new(memoryHost)
		p.hosts[name] = h
	}
	if h.holder != nil && !now.Before(h.holder.deadline) { // it has vanished
		h.end, h.holder = h.holder.deadline, nil
	}
	if now.After(h.until) {
		h.delay = 0
	}
	if delay > 0 && delay >= h.delay {
		h.delay, h.until = delay, now.Add(10*delay)
	}
	next := h.notBefore
	if t := h.end.Add(h.delay); h.delay > 0 && t.After(next) {
		next = t
	}
	switch {
	case h.holder != nil:
		return nil, h.holder.deadline.Sub(now), p.changed, nil
	case now.Before(next):
		return nil, next.Sub(now), p.changed, nil
	}
	l := &memoryLease{pacer: p, host: h}
	if h.delay > 0 {
		l.deadline, h.holder = now.Add(p.ttl), l
	}
	p.out++
	return l, 0, nil, nil
}

func (l *memoryLease) Deadline() time.Time { return l.deadline }

func (l *memoryLease) Valid() bool { return l.deadline.IsZero() || time.Now().Before(l.deadline) }

func (l *memoryLease) Release(sent bool, delay time.Duration, notBefore time.Time) {
	p := l.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.released {
		return
	}
	l.released = true
	p.out--
	if l.host.holder != nil && l.host.holder != l {
		return // it was too late
	}
	l.host.holder = nil
	if sent {
		now := time.Now()
		l.host.end = now
		if delay >= l.host.delay || now.After(l.host.until) {
			l.host.delay, l.host.until = delay, now.Add(10*delay)
		}
		if notBefore.After(l.host.notBefore) {
			l.host.notBefore = notBefore
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// set changes what the pacer does from now on.
func (p *memoryPacer) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// processes starts n crawls that share a pacer and a store, each with a transport of its own as
// processes have.
func processes(t *testing.T, web *robotstest.Web, n int, p collyrobots.Pacer, opts ...collyrobots.Option) []*crawl {
	t.Helper()
	s := store.Memory()
	t.Cleanup(func() { s.Close() })
	opts = append([]collyrobots.Option{collyrobots.SharedPace(p), collyrobots.Store(s)}, opts...)
	all := make([]*crawl, n)
	for i := range all {
		all[i] = start(t, web, async, opts...)
	}
	return all
}

// inPieces lets each of some crawls visit some pages of its own, and waits for all.
func inPieces(all []*crawl, pages int, url string) {
	for i, c := range all {
		for page := range pages {
			c.Visit(fmt.Sprintf(url, i*pages+page))
		}
	}
	for _, c := range all {
		c.Wait()
	}
}

// No process starts a request within the delay of another one's, none waits longer than that, and
// robots.txt is read once.
func TestManyProcessesKeepOnePace(t *testing.T) {
	for name, tc := range map[string]struct {
		robots string
		opts   []collyrobots.Option
		delay  time.Duration
	}{
		"Crawl-delay":            {"User-agent: *\nCrawl-delay: 10\n", nil, 10 * time.Second},
		"MinDelay":               {noDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second)}, time.Second},
		"DelayFromEnd":           {noDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second), collyrobots.DelayFromEnd()}, time.Second},
		"MaxInFlight":            {noDenys, []collyrobots.Option{collyrobots.MinDelay(time.Second), collyrobots.MaxInFlight(3)}, time.Second},
		"longer than a lease":    {"User-agent: *\nCrawl-delay: 100\n", nil, 100 * time.Second},
		"shorter than a request": {"User-agent: *\nCrawl-delay: 0.01\n", nil, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(12, tc.robots)}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, web, 4, shared(t), tc.opts...)
				inPieces(all, 3, "http://a.test/%d")
				wantPace(t, web, "a.test", tc.delay, 13)
				for i, c := range all {
					if len(c.pages) != 3 || len(c.denied) != 0 {
						t.Errorf("process %d has %d pages, denied %v, want 3", i, len(c.pages), c.denied)
					}
				}
			})
		})
	}
}

// The response counts: one process at a time has the host until its body was read.
func TestOneProcessAtATimeHasAHost(t *testing.T) {
	slow := func(out http.ResponseWriter, _ *http.Request) { time.Sleep(3 * time.Second) }
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": http.HandlerFunc(slow)}}, func(t *testing.T, web *robotstest.Web) {
		inPieces(processes(t, web, 2, shared(t)), 2, "http://a.test/%d")
		wantNoSooner(t, web, "a.test", 4*time.Second-3*time.Second, 5)
		log := web.Log("a.test")
		for i := 2; i < len(log); i++ {
			if gap := log[i].Time.Sub(log[i-1].Time); gap != 4*time.Second {
				t.Errorf("%v between the starts, want the response's 3s and the delay", gap)
			}
		}
	})
}

// A host without a delay is asked at once by all, but for its robots.txt, which one reads for all.
func TestHostsWithoutADelayAreShared(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(40, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 4, shared(t))
		began := time.Now()
		inPieces(all, 10, "http://a.test/%d")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if got := strings.Count(urisOf(web.Log("a.test")), "/robots.txt"); got != 1 || len(web.Log("a.test")) != 41 {
			t.Errorf("%d requests, of them %d for robots.txt; want 41 and 1", len(web.Log("a.test")), got)
		}
	})
}

// Whatever goes on the wire without a hook asks the Pacer, too.
func TestWhatNoHookSeesIsShared(t *testing.T) {
	const robots = "User-agent: *\nCrawl-delay: 2\n"
	throttled := func() http.HandlerFunc {
		var once sync.Once
		return func(out http.ResponseWriter, _ *http.Request) {
			once.Do(func() { out.Header().Set("Retry-After", "5"); out.WriteHeader(http.StatusTooManyRequests) })
		}
	}
	for name, tc := range map[string]struct {
		site robotstest.Site
		opts []collyrobots.Option
		n    int // requests, robots.txt included
	}{
		"hops":                          {robotstest.Site{"/robots.txt": robots, "/0": robotstest.Redirect("/b"), "/b": robotstest.Redirect("/c"), "/c": robotstest.Page(), "*": robotstest.Page()}, nil, 7},
		"robots.txt hops within a host": {robotstest.Site{"/robots.txt": robotstest.Redirect("/r"), "/r": robots, "*": robotstest.Page()}, []collyrobots.Option{collyrobots.MinDelay(2 * time.Second)}, 6},
		"RetryThrottled":                {robotstest.Site{"/robots.txt": robots, "/0": throttled(), "*": robotstest.Page()}, []collyrobots.Option{collyrobots.RetryThrottled(2)}, 6},
		"sent twice":                    {robotstest.Site{"/robots.txt": robots, "/1": dropFirst("<p>"), "*": robotstest.Page()}, nil, 8},
		"sitemaps": {robotstest.Site{"/robots.txt": robots + "Sitemap: /map.xml\n", "/map.xml": robotstest.Sitemap("http://a.test/8", "http://a.test/9"), "*": robotstest.Page()},
			[]collyrobots.Option{collyrobots.FollowSitemaps(collyrobots.Feed{})}, 1 + 4 + 2*3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": tc.site}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, web, 2, shared(t), tc.opts...)
				if name == "sent twice" {
					inPieces(all, 1, "http://a.test/first-%d") // net/http sends again only on a connection that was used before
				}
				inPieces(all, 2, "http://a.test/%d")
				wantNoSooner(t, web, "a.test", 2*time.Second, tc.n)
				for _, c := range all {
					if len(c.errs) != 0 {
						t.Errorf("OnError: %v", c.errs)
					}
				}
			})
		})
	}
}

// One process follows a robots.txt to another host, the others wait for what it finds there.
func TestOneProcessFollowsARobotsTxt(t *testing.T) {
	inBubble(t, robotstest.Sites{
		"a.test":     {"/robots.txt": robotstest.Redirect("https://www.a.test/robots.txt"), "*": robotstest.Page()},
		"www.a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 3\n"},
	}, func(t *testing.T, web *robotstest.Web) {
		inPieces(processes(t, web, 4, shared(t)), 1, "http://a.test/%d")
		wantURIs(t, web, "www.a.test", "/robots.txt")
		wantPace(t, web, "a.test", 3*time.Second, 5)
	})
}

// A redirect's host is held until the file is there, but not its connection: it may be the only one
// that the transport makes to a proxy.
func TestARobotsTxtElsewhereThroughOneConnection(t *testing.T) {
	a := robotstest.Pages(2, "")
	a["/robots.txt"] = robotstest.Redirect("http://b.test/robots.txt")
	inBubble(t, robotstest.Sites{"a.test": a, "b.test": {"/robots.txt": noDenys}, "proxy.test:3128": nil}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.SharedPace(shared(t)))
		c.transport.MaxConnsPerHost = 1
		c.transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.test:3128"})
		must(t, c.Visit("http://a.test/1"))
		wantURIs(t, web, "a.test", "/robots.txt /1")
	})
}

// A Pacer that fails closes, says since when, and everything goes on when it is back: what it
// prevented is no fault of the site.
func TestAPacerThatFails(t *testing.T) {
	down := errors.New("connection refused")
	for name, fail := range map[string]func(*memoryPacer){
		"an error":     func(p *memoryPacer) { p.err = down },
		"a panic":      func(p *memoryPacer) { p.bad = "nil map" },
		"ended before": func(p *memoryPacer) { p.ttl = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
				p := shared(t)
				c := start(t, web, nil, collyrobots.SharedPace(p), collyrobots.MinDelay(time.Second))
				outage := func(first int) {
					p.set(func() { fail(p) })
					began, before := time.Now(), len(web.Log("a.test"))
					for i := range 3 {
						wantUnpaced(t, c.Visit(fmt.Sprint("http://a.test/", first+i)), began)
						time.Sleep(time.Minute)
					}
					if got := len(web.Log("a.test")) - before; got != 0 {
						t.Errorf("%d requests were sent", got)
					}
					p.set(func() { p.err, p.bad, p.ttl = nil, nil, 30*time.Second })
					must(t, c.Visit(fmt.Sprint("http://a.test/", first+3)))
				}
				outage(0) // before robots.txt is known
				time.Sleep(time.Minute)
				outage(4)
				if err := c.denied["http://a.test/0"]; name == "an error" && !errors.Is(err, down) {
					t.Errorf("%v does not wrap the Pacer's error", err)
				}
				if len(c.denied) != 6 || strings.Contains(c.logged.String(), "could not be read") {
					t.Errorf("OnDenied was told of %v, log:\n%s", c.denied, c.logged)
				}
				wantURIs(t, web, "a.test", "/robots.txt /3 /7")
			})
		})
	}
}

// wantUnpaced wants a PaceError about a.test.
func wantUnpaced(t *testing.T, err error, since time.Time) {
	t.Helper()
	var unpaced *collyrobots.PaceError
	if !errors.As(err, &unpaced) || unpaced.Host != "a.test" || unpaced.Since.Sub(since).Abs() > 5*time.Millisecond || unpaced.Unwrap() == nil {
		t.Fatalf("Visit: %v, want a PaceError since %v", err, since)
	}
	if !strings.Contains(err.Error(), "a.test since "+unpaced.Since.Format(time.RFC3339)) {
		t.Errorf("it says %q", err)
	}
}

// The Pacer's trouble comes while pages wait for it: those fail, and a redirect does.
func TestAPacerThatFailsOnTheWay(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": noDenys, "/": robotstest.Redirect("/hop"), "/hop": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		p := shared(t)
		c := start(t, web, nil, collyrobots.SharedPace(p))
		c.OnResponseHeaders(func(*colly.Response) {})
		c.SetRedirectHandler(func(*http.Request, []*http.Request) error {
			p.set(func() { p.err = errors.New("down") })
			return nil
		})
		err := c.Visit("http://a.test/")
		var unpaced *collyrobots.PaceError
		if !errors.As(err, &unpaced) || len(c.denied) != 1 {
			t.Errorf("Visit: %v, OnDenied %v; want a PaceError in both", err, c.denied)
		}
		wantURIs(t, web, "a.test", "/robots.txt /")
	})
}

// A response that outlives its lease fails then, and the next process starts a delay later.
func TestAResponseThatOutlivesItsLease(t *testing.T) {
	endless := func(out http.ResponseWriter, r *http.Request) {
		out.Write(bytes.Repeat([]byte("x"), 100))
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for name, answer := range map[string]http.HandlerFunc{"a body": endless, "no answer": hang} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": answer, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, web, 2, shared(t))
				all[0].SetRequestTimeout(0)
				all[0].Visit("http://a.test/0")
				time.Sleep(2 * time.Second)
				all[1].Visit("http://a.test/1")
				all[0].Wait()
				all[1].Wait()
				wantSchedule(t, web, "a.test", "0s /robots.txt, 1s /0, 32s /1")
				if err := all[0].errs["http://a.test/0"]; !errors.Is(err, collyrobots.ErrLeaseEnded) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("OnError was told %v", err)
				}
			})
		})
	}
}

// A user's shorter timeout still is what ends a request.
func TestTheTimeoutWithinALease(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/": http.HandlerFunc(hang)}}, func(t *testing.T, web *robotstest.Web) {
		c := start(t, web, nil, collyrobots.SharedPace(shared(t)))
		c.SetRequestTimeout(10 * time.Second)
		began := time.Now()
		err := c.Visit("http://a.test/")
		if took := time.Since(began); errors.Is(err, collyrobots.ErrLeaseEnded) || !errors.Is(err, context.DeadlineExceeded) || took.Round(100*time.Millisecond) != 11*time.Second {
			t.Errorf("%v after %v, want the timeout after the delay and 10s", err, took)
		}
		synctest.Wait() // the timer gives the lease back, perhaps after Visit has returned
	})
}

// A lease that has ended before the request could be written, since the connection took so long, is
// not used.
func TestALeaseThatEndsWhileItIsDialled(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		if _, err := all[0].robots.Check(t.Context(), "http://a.test/"); err != nil {
			t.Fatal(err)
		}
		all[0].SetRequestTimeout(0)
		dial := all[0].transport.DialContext
		all[0].transport.CloseIdleConnections()
		all[0].transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(40 * time.Second)
			return dial(ctx, network, address)
		}
		inPieces(all, 1, "http://a.test/%d")
		// The first one's lease ends at 31 s; it has its connection at 41 s.
		log := web.Log("a.test")
		wantNoSooner(t, web, "a.test", time.Second, 3)
		if len(all[0].pages) != 1 || len(all[1].pages) != 1 || log[2].Elapsed < 41*time.Second {
			t.Errorf("%v, %v: %s", all[0].errs, all[1].errs, log)
		}
	})
}

// A page that a later callback aborts gives the host back after a delay, though nobody here waits
// for it.
func TestAnAbortedPageGivesTheHostBack(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		all[0].OnRequest(func(r *colly.Request) { r.Abort() })
		all[0].Visit("http://a.test/0")
		all[0].Wait()
		all[1].Visit("http://a.test/1")
		all[1].Wait()
		wantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1")
	})
}

// Close gives back what is held for requests that have not been sent.
func TestCloseGivesHostsBack(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		all[0].OnRequest(func(r *colly.Request) { r.Abort() })
		all[0].Visit("http://a.test/0")
		all[0].Wait()
		must(t, all[0].robots.Close())
		all[1].Visit("http://a.test/1")
		all[1].Wait()
		wantSchedule(t, web, "a.test", "0s /robots.txt, 5s /1")
	})
}

// Close ends the wait for another process.
func TestCloseEndsTheWaitForAPacer(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1000\n")}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		inPieces(all[:1], 1, "http://a.test/%d")
		all[1].Visit("http://a.test/1")
		time.Sleep(time.Second)
		began := time.Now()
		must(t, all[1].robots.Close())
		all[1].Wait()
		if err := all[1].denied["http://a.test/1"]; !errors.Is(err, collyrobots.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The end of the collector's context ends the wait for another process.
func TestTheContextEndsTheWaitForAPacer(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 1000\n")}, func(t *testing.T, web *robotstest.Web) {
		p, why := shared(t), errors.New("enough")
		all := processes(t, web, 1, p)
		inPieces(all, 1, "http://a.test/%d")
		ctx, cancel := context.WithCancelCause(t.Context())
		c := start(t, web, append([]colly.CollectorOption{colly.StdlibContext(ctx)}, async...), collyrobots.SharedPace(p))
		c.Visit("http://a.test/1")
		time.Sleep(time.Second)
		cancel(why)
		c.Wait()
		if err := c.denied["http://a.test/1"]; !errors.Is(err, why) {
			t.Errorf("OnDenied was told %v", err)
		}
	})
}

// While another process has a host, a page that waits for it holds no slot of a LimitRule.
func TestAPageThatWaitsForAnotherProcessHoldsNoSlot(t *testing.T) {
	slow := func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Second) }
	inBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": http.HandlerFunc(slow), "*": robotstest.Page()},
		"b.test": robotstest.Pages(5, noDenys),
	}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		limited(t, all[1], &colly.LimitRule{DomainGlob: "*", Parallelism: 1})
		all[0].SetRequestTimeout(0)
		all[0].Visit("http://a.test/0")
		time.Sleep(2 * time.Second)
		all[1].Visit("http://a.test/1")
		time.Sleep(time.Second)
		inPieces(all[1:], 5, "http://b.test/%d")
		all[0].Wait()
		wantSchedule(t, web, "a.test", "0s /robots.txt, 1s /0, 22s /1")
		if log := web.Log("b.test"); len(log) != 6 || log[5].Elapsed > 4*time.Second {
			t.Errorf("b.test was asked for\n%s", log)
		}
	})
}

// Retry-After and back-off that one process was told of hold for the others.
func TestWhatAHostAsksOfOneProcessHoldsForAll(t *testing.T) {
	for after, least := range map[string]time.Duration{"60": time.Minute, "": 0} {
		t.Run("Retry-After: "+after, func(t *testing.T) {
			refuse := func(out http.ResponseWriter, _ *http.Request) {
				if after != "" {
					out.Header().Set("Retry-After", after)
				}
				time.Sleep(50 * time.Millisecond)
				out.WriteHeader(http.StatusTooManyRequests)
			}
			inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": noDenys, "/0": http.HandlerFunc(refuse), "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				all := processes(t, web, 2, shared(t))
				if _, err := all[1].robots.Check(t.Context(), "http://a.test/"); err != nil {
					t.Fatal(err)
				}
				all[0].Visit("http://a.test/0")
				all[0].Wait()
				refused := time.Now()
				least = max(least, all[0].robots.Stats().Hosts[0].Delay)
				all[1].Visit("http://a.test/1")
				all[1].Wait()
				log := web.Log("a.test")
				if gap := log[2].Time.Sub(refused); len(log) != 3 || gap.Round(time.Microsecond) < least || least < 100*time.Millisecond {
					t.Errorf("the other process came %v after the answer, want %v", gap, least)
				}
			})
		})
	}
}

// What has to be read again while a page has the host, or waits for it, gets it first.
func TestRobotsTxtThatExpiresWhileItsPageHasTheHost(t *testing.T) {
	robots := func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 50\n")
	}
	inBubble(t, robotstest.Sites{"a.test": {"/robots.txt": http.HandlerFunc(robots), "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
		all := processes(t, web, 2, shared(t))
		inPieces(all, 4, "http://a.test/%d")
		log := web.Log("a.test")
		wantNoSooner(t, web, "a.test", 50*time.Second, len(log))
		pages := len(all[0].pages) + len(all[1].pages)
		if last := log[len(log)-1].Elapsed; pages != 8 || last > time.Duration(len(log))*51*time.Second {
			t.Errorf("%d pages:\n%s", pages, log)
		}
	})
}

// In a dry run the Pacer is not asked.
func TestADryRunAsksNoPacer(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := shared(t)
		p.bad = "asked"
		c := start(t, web, nil, collyrobots.SharedPace(p), collyrobots.DryRun())
		c.impolite = true
		if err := c.Visit("http://a.test/0"); err != nil || p.asked != 0 {
			t.Errorf("%v; the Pacer was asked %d times", err, p.asked)
		}
	})
}

// What a page costs a Pacer: it is asked once, and gets the host back once.
func TestAPageAsksThePacerOnce(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(20, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := &counter{memoryPacer: shared(t)}
		c := start(t, web, nil, collyrobots.SharedPace(p), collyrobots.MinDelay(time.Second))
		c.Visit("http://a.test/")
		synctest.Wait()
		if before := p.granted; before != 2 {
			t.Errorf("%d leases for robots.txt and a page", before)
		}
		inPieces([]*crawl{c}, 10, "http://a.test/%d")
		if p.granted != 12 {
			t.Errorf("%d leases for 12 requests", p.granted)
		}
	})
}

// A counter counts what it grants.
type counter struct {
	*memoryPacer
	granted int
}

func (p *counter) Acquire(ctx context.Context, host string, delay time.Duration) (collyrobots.Lease, error) {
	l, err := p.memoryPacer.Acquire(ctx, host, delay)
	p.set(func() { p.granted++ })
	return l, err
}

// Without a Pacer in order there is a line of the log, and not one for each page.
func TestAPacerThatFailsIsLoggedOnce(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		p, logged := shared(t), new(bytes.Buffer)
		p.err = errors.New("down")
		c := start(t, web, nil, collyrobots.SharedPace(p), collyrobots.Logger(slog.New(slog.NewTextHandler(logged, nil))))
		for i := range 50 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		if got := strings.Count(logged.String(), "nothing is sent"); got != 1 || strings.Count(logged.String(), "\n") > 2 {
			t.Errorf("%d lines:\n%s", got, logged)
		}
	})
}

// A page that a Pacer's outage has kept back is got by another try after a pause, however long that
// lasts, and once.
func TestPagesOutlastAnOutage(t *testing.T) {
	for name, outage := range map[string]time.Duration{"a second": time.Second, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
				p := shared(t)
				tries := 0
				again := collyrobots.OnDenied(func(r *colly.Request, err error) {
					if unpaced := (*collyrobots.PaceError)(nil); errors.As(err, &unpaced) {
						tries++
						time.Sleep(10 * time.Second)
						r.Retry()
					}
				})
				c := start(t, web, async, collyrobots.SharedPace(p), again)
				c.Visit("http://a.test/0")
				c.Wait()
				p.set(func() { p.err = errors.New("down") })
				time.AfterFunc(outage, func() { p.set(func() { p.err = nil }) })
				c.Visit("http://a.test/1")
				c.Wait()
				wantURIs(t, web, "a.test", "/robots.txt /0 /1")
				if least := int(outage / (10 * time.Second)); tries < least {
					t.Errorf("%d tries", tries)
				}
			})
		})
	}
}

// One that is tried again without a pause is given up, as any other denial.
func TestTriesWithoutAPauseEnd(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, noDenys)}, func(t *testing.T, web *robotstest.Web) {
		p := shared(t)
		p.err = errors.New("down")
		tries := 0
		c := start(t, web, nil, collyrobots.SharedPace(p), collyrobots.OnDenied(func(r *colly.Request, _ error) { tries++; r.Retry() }))
		c.Visit("http://a.test/")
		if tries == 0 || tries > 20 {
			t.Errorf("%d tries", tries)
		}
	})
}

// Processes that share a pace keep a delay that is longer than the file is fresh, and each page comes.
func TestASharedDelayLongerThanTheFileIsFresh(t *testing.T) {
	for name, kept := range map[string]func() store.Store{
		"with a store":    store.Memory,
		"without a store": func() store.Store { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			site := robotstest.Site{"/robots.txt": robotsFor(time.Hour, "User-agent: *\nCrawl-delay: 7200\n"), "*": robotstest.Page()}
			inBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
				pacer := shared(t)
				options := []collyrobots.Option{collyrobots.SharedPace(pacer)}
				if s := kept(); s != nil {
					defer s.Close()
					options = append(options, collyrobots.Store(s))
				}
				var processes []*crawl
				for i := range 3 {
					c := start(t, web, async, options...)
					processes = append(processes, c)
					for j := range 3 {
						c.Visit(fmt.Sprint("http://a.test/", i, "/", j))
					}
				}
				pages := 0
				for _, c := range processes {
					c.Wait()
					pages += len(c.pages)
				}
				log := web.Log("a.test")
				paced := log
				if name == "without a store" {
					paced = log[len(processes)-1:] // each process reads the file for itself, when no delay is known
					for _, c := range processes {
						c.impolite = true
					}
				}
				if gap := paced.MinGap(); gap < 2*time.Hour-time.Microsecond {
					t.Errorf("a.test was asked twice within %v:\n%s", gap, log)
				}
				// Each page has the file read at most once when it comes and once when its turn comes.
				if pages != 9 || len(log) > 3*9 {
					t.Errorf("%d pages of 9 in %d requests:\n%s", pages, len(log), log)
				}
			})
		})
	}
}
