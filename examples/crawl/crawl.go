package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// crawl does the job. The error says that it could not even begin; what goes wrong later is in the report.
func crawl(ctx context.Context, j job, p *progress) (*report, error) {
	s := &spider{report: newReport(), progress: p, sites: make(map[string]bool)}
	c := collyrobots.NewCollector(
		colly.Async(),
		colly.StdlibContext(ctx),
		colly.MaxDepth(j.depth),
		colly.MaxRequests(uint32(j.pages)),
		colly.UserAgent(j.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)"))
	if j.transport != nil {
		c.WithTransport(j.transport)
	}
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: j.parallelism}); err != nil {
		return nil, err
	}
	c.OnRequest(func(*colly.Request) { s.requests.Add(1) })
	robots, err := c.WithRobots(s.options(j)...)
	if err != nil {
		return nil, err
	}
	s.robots = robots
	c.OnResponse(s.onResponse)
	c.OnHTML("a[href]", s.onLink)
	c.OnError(s.onError)

	stop := s.watchSitemaps()
	for _, u := range j.urls {
		s.addSite(u)
		if err := c.Visit(u); err != nil && !isRepetition(err) {
			s.fail(redacted(u), err, true)
		}
	}
	c.Wait()
	stop()
	p.close()
	s.report.finish(robots.Stats(), ctx.Err() != nil)
	s.report.full = j.pages > 0 && s.requests.Load() >= int64(j.pages)
	return s.report, robots.Close()
}

// redacted returns a URL without its password.
func redacted(rawURL string) string {
	if u, err := url.Parse(rawURL); err == nil {
		return u.Redacted()
	}
	return rawURL
}

// A spider is the callbacks of a crawl, and what they have in common.
type spider struct {
	robots   *collyrobots.Plugin
	report   *report
	progress *progress
	requests atomic.Int64 // for pages

	mu    sync.Mutex
	sites map[string]bool // hosts that links are followed on
}

func (s *spider) options(j job) []collyrobots.Option {
	options := []collyrobots.Option{
		collyrobots.Dialect(j.dialect),
		collyrobots.ProductToken(j.tokens...),
		collyrobots.MinDelay(j.minDelay),
		collyrobots.OnDenied(s.onDenied),
		collyrobots.Logger(slog.New(slog.NewTextHandler(s.progress, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: plain}))),
	}
	if j.sitemaps {
		options = append(options, collyrobots.FollowSitemaps(collyrobots.Feed{Denied: s.deny}))
	}
	return options
}

func (s *spider) onResponse(r *colly.Response) {
	if isStart(r.Request) {
		s.addSite(r.Request.URL.String()) // example.com may have led to www.example.com
	}
	s.progress.page(r.StatusCode, r.Request.URL.Redacted())
}

// onLink follows a link that stays on the sites of the job.
func (s *spider) onLink(e *colly.HTMLElement) {
	link := e.Request.AbsoluteURL(e.Attr("href"))
	if u, err := url.Parse(link); err == nil && s.isSite(u) {
		e.Request.Visit(link) // an error is no failure: visited before, or too deep
	}
}

// onDenied hears of each request that was not sent.
func (s *spider) onDenied(r *colly.Request, err error) {
	var denied *collyrobots.DisallowedError
	switch {
	case errors.As(err, &denied):
		s.deny(denied.Decision)
		if isStart(r) && denied.Decision.Err != nil && denied.Decision.Status == 0 {
			s.report.failStart()
		}
	case !errors.Is(err, context.Canceled):
		s.fail(r.URL.Redacted(), err, isStart(r))
	}
}

func (s *spider) onError(r *colly.Response, err error) {
	if errors.Is(err, colly.ErrRobotsTxtBlocked) || errors.Is(err, colly.ErrAbortedBeforeRequest) ||
		errors.Is(err, collyrobots.ErrHopWait) || errors.Is(err, context.Canceled) {
		return // onDenied has heard of it, or the crawl was interrupted
	}
	s.fail(r.Request.URL.Redacted(), err, isStart(r.Request))
}

func (s *spider) fail(rawURL string, err error, start bool) {
	s.report.fail(rawURL, err)
	if start {
		s.report.failStart()
	}
	s.progress.failed(rawURL, err)
}

// deny notes a page that robots.txt denies: a request that was not sent, or one that a sitemap lists.
func (s *spider) deny(d collyrobots.Decision) {
	s.report.deny(d)
	s.progress.denied(d)
}

// watchSitemaps shows from time to time how far the sitemaps are read, until the function that it returns is called.
func (s *spider) watchSitemaps() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		last := collyrobots.FeedStats{}
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
			}
			if now := s.robots.Stats().Sitemaps; now.Entries > last.Entries {
				s.progress.sitemaps(now)
				last = now
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (s *spider) addSite(rawURL string) {
	if u, err := url.Parse(rawURL); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sites[strings.ToLower(u.Host)] = true
	}
}

func (s *spider) isSite(u *url.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sites[strings.ToLower(u.Host)]
}

// isStart reports whether the request is for a URL that the user gave.
func isStart(r *colly.Request) bool {
	return r.Depth == 1 && r.Ctx.Get(collyrobots.CtxSitemap) == ""
}

// isRepetition reports whether Visit refused a URL because it was there before: given twice, or met as a link.
func isRepetition(err error) bool {
	var visited *colly.AlreadyVisitedError
	return errors.As(err, &visited)
}

// plain leaves of a log line what it says.
func plain(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	return a
}
