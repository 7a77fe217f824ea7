// Package frontiertest runs spiders with a urlstore.Store, stops them and continues them. It has one table
// of programs for every urlstore.Store. The programs are in the style of public Colly programs.
//
// Each program is run with Colly alone, and with the option Frontier without an interruption and
// with several kinds of interruptions. Each time it must request the same pages and find the same
// results. With the option Frontier it requests each page once, unless the program itself requests
// it more often, and finds each result once. It requests no page that robots.txt disallows, and
// keeps the crawl delay.
package frontiertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A Store is a urlstore.Store that survives the runs of a crawl.
type Store interface {
	// Open returns the urlstore.Store as the next run finds it.
	Open(t *testing.T) urlstore.Store

	// Drop makes the urlstore.Store of the current run fail, as if the process had ended.
	Drop(t *testing.T)
}

// A program is a spider and the web that it crawls. Unless a field says something else, it requests
// each page once in all of its runs together.
type program struct {
	name  string
	sites func() robotstest.Sites
	run   func(r *run)

	repeats  map[string]int // how often the program itself makes a request, such as "GET a.test/1"
	perRun   []string       // requests that the program makes in each run
	underWay int            // how many requests a stop may interrupt, which are then made again
}

// A run is one run of a program.
type run struct {
	*kit.Run
	ctx     context.Context
	first   bool           // no run was before this one
	memory  map[string]any // what the program keeps on its own disk
	results *results
	ended   bool // the process has ended; guarded by results.mu
}

// results are what the runs of a crawl have found.
type results struct {
	mu    sync.Mutex
	times map[string]int
}

func newRun(t *testing.T, web *robotstest.Web, found *results, memory map[string]any) *run {
	return &run{Run: &kit.Run{T: t, Web: web, BuiltIn: true}, ctx: t.Context(), memory: memory, results: found}
}

// found reports a result of the program.
func (r *run) found(format string, args ...any) {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()
	if !r.ended {
		r.results.times[fmt.Sprintf(format, args...)]++
	}
}

// end makes the program find nothing more, as if its process had ended.
func (r *run) end() {
	r.results.mu.Lock()
	defer r.results.mu.Unlock()
	r.ended = true
}

// must fails the test if err is not nil.
func (r *run) must(err error) {
	r.Helper()
	if err != nil {
		r.Error(err)
	}
}

// collector returns an asynchronous collector of the program.
func (r *run) collector(options ...colly.CollectorOption) *colly.Collector {
	return r.Collector(append([]colly.CollectorOption{colly.Async(), colly.StdlibContext(r.ctx)}, options...)...)
}

// A stop interrupts a run.
type stop struct {
	after   time.Duration
	options []collyrobots.Option // of the run
	how     func(r *run, store Store, cancel func())
}

func canceled(after time.Duration) stop {
	return stop{after: after, how: func(_ *run, _ Store, cancel func()) { cancel() }}
}

func closed(after time.Duration) stop {
	return stop{after: after, how: func(r *run, _ Store, _ func()) { r.must(r.Plugin.Close()) }}
}

// killed ends the urlstore.Store first, so that it does not learn what happens later.
func killed(after time.Duration) stop {
	return stop{after: after, how: func(r *run, store Store, _ func()) {
		r.end()
		store.Drop(r.T)
		r.must(r.Plugin.Close())
	}}
}

// limited lets a run request n pages of each host.
func limited(n int) stop {
	return stop{after: 24 * time.Hour, options: []collyrobots.Option{collyrobots.MaxPages(n)}, how: func(r *run, _ Store, _ func()) {
		r.Error("the run has not ended")
	}}
}

// The pages of the programs start at every second, so a stop comes between them.
var interruptions = map[string][]stop{
	"no stop":       nil,
	"cancel":        {canceled(3 * time.Second)},
	"cancel twice":  {canceled(5 * time.Second), canceled(7 * time.Second)},
	"Close":         {closed(5 * time.Second)},
	"kill at once":  {killed(time.Second)},
	"kill":          {killed(3 * time.Second)},
	"kill later":    {killed(9 * time.Second)},
	"kill three":    {killed(3 * time.Second), killed(5 * time.Second), killed(7 * time.Second)},
	"MaxPages":      {limited(2)},
	"MaxPages, all": {limited(3), canceled(5 * time.Second), killed(3 * time.Second)},
}

// Run runs each program with each interruption. newStore returns an empty Store.
func Run(t *testing.T, newStore func(t *testing.T) Store) {
	for _, x := range programs {
		t.Run(x.name, func(t *testing.T) {
			want := x.alone(t)
			for name, stops := range interruptions {
				t.Run(name, func(t *testing.T) { x.check(t, newStore, stops, want) })
			}
		})
	}
}

// A crawl is what the runs of a program have requested and found.
type crawl struct{ requests, results map[string]int }

// alone runs a program with Colly alone. Colly checks robots.txt, except for redirects, and keeps no
// delay. It may request a page twice that two pages link to, because it asks its storage and changes
// it in two steps.
func (x *program) alone(t *testing.T) (got crawl) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, x.sites())
		r := newRun(t, web, &results{times: make(map[string]int)}, make(map[string]any))
		r.first = true
		x.run(r)
		synctest.Wait()
		got = crawl{requests: requestsOf(web), results: r.results.times}
	})
	for _, times := range []map[string]int{got.requests, got.results} {
		maps.DeleteFunc(times, func(key string, _ int) bool { return strings.Contains(key, "/closed") })
	}
	if len(got.requests) == 0 || len(got.results) == 0 {
		t.Fatal("the program does nothing")
	}
	return got
}

// requestsOf counts the requests to a web, except those for robots.txt.
func requestsOf(web *robotstest.Web) map[string]int {
	requests := make(map[string]int)
	for _, r := range web.Log("") {
		if r.URI != "/robots.txt" {
			requests[fmt.Sprint(r.Method, " ", r.Host, r.URI)]++
		}
	}
	return requests
}

// check runs a program with the option Frontier until it is done, and compares it with want.
func (x *program) check(t *testing.T, newStore func(t *testing.T) Store, stops []stop, want crawl) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, x.sites())
		store := newStore(t)
		found := &results{times: make(map[string]int)}
		memory := make(map[string]any)
		for i := range len(stops) + 1 {
			s := stop{after: 24 * time.Hour, how: func(r *run, _ Store, cancel func()) {
				r.Error("the last run has not ended")
				cancel()
			}}
			if i < len(stops) {
				s = stops[i]
			}
			r := newRun(t, web, found, memory)
			r.first = i == 0
			x.once(r, store, s, i == len(stops))
		}
		x.compare(t, "requests", requestsOf(web), want.requests, len(stops))
		x.compare(t, "results", found.times, want.results, len(stops))
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}

// once runs a program until it has ended or is stopped. last says that it must be done then.
func (x *program) once(r *run, store Store, s stop, last bool) {
	pages := store.Open(r.T)
	r.Plug(append(s.options, collyrobots.Frontier(pages))...)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r.ctx = ctx
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.run(r)
	}()
	select {
	case <-ended:
	case <-time.After(s.after):
		s.how(r, store, cancel)
		<-ended
	}
	synctest.Wait()
	r.must(r.Plugin.Close())
	synctest.Wait()
	if left := pages.Stats(); last && left.Waiting+left.Out+left.Failed > 0 {
		r.Errorf("after the last run: %+v", left)
	}
	r.end()
	store.Drop(r.T)
}

// compare compares what was requested or found with the bare run.
func (x *program) compare(t *testing.T, what string, got, want map[string]int, stops int) {
	t.Helper()
	again := 0
	for _, key := range slices.Sorted(maps.Keys(want)) {
		most := max(x.repeats[key], 1)
		if what == "results" {
			most = 1
		}
		switch {
		case slices.Contains(x.perRun, key):
		case got[key] == 0:
			t.Errorf("%s: %s is missing", what, key)
		case got[key] < most:
			t.Errorf("%s: %s came %d times, want %d", what, key, got[key], most)
		default:
			again += got[key] - most
			if got[key] > most && x.underWay == 0 {
				t.Errorf("%s: %s came %d times, want %d", what, key, got[key], most)
			}
		}
	}
	if most := stops * x.underWay; again > most {
		t.Errorf("%s: %d came again after %d stops, want at most %d", what, again, stops, most)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == 0 {
			t.Errorf("%s: %s came, and does not come with Colly alone", what, key)
		}
	}
}
