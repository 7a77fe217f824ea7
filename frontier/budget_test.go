package frontier_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// leftOut returns the URLs of the pages that are left out.
func leftOut(t *testing.T, f *frontier.Frontier) []string {
	t.Helper()
	urls := []string{}
	for p, err := range f.LeftOut() {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, p.URL)
	}
	return urls
}

// drain takes pages until none is left, ends them as done, and returns their URLs.
func drain(t *testing.T, f *frontier.Frontier) []string {
	t.Helper()
	urls := []string{}
	for {
		p, err := f.Next(t.Context())
		if err != nil {
			end(t, f)
			return urls
		}
		urls = append(urls, p.URL)
		finish(t, f, p, urlstore.Done)
	}
}

func TestBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var f *frontier.Frontier
		reopen := func(opts ...frontier.Option) {
			if f != nil {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			f = open(t, dir, opts...)
		}
		check := func(what string, got []string, want ...string) {
			t.Helper()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		reopen(frontier.MaxPages(2), frontier.MaxDepth(3))
		for _, p := range []urlstore.Page{
			{URL: "http://a.test/deep", Depth: 4},
			{URL: "http://a.test/1", Depth: 3},
			{URL: "http://a.test/2", Depth: 1},
			{URL: "http://a.test/3", Depth: 1},
			{URL: "http://b.test/1", Depth: 1},
			{URL: "http://a.test/4", Depth: 1},
		} {
			if added, err := f.Add(&p); !added || err != nil {
				t.Errorf("Add(%s) = %v, %v", p.URL, added, err)
			}
		}
		if added, err := f.Add(&urlstore.Page{URL: "http://a.test/3"}); added || err != nil {
			t.Errorf("Add of a page that is left out = %v, %v", added, err)
		}
		if s := f.Stats(); s.OverBudget != 3 || s.Waiting != 3 || s.Duplicates != 1 {
			t.Errorf("%+v", s)
		}
		check("left out", leftOut(t, f), "http://a.test/deep", "http://a.test/3", "http://a.test/4")
		check("fetched", drain(t, f), "http://a.test/1", "http://b.test/1", "http://a.test/2")

		reopen(frontier.MaxPages(2), frontier.MaxDepth(3))
		check("the same budget", drain(t, f))
		reopen(frontier.MaxPages(3), frontier.MaxDepth(3))
		check("a larger budget", drain(t, f), "http://a.test/3")
		reopen(frontier.MaxDepth(3))
		check("no budget for hosts", drain(t, f), "http://a.test/4")
		check("left out", leftOut(t, f), "http://a.test/deep")
		reopen(frontier.MaxTotal(5))
		check("a budget for all pages", drain(t, f))
		reopen()
		check("no budget", drain(t, f), "http://a.test/deep")
		if s := f.Stats(); s.OverBudget != 0 || s.Done != 6 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestDeniedPagesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir(), frontier.MaxPages(1))
		add(t, f, "http://a.test/1")
		finish(t, f, next(t, f, "http://a.test/1", 0), urlstore.Denied)
		add(t, f, "http://a.test/2", "http://a.test/3")
		finish(t, f, next(t, f, "http://a.test/2", 0), urlstore.Done)
		end(t, f)
		if s := f.Stats(); s.OverBudget != 1 || s.Denied != 1 || s.Done != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestManyPagesLeftOut(t *testing.T) {
	f := open(t, t.TempDir(), frontier.MaxDepth(1))
	const pages = 250
	for i := range pages {
		if added, err := f.Add(&urlstore.Page{URL: fmt.Sprintf("http://h%d.test/", i), Depth: 2}); !added || err != nil {
			t.Fatal(added, err)
		}
	}
	seen := make(map[string]bool)
	for _, url := range leftOut(t, f) {
		seen[url] = true
	}
	if len(seen) != pages {
		t.Errorf("%d pages are listed, want %d", len(seen), pages)
	}
	for range f.LeftOut() {
		break
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for p, err := range f.LeftOut() {
		if p != nil || err == nil {
			t.Errorf("after Close: %v, %v", p, err)
		}
	}
}

func TestRecrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir(), frontier.Recrawl(time.Hour))
		add(t, f, "http://a.test/")
		p := next(t, f, "http://a.test/", 0)
		known := func() {
			t.Helper()
			if added, err := f.Add(&urlstore.Page{URL: "http://a.test/"}); added || err != nil {
				t.Errorf("Add = %v, %v, want false", added, err)
			}
		}
		time.Sleep(2 * time.Hour)
		known() // it is out
		finish(t, f, p, urlstore.Done)
		time.Sleep(time.Hour - time.Second)
		known()
		time.Sleep(time.Second)
		add(t, f, "http://a.test/")
		if s := f.Stats(); s.Done != 0 || s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		finish(t, f, next(t, f, "http://a.test/", 0), urlstore.Denied)
		end(t, f)
		time.Sleep(time.Hour)
		add(t, f, "http://a.test/")
	})
}

func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, frontier.MaxDepth(5))
		again := func(url string) *urlstore.Page {
			t.Helper()
			p := &urlstore.Page{URL: url, Depth: 1}
			if err := f.Again(p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		stats := func(want urlstore.Stats) {
			t.Helper()
			got := f.Stats()
			got.Hosts, got.Oldest = 0, time.Time{}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		p := again("http://a.test/unknown")
		stats(urlstore.Stats{Out: 1})
		q := again("http://a.test/unknown")
		stats(urlstore.Stats{Out: 1})
		finish(t, f, p, urlstore.Failed)
		stats(urlstore.Stats{Out: 1})
		finish(t, f, q, urlstore.Done)
		finish(t, f, q, urlstore.Failed) // no effect
		stats(urlstore.Stats{Done: 1})
		p = again("http://a.test/unknown")
		stats(urlstore.Stats{Out: 1})
		finish(t, f, p, urlstore.Returned)
		stats(urlstore.Stats{Waiting: 1})
		p = again("http://a.test/unknown")
		stats(urlstore.Stats{Out: 1})
		finish(t, f, p, urlstore.Failed)
		stats(urlstore.Stats{Waiting: 1})
		p = again("http://a.test/unknown") // it pauses
		none(t, f, time.Minute)
		finish(t, f, &urlstore.Page{URL: p.URL}, urlstore.Done) // found by its URL
		if added, err := f.Add(&urlstore.Page{URL: "http://a.test/deep", Depth: 6}); !added || err != nil {
			t.Fatal(added, err)
		}
		p = again("http://a.test/deep")
		stats(urlstore.Stats{Done: 1, Out: 1})
		if urls := leftOut(t, f); len(urls) != 0 {
			t.Errorf("%v are left out", urls)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = open(t, dir)
		finish(t, f, next(t, f, p.URL, 0), urlstore.Done)
		end(t, f)
		stats(urlstore.Stats{Done: 2})
	})
}

func TestAgainOfAPageThatIsNotInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir())
		const pages = 100
		for i := range pages {
			add(t, f, fmt.Sprintf("http://a.test/%d", i))
		}
		f.Pace("a.test", time.Now(), false)
		p := &urlstore.Page{URL: fmt.Sprintf("http://a.test/%d", pages-10)}
		if err := f.Again(p); err != nil {
			t.Fatal(err)
		}
		for i := range pages {
			if url := fmt.Sprintf("http://a.test/%d", i); url != p.URL {
				finish(t, f, next(t, f, url, 0), urlstore.Done)
			}
		}
		none(t, f, time.Minute)
		finish(t, f, p, urlstore.Done)
		end(t, f)
	})
}
