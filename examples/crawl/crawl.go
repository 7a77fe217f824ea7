package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
)

// crawl does the job. Without a report it could not even begin; what goes wrong with single pages
// is in the report.
func crawl(ctx context.Context, j *job, p *progress) (*report, error) {
	whole := ctx // until somebody interrupts it
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &spider{
		report: newReport(), progress: p, sites: make(map[string]bool),
		budget: newBudget(ctx, j.max, end),
	}
	c := collyrobots.NewCollector(
		colly.Async(),
		colly.StdlibContext(ctx),
		colly.MaxDepth(j.depth),
		colly.UserAgent(j.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)"))
	if j.transport != nil {
		c.WithTransport(j.transport)
	}
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: j.parallelism}); err != nil {
		return nil, err
	}
	c.OnRequestHeaders(s.onRequestHeaders)
	c.OnResponse(s.onResponse)
	c.OnHTML("a[href]", s.onLink)
	c.OnError(s.onError)
	c.OnScraped(func(r *colly.Response) { s.budget.done(r.Request.ID) })
	robots, err := c.WithRobots(s.options(j)...) // after the callbacks: at a page's end it reads sitemaps, for as long as they take
	if err != nil {
		return nil, err
	}

	if j.listener != nil {
		defer servePage(j.listener, robots, p)()
	}
	s.check = func(u string) (collyrobots.Decision, error) { return robots.Check(ctx, u) }
	p.watch(robots.Stats)
	for _, u := range j.urls {
		s.addSite(u)
		if err := c.Visit(u); err != nil && !isRepetition(err) {
			s.fail(u, 0, err, true)
		}
	}
	c.Wait()
	p.close()
	stats := robots.Stats()
	err = robots.Close() // has told of all robots.txt files then
	s.report.finish(stats, whole.Err() != nil, s.budget.spent())
	return s.report, err
}

// A spider is the callbacks of a crawl, and what they have in common.
type spider struct {
	report   *report
	progress *progress
	budget   *budget
	check    func(url string) (collyrobots.Decision, error) // Plugin.Check

	mu    sync.Mutex
	sites map[string]bool // hosts that links are followed on
}

func (s *spider) options(j *job) []collyrobots.Option {
	options := []collyrobots.Option{
		collyrobots.Dialect(j.dialect),
		collyrobots.ProductToken(j.tokens...),
		collyrobots.MinDelay(j.delay),
		collyrobots.OnDenied(s.onDenied),
		collyrobots.OnEvent(s.onEvent),
		collyrobots.Logger(slog.New(slog.NewTextHandler(s.progress, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: plain}))),
	}
	if j.skipAbove > 0 {
		options = append(options, collyrobots.SkipAbove(j.skipAbove))
	}
	if j.sitemaps {
		options = append(options, collyrobots.FollowSitemaps(collyrobots.Feed{Keep: s.keep, Resume: j.resume}))
	}
	if j.store != nil {
		options = append(options, collyrobots.Store(j.store))
	}
	return options
}

// keep notes a page that a sitemap lists and robots.txt denies. It drops no page, because the plugin
// leaves denied pages out itself.
func (s *spider) keep(e sitemap.Entry) bool {
	d, err := s.check(e.Loc)
	if err == nil && !d.Allowed {
		s.deny(d)
	}
	return true
}

// onRequestHeaders lets a page be asked for that the budget has room for. Another page waits here
// until the crawl ends. If it were aborted before that, it would be done, and -resume would leave it
// out.
func (s *spider) onRequestHeaders(r *colly.Request) {
	if !s.budget.take(r.ID) {
		r.Abort()
	}
}

func (s *spider) onResponse(r *colly.Response) {
	if isStart(r.Request) {
		s.addSite(r.Request.URL.String()) // example.com may have led to www.example.com
	}
	s.progress.page(r.StatusCode, r.Request.URL.String())
}

// onLink follows a link that stays on the sites of the job.
func (s *spider) onLink(e *colly.HTMLElement) {
	link := e.Request.AbsoluteURL(e.Attr("href"))
	if u, err := url.Parse(link); err == nil && s.isSite(u) {
		e.Request.Visit(link) // an error is no failure: visited before, or too deep
	}
}

// onDenied is called for each request that was not sent. onError is called for it as well.
func (s *spider) onDenied(r *colly.Request, err error) {
	var denied *collyrobots.DisallowedError
	if !errors.As(err, &denied) {
		return
	}
	s.deny(denied.Decision)
	if isStart(r) && denied.Decision.Err != nil && denied.Decision.Status == 0 {
		s.report.failStart()
	}
}

func (s *spider) onError(r *colly.Response, err error) {
	if errors.Is(err, colly.ErrRobotsTxtBlocked) {
		s.budget.giveBack(r.Request.ID)
		return
	}
	defer s.budget.done(r.Request.ID)
	if errors.Is(err, colly.ErrAbortedBeforeRequest) || errors.Is(err, context.Canceled) {
		return // the crawl was ended
	}
	s.fail(r.Request.URL.String(), r.StatusCode, err, isStart(r.Request))
}

// onEvent hears of each robots.txt that is read, in the cache or at its host.
func (s *spider) onEvent(e collyrobots.Event) {
	if e.Kind == collyrobots.EventRobots {
		s.report.read(e)
	}
}

// fail notes a page that was not answered as it should be: with a status, or not at all.
func (s *spider) fail(rawURL string, status int, err error, start bool) {
	f := failure{URL: rawURL, Status: status}
	if f.Error = err.Error(); f.Error == http.StatusText(status) {
		f.Error = "" // all that Colly has to say
	}
	s.report.fail(f)
	if start {
		s.report.failStart()
	}
	s.progress.failed(f)
}

// deny notes a page that robots.txt denies: a request that was not sent, or one that a sitemap
// lists.
func (s *spider) deny(d collyrobots.Decision) {
	s.report.deny(d)
	s.progress.denied(d)
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

// isRepetition reports whether Visit refused a URL because it was there before: given twice, or met
// as a link.
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
