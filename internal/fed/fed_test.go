package fed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/feed"
)

// A log is a Listener that records its calls with their times.
type log struct {
	began time.Time
	calls []string
}

func (l *log) add(name string, r feed.Result) {
	result := []string{"Done", "Failed", "Skipped", "Unfinished", "Silent", "Unsent"}[r]
	l.calls = append(l.calls, fmt.Sprintf("%s(%s) at %v", name, result, time.Since(l.began)))
}

func (l *log) Ended(_ *Page, r feed.Result)  { l.add("Ended", r) }
func (l *log) Lapsed(_ *Page, r feed.Result) { l.add("Lapsed", r) }

// kinds has the constructors of pages with a Listener. A page of Listed has a function instead, and
// calls it for both methods.
var kinds = map[string]func(l *log) *Page{
	"listed":     func(l *log) *Page { return &Page{kind: listed, listener: l} },
	"queued":     func(l *log) *Page { return Queued("a.test", l) },
	"recorded":   func(l *log) *Page { return Recorded("a.test", l) },
	"unrecorded": func(l *log) *Page { return Unrecorded("a.test", l) },
}

// steps are the events of a page by their names.
var steps = map[string]func(p *Page, r *colly.Request){
	"claim":      func(p *Page, r *colly.Request) { p.Claim(r) },
	"awaitClaim": func(p *Page, _ *colly.Request) { p.AwaitClaim() },
	"await":      func(p *Page, _ *colly.Request) { p.Await() },
	"sent":       func(p *Page, _ *colly.Request) { p.AwaitHook() },
	"hook":       func(p *Page, _ *colly.Request) { p.Hook() },
	"done":       func(p *Page, _ *colly.Request) { p.End(feed.Done) },
	"failed":     func(p *Page, _ *colly.Request) { p.End(feed.Failed) },
	"settle":     func(p *Page, _ *colly.Request) { p.Settle() },
	"endNow":     func(p *Page, _ *colly.Request) { p.EndNow(feed.Unfinished) },
	"aborted":    func(p *Page, _ *colly.Request) { p.Aborted() },
	"9s":         func(*Page, *colly.Request) { time.Sleep(9 * time.Second) },
	"10s":        func(*Page, *colly.Request) { time.Sleep(10 * time.Second) },
}

// transitions are the cases of TestTransitions: the kinds of the page, the steps, and the calls of
// the Listener. After the steps, a minute passes.
var transitions = []struct {
	kinds, steps, want string
}{
	// The result of a page ends it at once, except that of a page of Frontier.
	{"listed queued", "claim done failed", "Ended(Done) at 0s"},
	{"listed queued", "claim failed settle done", "Ended(Failed) at 0s"},
	{"recorded unrecorded", "claim done", ""},
	{"recorded unrecorded", "claim settle", ""},
	{"recorded unrecorded", "claim done failed 9s settle settle done", "Ended(Done) at 9s"},
	{"listed queued recorded unrecorded", "claim endNow done settle", "Ended(Unfinished) at 0s"},
	{"listed queued recorded unrecorded", "endNow claim 10s", "Ended(Unfinished) at 0s"},

	// A page that a callback has aborted is done if it is in a store.
	{"listed", "claim aborted", "Ended(Skipped) at 0s"},
	{"queued recorded unrecorded", "claim aborted", "Ended(Done) at 0s"},
	{"recorded", "claim failed aborted", "Ended(Failed) at 0s"},

	// Without a request, a page ends after ten seconds.
	{"listed", "awaitClaim", "Ended(Skipped) at 10s"},
	{"queued recorded unrecorded", "awaitClaim", "Ended(Unsent) at 10s"},
	{"listed", "awaitClaim 10s claim done", "Ended(Skipped) at 10s"},
	{"queued", "awaitClaim 10s claim done", "Ended(Unsent) at 10s"},
	{"listed queued recorded", "awaitClaim 9s claim", ""},
	{"listed queued recorded", "claim awaitClaim", ""},

	// A page lapses if no hook comes in time. A late result counts.
	{"listed queued recorded unrecorded", "claim await", "Lapsed(Unsent) at 10s"},
	{"listed queued recorded unrecorded", "claim sent", "Lapsed(Silent) at 10s"},
	{"listed queued recorded unrecorded", "claim await 9s await", "Lapsed(Unsent) at 19s"},
	{"listed queued recorded unrecorded", "claim await 9s sent", "Lapsed(Silent) at 19s"},
	{"listed queued recorded unrecorded", "claim sent hook", ""},
	{"listed queued recorded unrecorded", "claim sent hook await", "Lapsed(Silent) at 10s"},
	{"listed queued", "claim sent 9s done", "Ended(Done) at 9s"},
	{"recorded unrecorded", "claim sent 9s done 9s settle", "Ended(Done) at 18s"},
	{"listed queued", "claim await 10s done failed", "Lapsed(Unsent) at 10s, Ended(Done) at 10s"},
	{"listed queued", "claim sent 10s sent 10s await 10s done", "Lapsed(Silent) at 10s, Ended(Done) at 30s"},
	{"recorded unrecorded", "claim sent 10s done 9s settle", "Lapsed(Silent) at 10s, Ended(Done) at 19s"},

	// A page whose result is known does not wait.
	{"listed queued", "claim done await sent", "Ended(Done) at 0s"},
	{"recorded unrecorded", "claim done await sent", ""},
}

func TestTransitions(t *testing.T) {
	for _, test := range transitions {
		for _, kind := range strings.Fields(test.kinds) {
			t.Run(kind+" "+test.steps, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					got := run(kind, strings.Fields(test.steps))
					if got != test.want {
						t.Errorf("got %q, want %q", got, test.want)
					}
				})
			})
		}
	}
}

// run makes a page go through steps, and returns the calls of its Listener.
func run(kind string, names []string) string {
	l := &log{began: time.Now()}
	p := kinds[kind](l)
	r := new(colly.Request)
	for _, name := range names {
		steps[name](p, r)
		synctest.Wait()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	return strings.Join(l.calls, ", ")
}

// The function of a page that a sitemap lists gets its result after a lapse as well.
func TestListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []feed.Result
		p := Listed("a.test", func(r feed.Result) { got = append(got, r) })
		p.Claim(new(colly.Request))
		p.AwaitHook()
		time.Sleep(limit)
		synctest.Wait()
		p.End(feed.Done)
		if want := []feed.Result{feed.Silent, feed.Done}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if p.From != "a.test" || !p.IsListed() || p.IsRecorded() {
			t.Errorf("got %+v, want a page that a.test lists", p)
		}
	})
}

// A page belongs to the first request that claims it, and to none that comes when it has ended.
func TestClaim(t *testing.T) {
	var pages Pages
	first := &colly.Request{Ctx: colly.NewContext()}
	second := &colly.Request{Ctx: first.Ctx}
	page := Listed("", func(feed.Result) {})
	first.Ctx.Put(Key, page)
	if pages.Claim(first) != nil {
		t.Error("a Context was searched before Use")
	}
	pages.Use()
	if page.IsClaimed() || pages.Of(first) != nil {
		t.Error("the page is claimed before Claim")
	}
	if pages.Claim(first) != page || pages.Claim(second) != nil || pages.Claim(first) != page {
		t.Error("the page does not belong to its first request")
	}
	if pages.Of(first) != page || pages.Of(second) != nil || page.Owner() != first {
		t.Error("the page is found by another request")
	}
	page.Disown()
	if page.IsClaimed() || pages.Of(first) != nil {
		t.Error("the page keeps a request that it has forgotten")
	}
	ended := Listed("", func(feed.Result) {})
	ended.End(feed.Skipped)
	late := &colly.Request{Ctx: colly.NewContext()}
	late.Ctx.Put(Key, ended)
	if pages.Claim(late) != nil || ended.IsClaimed() {
		t.Error("a request has claimed a page that has ended")
	}
}

// A page is found by its name until its result is known, also after it has lapsed.
func TestName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages Pages
		page := Queued("", &log{})
		r := &colly.Request{Ctx: colly.NewContext()}
		r.Ctx.Put(Key, pages.Name(page))
		if pages.Claim(r) != page {
			t.Fatal("the page is not found by its name")
		}
		page.Await()
		time.Sleep(limit)
		synctest.Wait()
		if pages.Of(r) != page || !page.IsOver() {
			t.Error("the page has lapsed and is not found")
		}
		page.End(feed.Done)
		if pages.Of(r) != nil || !page.IsOver() {
			t.Error("the page has ended and is found")
		}
		other := &colly.Request{Ctx: colly.NewContext()}
		if pages.Claim(other) != nil {
			t.Error("a request without a page has one")
		}
	})
}

// The methods that hooks call do nothing without a page.
func TestNoPage(t *testing.T) {
	var p *Page
	p.Await()
	p.Hook()
	p.End(feed.Done)
	p.EndNow(feed.Done)
	p.Settle()
	p.Aborted()
	if p.IsRecorded() || p.IsUnaccepted() {
		t.Error("no page has properties of a page")
	}
	accepted := Recorded("", &log{})
	if accepted.IsUnaccepted() {
		t.Error("a page is unaccepted from the beginning")
	}
	accepted.SetUnaccepted()
	if !accepted.IsUnaccepted() {
		t.Error("SetUnaccepted has no effect")
	}
}
