package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

// A spider is a collector as a user would write it. All its requests go to one site.
type spider struct {
	*collyrobots.Collector
	robots *collyrobots.Plugin
	mu     sync.Mutex
	pages  int
	errs   []error // the errors passed to OnError and OnDenied
}

func newSpider(t *testing.T, web *site, s *redisstore.Store, options ...collyrobots.Option) *spider {
	t.Helper()
	c := &spider{Collector: collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async(true))}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, web.addr)
	}}
	c.WithTransport(transport)
	note := func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs = append(c.errs, err)
	}
	robots, err := c.WithRobots(append([]collyrobots.Option{collyrobots.Store(s), collyrobots.SharedPace(s), collyrobots.Logger(slog.New(slog.DiscardHandler)),
		collyrobots.OnDenied(func(_ *colly.Request, err error) { note(err) })}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	c.robots = robots
	c.OnError(func(_ *colly.Response, err error) { note(err) })
	c.OnResponse(func(*colly.Response) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pages++
	})
	t.Cleanup(func() {
		robots.Close()
		transport.CloseIdleConnections()
	})
	return c
}

func (c *spider) wants(t *testing.T, pages int) {
	t.Helper()
	c.Wait()
	if c.pages != pages || len(c.errs) > 0 {
		t.Errorf("%d pages instead of %d, errors %v", c.pages, pages, c.errs)
	}
}

// TestJobsOfOneProcess checks that jobs that share a Store, each with its own plugin, keep one
// pace, and that the end of one job does not affect the others.
func TestJobsOfOneProcess(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	shared := open(t, s.client(t))
	jobs := make([]*spider, 3)
	for n := range jobs {
		jobs[n] = newSpider(t, web, shared)
		jobs[n].SetRequestTimeout(3 * time.Second) // waits do not count
		if err := jobs[n].Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 1}); err != nil {
			t.Fatal(err)
		}
		for page := range 2 {
			if err := jobs[n].Visit(fmt.Sprintf("http://host0/slow?%d-%d", n, page)); err != nil {
				t.Fatal(err)
			}
		}
	}
	web.await(t, 2)
	if err := jobs[0].robots.Close(); err != nil { // some of its pages are still waiting
		t.Error(err)
	}
	jobs[0].Wait()
	if jobs[0].pages == 2 {
		t.Error("the job was complete before it was closed")
	}
	jobs[1].wants(t, 2)
	jobs[2].wants(t, 2)
	files := 0
	for _, v := range web.visits("host0") {
		if v.path == "/robots.txt" {
			files++
		}
	}
	if files != 1 {
		t.Errorf("robots.txt was fetched %d times", files)
	}
	t.Logf("smallest gap %v", web.gap(t, time.Second))
}

// TestManyHostsWithoutADelay checks that requests to hosts without a delay do not wait for each
// other.
func TestManyHostsWithoutADelay(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	web.set("User-agent: *\n", "1")
	shared := open(t, s.client(t), redisstore.Patience(2*time.Minute)) // on a busy machine, 300 calls at once take a while
	time.Sleep(settled)
	c := newSpider(t, web, shared)
	c.SetRequestTimeout(2 * time.Minute)
	const hosts, pages = 100, 3
	web.together.Add(hosts * pages)
	began := time.Now()
	for host := range hosts {
		for page := range pages {
			_ = c.Visit(fmt.Sprintf("http://host%d/together?%d", host, page))
		}
	}
	c.wants(t, hosts*pages) // the site answers only when all requests are there
	t.Logf("%d pages of %d hosts took %v", hosts*pages, hosts, time.Since(began))
}

// TestRetryAfterOutlivesItsProcess checks that a process keeps a Retry-After that an earlier
// process received.
func TestRetryAfterOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	web.set("User-agent: *\n", "3600")
	first := newSpider(t, web, open(t, s.client(t)))
	if err := first.Visit("http://host0/1"); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	web.setBusy()
	_ = first.Visit("http://host0/2")
	first.Wait()
	if err := first.robots.Close(); err != nil {
		t.Error(err)
	}
	before := len(web.visits("host0"))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	second := newSpider(t, web, open(t, s.client(t)))
	second.Context = ctx
	if err := second.Visit("http://host0/3"); err != nil {
		t.Fatal(err)
	}
	second.Wait()
	if after := len(web.visits("host0")); after != before || before != 3 {
		t.Errorf("%d visits, then %d", before, after)
	}
	key := only(t, s.client(t), "*:pace:host0")
	if ttl := s.client(t).PTTL(context.Background(), key).Val(); ttl < time.Hour {
		t.Errorf("the Retry-After is kept for %v", ttl)
	}
}

// TestPagesOutlastRedis checks that with the Retry function of the guide, no page is lost while
// Redis is away, and that each page is requested once.
func TestPagesOutlastRedis(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr, DialTimeout: 200 * time.Millisecond})
	t.Cleanup(func() { client.Close() })
	const pages = 6
	c := newSpider(t, web, open(t, client, redisstore.Patience(300*time.Millisecond)), collyrobots.OnDenied(func(r *colly.Request, err error) {
		if unpaced := (*report.PaceError)(nil); !errors.As(err, &unpaced) {
			t.Error(err)
		}
		time.Sleep(200 * time.Millisecond)
		if err := r.Retry(); err != nil {
			t.Error(err)
		}
	}))
	for page := range pages {
		_ = c.Visit(fmt.Sprintf("http://host0/%d", page))
	}
	web.await(t, 3)
	s.stop()
	time.Sleep(3 * time.Second)
	s.start(t) // without its data
	c.Wait()
	if got := len(web.visits("host0")); got != 1+pages || c.pages != pages {
		t.Errorf("%d requests, %d pages", got, c.pages)
	}
	web.gap(t, time.Second)
}
