package collyrobots

import (
	"github.com/gocolly/colly/v2"
)

// A Collector is a colly.Collector with the method WithRobots, a Clone that keeps it, and a Visit
// that leaves no sitemap unread. Everything else is promoted from the embedded collector, its fields
// included. Where a *colly.Collector is asked for, pass c.Collector. Get one from
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

// Visit is like colly.Collector.Visit. If Colly has called no callback at the end of the page, as for
// a character set that it does not know, Visit also reads the sitemaps that are still pending.
func (c *Collector) Visit(URL string) error {
	err := c.Collector.Visit(URL)
	if c.robots == nil || c.Async || !c.robots.sitemaps.pending() {
		return err
	}
	if h := c.robots.hooksOf(c.Collector); h != nil { // nil if a callback has closed the plugin
		h.readSitemaps()
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
