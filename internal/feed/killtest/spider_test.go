package killtest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// A spider is a program that crawls the pages that sitemaps list and appends each processed page to
// a file. It runs as a separate process. The environment variable COLLYROBOTS_SPIDER has its
// settings as JSON.
type spider struct {
	HTTP        string   // the address of the server for all sites under http
	HTTPS       string   // the address of the server for all sites under https
	Seeds       []string // a page of each site
	Store       string   // a path
	Results     string   // a path
	Life        int      // how often it was started before
	Way         string   // how the spider gets its pages: "async", "sync", "pages", "queue" or "sink"
	End         string   // what SIGTERM does: "cancel", "close", or "cancel and close"
	Window      int
	Threads     int // threads of the queue
	NewestFirst bool
	MaxURLs     int // the MaxURLs of this life

	results *os.File
	client  *http.Client // of "sink"
}

const spiderVariable = "COLLYROBOTS_SPIDER"

// since is the Since of the Feed.
var since = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// spiderMain is the main function of the process. It returns its exit code.
func spiderMain(job string) int {
	var s spider
	err := json.Unmarshal([]byte(job), &s)
	if err == nil {
		err = s.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (s *spider) run() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.results, err = os.OpenFile(s.Results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	records, err := store.OpenDir(s.Store)
	if err != nil {
		return err
	}
	c := s.collector(ctx)
	p, err := collyrobots.WithRobots(c, s.options(records)...)
	if err != nil {
		return err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		if strings.Contains(s.End, "cancel") {
			cancel()
		}
		if strings.Contains(s.End, "close") {
			_ = p.Close()
		}
	}()
	if err := s.crawl(ctx, c, p); err != nil {
		return err
	}
	return errors.Join(p.Close(), records.Close(), s.results.Close())
}

// collector returns a collector that reaches all sites at the two servers.
func (s *spider) collector(ctx context.Context) *colly.Collector {
	c := colly.NewCollector(colly.UserAgent(fmt.Sprint("ExampleBot/", s.Life)), colly.StdlibContext(ctx), colly.URLFilters())
	c.Async = s.Way == "async"
	c.DisallowedURLFilters = append(c.DisallowedURLFilters, refused(s.Life))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := s.HTTP
			if strings.HasSuffix(addr, ":443") {
				to = s.HTTPS
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}
	c.WithTransport(transport)
	s.client = &http.Client{Transport: transport}
	c.OnResponse(func(r *colly.Response) { s.note(r.Request.URL.String()) })
	c.OnError(func(r *colly.Response, _ error) {
		if r.StatusCode == http.StatusNotFound {
			s.note(r.Request.URL.String())
		}
	})
	return c
}

// note records that a page was processed.
func (s *spider) note(loc string) {
	if _, err := io.WriteString(s.results, loc+"\n"); err != nil {
		panic(err)
	}
}

// fetch requests a page that the Sink gets.
func (s *spider) fetch(loc string) error {
	if refused(s.Life).MatchString(loc) {
		return errors.New("refused")
	}
	req, err := http.NewRequest(http.MethodGet, loc, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", fmt.Sprint("ExampleBot/", s.Life))
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return errors.New(resp.Status)
	}
	s.note(resp.Request.URL.String())
	return nil
}

func (s *spider) feed() collyrobots.Feed {
	f := collyrobots.Feed{
		Resume:      true,
		Window:      s.Window,
		Since:       since,
		Keep:        func(e sitemap.Entry) bool { return !dropped(e.Loc, s.Life) },
		NewestFirst: s.NewestFirst,
		MaxURLs:     s.MaxURLs,
	}
	if s.Way == "sink" {
		f.Sink = func(_ context.Context, e sitemap.Entry) error { return s.fetch(e.Loc) }
	}
	return f
}

// mostPages is larger than the number of pages of a trial.
const mostPages = 10_000

// withoutRobots is a store that hides the robots.txt files of earlier lives, because they may have
// changed.
type withoutRobots struct{ store.Store }

func (s withoutRobots) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, "robots:") {
		return nil, nil
	}
	return s.Store.Get(ctx, key)
}

func (s *spider) options(records store.Store) []collyrobots.Option {
	options := []collyrobots.Option{
		collyrobots.Store(withoutRobots{records}), collyrobots.PrivateNetworks(collyrobots.AllowAll), collyrobots.Logger(slog.New(slog.DiscardHandler)),
	}
	if s.Way != "pages" && s.Way != "queue" {
		options = append(options, collyrobots.FollowSitemaps(s.feed()))
	}
	return options
}

// crawl visits all pages.
func (s *spider) crawl(ctx context.Context, c *colly.Collector, p *collyrobots.Plugin) error {
	switch s.Way {
	case "pages":
		for e, err := range p.Pages(ctx, s.feed(), s.Seeds...) {
			if err == nil {
				_ = c.Visit(e.Loc) // errors go to OnError
			}
		}
		return nil
	case "queue":
		q, err := p.SitemapQueue(&queue.InMemoryQueueStorage{}, s.feed(), s.Seeds...)
		if err != nil {
			return err
		}
		threads, err := queue.New(s.Threads, q)
		if err != nil {
			return err
		}
		return errors.Join(threads.Run(c), q.Close())
	}
	for _, seed := range s.Seeds {
		_ = c.Visit(seed)
	}
	c.Wait()
	return nil
}
