package dialect

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Group is what a robots.txt says to one crawler. It is immutable, so any
// number of goroutines may use it at once, and it keeps neither the Rules nor
// the file alive.
type Group struct {
	dialect Dialect
	count   uint32        // of rules
	delay   time.Duration // as written; negative: none
	data    string        // count packed rules, the group's name, the patterns
	temoto  *temotoGroup  // nil except for Temoto
}

// A rule is an Allow or Disallow line, compiled. Rules are kept packed in
// Group.data, the most specific first.
type rule struct {
	at    uint32 // of the text to match in Group.data
	size  uint32 // of that text
	line  uint32
	flags flags
}

// flags are the kinds of a rule.
type flags uint8

const (
	allowing  flags = 1 << iota
	anchored        // the URL must end where the text ends
	wild            // the text has wildcards
	twofold         // the text is two, see twoForms
	empty           // the pattern is empty: restricts nothing
	rewritten       // the pattern as written follows the text, else it begins with it
)

// packedSize is the size of a packed rule: at, size and flags, line.
const packedSize = 12

// rule unpacks the i-th rule.
func (g *Group) rule(i int) rule {
	p := g.data[i*packedSize:][:packedSize]
	size := load32(p[4:])
	return rule{load32(p), size & 0xFFFFFF, load32(p[8:]), flags(size >> 24)}
}

// text returns what r matches with.
func (g *Group) text(r rule) string { return g.data[r.at : r.at+r.size] }

// explain returns the i-th rule as it is written in the file.
func (g *Group) explain(i int) Rule {
	r, end := g.rule(i), uint32(len(g.data))
	if i+1 < int(g.count) {
		end = g.rule(i + 1).at
	}
	at := r.at
	if r.flags&rewritten != 0 {
		at += r.size
	}
	return Rule{r.flags&allowing != 0, g.data[at:end], int(r.line)}
}

// Group returns what the file says to the crawler with these product tokens, the
// most specific first: the group of the first token that has one, else that of
// *, else one without rules, never nil. Without tokens it is the group of *.
// A token that the dialect cannot match ([Dialect.CheckToken]) has no group.
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
	*c = compiler{v: v, drafts: c.drafts[:0], buf: c.buf[:0], order: c.order[:0], data: c.data[:0], delay: -1}
	c.collect(r, func(value string) bool { return v.naming.rank(value, tokens) == best })
	g := &Group{dialect: r.dialect, count: uint32(len(c.drafts)), delay: c.delay, data: c.pack()}
	clear(c.drafts)
	compilers.Put(c)
	return g
}

// Name returns the User-agent value, as it is written in the file, of the group
// that applied (the first, if several were combined), or "" if none did.
func (g *Group) Name() string {
	if g.temoto != nil {
		return g.temoto.name
	}
	at, end := g.count*packedSize, uint32(len(g.data))
	if g.count > 0 {
		end = g.rule(0).at
	}
	return g.data[at:end]
}

// CrawlDelay returns the group's Crawl-delay as the dialect reads it. It is
// false if the group has none or the dialect does not support the line.
func (g *Group) CrawlDelay() (time.Duration, bool) {
	return g.dialect.variant().delay.read(g.delay)
}

// WrittenDelay returns the group's longest Crawl-delay as it is written, decimal
// seconds without a limit, also under a dialect that does not support the line.
// It is for crawlers that honour what their dialect ignores.
func (g *Group) WrittenDelay() (time.Duration, bool) {
	return exactDelay.read(g.delay)
}

var compilers = sync.Pool{New: func() any { return new(compiler) }}

// A compiler makes a Group of the records that are for it.
type compiler struct {
	v       *variant
	name    string
	delay   time.Duration
	empties uint8 // the kinds of empty rules seen: 1 Disallow, 2 Allow
	drafts  []draft
	buf     []byte   // texts of drafts that are not as written
	order   []uint64 // of the drafts
	data    []byte
}

// A draft is a rule before it is packed.
type draft struct {
	rule
	rank    int    // octets of the pattern
	written string // the pattern
}

// collect takes the lines of the groups that one of our User-agent lines opens.
func (c *compiler) collect(r *Rules, ours func(value string) bool) {
	named, ended := false, true // the current group is for us; its User-agent lines are over
	pending := time.Duration(-1)
	for _, rec := range r.records {
		value := r.value(rec)
		switch rec.kind {
		case agentLine:
			if ended {
				named, ended, pending = false, false, -1
			}
			if !named && ours(value) {
				named = true
				if c.name == "" {
					c.name = value
				}
			}
		case allowLine, disallowLine:
			ended = true
			if named {
				c.add(rec, value)
			}
		case delayLine:
			pending = max(pending, parseDelay(value))
			ended = ended || c.v.delayEndsRun
		}
		if named {
			c.delay = max(c.delay, pending)
		}
	}
}

// add drafts a rule, unless its pattern can never match.
func (c *compiler) add(rec record, p string) {
	d := draft{written: p}
	d.line = rec.line
	if rec.kind == allowLine {
		d.flags = allowing
	}
	if p == "" {
		c.addEmpty(d)
		return
	}
	if p[0] != '/' && (p[0] != '*' || c.v.plain) {
		return
	}
	directory := draft{rule: d.rule, written: p}
	c.compile(&d, p)
	c.drafts = append(c.drafts, d)
	// Google's matcher falls back to the directory of an index file.
	if i := strings.LastIndexByte(p, '/'); c.v.indexFile && d.flags&allowing != 0 && i >= 0 && strings.HasPrefix(p[i:], "/index.htm") {
		c.compile(&directory, p[:i+1]+"$")
		c.drafts = append(c.drafts, directory)
	}
}

// addEmpty drafts a rule without a pattern. It restricts nothing and is the least
// specific of all; it is kept, the first of its kind, to explain decisions.
func (c *compiler) addEmpty(d draft) {
	if c.empties&(1<<d.flags) == 0 {
		c.empties |= 1 << d.flags
		d.flags |= empty
		c.drafts = append(c.drafts, d)
	}
}

// sortDrafts returns the order in which rules win: most octets, then Allow, then
// first in the file.
func (c *compiler) sortDrafts() []uint64 {
	const seqBits, rankBits = 20, 24 // a file has fewer octets, and a pattern fewer than thrice that
	for i, d := range c.drafts {
		key := uint64(1<<rankBits-1-d.rank)<<1 | uint64(^d.flags&allowing)
		c.order = append(c.order, key<<seqBits|uint64(i))
	}
	slices.Sort(c.order)
	for i := range c.order {
		c.order[i] &= 1<<seqBits - 1
	}
	return c.order
}

// pack sorts the drafts and lays them out: see Group.data.
func (c *compiler) pack() string {
	order := c.sortDrafts()
	at := len(c.drafts)*packedSize + len(c.name)
	for _, i := range order {
		d := &c.drafts[i]
		c.data = binary.LittleEndian.AppendUint32(c.data, uint32(at))
		c.data = binary.LittleEndian.AppendUint32(c.data, d.size|uint32(d.flags)<<24)
		c.data = binary.LittleEndian.AppendUint32(c.data, d.line)
		at += len(d.written)
		if d.flags&rewritten != 0 {
			at += int(d.size)
		}
	}
	c.data = append(c.data, c.name...)
	for _, i := range order {
		d := &c.drafts[i]
		if d.flags&rewritten != 0 {
			c.data = append(c.data, c.buf[d.at:d.at+d.size]...)
		}
		c.data = append(c.data, d.written...)
	}
	return string(c.data)
}
