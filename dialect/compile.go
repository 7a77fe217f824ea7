package dialect

import (
	"slices"
	"strings"
	"sync"
	"time"
)

var compilers = sync.Pool{New: func() any { return new(compiler) }}

// A compiler makes a Group of the records that are for it.
type compiler struct {
	r       *Rules
	v       *variant
	name    string
	delay   time.Duration
	delayAt uint32 // the line that asks for it
	empties uint8  // the kinds of empty rules seen: 1 Disallow, 2 Allow
	drafts  []draft
	buf     []byte   // texts of drafts that are not as written
	order   []uint64 // of the drafts
}

// A draft is a rule before it is packed.
type draft struct {
	rule
	probe    probe
	rank     uint32 // octets of the pattern
	from, to uint32 // the pattern as written, in Rules.text
}

// reset makes c ready for the next file, or for the pool.
func (c *compiler) reset(r *Rules, v *variant) {
	*c = compiler{r: r, v: v, delay: -1, drafts: c.drafts[:0], buf: c.buf[:0], order: c.order[:0]}
}

// written returns the pattern of a draft as written.
func (c *compiler) written(d *draft) string { return c.r.text[d.from:d.to] }

// collect takes the lines of the groups that one of our User-agent lines opens.
func (c *compiler) collect(ours func(value string) bool) {
	named, ended := false, true // the current group is for us; its User-agent lines are over
	pending, pendingAt := time.Duration(-1), uint32(0)
	for _, rec := range c.r.records {
		switch rec.kind {
		case agentLine:
			if ended {
				named, ended, pending = false, false, -1
			}
			if value := c.r.value(rec); !named && ours(value) {
				named = true
				if c.name == "" {
					c.name = value
				}
			}
		case allowLine, disallowLine:
			ended = true
			if named {
				c.add(rec)
			}
		case delayLine:
			if d := parseDelay(c.r.value(rec)); d > pending {
				pending, pendingAt = d, rec.line
			}
			ended = ended || c.v.delayEndsRun
		}
		if named && pending > c.delay {
			c.delay, c.delayAt = pending, pendingAt
		}
	}
}

// add drafts a rule, unless its pattern can never match.
func (c *compiler) add(rec record) {
	d := draft{from: rec.from, to: rec.to}
	d.line, d.probe = rec.line, probeFor("")
	if rec.kind == allowLine {
		d.flags = allowing
	}
	p := c.r.value(rec)
	switch {
	case p == "":
		c.addEmpty(d)
	case p[0] == '/' || p[0] == '*' && !c.v.plain:
		c.addPattern(d, p)
		if !hasNormalEscapes(p, c.v.plain) {
			c.addPattern(d, string(appendEscapes(nil, p))) // as Target writes it
		}
		if c.v.indexFile && rec.kind == allowLine {
			c.addDirectory(d, p)
		}
	}
}

// addPattern drafts a rule with a pattern that can match.
func (c *compiler) addPattern(d draft, p string) {
	c.compile(&d, p)
	c.drafts = append(c.drafts, d)
}

// addEmpty drafts a rule without a pattern. It restricts nothing and is the
// least specific of all; it is kept, the first of its kind, to explain
// decisions.
func (c *compiler) addEmpty(d draft) {
	if c.empties&(1<<d.flags) == 0 {
		c.empties |= 1 << d.flags
		d.flags |= empty
		c.drafts = append(c.drafts, d)
	}
}

// addDirectory drafts the rule to which Google's matcher falls back if an Allow
// for an index file does not match: the directory of the file.
func (c *compiler) addDirectory(d draft, p string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 && strings.HasPrefix(p[i:], "/index.htm") {
		c.addPattern(d, p[:i+1]+"$")
	}
}

// sortDrafts returns the order in which rules win: most octets, then Allow,
// then first in the file.
func (c *compiler) sortDrafts() []uint64 {
	const seqBits, rankBits = 20, 24 // a file has fewer octets, and a pattern fewer than thrice that
	for i := range c.drafts {
		d := &c.drafts[i]
		key := uint64(1<<rankBits-1-d.rank)<<1 | uint64(^d.flags&allowing)
		c.order = append(c.order, key<<seqBits|uint64(i))
	}
	slices.Sort(c.order)
	for i := range c.order {
		c.order[i] &= 1<<seqBits - 1
	}
	return c.order
}
