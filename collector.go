package collyrobots

import (
	"github.com/gocolly/colly/v2"
)

// A Collector is a colly.Collector with the method WithRobots. Its clones are attached to the same
// plugin, and its Visit also reads the sitemaps that are still pending. All other methods and
// fields are those of the embedded collector. To pass it to a function that takes a
// *colly.Collector, pass c.Collector. Create a Collector with NewCollector or Wrap. WithRobots of
// the zero Collector returns an error, because it has no embedded collector.
type Collector struct {
	*colly.Collector
	robots *Plugin // nil before WithRobots
}

// NewCollector creates a collector like colly.NewCollector.
func NewCollector(options ...colly.CollectorOption) *Collector {
	return Wrap(colly.NewCollector(options...))
}

// Wrap returns a Collector that contains c.
func Wrap(c *colly.Collector) *Collector { return &Collector{Collector: c} }

// WithRobots makes the collector obey robots.txt. Call it once, before the first Visit and after
// the OnRequest callbacks that may abort or change requests. It returns the errors of New and
// Attach. After an error the collector is unchanged.
func (c *Collector) WithRobots(opts ...Option) (*Plugin, error) {
	p, err := WithRobots(c.Collector, opts...)
	if err != nil {
		return nil, err
	}
	c.robots = p
	return p, nil
}

// Visit is like colly.Collector.Visit. If Colly has called no callback at the end of the page, as
// for a character set that it does not know, Visit also reads the sitemaps that are still pending.
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

// Clone returns a clone without callbacks, like colly.Collector.Clone, and attaches it to the
// plugin of c. Both then share the robots.txt files and the pace of each host.
func (c *Collector) Clone() *Collector {
	if c.Collector == nil {
		return new(Collector)
	}
	clone := &Collector{Collector: c.Collector.Clone(), robots: c.robots}
	if c.robots != nil {
		if err := c.robots.Attach(clone.Collector); err != nil {
			c.robots.report.log.Error("cannot attach a clone, its requests are judged on the wire", "error", err)
		}
	}
	return clone
}
