package autothrottle

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

var (
	measured = flag.Bool("measure", false, "run the comparison, which takes three minutes, and print its table")
	python   = flag.String("python", "python3", "the Python that has Scrapy")
)

// A spider requests pages of the server at url for some time. concurrency is the number of requests
// that the server is to work on at once.
type spider func(t *testing.T, url string, length time.Duration, concurrency float64)

// withColly uses AdaptiveDelay.
func withColly(t *testing.T, url string, length time.Duration, concurrency float64) {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	c := colly.NewCollector(colly.Async(), colly.StdlibContext(ctx), colly.UserAgent("ExampleBot/1.0"))
	robots, err := collyrobots.WithRobots(c, collyrobots.AdaptiveDelay(1/concurrency))
	if err != nil {
		t.Fatal(err)
	}
	defer robots.Close()
	const workers = 20 // more than the server is to work on at once
	var pages atomic.Int64
	next := func() string { return fmt.Sprint(url, "/", pages.Add(1)) }
	c.OnScraped(func(r *colly.Response) { r.Request.Visit(next()) })
	for range workers {
		c.Visit(next())
	}
	c.Wait()
}

// withScrapy runs spider.py.
func withScrapy(t *testing.T, url string, length time.Duration, concurrency float64) {
	seconds := int(math.Ceil(length.Seconds()))
	ctx, cancel := context.WithTimeout(t.Context(), length+time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, *python, "spider.py", url, fmt.Sprint(seconds), fmt.Sprint(concurrency)).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// scrapyVersion returns the version of Scrapy. It skips the test if Scrapy is not installed.
func scrapyVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), *python, "-c", "import platform, scrapy; print('Scrapy', scrapy.__version__, 'on Python', platform.python_version())").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("Scrapy is missing for %s (%v: %s). Install it with \"python3 -m venv ~/scrapy && ~/scrapy/bin/pip install scrapy\" and pass -python ~/scrapy/bin/python",
			*python, err, lines[len(lines)-1])
	}
	return strings.TrimSpace(string(out))
}

// TestColly checks that the server gets the requests of the spider of Colly one at a time.
func TestColly(t *testing.T) {
	s := newServer(4, phase{time.Second, 20 * time.Millisecond})
	visit(t, s, withColly, 1)
	if f := s.figureOf(0, s.length()); f.rate == 0 || f.mostFlight > 1 {
		t.Errorf("%+v", f)
	}
}

// TestScrapy checks that the server gets the requests of the spider of Scrapy.
func TestScrapy(t *testing.T) {
	scrapyVersion(t)
	s := newServer(4, phase{8 * time.Second, 20 * time.Millisecond}) // the first delay is five seconds
	visit(t, s, withScrapy, 1)
	if f := s.figureOf(0, s.length()); f.rate == 0 {
		t.Errorf("%+v", f)
	}
}

// TestCompare prints the table of the README. A server that can work on four pages at once takes
// 100 ms for each, then 800 ms, and then 100 ms again.
func TestCompare(t *testing.T) {
	if !*measured {
		t.Skip("pass -measure to run the comparison")
	}
	version := scrapyVersion(t)
	var tables strings.Builder
	fmt.Fprintf(&tables, "%s\n\n", version)
	fmt.Fprintln(&tables, "| spider | a page takes | requests/s | mean | longest | in flight, mean | most | requests in the first 2 s | settled after |")
	fmt.Fprintln(&tables, "|---|---|---|---|---|---|---|---|---|")
	type run struct {
		name        string
		spider      spider
		concurrency float64
		server      *server
	}
	var runs []*run
	for _, concurrency := range []float64{1, 2, 8} {
		runs = append(runs,
			&run{fmt.Sprintf("AdaptiveDelay(%v)", 1/concurrency), withColly, concurrency, nil},
			&run{fmt.Sprintf("AutoThrottle, target %v", concurrency), withScrapy, concurrency, nil})
	}
	t.Run("spiders", func(t *testing.T) {
		for _, r := range runs {
			r.server = newServer(4, phase{30 * time.Second, 100 * time.Millisecond}, phase{30 * time.Second, 800 * time.Millisecond}, phase{30 * time.Second, 100 * time.Millisecond})
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				visit(t, r.server, r.spider, r.concurrency)
			})
		}
	})
	for _, r := range runs {
		r.server.print(&tables, r.name)
	}
	t.Log("\n" + tables.String())
}

// visit lets a spider visit a server until its phases are over.
func visit(t *testing.T, s *server, visit spider, concurrency float64) {
	web := httptest.NewServer(s)
	defer web.Close()
	visit(t, web.URL, s.length()+time.Second, concurrency)
}
