package redisstore_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

var ratioTurns = flag.Int("ratio", 1, "TestRatio: how often each crawl is measured")

// TestRatio prints how many pages a second processes fetch with SharedPace, compared with the same
// processes without it, if no host has a delay. The two crawls run in turns, so that other programs
// on the machine slow down both. The test checks only that both make progress. To measure, run:
//
//	go test -run Ratio -v -ratio 40
func TestRatio(t *testing.T) {
	if raceEnabled {
		t.Skip("measures the rate of the race detector")
	}
	s := newServer(t)
	web := newFastSite(t)
	for _, processes := range []int{1, 4} {
		for _, hosts := range []int{1, 8, 64} {
			t.Run(fmt.Sprintf("%d processes, %d hosts", processes, hosts), func(t *testing.T) {
				j := job{Redis: s.addr, Site: web.addr, Hosts: hosts, AtOnce: 32}
				shared := newCrawl(t, web, j, processes)
				j.Alone = true
				alone := newCrawl(t, web, j, processes)
				var ratios []float64
				for range *ratioTurns {
					ratios = append(ratios, shared.rate(t, web)/alone.rate(t, web))
				}
				slices.Sort(ratios)
				median := func(of []float64) float64 { slices.Sort(of); return of[len(of)/2] }
				t.Logf("%.0f pages/s, with SharedPace %.0f; ratio: median %.2f, quartiles %.2f and %.2f", median(alone.rates), median(shared.rates),
					ratios[len(ratios)/2], ratios[len(ratios)/4], ratios[len(ratios)*3/4])
			})
		}
	}
}

// A fastSite is a site with many pages that counts its requests.
type fastSite struct {
	addr  string
	pages atomic.Int64
}

func newFastSite(t *testing.T) *fastSite {
	s := new(fastSite)
	page := "<html><title>page</title>" + strings.Repeat("<p>text</p>", 100)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			_, _ = io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			return
		}
		s.pages.Add(1)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(web.Close)
	s.addr = strings.TrimPrefix(web.URL, "http://")
	return s
}

// await waits until the site has got n more requests.
func (s *fastSite) await(t *testing.T, n int) {
	t.Helper()
	from := s.pages.Load()
	for end := time.Now().Add(time.Minute); s.pages.Load() < from+int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the crawl makes no progress")
		}
	}
}

// A fastCrawl is a crawl by several processes, which are stopped except in their turns.
type fastCrawl struct {
	workers []*worker
	rates   []float64 // pages a second
}

func newCrawl(t *testing.T, web *fastSite, j job, processes int) *fastCrawl {
	c := new(fastCrawl)
	for n := range processes {
		j.Name = fmt.Sprint(n)
		c.workers = append(c.workers, newWorker(t, j))
	}
	web.await(t, 10*processes*j.Hosts) // until the robots.txt files have been read
	c.signal(syscall.SIGSTOP)
	return c
}

func (c *fastCrawl) signal(s syscall.Signal) {
	for _, w := range c.workers {
		w.signal(s)
	}
}

// rate runs the crawl for one turn and returns how many pages a second it has fetched.
func (c *fastCrawl) rate(t *testing.T, web *fastSite) float64 {
	const turn = 200 * time.Millisecond
	c.signal(syscall.SIGCONT)
	web.await(t, 100*len(c.workers))
	time.Sleep(turn / 4)
	from := web.pages.Load()
	began := time.Now()
	time.Sleep(turn)
	n := web.pages.Load() - from
	rate := float64(n) / time.Since(began).Seconds()
	c.signal(syscall.SIGSTOP)
	c.rates = append(c.rates, rate)
	return rate
}

// hurry runs a worker that crawls pages of all hosts in turn, as fast as it can.
func (j *job) hurry(ctx context.Context, s *redisstore.Store) int {
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.StdlibContext(ctx))
	c.WithTransport(&http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, j.Site)
		},
		MaxIdleConnsPerHost: j.AtOnce,
	})
	options := []collyrobots.Option{collyrobots.PrivateNetworks(collyrobots.AllowAll), collyrobots.Logger(slog.New(slog.DiscardHandler))}
	if !j.Alone {
		options = append(options, collyrobots.SharedPace(s))
	}
	robots, err := c.WithRobots(options...)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer robots.Close()
	var page atomic.Int64
	var crawlers sync.WaitGroup
	for range j.AtOnce {
		crawlers.Go(func() {
			for ctx.Err() == nil {
				n := page.Add(1)
				_ = c.Visit(fmt.Sprintf("http://host%d/%s/%d", n%int64(j.Hosts), j.Name, n))
			}
		})
	}
	crawlers.Wait()
	return 0
}
