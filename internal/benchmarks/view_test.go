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
	watchedPages = 1000 // per second
)

// TestViewRatio prints how much the page of package view adds to the cost of a crawl of 1,000 pages
// per second over the loopback interface. The cost is the processor time of the whole process. A
// crawl without listeners and a crawl whose page is open take turns of a second. The ratios are
// those of the cheapest turns, which are disturbed least, and of the median turns. The plain crawl
// is measured twice: if "plain again" is not close to 1.00, the machine is too busy.
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
		t.Logf("%-16s %7.1f µs of processor time per page, ratio %.3f; median %7.1f µs, ratio %.3f", name, slices.Min(costs),
			slices.Min(costs)/slices.Min(plain), quantile(costs, 0.5), quantile(costs, 0.5)/quantile(plain, 0.5))
	}
	if crawls[2].bytes == 0 {
		t.Error("the open page got no messages")
	}
}

// A watchedCrawl is a crawl whose page may be open during its turns.
type watchedCrawl struct {
	c     *colly.Collector
	page  string    // the URL of the page
	open  int       // how often the page is open
	costs []float64 // microseconds of processor time per page of the crawl
	bytes int       // of the messages to the open pages
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
		server := httptest.NewServer(view.New(p, view.Options{}))
		t.Cleanup(server.Close)
		w.page = server.URL
	}
	return w
}

// turn crawls for a second while the page is open.
func (w *watchedCrawl) turn(t *testing.T) {
	ctx, closePages := context.WithCancel(t.Context())
	var pages sync.WaitGroup
	var mu sync.Mutex
	for range w.open {
		pages.Go(func() {
			n := readStream(ctx, w.page+"/events")
			mu.Lock()
			w.bytes += n
			mu.Unlock()
		})
	}
	before := processorTime(t)
	next := time.Now()
	for i := range watchedPages {
		if err := w.c.Visit(fmt.Sprintf("http://h%d.test/%d", i%watchedHosts, i)); err != nil {
			t.Fatal(err)
		}
		next = next.Add(time.Second / watchedPages)
		time.Sleep(time.Until(next))
	}
	w.costs = append(w.costs, float64((processorTime(t)-before).Microseconds())/watchedPages)
	closePages()
	pages.Wait()
}

// readStream reads a stream until ctx ends. It returns the number of bytes.
func readStream(ctx context.Context, url string) int {
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

// processorTime returns the processor time that this process has used, in user and system mode.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
