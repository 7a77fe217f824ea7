package frontier_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

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
		f := open(t, t.TempDir(), frontier.MaxRecordedPerHost(1))
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
