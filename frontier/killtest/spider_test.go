package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/report"
)

// spiderVariable is the environment variable with the description of a spider in JSON. A process
// that has it runs that spider.
const spiderVariable = "COLLYROBOTS_SPIDER"

// A spider describes what one process does.
type spider struct {
	Server      string // the address of all hosts
	Dir         string // the folder of the frontier
	Window      int
	End         string      // what SIGTERM does: "cancel", "close" or "close the frontier"
	interrupted atomic.Bool // SIGTERM has come
}

// spiderMain runs the spider that a process is to run, and returns the exit code.
func spiderMain(job string) int {
	var s spider
	err := json.Unmarshal([]byte(job), &s)
	if err == nil {
		err = s.crawl()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// crawl crawls until no page is left, or until SIGTERM comes.
func (s *spider) crawl() error {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelError}))
	f, err := frontier.Open(s.Dir, frontier.Window(s.Window), frontier.Logger(log))
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := colly.NewCollector(colly.Async(), colly.StdlibContext(ctx), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(&http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Server)
		},
		MaxIdleConnsPerHost: 10,
	})
	c.SetRequestTimeout(time.Minute)
	c.OnRequest(block)
	robots, err := collyrobots.WithRobots(c, collyrobots.Frontier(f), collyrobots.Logger(log), collyrobots.OnEvent(checkGap))
	if err != nil {
		return err
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	go s.endOnSignal(cancel, robots, f)
	err = c.Visit(startURL)
	if err != nil {
		return err
	}
	c.Wait()
	return s.judge(robots, f)
}

// endOnSignal ends the crawl on SIGTERM.
func (s *spider) endOnSignal(cancel func(), robots *collyrobots.Plugin, f *frontier.Frontier) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	s.interrupted.Store(true)
	switch s.End {
	case "close":
		robots.Close()
	case "close the frontier":
		f.Close()
	}
	cancel()
}

// judge returns an error if the crawl has ended by itself although pages are left.
func (s *spider) judge(robots *collyrobots.Plugin, f *frontier.Frontier) error {
	stats := robots.Stats()
	if stats.GapOverDelay != 0 && stats.GapOverDelay < 1 {
		return fmt.Errorf("a gap was %v of the delay", stats.GapOverDelay)
	}
	left := f.Stats()
	if !s.interrupted.Load() && (left.Waiting != 0 || left.Out != 0) {
		return fmt.Errorf("the crawl has ended with %d waiting pages and %d that are out", left.Waiting, left.Out)
	}
	return nil
}

// block is a callback that holds up some pages before the plugin sees them.
func block(r *colly.Request) {
	h := fnv.New32a()
	h.Write([]byte(r.URL.Path))
	if h.Sum32()%16 == 0 {
		time.Sleep(50 * time.Millisecond)
	}
}

// checkGap ends the process if two requests to a host were too close together.
func checkGap(e *report.Event) {
	if e.Kind == report.EventStarted && e.Delay > 0 && e.Gap > 0 && e.Gap < e.Delay {
		fmt.Printf("%s: %v after the request before, want %v\n", e.URL, e.Gap, e.Delay)
		os.Exit(1)
	}
}
