package frontier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// killed returns what a kill of the process would leave of a folder now.
func killed(t *testing.T, dir string) string {
	t.Helper()
	synctest.Wait()
	left := filepath.Join(t.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return left
}

func TestChangesSurviveAKillAfter10ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		add(t, f, "http://a.test/1", "http://a.test/2")
		finish(t, f, next(t, f, "http://a.test/1", 0), urlstore.Done)
		time.Sleep(10 * time.Millisecond)
		if s := open(t, killed(t, dir)).Stats(); s.Waiting != 1 || s.Done != 1 {
			t.Errorf("%+v", s)
		}
		finish(t, f, next(t, f, "http://a.test/2", 0), urlstore.Done)
		time.Sleep(10 * time.Millisecond)
		if s := open(t, killed(t, dir)).Stats(); s.Waiting != 0 || s.Done != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestWindowLimitsWhatAKillRepeats ends pages so quickly that no time passes.
func TestWindowLimitsWhatAKillRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const window, pages = 4, 50
		f := open(t, dir, frontier.Window(window))
		for i := range pages {
			add(t, f, fmt.Sprintf("http://h%d.test/", i))
		}
		time.Sleep(time.Second)
		p := next(t, f, "http://h0.test/", 0)
		most := 0
		for i := 1; i < pages; i++ {
			finish(t, f, p, urlstore.Done)
			p = next(t, f, fmt.Sprintf("http://h%d.test/", i), 0)
			left := open(t, killed(t, dir))
			const out = 1
			most = max(most, left.Stats().Waiting-(pages-i)+out)
			if err := left.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if most != window {
			t.Errorf("a kill repeats up to %d pages, want %d", most, window)
		}
	})
}
