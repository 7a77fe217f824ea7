package dialect

import (
	"slices"
	"strings"
	"sync"
	"time"
)

var compilers = sync.Pool{New: func() any { return new(compiler) }}

// A compiler builds a Group from the records that apply to it.
type compiler struct {
	r       *Rules
	v       *variant
	name    string
	delay   time.Duration // as written; negative if there is none
	delayAt uint32        // line of the delay
	empties uint8         // bit set of the kinds of empty rules seen: 1 Disallow, 2 Allow
	drafts  []draft
	buf     []byte   // texts of the drafts that are marked as rewritten
	order   []uint64 // order of the drafts
}

// A draft is a rule before it is packed.
type draft struct {
	rule
	probe    probe
	rank     uint32 // bytes of the pattern for the comparison of rules
	from, to uint32 // the pattern as written is Rules.text[from:to]
}

// reset prepares c for another file. If the arguments are nil, c holds no file and can be put into
// the pool.
func (c *compiler) reset(r *Rules, v *variant) {
	*c = compiler{r: r, v: v, delay: -1, drafts: c.drafts[:0], buf: c.buf[:0], order: c.order[:0]}
}

// written returns the pattern of a draft as written.
func (c *compiler) written(d *draft) string { return c.r.text[d.from:d.to] }

// collect collects the rules and the longest delay of all groups that name the crawler. ours
// reports whether a User-agent value does.
func (c *compiler) collect(ours func(value string) bool) {
	named := false               // the current group names the crawler
	ended := true                // the run of User-agent lines of the current group has ended
	pending := time.Duration(-1) // longest delay of the current group
	pendingAt := uint32(0)       // line of that delay
	for _, rec := range c.r.records {
		switch rec.kind {
		case agentLine:
			if ended {
				named = false
				ended = false
				pending = -1
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

// add adds a draft of the rule rec, unless its pattern can never match.
func (c *compiler) add(rec record) {
	d := draft{from: rec.from, to: rec.to}
	d.line = rec.line
	d.probe = probeFor("")
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

// addPattern adds a draft of a rule with a pattern that can match.
func (c *compiler) addPattern(d draft, p string) {
	c.compile(&d, p)
	c.drafts = append(c.drafts, d)
}

// addEmpty adds a draft of a rule without a pattern. Such a rule restricts nothing and is the least
// specific of all rules. Only the first Allow and the first Disallow of this kind are kept, so that
// a Decision can name them.
func (c *compiler) addEmpty(d draft) {
	if c.empties&(1<<d.flags) == 0 {
		c.empties |= 1 << d.flags
		d.flags |= empty
		c.drafts = append(c.drafts, d)
	}
}

// addDirectory adds a draft for the directory of an index file. Google's matcher uses this rule if
// the Allow for the index file itself does not match.
func (c *compiler) addDirectory(d draft, p string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 && strings.HasPrefix(p[i:], "/index.htm") {
		c.addPattern(d, p[:i+1]+"$")
	}
}

// sortDrafts returns the indexes of the drafts in the order of their precedence: the most bytes
// first, then Allow before Disallow, then the order in the file. It sorts integers that combine
// these criteria. The index needs 20 bits, because a file has fewer than 1<<20 bytes. The rank
// needs 24 bits, because encoding a pattern at most triples its size.
func (c *compiler) sortDrafts() []uint64 {
	const seqBits, rankBits = 20, 24
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
