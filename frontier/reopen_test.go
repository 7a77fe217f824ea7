package frontier_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

func TestPagesOutWaitAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		found := time.Now()
		full := &urlstore.Page{
			URL:       "http://a.test/1#fragment",
			Collector: 3,
			Depth:     7,
			From:      "b.test",
			Request:   []byte(`{"URL":"http://a.test/1"}`),
		}
		if added, err := f.Add(full); !added || err != nil {
			t.Fatal(added, err)
		}
		add(t, f, "http://a.test/2", "http://a.test/3", "http://b.test/4")
		next(t, f, full.URL, 0)
		finish(t, f, next(t, f, "http://b.test/4", 0), urlstore.Done)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		f = open(t, dir)
		want := urlstore.Stats{Waiting: 3, Done: 1, Hosts: 1, Oldest: found}
		if s := f.Stats(); fmt.Sprint(s) != fmt.Sprint(want) {
			t.Errorf("got %+v, want %+v", s, want)
		}
		if n := f.Waiting("a.test"); n != 3 {
			t.Errorf("%d pages wait, want 3", n)
		}
		got := next(t, f, full.URL, 0)
		if fmt.Sprint(*got) != fmt.Sprint(*full) {
			t.Errorf("got %+v, want %+v", *got, *full)
		}
		again := &urlstore.Page{URL: "HTTP://A.TEST:80/1", Collector: 3}
		if added, err := f.Add(again); added || err != nil {
			t.Errorf("Add = %v, %v, want false", added, err)
		}
		if s := f.Stats(); s.Duplicates != 1 {
			t.Errorf("%d duplicates, want 1", s.Duplicates)
		}
	})
}

func TestManyPagesOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const pages = 1000
		f := open(t, dir)
		for i := range pages {
			add(t, f, fmt.Sprintf("http://a.test/%d", i))
		}
		for i := range pages {
			if i%300 == 299 {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				f = open(t, dir)
			}
			p := next(t, f, fmt.Sprintf("http://a.test/%d", i), 0)
			finish(t, f, p, urlstore.Done)
		}
		end(t, f)
	})
}

// TestIdleHostsAreForgotten adds pages of more hosts than are kept in memory.
func TestIdleHostsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, t.TempDir(), frontier.MaxPages(1))
		const hosts = 3000
		for i := range hosts {
			url := fmt.Sprintf("http://h%d.test/1", i)
			add(t, f, url)
			finish(t, f, next(t, f, url, 0), urlstore.Done)
		}
		for i := range hosts {
			add(t, f, fmt.Sprintf("http://h%d.test/2", i)) // the budget of the host leaves it out
		}
		end(t, f)
		if s := f.Stats(); s.Done != hosts || s.OverBudget != hosts || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
