package dialect

import (
	"encoding/binary"
	"time"

	"github.com/collyrobots/collyrobots/internal/match"
)

// A Group holds the rules and the crawl delay of a robots.txt for one crawler. It is immutable and
// safe for concurrent use. It does not share memory with the Rules or the file.
type Group struct {
	dialect     Dialect
	hasDelay    bool         // there is a Crawl-delay
	hasSchedule bool         // there is a Request-rate or a Visit-time
	rules       match.List   // its extra text is the delay and the schedule, if there are any, and the name of the group
	temoto      *temotoGroup // nil except for Temoto
}

// Group returns the group for the crawler with the given product tokens, the most specific token
// first. This is the group of the first token that has a group. If no token has one, or if there
// are no tokens, it is the group of *. If that does not exist either, it is a group without rules.
// The result is never nil. A token that the dialect cannot match (see [Dialect.CheckToken]) has no
// group.
//
// For [Temoto], the first token is the whole User-Agent header. Pass that header to get the same
// decisions as from Colly's built-in check.
func (r *Rules) Group(tokens ...string) *Group {
	if r.temoto != nil {
		return r.temoto.group(tokens)
	}
	v := r.dialect.variant()
	best := r.bestRank(tokens)
	if best == noRank {
		return &Group{dialect: r.dialect}
	}
	c := compilers.Get().(*compiler)
	c.reset(r, v)
	c.collect(func(value string) bool { return v.naming.rank(value, tokens) == best })
	g := &Group{
		dialect:     r.dialect,
		hasDelay:    c.delay >= 0,
		hasSchedule: len(c.schedule) > 0,
		rules:       match.New(c.drafts, c.extra()),
	}
	c.reset(nil, nil)
	compilers.Put(c)
	return g
}

// bestRank returns the best rank of the User-agent values for a crawler with these tokens.
func (r *Rules) bestRank(tokens []string) int {
	best := noRank
	naming := r.dialect.variant().naming
	for _, rec := range r.records {
		if rec.kind == agentLine {
			best = min(best, naming.rank(r.value(rec), tokens))
		}
	}
	return best
}

// Name returns the User-agent value of the group as it is written in the file. If several groups
// were combined, it is the value of the first. If the file has no group for the crawler, Name
// returns "".
func (g *Group) Name() string {
	if g.temoto != nil {
		return g.temoto.name
	}
	extra := g.rules.Extra()
	if g.hasDelay {
		extra = extra[delaySize:]
	}
	if g.hasSchedule {
		_, extra = cutSchedule(extra)
	}
	return extra
}

// Rules returns the rules of the group in the order of their precedence: if several match a URL,
// the first of them decides. A rule that the dialect reads in several forms, such as Google's Allow
// for an index file, is in the list once for each form. Rules that match no URL are not in it. Of
// the rules without a pattern, only the first Allow and the first Disallow are. For [Temoto], Rules
// returns nil, because temoto does not report line numbers.
func (g *Group) Rules() []Rule {
	var list []Rule
	for i := range g.rules.Len() {
		r := g.rules.Rule(i)
		list = append(list, Rule{Allow: r.Allow, Pattern: r.Pattern, Line: int(r.Line)})
	}
	return list
}

// CrawlDelay returns the Crawl-delay of the group as the dialect interprets it. It returns false if
// there is none or if the dialect does not support Crawl-delay.
func (g *Group) CrawlDelay() (time.Duration, bool) {
	return g.dialect.variant().delay.read(g.writtenDelay())
}

// DelayLine returns the line number of the group's longest Crawl-delay, starting at 1. This is the
// line that CrawlDelay and WrittenDelay use. DelayLine returns 0 if there is no such line. For
// [Temoto], it always returns 0, because temoto does not report the line.
func (g *Group) DelayLine() int {
	if !g.hasDelay {
		return 0
	}
	return int(load32(g.rules.Extra()[8:]))
}

// WrittenDelay returns the group's longest Crawl-delay as it is written, in decimal seconds and
// without a limit. It also does so if the dialect does not support Crawl-delay, for crawlers that
// obey it anyway. It returns false if there is none.
func (g *Group) WrittenDelay() (time.Duration, bool) {
	return exactDelay.read(g.writtenDelay())
}

// writtenDelay returns the longest delay as written, or -1 if there is none.
func (g *Group) writtenDelay() time.Duration {
	switch {
	case g.temoto != nil:
		return g.temoto.delay
	case g.hasDelay:
		return time.Duration(load64(g.rules.Extra()))
	}
	return -1
}

// delaySize is the size of a Crawl-delay in Group.rules: eight bytes for the duration and four for
// the line.
const delaySize = 8 + 4

// extra returns the extra text of Group.rules.
func (c *compiler) extra() string {
	if c.delay < 0 && len(c.schedule) == 0 {
		return c.name
	}
	b := make([]byte, 0, 64)
	if c.delay >= 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(c.delay))
		b = binary.LittleEndian.AppendUint32(b, c.delayAt)
	}
	b = c.appendSchedule(b)
	return string(append(b, c.name...))
}
