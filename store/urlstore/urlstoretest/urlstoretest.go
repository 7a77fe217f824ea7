// Package urlstoretest tests whether a store keeps the contract of package urlstore.
package urlstoretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/store/storetest"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// Run tests a urlstore.Store. It calls begin for each of its tests. begin returns a function that
// opens an empty store. When that function is called again, it ends the store that it has returned
// before, as if the process had ended, and returns the store as the next run finds it.
//
// The tests run in bubbles of testing/synctest, so the store must use the clock of package time. It
// must allow that three pages of a host are out at once. It may hand out the pages of a host in any
// order, and may let a page that has failed pause for up to an hour.
func Run(t *testing.T, begin func(t *testing.T) (open func() urlstore.Store)) {
	for _, test := range []struct {
		name string
		run  func(*run)
	}{
		{"page is returned as added", unchanged},
		{"known pages", known},
		{"Take", take},
		{"Again", again},
		{"Next ends", nextEnds},
		{"Next is woken", nextIsWoken},
		{"context ends", contextEnds},
		{"results", results},
		{"End of a page that is not out", notOut},
		{"postponed pages", postponed},
		{"pace of a host", pace},
		{"host that may start soonest", soonest},
		{"requests in flight", inFlight},
		{"counts", counts},
		{"next run", nextRun},
		{"records", records},
		{"many goroutines", many},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := begin(t)
				test.run(&run{T: t, Store: open(), open: open})
			})
		})
	}
}

// A run is a run of a crawl.
type run struct {
	*testing.T
	urlstore.Store
	open func() urlstore.Store
}

// add adds pages, which must be new.
func (r *run) add(urls ...string) {
	r.Helper()
	for _, url := range urls {
		if !r.adds(&urlstore.Page{URL: url, Depth: 1}) {
			r.Fatalf("Add(%s) = false for a new page", url)
		}
	}
}

// adds reports whether a page is new.
func (r *run) adds(p *urlstore.Page) bool {
	r.Helper()
	added, err := r.Add(p)
	if err != nil {
		r.Fatalf("Add(%s): %v", p.URL, err)
	}
	return added
}

// next returns the next page, which must be that with the URL.
func (r *run) next(url string) *urlstore.Page {
	r.Helper()
	p := r.any()
	if p.URL != url {
		r.Fatalf("Next returned %s, want %s", p.URL, url)
	}
	return p
}

// any returns the next page.
func (r *run) any() *urlstore.Page {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	p, err := r.Next(ctx)
	if err != nil {
		r.Fatalf("Next: %v, want a page", err)
	}
	return p
}

// none checks that Next returns no page for an hour, although there are pages that wait or are out.
func (r *run) none() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	p, err := r.Next(ctx)
	if p != nil || !errors.Is(err, context.DeadlineExceeded) {
		r.Fatalf("Next returned %+v, %v, want no page", p, err)
	}
}

// over checks that Next returns io.EOF.
func (r *run) over() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
	defer cancel()
	p, err := r.Next(ctx)
	if p != nil || !errors.Is(err, io.EOF) {
		r.Fatalf("Next returned %+v, %v, want io.EOF", p, err)
	}
}

// end ends an attempt.
func (r *run) end(p *urlstore.Page, result urlstore.Result) {
	r.Helper()
	if err := r.End(p, result); err != nil {
		r.Fatalf("End(%s, %d): %v", p.URL, result, err)
	}
}

// want compares the counts, except Hosts and Oldest.
func (r *run) want(want urlstore.Stats) {
	r.Helper()
	got := r.Stats()
	got.Hosts = 0
	got.Oldest = time.Time{}
	if got != want {
		r.Fatalf("Stats are %+v, want %+v", got, want)
	}
}

// wantPage compares two pages.
func (r *run) wantPage(got, want *urlstore.Page) {
	r.Helper()
	page := *got
	if page.Found.Equal(want.Found) {
		page.Found = want.Found
	}
	if !reflect.DeepEqual(page, *want) {
		r.Errorf("the page is %+v, want %+v", page, *want)
	}
}

func unchanged(r *run) {
	p := &urlstore.Page{
		URL:       "http://A.test:80/%7Ea#fragment",
		Collector: 3,
		Depth:     7,
		From:      "b.test",
		Request:   []byte("request\x00\xff"),
	}
	r.adds(p)
	if p.Host != "a.test" || p.Key != "http://a.test/~a" || !p.Found.Equal(time.Now()) || p.ID == 0 {
		r.Errorf("Add has set %+v", *p)
	}
	other := &urlstore.Page{URL: "http://b.test/", Host: "host", Key: "key"}
	r.adds(other)
	if other.Host != "host" || other.Key != "key" || other.ID == p.ID {
		r.Errorf("Add has set %+v", *other)
	}
	want := map[string]*urlstore.Page{p.URL: p, other.URL: other}
	for range want {
		got := r.any()
		r.wantPage(got, want[got.URL])
		r.end(got, urlstore.Done)
	}
	r.over()
}

func known(r *run) {
	r.add("http://a.test/1")
	same := func() *urlstore.Page { return &urlstore.Page{URL: "HTTP://A.test:80/%31#x"} }
	rejects := func(when string) {
		r.Helper()
		if r.adds(same()) {
			r.Errorf("Add = true for a page that %s", when)
		}
	}
	rejects("waits")
	p := r.next("http://a.test/1")
	rejects("is out")
	r.end(p, urlstore.Done)
	rejects("is done")
	r.over()
	r.want(urlstore.Stats{Done: 1, Duplicates: 3})
	other := same()
	other.Collector = 1
	if !r.adds(other) || r.adds(&urlstore.Page{URL: other.URL, Collector: 1}) {
		r.Error("Add mixes up the pages of two collectors")
	}
	if !r.adds(&urlstore.Page{URL: "http://a.test/1", Key: "a"}) || r.adds(&urlstore.Page{URL: "http://a.test/2", Key: "a"}) {
		r.Error("Add does not compare the keys of pages")
	}
}

func take(r *run) {
	p := &urlstore.Page{URL: "http://a.test/1"}
	r.adds(p)
	if !r.Take(p) {
		r.Error("Take = false for the only page")
	}
	r.want(urlstore.Stats{Out: 1})
	r.none()
	r.Pace("a.test", time.Now().Add(30*time.Minute), true)
	r.end(p, urlstore.Done)
	q := &urlstore.Page{URL: "http://a.test/2"}
	r.adds(q)
	if r.Take(q) {
		r.Error("Take = true for a page whose host has to wait")
	}
	r.end(r.next(q.URL), urlstore.Done)
	r.over()
}

func again(r *run) {
	r.add("http://a.test/")
	request := func() *urlstore.Page {
		r.Helper()
		p := &urlstore.Page{URL: "http://a.test/", Depth: 1}
		if err := r.Again(p); err != nil {
			r.Fatalf("Again: %v", err)
		}
		r.want(urlstore.Stats{Out: 1})
		return p
	}
	p := request() // it waits
	q := request() // it is out
	r.end(p, urlstore.Failed)
	r.want(urlstore.Stats{Out: 1})
	r.none()
	r.end(q, urlstore.Done)
	r.want(urlstore.Stats{Done: 1})
	r.end(request(), urlstore.Failed) // it was done
	p = request()                     // it has failed
	r.none()
	r.end(p, urlstore.Postponed)
	r.end(request(), urlstore.Denied)
	r.over()
	r.want(urlstore.Stats{Denied: 1})
}

func nextEnds(r *run) {
	r.over()
	for _, result := range []urlstore.Result{urlstore.Done, urlstore.Denied, urlstore.Postponed} {
		r.add(fmt.Sprint("http://a.test/", result))
		p := r.any()
		time.AfterFunc(time.Minute, func() {
			r.Pace(p.Host, time.Now(), false)
			r.end(p, result)
		})
		began := time.Now()
		r.over()
		if took := time.Since(began); took != time.Minute {
			r.Errorf("Next returned io.EOF %v after a page was out, want %v", took, time.Minute)
		}
	}
}

func nextIsWoken(r *run) {
	r.add("http://a.test/")
	p := r.next("http://a.test/")
	began := time.Now()
	time.AfterFunc(time.Minute, func() { r.add("http://b.test/") })
	r.end(r.next("http://b.test/"), urlstore.Done)
	time.AfterFunc(time.Minute, func() { r.end(p, urlstore.Returned) })
	r.end(r.next("http://a.test/"), urlstore.Done)
	if took := time.Since(began); took != 2*time.Minute {
		r.Errorf("Next has returned the pages after %v, want %v", took, 2*time.Minute)
	}
}

func contextEnds(r *run) {
	r.add("http://a.test/")
	p := r.next("http://a.test/")
	ctx, cancel := context.WithCancel(r.Context())
	time.AfterFunc(time.Minute, cancel)
	began := time.Now()
	for range 2 {
		got, err := r.Next(ctx)
		if got != nil || !errors.Is(err, context.Canceled) || time.Since(began) != time.Minute {
			r.Errorf("Next returned %v, %v after %v, want context.Canceled after %v", got, err, time.Since(began), time.Minute)
		}
		r.end(p, urlstore.Returned) // an ended context is not given a page
	}
	r.end(r.next("http://a.test/"), urlstore.Done)
}

func results(r *run) {
	for i, result := range []urlstore.Result{urlstore.Done, urlstore.Denied, urlstore.Failed} {
		url := fmt.Sprintf("http://host%d.test/", i)
		r.add(url)
		r.end(r.next(url), urlstore.Returned)
		p := r.next(url)
		if p.Attempts != 0 {
			r.Errorf("a page that has returned has %d attempts, want 0", p.Attempts)
		}
		r.end(p, result)
	}
	for attempt := 1; attempt < 3; attempt++ {
		r.want(urlstore.Stats{Done: 1, Denied: 1, Waiting: 1})
		p := r.next("http://host2.test/")
		if p.Attempts != attempt {
			r.Errorf("the page has %d attempts, want %d", p.Attempts, attempt)
		}
		r.end(p, urlstore.Failed)
	}
	r.over()
	r.want(urlstore.Stats{Done: 1, Denied: 1, Failed: 1})
}

func notOut(r *run) {
	p := &urlstore.Page{URL: "http://a.test/"}
	r.adds(p)
	r.end(p, urlstore.Done) // it waits
	r.end(&urlstore.Page{URL: "http://b.test/", ID: 1 << 40}, urlstore.Done)
	r.want(urlstore.Stats{Waiting: 1})
	r.end(r.next(p.URL), urlstore.Done)
	r.end(p, urlstore.Failed)
	r.want(urlstore.Stats{Done: 1})
	r.over()
}

func postponed(r *run) {
	r.add("http://a.test/", "http://b.test/")
	pages := []*urlstore.Page{r.any(), r.any()}
	r.end(pages[0], urlstore.Postponed)
	r.end(pages[1], urlstore.Postponed)
	r.over()
	r.end(pages[1], urlstore.Done)
	r.over()
	r.Store = r.open()
	r.end(r.next(pages[0].URL), urlstore.Done)
	r.over()
	r.want(urlstore.Stats{Done: 2})
}

// within checks that the time since began is a wait, or up to a second less.
func (r *run) within(began time.Time, wait time.Duration) {
	r.Helper()
	if took := time.Since(began); took > wait || took < wait-time.Second {
		r.Errorf("Next has returned the page after %v, want %v", took, wait)
	}
}

func pace(r *run) {
	r.add("http://a.test/1")
	p := r.next("http://a.test/1")
	r.add("http://a.test/2", "http://b.test/")
	began := time.Now()
	r.Pace("a.test", began.Add(time.Minute), true)
	r.end(p, urlstore.Done)
	r.end(r.next("http://b.test/"), urlstore.Done)
	r.within(began, 0)
	r.end(r.next("http://a.test/2"), urlstore.Done)
	r.within(began, time.Minute)
	r.over()
}

func soonest(r *run) {
	r.add("http://a.test/", "http://b.test/", "http://c.test/")
	began := time.Now()
	r.Pace("a.test", began.Add(3*time.Minute), true)
	r.Pace("b.test", began.Add(time.Minute), true)
	r.Pace("c.test", began.Add(2*time.Minute), true)
	for i, host := range []string{"b", "c", "a"} {
		r.next("http://" + host + ".test/")
		r.within(began, time.Duration(i+1)*time.Minute)
	}
}

func inFlight(r *run) {
	r.add("http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4")
	answer := func(alone bool) { r.Pace("a.test", time.Now(), alone) }
	began := time.Now()
	p := r.any()
	answer(false)
	r.any()
	r.any()
	r.within(began, 0)
	answer(true) // the second page has had its response, the third has not
	r.end(p, urlstore.Done)
	r.none()
	answer(true)
	r.any()
	r.none()
}

func counts(r *run) {
	first := time.Now()
	r.add("http://a.test/1", "http://a.test/2")
	time.Sleep(time.Minute)
	second := time.Now()
	r.add("http://b.test/")
	check := func(a, b, hosts int, oldest time.Time) {
		r.Helper()
		s := r.Stats()
		if r.Waiting("a.test") != a || r.Waiting("b.test") != b || s.Waiting != a+b {
			r.Errorf("%d and %d pages wait, of %d; want %d and %d", r.Waiting("a.test"), r.Waiting("b.test"), s.Waiting, a, b)
		}
		if s.Hosts != hosts || s.Oldest.Sub(oldest).Abs() > time.Second {
			r.Errorf("%d hosts, the oldest page is from %v; want %d, %v", s.Hosts, s.Oldest, hosts, oldest)
		}
	}
	check(2, 1, 2, first)
	for range 2 {
		p := r.any()
		for p.Host != "a.test" {
			r.end(p, urlstore.Returned)
			p = r.any()
		}
		r.Pace("a.test", time.Now(), false)
		r.end(p, urlstore.Done)
	}
	check(0, 1, 1, second)
	r.end(r.any(), urlstore.Done)
	if s := r.Stats(); s.Hosts != 0 || !s.Oldest.IsZero() {
		r.Errorf("Stats are %+v, although no page waits", s)
	}
}

// nextRun ends a run with pages in all states.
func nextRun(r *run) {
	pages := make(map[string]*urlstore.Page)
	for _, state := range []string{"done", "denied", "failed", "postponed", "out", "waiting"} {
		p := &urlstore.Page{
			URL:       "http://" + state + ".test/",
			Collector: 1,
			Depth:     2,
			From:      "from.test",
			Request:   []byte(state),
		}
		r.adds(p)
		pages[p.URL] = p
		if state != "waiting" {
			r.next(p.URL)
		}
	}
	r.end(pages["http://done.test/"], urlstore.Done)
	r.end(pages["http://denied.test/"], urlstore.Denied)
	r.end(pages["http://failed.test/"], urlstore.Failed)
	r.end(pages["http://postponed.test/"], urlstore.Postponed)
	r.Store = r.open()
	r.want(urlstore.Stats{Done: 1, Denied: 1, Waiting: 4})
	pages["http://failed.test/"].Attempts = 1
	for range 4 {
		p := r.any()
		r.wantPage(p, pages[p.URL])
		r.end(p, urlstore.Done)
	}
	r.over()
	for url := range pages {
		if url != "http://denied.test/" && r.adds(&urlstore.Page{URL: url, Collector: 1}) {
			r.Errorf("Add(%s) = true, although it was done in the run before", url)
		}
	}
	r.want(urlstore.Stats{Done: 5, Denied: 1, Duplicates: 5})
}

func records(r *run) {
	s := r.Records()
	if s == nil {
		return
	}
	storetest.Put(r.T, s, "pace:a.test", "1")
	r.Store = r.open()
	got, err := r.Records().Get(r.Context(), "pace:a.test")
	if string(got) != "1" || err != nil {
		r.Errorf("in the next run the record is %q, %v, want 1", got, err)
	}
}

// many adds each page twice, and ends each page, in many goroutines.
func many(r *run) {
	const pages = 100
	r.add("http://first.test/")
	first := r.next("http://first.test/") // it is out while the others are added
	var mu sync.Mutex
	var added int
	times := make(map[string]int) // how often each page was handed out
	var adders, workers sync.WaitGroup
	for range 2 {
		adders.Go(func() {
			for i := range pages {
				ok, err := r.Add(&urlstore.Page{URL: fmt.Sprintf("http://host%d.test/%d", i%7, i)})
				mu.Lock()
				if ok {
					added++
				}
				mu.Unlock()
				if err != nil {
					r.Error(err)
				}
			}
		})
	}
	for range 4 {
		workers.Go(func() {
			for {
				p, err := r.Next(r.Context())
				if err != nil {
					if !errors.Is(err, io.EOF) {
						r.Error(err)
					}
					return
				}
				mu.Lock()
				times[p.URL]++
				twice := times[p.URL] > 1
				mu.Unlock()
				if twice {
					r.Errorf("%s was handed out twice", p.URL)
					return
				}
				r.Pace(p.Host, time.Now().Add(time.Second), true)
				if err := r.End(p, urlstore.Done); err != nil {
					r.Error(err)
				}
			}
		})
	}
	adders.Wait()
	r.end(first, urlstore.Done)
	workers.Wait()
	if added != pages || len(times) != pages {
		r.Errorf("%d pages were added, and %d handed out, want %d", added, len(times), pages)
	}
}
