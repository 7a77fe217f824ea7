package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/reasons"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A checker reads the robots.txt files and sitemaps of hosts.
type checker struct {
	*job
	files  *robotsfile.Files
	robots *collyrobots.Plugin
}

func newChecker(j *job) (*checker, error) {
	files := robotsfile.New(j.transport)
	robots, err := collyrobots.WithRobots(colly.NewCollector(colly.UserAgent(j.agent)),
		collyrobots.Dialect(j.pace.Dialect),
		collyrobots.MinDelay(j.pace.Delay),
		collyrobots.PaceBy(j.pace.By),
		collyrobots.RobotsClient(&http.Client{Transport: files}),
		collyrobots.Logger(slog.New(slog.DiscardHandler))) // the plan contains the same information
	return &checker{job: j, files: files, robots: robots}, err
}

func (c *checker) close() error {
	err := c.robots.Close()
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return err
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
	var d collyrobots.Decision
	for _, u = range s.urls {
		var err error
		d, err = c.robots.Check(limited, u.String())
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
		h.Error = ""
		if d.Reason == report.ReasonUnreachable || d.Reason == report.ReasonSiteDown {
			h.Error = reasons.Of(d)
		}
		if timeout := (net.Error)(nil); h.Error == "" || d.Status != 0 || errors.As(d.Err, &timeout) && timeout.Timeout() {
			break // in the other cases the next URL, with http, may work
		}
	}
	h.URL = u.Redacted()
	c.read(d, h)
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

// read sets what a decision about the start page says.
func (c *checker) read(d collyrobots.Decision, h *host) {
	h.Robots = d.RobotsURL
	h.Status = d.Status
	h.Allowed = d.Allowed
	h.asks = d.CrawlDelay
	h.Reason = reasons.Of(d)
	if text, ok := c.files.Text(d.RobotsURL); ok && d.CrawlDelay > 0 {
		h.asksLine = d.Dialect.Parse(text).Group(dialect.TokenOf(c.agent)).DelayLine()
	}
}

// count counts the pages in the sitemaps. limited is ctx with the time limit of -look.
func (c *checker) count(ctx, limited context.Context, u *url.URL, h *host, show *progress) {
	if delay := max(h.asks, c.pace.Delay); delay >= c.look {
		h.Unread = fmt.Sprintf("sitemaps not read: the next request may start only %v after robots.txt, but -look is %v", delay, c.look)
		return
	}
	now := time.Now()
	count := func(e sitemap.Entry) bool {
		if d, err := c.robots.Check(limited, e.Loc); err == nil && !d.Allowed {
			h.Denied++
		}
		show.listed(1)
		return true
	}
	feed := collyrobots.Feed{WellKnown: true, Scope: collyrobots.ScopeWWW, Keep: count, Limits: sitemap.Limits{URLs: mostListed}}
	for e, err := range c.robots.Pages(limited, feed, u.String()) {
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
			h.count(e, now)
		}
	}
	h.Listed = h.allowed + h.Denied
	if h.Listed >= mostListed {
		h.Unread = fmt.Sprintf("only the first %s pages were counted", term.Count(mostListed))
	}
}

// mostListed is the maximum number of pages of a host that are counted.
const mostListed = 1_000_000
