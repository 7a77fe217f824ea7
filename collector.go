package collyrobots

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gocolly/colly/v2"
)

// A Collector is a colly.Collector with the method WithRobots, a Clone that keeps it, and a Visit
// that returns why its page was not sent. Everything else is promoted from the embedded collector,
// its fields included. Where a *colly.Collector is asked for, pass c.Collector. Get one from
// NewCollector or Wrap: the zero Collector has no collector in it, which is an error of WithRobots.
type Collector struct {
	*colly.Collector
	robots *Plugin // nil: not yet
}

// NewCollector makes a collector as colly.NewCollector does.
func NewCollector(options ...colly.CollectorOption) *Collector {
	return Wrap(colly.NewCollector(options...))
}

// Wrap gives an existing collector the method WithRobots.
func Wrap(c *colly.Collector) *Collector { return &Collector{Collector: c} }

// WithRobots makes the collector obey robots.txt. Call it once, after the OnRequest callbacks that
// may abort requests or change them, before the first Visit. The errors are those of New and
// Attach; after an error the collector is as it was.
func (c *Collector) WithRobots(opts ...Option) (*Plugin, error) {
	p, err := WithRobots(c.Collector, opts...)
	if err != nil {
		return nil, err
	}
	c.robots = p
	return p, nil
}

// Visit is colly.Collector's Visit, but that it returns an error for a page that robots.txt
// disallows: a *DisallowedError, or whatever else OnDenied is told of the page. Colly's own returns
// nil then, since OnRequest can only abort; so does this one if the collector is Async, where every
// Visit returns before its page is looked at, and so does Request.Visit for the links on a page.
func (c *Collector) Visit(URL string) error {
	if c.robots == nil || c.Async {
		return c.Collector.Visit(URL)
	}
	if c.CheckHead {
		if err := c.visit(http.MethodHead, URL); err != nil {
			return err
		}
	}
	return c.visit(http.MethodGet, URL)
}

func (c *Collector) visit(method, URL string) error {
	v, ctx := c.robots.visits.begin()
	err := c.Request(method, URL, nil, ctx, nil)
	if c.robots.sitemaps.pending() { // Colly has called no hook at the end
		if h := c.robots.hooksOf(c.Collector); h != nil { // nil: a callback has closed the plugin
			h.readSitemaps()
		}
	}
	switch {
	case err == nil:
		return v.denied
	case v.denied != nil && !errors.Is(err, v.denied):
		return fmt.Errorf("%w: %w", err, v.denied) // aborted at the last moment
	}
	return err
}

// Clone returns a clone as Colly makes it, without callbacks, that obeys robots.txt as its parent
// does: one policy cache, one pace.
func (c *Collector) Clone() *Collector {
	if c.Collector == nil {
		return new(Collector)
	}
	clone := &Collector{c.Collector.Clone(), c.robots}
	if c.robots != nil {
		if err := c.robots.Attach(clone.Collector); err != nil {
			c.robots.report.log.Error("collyrobots: a clone cannot be attached: its requests are judged on the wire", "error", err)
		}
	}
	return clone
}
