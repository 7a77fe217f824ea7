package dialect

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Group.data is a single string, so that the rules of a group need only one allocation. It consists
// of a probe for each rule, a record for each rule, the line of the Crawl-delay if there is one,
// the name of the group, and for each rule the text to match and the pattern as written. The rules
// are in the order of their precedence.
const (
	probeSize  = 2
	recordSize = 11
	lineSize   = 3
	lowMask    = 1<<24 - 1
)

// A rule is an Allow or Disallow line, compiled.
type rule struct {
	at    uint32 // offset of the text to match in Group.data
	size  uint32 // size of that text
	line  uint32
	flags flags
}

// flags are the kinds of a rule.
type flags uint8

const (
	allowing  flags = 1 << iota
	anchored        // the URL must end where the text ends
	wild            // the text has wildcards
	twofold         // the text has two forms; see twoForms
	empty           // the pattern is empty, so the rule restricts nothing
	rewritten       // the pattern as written follows the text; otherwise it begins with the text
)

// A probe is a byte that a target must have at a certain position if the rule matches. Checking the
// probe first avoids the comparison with most rules. The probe is the last byte of the head of the
// rule, which is the text before the first wildcard. If the head is longer than 256 bytes, the
// probe is byte 256, because at has only 8 bits.
type probe struct{ at, char byte }

// probeFor returns the probe of a rule with this head. If the head is empty, it is the slash at the
// beginning, which every target has.
func probeFor[T string | []byte](head T) probe {
	if len(head) == 0 {
		return probe{0, '/'}
	}
	n := min(len(head), math.MaxUint8+1)
	return probe{byte(n - 1), head[n-1]}
}

// probe returns the probe of the i-th rule.
func (g *Group) probe(i uint32) probe {
	p := g.data[i*probeSize:][:probeSize]
	return probe{p[0], p[1]}
}

// rule unpacks the i-th rule.
func (g *Group) rule(i uint32) rule {
	p := g.data[g.count*probeSize+i*recordSize:][:recordSize]
	size := load32(p[4:])
	return rule{at: load32(p), size: size & lowMask, line: load32(p[7:]) >> 8, flags: flags(size >> 24)}
}

// flags returns the flags of the i-th rule.
func (g *Group) flags(i uint32) flags { return flags(g.data[g.count*probeSize+i*recordSize+7]) }

// text returns the text of r, with which targets are compared.
func (g *Group) text(r rule) string { return g.data[r.at : r.at+r.size] }

// head returns the bytes that a target must begin with if r, the i-th rule, matches. This is the
// text of the rule or, if it has wildcards, at most the first 256 bytes before the first wildcard.
func (g *Group) head(i uint32, r rule) string {
	size := r.size
	if r.flags&wild != 0 {
		if size = uint32(g.probe(i).at) + 1; size == 1 && g.data[r.at] == '*' {
			size = 0
		}
	}
	return g.data[r.at:][:size]
}

// same reports whether two rules have the same text and kind and so match the same targets.
func (g *Group) same(a, b rule) bool {
	const kinds = anchored | wild | twofold
	return a.flags&kinds == b.flags&kinds && g.text(a) == g.text(b)
}

// name returns the group's name.
func (g *Group) name() string {
	at, end := g.count*(probeSize+recordSize), uint32(len(g.data))
	if g.count > 0 {
		end = g.rule(0).at
	}
	if g.delay >= 0 {
		at += lineSize
	}
	return g.data[at:end]
}

// delayLine returns the line of the group's Crawl-delay, or 0 if there is none.
func (g *Group) delayLine() uint32 {
	if g.delay < 0 {
		return 0
	}
	p := g.data[g.count*(probeSize+recordSize):][:lineSize]
	return uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
}

// pattern returns the pattern of the i-th rule, r, as written.
func (g *Group) pattern(i uint32, r rule) string {
	end := uint32(len(g.data))
	if i+1 < g.count {
		end = g.rule(i + 1).at
	}
	if r.flags&rewritten != 0 {
		r.at += r.size
	}
	return g.data[r.at:end]
}

// pack returns the drafts in the form of Group.data.
func (c *compiler) pack() string {
	order := c.sortDrafts()
	at := len(order)*(probeSize+recordSize) + len(c.name)
	if c.delay >= 0 {
		at += lineSize
	}
	size := at
	for i := range c.drafts {
		size += c.drafts[i].packedText()
	}
	data := make([]byte, 0, size)
	for _, i := range order {
		p := c.drafts[i].probe
		data = append(data, p.at, p.char)
	}
	for _, i := range order {
		d := &c.drafts[i]
		data = binary.LittleEndian.AppendUint32(data, uint32(at))
		data = binary.LittleEndian.AppendUint32(data, d.size|uint32(d.flags)<<24)
		data = appendLine(data, d.line)
		at += d.packedText()
	}
	if c.delay >= 0 {
		data = appendLine(data, c.delayAt)
	}
	data = append(data, c.name...)
	for _, i := range order {
		d := &c.drafts[i]
		if d.flags&rewritten != 0 {
			data = append(data, c.buf[d.at:d.at+d.size]...)
		}
		data = append(data, c.written(d)...)
	}
	return unsafe.String(unsafe.SliceData(data), len(data)) // safe: data is not changed any more
}

func appendLine(data []byte, line uint32) []byte {
	return append(data, byte(line), byte(line>>8), byte(line>>16))
}

// packedText returns the size of the text and the pattern of a draft in Group.data.
func (d *draft) packedText() int {
	n := int(d.to - d.from)
	if d.flags&rewritten != 0 {
		n += int(d.size)
	}
	return n
}

// load64 and load32 are like binary.LittleEndian.Uint64 and Uint32 for strings.
func load64(s string) uint64 { return uint64(load32(s)) | uint64(load32(s[4:]))<<32 }

func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
