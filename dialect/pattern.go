package dialect

import (
	"strings"

	"github.com/collyrobots/collyrobots/internal/match"
)

// addPattern adds a draft of a rule that matches a pattern. The pattern may differ from the pattern
// of the rule as written.
func (c *compiler) addPattern(rule match.Rule, pattern string) {
	d := match.Draft{Rule: rule}
	if c.v.plain {
		d.Text = pattern
		d.Rank = uint32(len(pattern))
	} else {
		c.buf = d.SetPattern(c.buf, pattern, c.v.coding)
	}
	if c.v.prefixRank {
		d.Rank = prefixRank(d.Rank, pattern)
	}
	c.drafts = append(c.drafts, d)
}

// prefixRank returns the rank of a pattern without its wildcards and its anchor, but at least 1,
// which is the rank of / and *. rank includes them.
func prefixRank(rank uint32, pattern string) uint32 {
	special := strings.Count(pattern, "*")
	if strings.HasSuffix(pattern, "$") {
		special++
	}
	return max(1, rank-uint32(special))
}
