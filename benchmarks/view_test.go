//go:build unix

package benchmarks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/view"
)

const (
	watchedHosts = 20
	watchedPages = 1000 // a second
)

// TestViewRatio prints what the page of package view costs a crawl of 1,000 pages a second over the
// loopback interface: the processor time of the whole process, with the page open beside nobody
// listening. They take turns of a second, and the ratios are those of their cheapest turns, which
// nothing else has disturbed, and of their median turns. The plain crawl takes part twice: where
// the second is not at 1.00, the machine is too busy.
func TestViewRatio(t *testing.T) {
	turns := max(2, *rounds/6)
	if underRace || testing.Short() {
		turns = 1
	}
	sites := make(robotstest.Sites)
	for i := range watchedHosts {
		sites[fmt.Sprintf("h%d.test", i)] = robotstest.Site{"/robots.txt": rulesFor(9), "*": "<!doctype html><title>x</title>"}
	}
	web := robotstest.New(t, sites)
	crawls := []*watchedCrawl{newWatchedCrawl(t, web, 0), newWatchedCrawl(t, web, 0), newWatchedCrawl(t, web, 1)}
	for range turns {
		for _, i := range rand.Perm(len(crawls)) {
			crawls[i].turn(t)
		}
	}
	for i, name := range []string{"plain", "plain again", "the page open"} {
		costs, plain := crawls[i].costs, crawls[0].costs
		t.Logf("%-16s %7.1f µs of processor time a page, ratio %.3f; median %7.1f µs, ratio %.3f", name, slices.Min(costs),
			slices.Min(costs)/slices.Min(plain), quantile(costs, 0.5), quantile(costs, 0.5)/quantile(plain, 0.5))
	}
	if crawls[2].octets == 0 {
		t.Error("the open page got no message")
	}
}

// A watchedCrawl is one that some look at while it has its turn.
type watchedCrawl struct {
	c      *colly.Collector
	page   string
	open   int
	costs  []float64 // microseconds of processor time a page
	octets int       // of its messages
}

func newWatchedCrawl(t *testing.T, web *robotstest.Web, open int) *watchedCrawl {
	w := &watchedCrawl{c: colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit()), open: open}
	w.c.WithTransport(web.Transport())
	p, err := collyrobots.WithRobots(w.c, collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if open > 0 {
		server := httptest.NewServer(view.Handler(p))
		t.Cleanup(server.Close)
		w.page = server.URL
	}
	return w
}

// turn crawls for a second, as long as some look.
func (w *watchedCrawl) turn(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	var mu sync.Mutex
	for range w.open {
		looking.Go(func() {
			n := look(ctx, w.page+"/events")
			mu.Lock()
			w.octets += n
			mu.Unlock()
		})
	}
	before, next := processorTime(t), time.Now()
	for i := range watchedPages {
		if err := w.c.Visit(fmt.Sprintf("http://h%d.test/%d", i%watchedHosts, i)); err != nil {
			t.Fatal(err)
		}
		next = next.Add(time.Second / watchedPages)
		time.Sleep(time.Until(next))
	}
	w.costs = append(w.costs, float64((processorTime(t)-before).Microseconds())/watchedPages)
	leave()
	looking.Wait()
}

// look reads a stream until ctx ends, and returns how much there was.
func look(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	n, _ := io.Copy(io.Discard, resp.Body)
	return int(n)
}

func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
