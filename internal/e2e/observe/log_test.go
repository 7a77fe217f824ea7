package observe

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// A callingHandler is a slog.Handler. For each record with a given message, it calls a function on
// another goroutine and waits for it.
type callingHandler struct {
	slog.Handler
	message string
	call    func()
	called  atomic.Int32 // the number of calls
	stuck   atomic.Bool  // whether a call did not return in time
}

func (h *callingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *callingHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message != h.message {
		return nil
	}
	h.called.Add(1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		h.call()
	}()
	select {
	case <-returned:
	case <-time.After(time.Minute):
		h.stuck.Store(true)
	}
	return nil
}

// TestLogHandlerMayUseThePlugin checks that the plugin holds no lock while it logs, so that a
// slog.Handler may use the plugin and the collector.
func TestLogHandlerMayUseThePlugin(t *testing.T) {
	cases := map[string]struct {
		message string
		agent   string
		prepare func(c *kit.Crawl) // called after Attach
		pacer   pacer.Pacer
	}{
		"user agent without a name": {
			message: "user agent names no crawler, only the groups for * apply; set ProductToken",
			agent:   "Mozilla/5.0 (X11)",
		},
		"user agent that changes": {
			message: "user agent changes during the crawl, robots.txt is read for each name; set ProductToken",
			agent:   "ExampleBot/1.0",
			prepare: func(c *kit.Crawl) {
				c.OnRequest(func(r *colly.Request) { r.Headers.Set("User-Agent", "OtherBot/1.0") })
			},
		},
		"callbacks after Attach": {
			message: "OnRequest callbacks were registered after Attach: a request that they abort costs its host one delay, one that they change is judged twice",
			agent:   "ExampleBot/1.0",
			prepare: func(c *kit.Crawl) { c.OnRequest(func(*colly.Request) {}) },
		},
		"Pacer that fails": {
			message: "Pacer failed, nothing is sent",
			agent:   "ExampleBot/1.0",
			pacer:   &panickingPacer{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{
				"a.test": robotstest.Pages(3, kit.NoDenys),
				"b.test": robotstest.Pages(3, kit.NoDenys),
			})
			var c *kit.Crawl
			h := &callingHandler{Handler: slog.DiscardHandler, message: tc.message}
			h.call = func() {
				c.Robots.Stats()
				c.Robots.Check(t.Context(), "http://b.test/1")
				c.Visit("http://b.test/2")
			}
			options := []collyrobots.Option{collyrobots.Logger(slog.New(h))}
			if tc.pacer != nil {
				options = append(options, collyrobots.SharedPace(tc.pacer))
			}
			c = kit.Start(t, web, []colly.CollectorOption{colly.UserAgent(tc.agent)}, options...)
			if tc.prepare != nil {
				tc.prepare(c)
			}
			for i := range 3 {
				c.Visit(fmt.Sprint("http://a.test/", i))
			}
			if h.called.Load() == 0 {
				t.Error("the message was not logged")
			}
			if h.stuck.Load() {
				t.Error("the handler could not use the plugin")
			}
		})
	}
}

// A panickingPacer grants leases. The first lease panics when it is used.
type panickingPacer struct{ leases atomic.Int32 }

func (p *panickingPacer) Acquire(context.Context, string, time.Duration) (pacer.Lease, error) {
	return &panickingLease{panics: p.leases.Add(1) == 1}, nil
}

type panickingLease struct {
	panics bool
	asked  atomic.Int32
}

func (l *panickingLease) Deadline() time.Time { return time.Now().Add(time.Minute) }

// Valid panics in the second call. The first call is made when the lease was granted, the second
// one before the request is sent.
func (l *panickingLease) Valid() bool {
	if l.asked.Add(1) == 2 && l.panics {
		panic("the pacer is broken")
	}
	return true
}

func (l *panickingLease) Release(bool, time.Duration, time.Time) {}
