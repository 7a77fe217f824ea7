package dialect

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/internal/match"
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

	schedule []scheduleLine // the Request-rate and Visit-time lines, at most maxScheduleLines
	pending  []scheduleLine // those of the current group that are not in schedule

	hasEmptyAllow    bool
	hasEmptyDisallow bool
}

// reset prepares c for another file. If the arguments are nil, c holds no file and can be put into
// the pool.
func (c *compiler) reset(r *Rules, v *variant) {
	clear(c.drafts)
	*c = compiler{
		r:        r,
		v:        v,
		delay:    -1,
		drafts:   c.drafts[:0],
		buf:      c.buf[:0],
		schedule: c.schedule[:0],
		pending:  c.pending[:0],
	}
}

// collect collects the rules, the longest delay and the schedule of all groups that name the
// crawler. ours reports whether a User-agent value does.
func (c *compiler) collect(ours func(value string) bool) {
	named := false             // the current group names the crawler
	ended := true              // the run of User-agent lines of the current group has ended
	delay := time.Duration(-1) // longest delay of the current group
	delayAt := uint32(0)       // line of that delay
	for _, rec := range c.r.records {
		switch rec.kind {
		case agentLine:
			if ended {
				named = false
				ended = false
				delay = -1
				c.pending = c.pending[:0]
			}
			if value := c.r.value(rec); !named && ours(value) {
				named = true
				if c.name == "" {
					c.name = value
				}
			}
		case allowLine, disallowLine:
			if named {
				c.add(rec)
			}
		case delayLine:
			if d := parseDelay(c.r.value(rec)); d > delay {
				delay = d
				delayAt = rec.line
			}
		case rateLine, visitLine:
			c.addScheduleLine(rec)
		}
		ended = ended || c.v.endsRun(rec.kind)
		if named && delay > c.delay {
			c.delay = delay
			c.delayAt = delayAt
		}
		if named {
			c.schedule = append(c.schedule, c.pending...)
			c.pending = c.pending[:0]
		}
	}
}

// addScheduleLine adds a Request-rate or a Visit-time line to those of the current group, unless it
// cannot be read or there are already too many.
func (c *compiler) addScheduleLine(rec record) {
	l, ok := parseScheduleLine(rec, c.r.value(rec))
	if ok && len(c.schedule)+len(c.pending) < maxScheduleLines {
		c.pending = append(c.pending, l)
	}
}

// add adds a draft of the rule rec, unless its pattern can never match.
func (c *compiler) add(rec record) {
	p := c.r.value(rec)
	rule := match.Rule{Allow: rec.kind == allowLine, Line: rec.line, Pattern: p}
	switch {
	case p == "":
		c.addEmpty(rule)
	case c.v.limited && isTooLong(p):
	case p[0] == '/' || p[0] == '*' && !c.v.plain:
		c.addPattern(rule, p)
		if !match.HasNormalEscapes(p, c.v.plain) {
			c.addPattern(rule, string(match.AppendEscapes(nil, p))) // as Target writes it
		}
		if c.v.indexFile && rule.Allow {
			c.addDirectory(rule, p)
		}
	}
}

// addEmpty adds a draft of a rule without a pattern. Such a rule restricts nothing. It is the least
// specific of all rules, unless the dialect reads an empty Disallow as "Allow: /". Only the first
// Allow and the first Disallow of this kind are kept, so that a Verdict can name them.
func (c *compiler) addEmpty(rule match.Rule) {
	seen := &c.hasEmptyDisallow
	if rule.Allow {
		seen = &c.hasEmptyAllow
	}
	if !*seen {
		*seen = true
		draft := match.Draft{Rule: rule}
		if c.v.disallowNone && !rule.Allow {
			draft.Text = "/"
			draft.Rank = 1
		}
		c.drafts = append(c.drafts, draft)
	}
}

// The limits of Yandex ("Robots.txt parsing errors").
const (
	maxRules      = 2048 // Allow and Disallow lines in a file
	maxRuleLength = 1024 // characters of a pattern
)

// isTooLong reports whether a pattern exceeds maxRuleLength.
func isTooLong(pattern string) bool {
	return len(pattern) > maxRuleLength && utf8.RuneCountInString(pattern) > maxRuleLength
}

// addDirectory adds a draft for the directory of an index file. Google's matcher uses this rule if
// the Allow for the index file itself does not match.
func (c *compiler) addDirectory(rule match.Rule, p string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 && strings.HasPrefix(p[i:], "/index.htm") {
		c.addPattern(rule, p[:i+1]+"$")
	}
}
