//go:build linux

package figures

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

var (
	rounds    = flag.Int("rounds", 1, "TestPageRatio: number of processes of each kind; 20 give two digits")
	crawlFlag = flag.Int("crawl", 0, "TestCrawl: number of pages; if 0, a few thousand")
)

// Goals. TestPageRatio fails with -rounds 10 or more if it misses its goal, and TestCrawl with at
// least fullSize pages.
const (
	mostRatio  = 1.5
	leastShare = 0.95 // of the pages per second that the delays allow
)

// TestPageRatio compares the processor time of a page with the plugin and a Frontier to that of a
// page with the plugin alone. The pages come from memory. Each has 20 links, and two of them are
// new.
func TestPageRatio(t *testing.T) {
	pages := 500
	if *rounds > 1 {
		pages = 10_000
	}
	ratios := make([]float64, *rounds)
	for i := range ratios {
		without := start(t, task{Do: "visit", Pages: pages})
		with := start(t, task{Do: "visit", Pages: pages, Dir: t.TempDir()})
		for _, r := range []result{without, with} {
			if r.Pages != pages {
				t.Fatalf("%d pages were fetched, want %d", r.Pages, pages)
			}
		}
		ratios[i] = float64(with.CPU) / float64(without.CPU)
		t.Logf("CPU of a page: %.1f µs without a Frontier, %.1f µs with one", perPage(without), perPage(with))
	}
	slices.Sort(ratios)
	median := ratios[len(ratios)/2]
	t.Logf("ratio %.2f (%.2f to %.2f)", median, ratios[0], ratios[len(ratios)-1])
	if *rounds >= 10 && median > mostRatio {
		t.Errorf("the ratio is %.2f, want at most %.2f", median, mostRatio)
	}
}

// perPage returns the processor time of a page in microseconds.
func perPage(r result) float64 { return float64(r.CPU.Microseconds()) / float64(r.Pages) }

// TestCrawl crawls pages of 10,000 hosts with a delay of one second by the real clock. All pages
// are found at the beginning.
func TestCrawl(t *testing.T) {
	n := max(*crawlFlag, 4_000)
	hosts := min(10_000, n/2)
	r := start(t, task{Do: "waiting", Pages: n, Hosts: hosts, Dir: t.TempDir()})
	if r.Pages != n {
		t.Errorf("%d pages were fetched, want %d", r.Pages, n)
	}
	share := r.perSecond() / float64(hosts)
	t.Logf("%d pages of %d hosts in %.1fs, %.0f/s, %.1f %% of what the delays allow, CPU %.1f µs/page, resident %.0f MB, peak %.0f MB",
		r.Pages, hosts, r.Elapsed.Seconds(), r.perSecond(), 100*share, perPage(r), megabytes(r.Anon), megabytes(r.Peak))
	if n >= fullSize && share < leastShare {
		t.Errorf("%.1f %% of what the delays allow, want at least %.1f %%", 100*share, 100*leastShare)
	}
}

// A web answers requests from memory. The pages of each host are a tree, whose nodes have the paths
// /0 to /pages-1.
type web struct {
	robots string
	pages  int // of each host
	links  int // of each page
	served atomic.Int64
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	body := w.robots
	contentType := "text/plain"
	if r.URL.Path != "/robots.txt" {
		w.served.Add(1)
		body = w.page(r.URL.Path)
		contentType = "text/html; charset=utf-8"
	}
	return &http.Response{
		Status:        "200 OK",
		StatusCode:    http.StatusOK,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}

// page returns the page at a path. Its first two links lead to its children. The others lead to its
// ancestors.
func (w *web) page(path string) string {
	i, err := strconv.Atoi(strings.TrimPrefix(path, "/"))
	if err != nil || w.links == 0 {
		return "<!doctype html><title>x</title>"
	}
	var b strings.Builder
	b.WriteString("<!doctype html><title>x</title><ul>")
	ancestor := i
	for link := range w.links {
		target := 2*i + 1 + link
		if link >= 2 || target >= w.pages {
			ancestor = max(0, (ancestor-1)/2)
			target = ancestor
		}
		fmt.Fprintf(&b, "\n<li><a href=\"/%d\">Some text about page %d</a>, and some more text</li>", target, target)
	}
	b.WriteString("</ul>")
	return b.String()
}

// A spider is a collector with the plugin.
type spider struct {
	*colly.Collector
	plugin *collyrobots.Plugin
	f      *frontier.Frontier // nil if there is none
}

// spider returns a collector that crawls w. It has a Frontier if t has a folder.
func (t task) spider(w *web) (*spider, error) {
	s := &spider{Collector: colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"), colly.Async(true))}
	s.WithTransport(w)
	quiet := slog.New(slog.DiscardHandler)
	options := []collyrobots.Option{collyrobots.Logger(quiet)}
	if t.Dir != "" {
		f, err := frontier.Open(t.Dir, frontier.Logger(quiet))
		if err != nil {
			return nil, err
		}
		s.f = f
		options = append(options, collyrobots.Frontier(f))
	}
	p, err := collyrobots.WithRobots(s.Collector, options...)
	if err != nil {
		return nil, err
	}
	s.plugin = p
	s.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	return s, nil
}

// close closes the plugin and the Frontier.
func (s *spider) close() error {
	s.plugin.Close()
	if s.f == nil {
		return nil
	}
	return s.f.Close()
}

// visitAll crawls a site without a delay by following links.
func visitAll(t task) (result, error) {
	w := &web{robots: "User-agent: *\nDisallow: /private/\n", pages: t.Pages, links: 20}
	s, err := t.spider(w)
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := s.Visit("http://www.example.com/0"); err != nil {
		return result{}, err
	}
	s.Wait()
	return result{Pages: int(w.served.Load()), Elapsed: time.Since(start), closer: s.close}, nil
}

// crawlDelayed crawls hosts with a delay of one second. The pages are added to the Frontier before
// the crawl starts, which is not measured. Elapsed is the time without the robots.txt of each host,
// which takes one delay.
func crawlDelayed(t task) (result, error) {
	w := &web{robots: "User-agent: *\nCrawl-delay: 1\n"}
	s, err := t.spider(w)
	if err != nil {
		return result{}, err
	}
	url := func(i int) string { return fmt.Sprintf("http://www.host-%05d.example/%d", i%t.Hosts, i/t.Hosts) }
	err = parallel(1, t.Pages, func(i int) error {
		_, err := s.f.Add(&urlstore.Page{URL: url(i), Depth: 1})
		return err
	})
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	if err := s.Visit(url(0)); err != nil {
		return result{}, err
	}
	s.Wait()
	elapsed := time.Since(start) - time.Second
	if stats := s.f.Stats(); stats.Waiting > 0 {
		return result{}, fmt.Errorf("%d pages wait after the crawl", stats.Waiting)
	}
	return result{Pages: int(w.served.Load()), Elapsed: elapsed, closer: s.close}, nil
}
