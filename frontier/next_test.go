package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
	"github.com/collyrobots/collyrobots/store/urlstore/urlstoretest"
)

// open opens a frontier that is closed when the test ends.
func open(t *testing.T, dir string, opts ...frontier.Option) *frontier.Frontier {
	t.Helper()
	f, err := frontier.Open(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// add adds pages, which must all be new.
func add(t *testing.T, f *frontier.Frontier, urls ...string) {
	t.Helper()
	for _, url := range urls {
		added, err := f.Add(&urlstore.Page{URL: url, Depth: 1})
		if err != nil || !added {
			t.Fatalf("Add(%s) = %v, %v", url, added, err)
		}
	}
}

// next returns the next page, which must be the one with the given URL, and checks when it comes.
func next(t *testing.T, f *frontier.Frontier, url string, after time.Duration) *urlstore.Page {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	p, err := f.Next(ctx)
	if err != nil {
		t.Fatalf("Next: %v, want %s", err, url)
	}
	if waited := time.Since(start); p.URL != url || waited != after {
		t.Fatalf("Next returned %s after %v, want %s after %v", p.URL, waited, url, after)
	}
	return p
}

// none checks that Next returns no page for some time.
func none(t *testing.T, f *frontier.Frontier, during time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	p, err := f.Next(ctx)
	if p != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Next returned %+v, %v, want no page", p, err)
	}
}

// end checks that Next returns io.EOF.
func end(t *testing.T, f *frontier.Frontier) {
	t.Helper()
	p, err := f.Next(t.Context())
	if p != nil || err != io.EOF {
		t.Fatalf("Next returned %+v, %v, want io.EOF", p, err)
	}
}

// finish ends the attempt to fetch a page.
func finish(t *testing.T, f *frontier.Frontier, p *urlstore.Page, result urlstore.Result) {
	t.Helper()
	if err := f.End(p, result); err != nil {
		t.Fatal(err)
	}
}

// TestContract checks the contract of urlstore.Store.
func TestContract(t *testing.T) {
	urlstoretest.Run(t, func(t *testing.T) func() urlstore.Store {
		dir := t.TempDir()
		var f *frontier.Frontier
		return func() urlstore.Store {
			if f != nil {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			f = open(t, dir)
			return f
		}
	})
}

// TestNextReturns checks the error of a call of Next whose context ends, and of one that waits when
// the frontier is closed.
func TestNextReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir())
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the cause")
		cancel(cause)
		if _, err := f.Next(ctx); err != cause {
			t.Errorf("Next: %v, want the cause", err)
		}
		add(t, f, "http://a.test/")
		next(t, f, "http://a.test/", 0)
		time.AfterFunc(time.Second, func() { f.Close() })
		if _, err := f.Next(t.Context()); !errors.Is(err, frontier.ErrClosed) {
			t.Errorf("Next: %v, want ErrClosed", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestPaceOfOddTimes passes times to Pace that are far from now. The zero time means now.
func TestPaceOfOddTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir())
		for i, at := range []time.Time{{}, time.Unix(-1<<62, 0), time.Unix(0, 0), time.Now().Add(-time.Hour)} {
			host := fmt.Sprintf("host%d.test", i)
			add(t, f, "http://"+host+"/1", "http://"+host+"/2")
			p := next(t, f, "http://"+host+"/1", 0)
			f.Pace(host, at, true)
			finish(t, f, p, urlstore.Done)
			finish(t, f, next(t, f, "http://"+host+"/2", 0), urlstore.Done)
		}
		add(t, f, "http://never.test/1", "http://never.test/2")
		finish(t, f, next(t, f, "http://never.test/1", 0), urlstore.Done)
		f.Pace("never.test", time.Unix(1<<62, 0), true)
		none(t, f, time.Hour)
	})
}

func TestHostsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir())
		add(t, f, "http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://c.test/1")
		f.Pace("a.test", time.Now(), false)
		f.Pace("b.test", time.Now(), false)
		f.Pace("c.test", time.Now().Add(time.Second), true)
		next(t, f, "http://a.test/1", 0)
		next(t, f, "http://b.test/1", 0)
		next(t, f, "http://a.test/2", 0)
		next(t, f, "http://b.test/2", 0)
		next(t, f, "http://c.test/1", 900*time.Millisecond)
	})
}

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir(), frontier.Window(2))
		add(t, f, "http://a.test/", "http://b.test/", "http://c.test/")
		p := next(t, f, "http://a.test/", 0)
		next(t, f, "http://b.test/", 0)
		none(t, f, time.Hour)
		time.AfterFunc(time.Second, func() { finish(t, f, p, urlstore.Done) })
		next(t, f, "http://c.test/", time.Second)
	})
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
		reopen(frontier.MaxRecordedPerHost(2), frontier.MaxDepth(3))
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
		check("fetched", drain(t, f), "http://a.test/1", "http://b.test/1", "http://a.test/2")

		reopen(frontier.MaxRecordedPerHost(2), frontier.MaxDepth(3))
		check("the same budget", drain(t, f))
		reopen(frontier.MaxRecordedPerHost(3), frontier.MaxDepth(3))
		check("a larger budget", drain(t, f), "http://a.test/3")
		reopen(frontier.MaxDepth(3))
		check("no budget for hosts", drain(t, f), "http://a.test/4")
		reopen(frontier.MaxTotal(5))
		check("a budget for all pages", drain(t, f))
		reopen()
		check("no budget", drain(t, f), "http://a.test/deep")
		if s := f.Stats(); s.OverBudget != 0 || s.Done != 6 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
