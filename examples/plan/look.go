package main

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
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/examples/internal/robotsfile"
	"github.com/collyrobots/collyrobots/examples/internal/term"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// A looker looks at hosts. It has a plugin for each dialect, the one that the crawl will obey
// first. They share what is known of robots.txt files, so that each is fetched once.
type looker struct {
	*job
	facts   store.Store
	files   *robotsfile.Files
	plugins []*collyrobots.Plugin
}

func newLooker(j *job) (*looker, error) {
	l := &looker{job: j, facts: store.Memory(), files: robotsfile.New(j.transport)}
	for _, d := range append([]dialect.Dialect{j.dialect}, dialect.All()...) {
		if len(l.plugins) > 0 && d == j.dialect {
			continue
		}
		p, err := collyrobots.WithRobots(colly.NewCollector(colly.UserAgent(j.agent)),
			collyrobots.Dialect(d),
			collyrobots.MinDelay(j.minDelay),
			collyrobots.Store(l.facts),
			collyrobots.HTTPClient(&http.Client{Transport: l.files}),
			collyrobots.Logger(slog.New(slog.DiscardHandler))) // what it would say is in the plan
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.plugins = append(l.plugins, p)
	}
	return l, nil
}

func (l *looker) close() error {
	var faults []error
	for _, p := range l.plugins {
		faults = append(faults, p.Close())
	}
	if t, ok := l.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return errors.Join(append(faults, l.facts.Close())...)
}

// all looks at the sites, some side by side, and tells show of each that is done. Those that ctx
// leaves no time for are among them.
func (l *looker) all(ctx context.Context, show *progress) []*host {
	hosts := make([]*host, len(l.sites))
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(l.parallel, len(l.sites)) {
		workers.Go(func() {
			for i := range next {
				show.begin(l.sites[i].host)
				hosts[i] = l.one(ctx, l.sites[i], show)
				show.end(hosts[i])
			}
		})
	}
	for i := range l.sites {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
			hosts[i] = &host{Host: l.sites[i].host, Error: interrupted}
		}
	}
	close(next)
	workers.Wait()
	return hosts
}

// Why there is nothing, or not all, to be said of a host after Ctrl-C.
const (
	interrupted = "interrupted before it was looked at"
	unfinished  = "interrupted before all sitemaps were read"
)

// one looks at a site.
func (l *looker) one(ctx context.Context, s site, show *progress) *host {
	h := &host{Host: s.host}
	limited, cancel := context.WithTimeout(ctx, l.look)
	defer cancel()
	var u *url.URL
	for _, u = range s.urls {
		d, err := l.plugins[0].Check(limited, u.String())
		switch {
		case ctx.Err() != nil:
			h.Error = interrupted
			return h
		case err != nil && limited.Err() != nil:
			h.Error = fmt.Sprintf("no answer within %v", l.look)
			return h
		case err != nil:
			h.Error = err.Error()
			return h
		}
		h.Error = silence(d)
		if timeout := (net.Error)(nil); h.Error == "" || d.Status != 0 || errors.As(d.Err, &timeout) && timeout.Timeout() {
			break // else plain http may be worth a try
		}
	}
	h.URL = u.Redacted()
	l.read(ctx, u, h)
	if h.Error == "" {
		l.count(ctx, limited, u, h, show)
	}
	h.reckon(l.job)
	return h
}

// silence returns why nothing can be said of a host, or "".
func silence(d collyrobots.Decision) string {
	if d.Reason != collyrobots.ReasonUnreachable && d.Reason != collyrobots.ReasonSiteDown {
		return ""
	}
	why := strings.ReplaceAll(string(d.Reason), "_", " ")
	if d.Err != nil {
		why += ": " + cause(d)
	}
	return why
}

// cause is the text of a decision's error, without the URL of robots.txt.
func cause(d collyrobots.Decision) string {
	if failed := (*url.Error)(nil); errors.As(d.Err, &failed) {
		return failed.Err.Error()
	}
	return d.Err.Error()
}

// read reads robots.txt as each dialect does.
func (l *looker) read(ctx context.Context, u *url.URL, h *host) {
	for i, p := range l.plugins {
		d, err := p.Check(ctx, u.String())
		if err != nil {
			continue // ctx has ended
		}
		text, _ := l.files.Text(d.RobotsURL)
		r := reading{Dialect: d.Dialect.String(), Allowed: d.Allowed, Reason: string(d.Reason), Rule: rule(d, text), Group: d.Group, Delay: term.Seconds(d.CrawlDelay)}
		if d.CrawlDelay > 0 {
			r.Line = d.Dialect.Parse(text).Group(dialect.ProductToken(l.agent)).DelayLine()
		}
		if i == 0 {
			h.Robots, h.Status = d.RobotsURL, d.Status
		}
		h.Dialects = append(h.Dialects, r)
	}
}

// rule returns the rule that decided, or the line for which a dialect refuses the whole file.
func rule(d collyrobots.Decision, text []byte) string {
	switch {
	case d.Rule.Line > 0:
		return fmt.Sprintf("line %d: %v", d.Rule.Line, d.Rule)
	case d.Reason == collyrobots.ReasonRule:
		for _, issue := range d.Dialect.Lint(text) {
			if issue.Problem == dialect.FileRefused {
				return fmt.Sprintf("line %d, for which %v refuses the file: %s", issue.Line, d.Dialect, issue.Detail)
			}
		}
	}
	return ""
}

// count counts the pages that the sitemaps list.
func (l *looker) count(ctx, limited context.Context, u *url.URL, h *host, show *progress) {
	if delay := max(time.Duration(h.Dialects[0].Delay), l.minDelay); delay >= l.look {
		h.Unread = fmt.Sprintf("the sitemaps are not read: the next request may start only %v after robots.txt, and -look is %v", delay, l.look)
		return
	}
	now := time.Now()
	count := func(e sitemap.Entry) bool {
		l.judge(limited, e.Loc, h)
		show.listed(1)
		return true
	}
	feed := collyrobots.Feed{WellKnown: true, Scope: collyrobots.ScopeWWW, Keep: count, Limits: sitemap.Limits{URLs: mostListed}}
	for e, err := range l.plugins[0].Pages(limited, feed, u.String()) {
		switch {
		case err != nil && ctx.Err() != nil:
			h.Unread = unfinished
		case err != nil && limited.Err() != nil:
			h.Unread = fmt.Sprintf("not all sitemaps were read within %v (-look)", l.look)
		case err != nil:
			h.Faults++
			if h.Fault == "" {
				h.Fault = err.Error()
			}
		default:
			h.count(e, now, l.since)
		}
	}
	h.Denied = h.Dialects[0].Denied
	h.Listed = h.allowed + h.Denied
	if h.Listed >= mostListed {
		h.Unread = fmt.Sprintf("no more than %d pages were counted", mostListed)
	}
}

// mostListed is how many pages of a host are counted.
const mostListed = 1_000_000

// judge counts a page for the dialects that deny it.
func (l *looker) judge(ctx context.Context, loc string, h *host) {
	for i, p := range l.plugins {
		if d, err := p.Check(ctx, loc); err == nil && !d.Allowed && i < len(h.Dialects) {
			h.Dialects[i].Denied++
		}
	}
}
