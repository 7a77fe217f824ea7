package collyrobots

import (
	"errors"

	"github.com/gocolly/colly/v2"
)

// A Collector is a colly.Collector with one method more: WithRobots. Everything else is promoted from the embedded collector,
// and so are its fields; where a *colly.Collector is asked for, pass c.Collector.
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

// ErrAttached means that WithRobots was called a second time. Two plugins on one collector would ask and wait
// twice.
var ErrAttached = errors.New("collyrobots: the collector has robots already")

// WithRobots makes the collector obey robots.txt. Call it once, after the OnRequest callbacks that may abort requests or
// change them, before the first Visit. The errors are those of New and Attach, and ErrAttached; after an error
// the collector is as it was.
func (c *Collector) WithRobots(opts ...Option) (*Plugin, error) {
	if c.robots != nil {
		return nil, ErrAttached
	}
	p, err := WithRobots(c.Collector, opts...)
	if err != nil {
		return nil, err
	}
	c.robots = p
	return p, nil
}

// Clone returns a clone as Colly makes it, without callbacks, that obeys robots.txt as its parent does: one policy cache, one
// pace.
func (c *Collector) Clone() *Collector {
	clone := &Collector{c.Collector.Clone(), c.robots}
	if c.robots != nil {
		// Attach fails where the client is out of reach, and a clone shares the one its parent was attached by.
		if err := c.robots.Attach(clone.Collector); err != nil {
			panic("collyrobots: a clone without its parent's client: " + err.Error())
		}
	}
	return clone
}
