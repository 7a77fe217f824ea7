package collyrobots

import "github.com/gocolly/colly/v2"

// A Collector is a colly.Collector with one method more: WithRobots. Everything else is promoted
// from the embedded collector, and so are its fields; where a *colly.Collector is asked for, pass
// c.Collector.
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
