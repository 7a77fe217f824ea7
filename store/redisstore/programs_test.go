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

// TestPagesOutlastRedis checks that with the Retry function of the guide, no page is lost while
// Redis is away, and that each page is requested once.
func TestPagesOutlastRedis(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	client := redis.NewClient(&redis.Options{Addr: s.addr, DialTimeout: 200 * time.Millisecond})
	t.Cleanup(func() { client.Close() })
	const pages = 6
	c := newSpider(t, web, open(t, client, redisstore.Patience(300*time.Millisecond)), collyrobots.OnDenied(func(r *colly.Request, err error) {
		if unpaced := (*collyrobots.PaceError)(nil); !errors.As(err, &unpaced) {
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
	if got := len(web.visits()); got != 1+pages || c.pages != pages {
		t.Errorf("%d requests, %d pages", got, c.pages)
	}
	web.gap(t, time.Second)
}
