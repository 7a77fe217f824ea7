package dialect

import (
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect/internal/match"
)

var compilers = sync.Pool{New: func() any { return new(compiler) }}

// A compiler builds a Group from the records that apply to it.
type compiler struct {
	r       *Rules
	v       *variant
	name    string
	delay   time.Duration // as written; negative if there is none
	delayAt uint32        // line of the delay
	drafts  []match.Draft
	buf     []byte // texts of drafts that differ from the patterns as written

	hasEmptyAllow    bool
	hasEmptyDisallow bool
}

// reset prepares c for another file. If the arguments are nil, c holds no file and can be put into
// the pool.
func (c *compiler) reset(r *Rules, v *variant) {
	clear(c.drafts)
	*c = compiler{r: r, v: v, delay: -1, drafts: c.drafts[:0], buf: c.buf[:0]}
}

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
	p := c.r.value(rec)
	rule := match.Rule{Allow: rec.kind == allowLine, Line: rec.line, Pattern: p}
	switch {
	case p == "":
		c.addEmpty(rule)
	case p[0] == '/' || p[0] == '*' && !c.v.plain:
		c.addPattern(rule, p)
		if !hasNormalEscapes(p, c.v.plain) {
			c.addPattern(rule, string(appendEscapes(nil, p))) // as Target writes it
		}
		if c.v.indexFile && rule.Allow {
			c.addDirectory(rule, p)
		}
	}
}

// addEmpty adds a draft of a rule without a pattern. Such a rule restricts nothing and is the least
// specific of all rules. Only the first Allow and the first Disallow of this kind are kept, so that
// a Decision can name them.
func (c *compiler) addEmpty(rule match.Rule) {
	seen := &c.hasEmptyDisallow
	if rule.Allow {
		seen = &c.hasEmptyAllow
	}
	if !*seen {
		*seen = true
		c.drafts = append(c.drafts, match.Draft{Rule: rule})
	}
}

// addDirectory adds a draft for the directory of an index file. Google's matcher uses this rule if
// the Allow for the index file itself does not match.
func (c *compiler) addDirectory(rule match.Rule, p string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 && strings.HasPrefix(p[i:], "/index.htm") {
		c.addPattern(rule, p[:i+1]+"$")
	}
}
