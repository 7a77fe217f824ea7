package reporter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A world is a Reporter with one listener, and a host that may start a request each minute.
type world struct {
	*Reporter
	t        *testing.T
	start    time.Time
	log      bytes.Buffer
	hosts    *pace.Hosts
	host     *pace.Host
	listener *fanout.Listener[*report.Event]
	events   []*report.Event
}

// inBubble runs a test with a world. If quiet, there is no listener.
func inBubble(t *testing.T, quiet bool, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &world{t: t, start: time.Now()}
		w.Reporter = New(slog.New(slog.NewTextHandler(&w.log, nil)))
		w.hosts = pace.New(func(string) *pace.Rules { return &pace.Rules{MinDelay: time.Minute} })
		w.host = w.hosts.At(w.start, "a.test")
		if !quiet {
			w.listener = w.Events.ListenOnDemand(func(e *report.Event) { w.events = append(w.events, e) })
		}
		defer w.Events.Close()
		test(w)
	})
}

// takeTurn starts a request to the host.
func (w *world) takeTurn() *pace.Ticket {
	t := new(pace.Ticket)
	err := w.host.Start(w.t.Context(), t, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

var (
	page      = &url.URL{Scheme: "http", Host: "a.test", Path: "/p", User: url.UserPassword("u", "secret")}
	errBroken = errors.New("broken: http://u:secret@a.test/")
	hidden    = "http://u:xxxxx@a.test/p"
)

// tells are the methods that send one event about a page, and the event that each sends. Time,
// Host and URL are those of eventOf unless they are given.
var tells = []struct {
	name string
	tell func(w *world, of IDs)
	want report.Event
	errs bool // Event.Err is errBroken, without its password
	page bool // the event says which page it is about, and how long that has waited
	none bool // the event does not have the numbers of Colly
}{
	{
		name: "tags",
		tell: func(w *world, of IDs) { w.TellTags(page, robotstags.Tags{{Name: robotstags.NoIndex}}, of) },
		want: report.Event{Kind: report.EventTags, Tags: robotstags.Tags{{Name: robotstags.NoIndex}}},
	},
	{
		name: "denied",
		tell: func(w *world, of IDs) { w.TellDenied(w.host, report.Decision{URL: hidden, Allowed: true}, false, of) },
		want: report.Event{Kind: report.EventDenied, Decision: &report.Decision{URL: hidden, Allowed: true}},
		page: true,
	},
	{
		name: "denied in a dry run",
		tell: func(w *world, of IDs) { w.TellDenied(w.host, report.Decision{URL: hidden}, true, of) },
		want: report.Event{Kind: report.EventDenied, Decision: &report.Decision{URL: hidden}, More: true},
		page: true,
	},
	{
		name: "unsent",
		tell: func(w *world, of IDs) { w.TellUnsent(page, errBroken, true, of) },
		want: report.Event{Kind: report.EventDenied, Failed: true},
		errs: true,
		page: true,
	},
	{
		name: "given up",
		tell: func(w *world, of IDs) { w.TellGivenUp(page, errBroken, false, of) },
		want: report.Event{Kind: report.EventUnsent},
		errs: true,
		page: true,
	},
	{
		name: "unchanged",
		tell: func(w *world, of IDs) { w.TellUnchanged(w.host, page, 304, of) },
		want: report.Event{Kind: report.EventUnchanged, Status: 304},
	},
	{
		name: "refused",
		tell: func(w *world, of IDs) {
			w.TellRefused(w.host, page, 403, errBroken, stop.Status{InRow: 5, Until: w.start.Add(time.Hour)}, of)
		},
		want: report.Event{Kind: report.EventRefused, Status: 403, Count: 5, Until: time.Unix(3600, 0)},
		errs: true,
	},
	{
		name: "slowed",
		tell: func(w *world, of IDs) {
			w.host.SlowDown(time.Now(), w.takeTurn(), time.Hour)
			w.TellPace(report.EventSlowed, w.host, page, 429, of)
		},
		want: report.Event{
			Kind:   report.EventSlowed,
			Status: 429,
			Delay:  time.Minute,
			Source: report.SourceRetryAfter,
			Until:  time.Unix(3600+2, 0),
		},
	},
	{
		name: "unrecorded",
		tell: func(w *world, of IDs) {
			w.TellUnrecorded(&urlstore.Page{Host: "a.test", URL: page.String()}, errBroken)
		},
		want: report.Event{Kind: report.EventUnrecorded},
		errs: true,
		none: true,
	},
	{
		name: "sitemap",
		tell: func(w *world, of IDs) { w.TellSitemap(hidden, 7, errBroken) },
		want: report.Event{Kind: report.EventSitemap, Count: 7},
		errs: true,
		none: true,
	},
}

// TestTell checks each event, and that there is none without a listener.
func TestTell(t *testing.T) {
	for _, test := range tells {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, false, func(w *world) {
				p := w.NewPage(w.t.Context())
				of := IDs{Collector: 4, Request: 5, Page: p, Since: w.start, Robots: time.Second}
				time.Sleep(2 * time.Second)
				test.tell(w, of)
				want := test.want
				want.Time = w.start.Add(2 * time.Second)
				want.Host = "a.test"
				want.URL = hidden
				if !test.none {
					want.Collector = 4
					want.Request = 5
				}
				if test.page {
					want.Page = 1
					want.Context = w.t.Context()
					want.Waited = 2 * time.Second
					want.RobotsWait = time.Second
				}
				if !want.Until.IsZero() {
					want.Until = w.start.Add(time.Duration(want.Until.Unix()) * time.Second)
				}
				got := w.last()
				if test.errs && (got.Err == nil || got.Err.Error() != "broken: http://u:xxxxx@a.test/") {
					t.Errorf("error %v", got.Err)
				}
				got.Err = nil
				if !reflect.DeepEqual(*got, want) {
					t.Errorf("got\n%+v\nwant\n%+v", *got, want)
				}
			})
			inBubble(t, true, func(w *world) {
				if p := w.NewPage(w.t.Context()); p != nil {
					t.Error("a page without a listener has a number")
				}
				test.tell(w, IDs{})
			})
		})
	}
}

// last returns the only event so far.
func (w *world) last() *report.Event {
	w.t.Helper()
	w.listener.Deliver()
	if len(w.events) != 1 {
		w.t.Fatalf("%d events, want 1: %+v", len(w.events), w.events)
	}
	e := w.events[0]
	w.events = nil
	return e
}

// TestUnrecordedWithoutPage checks the event about a failure that is not about one page.
func TestUnrecordedWithoutPage(t *testing.T) {
	inBubble(t, false, func(w *world) {
		w.TellUnrecorded(nil, errBroken)
		if e := w.last(); e.Host != "" || e.URL != "" || e.Err == nil {
			t.Errorf("got %+v", e)
		}
	})
}

// TestWaiting checks which waits are reported, and what the page waits for.
func TestWaiting(t *testing.T) {
	inBubble(t, false, func(w *world) {
		of := IDs{Collector: 4, Request: 5}
		if w.TellWaiting(time.Now(), w.host, page, of) {
			t.Error("a page that need not wait is reported")
		}
		w.takeTurn().End()
		time.Sleep(time.Minute - noticeable + time.Millisecond)
		if w.TellWaiting(time.Now(), w.host, page, of) {
			t.Error("a wait of less than 100 ms is reported")
		}
		time.Sleep(-time.Millisecond)
		w.TellParked(time.Now(), w.host.Stats(time.Now()), 1, page, of)
		w.takeTurn().End()
		next := time.Now().Add(time.Minute)
		if !w.TellWaiting(time.Now(), w.host, page, of) {
			t.Error("a wait is not reported")
		}
		want := &report.Event{
			Kind:      report.EventWaiting,
			Time:      time.Now(),
			Host:      "a.test",
			URL:       hidden,
			Collector: 4,
			Request:   5,
			Count:     1,
			Delay:     time.Minute,
			Source:    report.SourceMinDelay,
			Until:     next,
		}
		if got := w.last(); !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%+v\nwant\n%+v", *got, want)
		}
		w.TellParked(time.Now(), w.host.Stats(time.Now()), 3, page, of)
		want.Count = 3
		want.OnDisk = true
		if got := w.last(); !reflect.DeepEqual(got, want) {
			t.Errorf("on disk: got\n%+v\nwant\n%+v", got, want)
		}
	})
}

// TestWaitingForRate checks that a page which waits for the total rate says so.
func TestWaitingForRate(t *testing.T) {
	inBubble(t, false, func(w *world) {
		if RateStats(time.Now(), w.hosts) != nil {
			t.Error("waits without a rate")
		}
		w.hosts.LimitRate(rate.Every(time.Hour), 1)
		w.takeTurn().End()
		time.Sleep(time.Minute)
		w.TellWaiting(time.Now(), w.host, page, IDs{})
		if e := w.last(); e.Source != report.SourceMaxRate || e.Until.Sub(w.start) != time.Hour {
			t.Errorf("waits for %s until %v, want max_rate until 1h", e.Source, e.Until.Sub(w.start))
		}
		if s := RateStats(time.Now(), w.hosts); s == nil || s.Waiting != 0 {
			t.Errorf("rate %+v", s)
		}
	})
}

// TestRobots checks the event about a robots.txt, and the change that it has.
func TestRobots(t *testing.T) {
	inBubble(t, false, func(w *world) {
		text := "User-agent: *\nCrawl-delay: 5\nSitemap: http://a.test/s.xml\n"
		status := http.StatusOK
		cache := policy.New(policy.Options{Tokens: []string{"bot"}, Dialect: dialect.RFC9309(), Updated: func(u policy.Update) {
			change := (*report.RobotsChange)(nil)
			if u.Changed() {
				change = ChangeOf(u.Old, u.Policy)
			}
			w.TellRobots(u, change, "RobotsTxt")
		}})
		defer cache.Close()
		get := func() *report.Event {
			_, err := cache.Get(w.t.Context(), dialect.Authority{Scheme: "http", Host: "a.test"}, policy.Fetch{
				Do: func(req *http.Request) (*http.Response, error) {
					body := io.NopCloser(strings.NewReader(text))
					return &http.Response{StatusCode: status, Header: http.Header{}, Body: body, Request: req}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return w.last()
		}
		first := get()
		if first.Kind != report.EventRobots || first.Host != "a.test" || first.URL != "http://a.test/robots.txt" ||
			first.Status != 200 || first.RobotsStatus != "rules" || first.Option != "RobotsTxt" || !first.Fetched.Equal(w.start) ||
			first.Stored || len(first.Hash) != 32 || string(first.Body) != text || first.Change != nil {
			t.Errorf("first event: %+v", first)
		}
		time.Sleep(48 * time.Hour)
		status = http.StatusNotFound
		second := get()
		c := second.Change
		if c == nil || c.Old.Status != 200 || c.Old.CrawlDelay != 5*time.Second || len(c.Old.Sitemaps) != 1 ||
			c.New.Status != 404 || c.New.CrawlDelay != 0 || c.New.Sitemaps != nil || c.RobotsURL != "http://a.test/robots.txt" ||
			c.Authority != "http://a.test" {
			t.Errorf("change: %+v", c)
		}
	})
}

// TestStarts checks that no other event of a start is made while one is made and sent.
func TestStarts(t *testing.T) {
	inBubble(t, false, func(w *world) {
		w.TellStart(func() *report.Event {
			if w.starts.TryLock() {
				t.Error("another start may be made at the same time")
			}
			return &report.Event{Kind: report.EventStarted}
		})
		if e := w.last(); e.Kind != report.EventStarted {
			t.Errorf("got %+v", e)
		}
	})
}

// TestWarn checks that each message is logged once.
func TestWarn(t *testing.T) {
	inBubble(t, true, func(w *world) {
		w.Warn("first", "key", 1)
		w.Warn("first", "key", 2)
		w.Warn("second")
		if w.MarkLogged("second") {
			t.Error("a message is new that was logged")
		}
		if log := w.log.String(); strings.Count(log, "first") != 1 || strings.Count(log, "second") != 1 || !strings.Contains(log, "key=1") {
			t.Errorf("log: %s", log)
		}
	})
}

// TestMissedEvents checks that a slow listener learns how many events were dropped.
func TestMissedEvents(t *testing.T) {
	inBubble(t, false, func(w *world) {
		const size = 1 << 20
		for range 100 {
			w.Events.Send(&report.Event{Body: make([]byte, size)})
		}
		w.listener.Deliver()
		missed := 0
		for _, e := range w.events {
			missed += e.Count
		}
		if missed == 0 || len(w.events)-1+missed != 100 {
			t.Errorf("%d events, %d missed", len(w.events), missed)
		}
	})
}

// TestEndings checks how hosts have ended.
func TestEndings(t *testing.T) {
	sent := report.HostCounts{Requests: 1}
	tests := []struct {
		name           string
		counts         report.HostCounts
		busy           bool
		marks          uint16
		onDisk         int
		closed, paused bool
		want           report.Ending
	}{
		{name: "nothing was requested"},
		{name: "busy", counts: sent, busy: true, marks: LeftByClose},
		{name: "done", counts: report.HostCounts{Pages: 1}, want: report.EndingDone},
		{name: "denied", counts: report.HostCounts{Denied: 1}, want: report.EndingDone},
		{name: "closed", counts: sent, marks: LeftByClose | LeftByCancel | LeftByBudget, want: report.EndingClosed},
		{name: "canceled", counts: sent, marks: LeftByCancel | LeftByRefusals, want: report.EndingCanceled},
		{name: "refused", counts: sent, marks: LeftByRefusals | LeftByBudget, want: report.EndingRefused},
		{name: "budget", counts: sent, marks: LeftByBudget, want: report.EndingBudget},
		{name: "pages on disk", counts: sent, marks: LeftByBudget, onDisk: 1},
		{name: "paused", counts: sent, onDisk: 1, paused: true, want: report.EndingCanceled},
		{name: "closed with pages on disk", counts: sent, onDisk: 1, closed: true, want: report.EndingClosed},
		{name: "a limit, and paused", counts: sent, marks: LeftByBudget, onDisk: 1, paused: true, want: report.EndingBudget},
	}
	var s report.Stats
	for _, test := range tests {
		stats := pace.Stats{HostStats: report.HostStats{HostCounts: test.counts}, Busy: test.busy, Marks: test.marks}
		got := EndingOf(stats, test.onDisk, test.closed, test.paused)
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		CountEnding(&s, got)
	}
	if s.Ended[report.EndingDone] != 2 || s.Ended[report.EndingBudget] != 2 || len(s.Ended) != 5 {
		t.Errorf("counts %v", s.Ended)
	}
}

// TestMarkEnded checks the reasons why the last page of a host was not sent.
func TestMarkEnded(t *testing.T) {
	inBubble(t, true, func(w *world) {
		var c UnsentCounts
		if c.Statistics() != nil {
			t.Error("counts before the first page")
		}
		for i, closed := range []bool{false, true, false} {
			h := w.hosts.At(time.Now(), strings.Repeat("b", i+1))
			MarkEnded(h, closed)
			c.Add(closed)
			if h.HasMark(LeftByClose) != closed || h.HasMark(LeftByCancel) == closed {
				t.Errorf("marks for closed=%v", closed)
			}
		}
		if got := c.Statistics(); got[report.EndingCanceled] != 2 || got[report.EndingClosed] != 1 || len(got) != 2 {
			t.Errorf("counts %v", got)
		}
	})
}

// TestAddHost checks that AddHost adds the counts that are in no HostCounts.
func TestAddHost(t *testing.T) {
	sum := report.HostStats{HostCounts: report.HostCounts{Pages: 1}, PagesSent: 2, Waiting: 3, OnDisk: 4}
	AddHost(&sum, sum)
	want := report.HostStats{HostCounts: report.HostCounts{Pages: 2}, PagesSent: 4, Waiting: 6, OnDisk: 8}
	if sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

// TestPageWithoutListener checks that the events of a page without a number are those of no page.
func TestPageWithoutListener(t *testing.T) {
	e := new(report.Event)
	(*Page)(nil).Describe(e)
	if e.Page != 0 || e.Context != context.Context(nil) {
		t.Errorf("got %+v", e)
	}
}
