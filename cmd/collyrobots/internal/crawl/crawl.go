package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// crawl does the job. The report contains the failures of single pages. If crawl returns no report,
// the crawl could not start.
func crawl(ctx context.Context, j *job, p *progress) (*summary, error) {
	interrupted := ctx
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	s := &spider{
		report:   newReport(j),
		progress: p,
		lines:    j.lines,
		sites:    make(map[string]bool),
		store:    j.store,
		budget:   newBudget(ctx, j.max, func() { end(nil) }),
	}
	if j.pages != nil && j.pages.left > 0 {
		var err error
		s.sites, err = readSites(j.store)
		if err != nil {
			return nil, fmt.Errorf("-cache: %w", err)
		}
	}
	c, err := s.collector(ctx, j)
	if err != nil {
		return nil, err
	}
	// WithRobots is called after the callbacks are registered: its own callback at the end of a
	// page reads the sitemaps of the site, which may take long.
	robots, err := c.WithRobots(s.options(j)...)
	if err != nil {
		return nil, err
	}

	page := newPage(robots)
	if j.listener != nil {
		j.page = servePage(j.listener, page, p)
	}
	stop := s.stopWhen(interrupted, end, robots, j)
	defer stop()
	s.check = func(u string) (collyrobots.Decision, error) { return robots.Check(ctx, u) }
	p.watch(robots.Stats)
	s.visit(c, j)
	c.Wait()
	p.close()
	stop()
	stats := robots.Stats()
	err = robots.Close() // waits until onEvent has got all events
	if j.report != "" {
		err = errors.Join(err, writeReportFile(j.report, page))
	}
	s.report.finish(stats, interrupted.Err() != nil, s.budget.spent())
	if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
		err = errors.Join(err, cause)
	}
	return s.report, err
}

// collector returns a collector with the callbacks of the spider. Its requests end with ctx.
func (s *spider) collector(ctx context.Context, j *job) (*collyrobots.Collector, error) {
	c := collyrobots.NewCollector(
		colly.Async(),
		colly.StdlibContext(ctx),
		colly.MaxDepth(j.depth),
		colly.UserAgent(cmp.Or(j.agent, j.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)")))
	if j.transport != nil {
		c.WithTransport(j.transport)
	}
	c.OnRequestHeaders(s.onRequestHeaders)
	c.OnResponse(s.onResponse)
	c.OnHTML("a[href]", s.onLink)
	c.OnError(s.onError)
	c.OnScraped(func(r *colly.Response) { s.budget.done(r.Request.ID) })
	return c, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: j.parallelism})
}

// visit visits the start pages. If an earlier run was interrupted, its pages are also fetched.
func (s *spider) visit(c *collyrobots.Collector, j *job) {
	if j.pages != nil && j.pages.left > 0 {
		s.progress.display.Printf("Continuing with %s of the last run.", term.Number(j.pages.left, "page"))
	}
	for _, u := range j.urls {
		s.addSite(u)
		if err := c.Visit(u); err != nil && !isRepetition(err) {
			s.fail(u, 0, err, true)
		}
	}
}

// stopWhen ends the crawl when the user interrupts it, when the audit log cannot be written, or
// when nothing reads the JSON lines. Before an interruption ends it, the report gets the pages that
// are waiting.
func (s *spider) stopWhen(interrupted context.Context, end context.CancelCauseFunc, robots *collyrobots.Plugin, j *job) (stop func()) {
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-done:
		case <-interrupted.Done():
			s.report.setLeft(robots.Stats())
			end(nil)
		case err := <-j.logFailed:
			end(err)
		case <-j.lines.failed(): // the report returns the error
			end(nil)
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		watcher.Wait()
	})
}

// A spider has the callbacks of a crawl, and the state that they share.
type spider struct {
	report   *summary
	progress *progress
	lines    *lines // nil without -json
	budget   *budget
	check    func(url string) (collyrobots.Decision, error) // Plugin.Check

	mu    sync.Mutex
	sites map[string]bool // the hosts on which links are followed
	store store.Store     // keeps sites for the next run; nil without -cache
}

func (s *spider) options(j *job) []collyrobots.Option {
	options := append(slices.Clone(j.options),
		collyrobots.OnDenied(s.onDenied),
		collyrobots.OnEvent(s.onEvent),
		collyrobots.Logger(slog.New(&warnings{w: s.progress})))
	if j.revalidate {
		options = append(options, collyrobots.Revalidate(collyrobots.Revalidation{}))
	}
	if j.log != nil {
		options = append(options, collyrobots.OnEveryEvent(j.log.Event))
	}
	if j.sitemaps {
		options = append(options, collyrobots.FollowSitemaps(collyrobots.Feed{Keep: s.keep, Resume: j.resume}))
	}
	if j.store != nil {
		options = append(options, collyrobots.Store(j.store), collyrobots.Frontier(j.pages))
	}
	return options
}

// keep records a page of a sitemap that robots.txt denies. It never drops a page, because the
// plugin itself leaves out denied pages.
func (s *spider) keep(e sitemap.Entry) bool {
	d, err := s.check(e.Loc)
	if err == nil && !d.Allowed {
		s.deny(d)
	}
	return true
}

// onRequestHeaders takes a page from the budget. If the budget is spent, the request waits here
// until the crawl ends. If it were aborted earlier, the page would count as done, and -resume would
// leave it out.
func (s *spider) onRequestHeaders(r *colly.Request) {
	if !s.budget.take(r.ID) {
		r.Abort()
	}
}

func (s *spider) onResponse(r *colly.Response) {
	if isStart(r.Request) {
		s.addSite(r.Request.URL.String()) // example.com may have redirected to www.example.com
	}
	u := r.Request.URL.String()
	s.report.page(r.StatusCode)
	s.lines.write(record{Kind: kindPage, URL: u, Status: r.StatusCode, Bytes: len(r.Body), Depth: r.Request.Depth})
	s.progress.page(r.StatusCode, u)
}

// onLink follows a link to a page of the crawled sites.
func (s *spider) onLink(e *colly.HTMLElement) {
	link := e.Request.AbsoluteURL(e.Attr("href"))
	if u, err := url.Parse(link); err == nil && s.isSite(u) {
		e.Request.Visit(link) // errors are expected: the page was visited before, or it is too deep
	}
}

// onDenied is called for each request that was not sent. onError is called for it as well.
func (s *spider) onDenied(r *colly.Request, err error) {
	var denied *collyrobots.DeniedError
	if !errors.As(err, &denied) {
		return
	}
	s.deny(denied.Decision)
	if isStart(r) && denied.Decision.Err != nil && denied.Decision.Status == 0 {
		s.report.failStart()
	}
}

func (s *spider) onError(r *colly.Response, err error) {
	var denied *collyrobots.DeniedError
	if errors.As(err, &denied) {
		s.budget.giveBack(r.Request.ID)
		return
	}
	defer s.budget.done(r.Request.ID)
	if r.StatusCode > 200 && r.StatusCode < 300 && err.Error() == http.StatusText(r.StatusCode) {
		s.onResponse(r) // Colly takes the statuses from 203 on for errors
		return
	}
	if errors.Is(err, colly.ErrAbortedBeforeRequest) || errors.Is(err, context.Canceled) {
		return // the crawl was ended
	}
	if isRepetition(err) && !errors.Is(err, collyrobots.ErrRedirectLoop) {
		return // it redirects to a page that was requested or denied
	}
	s.fail(r.Request.URL.String(), r.StatusCode, err, isStart(r.Request))
}

// onEvent records each robots.txt that is read from the cache or from its host.
func (s *spider) onEvent(e *collyrobots.Event) {
	if e.Kind == report.EventRobots {
		s.report.addRobots(e)
	}
}

// fail records a page that failed. status is 0 if there was no response. start says whether the
// page is a start page.
func (s *spider) fail(rawURL string, status int, err error, start bool) {
	f := failure{URL: rawURL, Status: status, Error: err.Error()}
	switch {
	case f.Error == http.StatusText(status):
		f.Error = "" // Colly's error repeats the status
	case errors.Is(err, collyrobots.ErrRedirectLoop):
		f.Error = "redirect loop"
	}
	s.report.fail(f)
	s.lines.write(record{Kind: kindFailed, URL: f.URL, Status: f.Status, Error: f.Error})
	if start {
		s.report.failStart()
	}
	s.progress.failed(f)
}

// deny records a page that robots.txt denies: a page of a request or of a sitemap.
func (s *spider) deny(d collyrobots.Decision) {
	if s.report.deny(d) {
		s.lines.write(record{Kind: kindDenied, URL: d.URL, Decision: &d})
	}
	s.progress.denied(d)
}

// addSite makes the spider follow links on the host of a URL.
func (s *spider) addSite(rawURL string) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	host := strings.ToLower(u.Host)
	if s.sites[host] {
		return
	}
	s.sites[host] = true
	if s.store == nil {
		return
	}
	if err := writeSites(s.store, s.sites); err != nil {
		s.progress.display.Printf("-cache: %s", err)
	}
}

func (s *spider) isSite(u *url.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sites[strings.ToLower(u.Host)]
}

// isStart reports whether the request is for a start URL.
func isStart(r *colly.Request) bool {
	return r.Depth == 1 && r.Ctx.Get(collyrobots.CtxSitemap) == ""
}

// isRepetition reports whether a page was not requested because its URL was visited before: it was
// given twice, or a page has linked or redirected to it.
func isRepetition(err error) bool {
	var visited *colly.AlreadyVisitedError
	return errors.As(err, &visited)
}
