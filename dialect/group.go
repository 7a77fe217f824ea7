package dialect

import "time"

// A Group is what a robots.txt says to one crawler. It is immutable, so any
// number of goroutines may use it at once, and it keeps neither the Rules nor
// the file alive.
type Group struct {
	dialect Dialect
	reach   uint16        // octets of a target that must be in normal form to begin with
	count   uint32        // of rules
	delay   time.Duration // as written; negative: none
	data    string        // the rules and the group's name: see packed.go
	index   *index        // nil if there are few rules
	temoto  *temotoGroup  // nil except for Temoto
}

// Group returns what the file says to the crawler with these product tokens,
// the most specific first: the group of the first token that has one, else that
// of *, else a group without rules. It is never nil. Without tokens it is the
// group of *. A token that the dialect cannot match ([Dialect.CheckToken]) has
// no group.
//
// Under [Temoto] the first token is taken for the whole User-Agent header, as
// Colly's built-in check takes it; pass that header for the same decisions.
func (r *Rules) Group(tokens ...string) *Group {
	if r.temoto != nil {
		return r.temoto.group(tokens)
	}
	best := nobody
	v := r.dialect.variant()
	for _, rec := range r.records {
		if rec.kind == agentLine {
			best = min(best, v.naming.rank(r.value(rec), tokens))
		}
	}
	if best == nobody {
		return &Group{dialect: r.dialect, delay: -1}
	}
	c := compilers.Get().(*compiler)
	c.reset(r, v)
	c.collect(func(value string) bool { return v.naming.rank(value, tokens) == best })
	g := &Group{dialect: r.dialect, count: uint32(len(c.drafts)), delay: c.delay, data: c.pack()}
	if g.count < indexFrom {
		g.reach = reachOf(g.longestHead())
	} else {
		var reach int
		g.index, reach = newIndex(g)
		g.reach = reachOf(reach)
	}
	c.reset(nil, nil)
	compilers.Put(c)
	return g
}

// Name returns the User-agent value, as it is written in the file, of the group
// that applied (the first, if several were combined), or "" if none did.
func (g *Group) Name() string {
	if g.temoto != nil {
		return g.temoto.name
	}
	return g.name()
}

// CrawlDelay returns the group's Crawl-delay as the dialect reads it, and
// whether there is one: it is false if the dialect does not support the line.
func (g *Group) CrawlDelay() (time.Duration, bool) {
	return g.dialect.variant().delay.read(g.delay)
}

// DelayLine returns the line of the group's longest Crawl-delay, the one that
// CrawlDelay and WrittenDelay read, counting from 1; 0: there is none. It is
// always 0 under [Temoto], which does not tell.
func (g *Group) DelayLine() int {
	if g.temoto != nil {
		return 0
	}
	return int(g.delayLine())
}

// WrittenDelay returns the group's longest Crawl-delay as it is written,
// decimal seconds without a limit, also under a dialect that does not support
// the line. It is for crawlers that honour what their dialect ignores.
func (g *Group) WrittenDelay() (time.Duration, bool) {
	return exactDelay.read(g.delay)
}
