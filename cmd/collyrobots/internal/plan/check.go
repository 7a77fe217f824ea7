package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// A checker reads the robots.txt files and sitemaps of hosts. It has one plugin for each dialect,
// the selected one first. The plugins share a store, so each robots.txt is fetched once.
type checker struct {
	*job
	store   store.Store
	files   *robotsfile.Files
	plugins []*collyrobots.Plugin
}

func newChecker(j *job) (*checker, error) {
	c := &checker{job: j, store: store.Memory(), files: robotsfile.New(j.transport)}
	for _, d := range append([]dialect.Dialect{j.dialect}, dialect.All()...) {
		if len(c.plugins) > 0 && d == j.dialect {
			continue
		}
		p, err := collyrobots.WithRobots(colly.NewCollector(colly.UserAgent(j.agent)),
			collyrobots.Dialect(d),
			collyrobots.MinDelay(j.minDelay),
			collyrobots.PaceBy(j.paceBy),
			collyrobots.Store(c.store),
			collyrobots.HTTPClient(&http.Client{Transport: c.files}),
			collyrobots.Logger(slog.New(slog.DiscardHandler))) // the plan contains the same information
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.plugins = append(c.plugins, p)
	}
	return c, nil
}

func (c *checker) close() error {
	var faults []error
	for _, p := range c.plugins {
		faults = append(faults, p.Close())
	}
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return errors.Join(append(faults, c.store.Close())...)
}

// all checks the sites, several of them in parallel. If ctx ends, it also returns the hosts that
// were not checked.
func (c *checker) all(ctx context.Context, show *progress) []*host {
	hosts := make([]*host, len(c.sites))
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(c.parallel, len(c.sites)) {
		workers.Go(func() {
			for i := range next {
				show.begin(c.sites[i].host)
				hosts[i] = c.one(ctx, c.sites[i], show)
				show.end(hosts[i])
			}
		})
	}
	for i := range c.sites {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
			hosts[i] = &host{Host: c.sites[i].host, Error: interrupted}
		}
	}
	close(next)
	workers.Wait()
	return hosts
}

// These texts say after Ctrl-C why a host was not checked, or not completely.
const (
	interrupted = "interrupted before it was checked"
	unfinished  = "interrupted before all sitemaps were read"
)

// one checks a site.
func (c *checker) one(ctx context.Context, s site, show *progress) *host {
	h := &host{Host: s.host}
	limited, cancel := context.WithTimeout(ctx, c.look)
	defer cancel()
	var u *url.URL
	for _, u = range s.urls {
		d, err := c.plugins[0].Check(limited, u.String())
		switch {
		case ctx.Err() != nil:
			h.Error = interrupted
			return h
		case err != nil && limited.Err() != nil:
			h.Error = fmt.Sprintf("no response within %v", c.look)
			return h
		case err != nil:
			h.Error = err.Error()
			return h
		}
		h.Error = failure(d)
		if timeout := (net.Error)(nil); h.Error == "" || d.Status != 0 || errors.As(d.Err, &timeout) && timeout.Timeout() {
			break // in the other cases the next URL, with http, may work
		}
	}
	h.URL = u.Redacted()
	c.read(ctx, u, h)
	switch {
	case h.Error != "":
	case c.frontier != "":
		h.Waiting = s.waiting
		h.allowed = s.waiting
	default:
		c.count(ctx, limited, u, h, show)
	}
	h.computeTime(c.job)
	return h
}

// failure returns why robots.txt could not be read, or "".
func failure(d collyrobots.Decision) string {
	if d.Reason != report.ReasonUnreachable && d.Reason != report.ReasonSiteDown {
		return ""
	}
	why := strings.ReplaceAll(string(d.Reason), "_", " ")
	if d.Err != nil {
		why += ": " + cause(d)
	}
	return why
}

// cause returns the text of a decision's error without the URL of robots.txt.
func cause(d collyrobots.Decision) string {
	if failed := (*url.Error)(nil); errors.As(d.Err, &failed) {
		return failed.Err.Error()
	}
	return d.Err.Error()
}

// read reads robots.txt in each dialect.
func (c *checker) read(ctx context.Context, u *url.URL, h *host) {
	for i, p := range c.plugins {
		d, err := p.Check(ctx, u.String())
		if err != nil {
			continue // ctx has ended
		}
		text, _ := c.files.Text(d.RobotsURL)
		r := reading{
			Dialect: d.Dialect.String(), Allowed: d.Allowed, Reason: string(d.Reason), Rule: rule(d, text), Group: d.Group,
			Delay: term.Seconds(d.CrawlDelay),
		}
		if d.CrawlDelay > 0 {
			r.Line = d.Dialect.Parse(text).Group(dialect.ProductToken(c.agent)).DelayLine()
		}
		if i == 0 {
			h.Robots = d.RobotsURL
			h.Status = d.Status
		}
		h.Dialects = append(h.Dialects, r)
	}
}

// rule describes the rule that decided, or the line that makes a dialect refuse the whole file.
func rule(d collyrobots.Decision, text []byte) string {
	switch {
	case d.Rule.Line > 0:
		return fmt.Sprintf("line %d: %v", d.Rule.Line, d.Rule)
	case d.Reason == report.ReasonRule:
		for _, issue := range d.Dialect.Lint(text) {
			if issue.Problem == dialect.FileRefused {
				return fmt.Sprintf("%v refuses the file because of line %d: %s", d.Dialect, issue.Line, issue.Detail)
			}
		}
	}
	return ""
}

// count counts the pages in the sitemaps. limited is ctx with the time limit of -look.
func (c *checker) count(ctx, limited context.Context, u *url.URL, h *host, show *progress) {
	if delay := max(time.Duration(h.Dialects[0].Delay), c.minDelay); delay >= c.look {
		h.Unread = fmt.Sprintf("sitemaps not read: the next request may start only %v after robots.txt, but -look is %v", delay, c.look)
		return
	}
	now := time.Now()
	count := func(e sitemap.Entry) bool {
		c.countDenied(limited, e.Loc, h)
		show.listed(1)
		return true
	}
	feed := collyrobots.Feed{WellKnown: true, Scope: collyrobots.ScopeWWW, Keep: count, Limits: sitemap.Limits{URLs: mostListed}}
	for e, err := range c.plugins[0].Pages(limited, feed, u.String()) {
		switch {
		case err != nil && ctx.Err() != nil:
			h.Unread = unfinished
		case err != nil && limited.Err() != nil:
			h.Unread = fmt.Sprintf("not all sitemaps were read within %v (-look)", c.look)
		case err != nil:
			h.Faults++
			if h.Fault == "" {
				h.Fault = err.Error()
			}
		default:
			h.count(e, now, c.since)
		}
	}
	h.Denied = h.Dialects[0].Denied
	h.Listed = h.allowed + h.Denied
	if h.Listed >= mostListed {
		h.Unread = fmt.Sprintf("only the first %s pages were counted", term.Count(mostListed))
	}
}

// mostListed is the maximum number of pages of a host that are counted.
const mostListed = 1_000_000

// countDenied counts a page in the readings of the dialects that deny it.
func (c *checker) countDenied(ctx context.Context, loc string, h *host) {
	for i, p := range c.plugins {
		if d, err := p.Check(ctx, loc); err == nil && !d.Allowed && i < len(h.Dialects) {
			h.Dialects[i].Denied++
		}
	}
}
