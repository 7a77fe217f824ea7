package collyrobots_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
)

// changing serves one robots.txt until an instant, and then another.
func changing(after time.Duration, before, then string) http.HandlerFunc {
	began := time.Now()
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=600")
		if time.Since(began) < after {
			fmt.Fprint(w, before)
			return
		}
		fmt.Fprint(w, then)
	}
}

func TestARobotsTxtThatChangesWhilePagesWait(t *testing.T) {
	sites := map[string]site{"a.test": pages(8, "")}
	onWire(t, sites, func(t *testing.T, w *wire) {
		sites["a.test"]["/robots.txt"] = changing(time.Minute, "User-agent: *\nCrawl-delay: 250\n",
			"User-agent: *\nCrawl-delay: 1\nDisallow: /5\nDisallow: /6\nDisallow: /7\n")
		told := make(chan collyrobots.RobotsChange, 10)
		c := w.start(t, async, collyrobots.OnRobotsChanged(func(c collyrobots.RobotsChange) { told <- c }))
		for i := range 8 {
			c.Visit(fmt.Sprint("http://a.test/", i))
			time.Sleep(time.Millisecond) // in this order into the line
		}
		c.Wait()
		// The file is read again with the first page that has its turn after ten minutes.
		if got, want := w.uris("a.test"), "/robots.txt /0 /1 /robots.txt /2 /3 /4"; got != want {
			t.Errorf("a.test was asked for %s, want %s", got, want)
		}
		hits := w.hits("a.test")
		if gap := hits[6].at.Sub(hits[5].at); gap != time.Second {
			t.Errorf("the last pages are %v apart, want 1s", gap)
		}
		for _, path := range []string{"5", "6", "7"} {
			wantDenied(t, c, "http://a.test/"+path, collyrobots.ReasonRule, map[string]int{"5": 3, "6": 4, "7": 5}[path])
		}
		change := <-told
		if change.Old.CrawlDelay != 250*time.Second || change.New.CrawlDelay != time.Second ||
			change.RobotsURL != "http://a.test/robots.txt" || change.New.Meaning != "rules" || len(told) != 0 {
			t.Errorf("%+v, and %d more", change, len(told))
		}
		if len(c.errs) != 0 {
			t.Errorf("OnError was told of %v: a page denied while it waits costs nobody a LimitRule slot", c.errs)
		}
	})
}

// The callback may ask the plugin while it is being closed.
func TestCloseWhileAChangeIsTold(t *testing.T) {
	sites := map[string]site{"a.test": pages(1, "")}
	onWire(t, sites, func(t *testing.T, w *wire) {
		sites["a.test"]["/robots.txt"] = changing(time.Minute, noDenys, "User-agent: *\nDisallow: /\n")
		var c *crawl
		told := make(chan error, 1)
		c = w.start(t, nil, collyrobots.OnRobotsChanged(func(collyrobots.RobotsChange) {
			time.Sleep(time.Second)
			_, err := c.robots.Check(t.Context(), "http://a.test/")
			told <- err
		}))
		c.Visit("http://a.test/")
		time.Sleep(time.Hour)
		c.Visit("http://a.test/0")
		c.robots.Close()
		if err := <-told; err != nil && !errors.Is(err, collyrobots.ErrClosed) {
			t.Error(err)
		}
	})
}
