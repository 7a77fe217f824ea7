package match

import (
	"encoding/binary"
	"math"
	"strings"
	"unsafe"
)

// List.data is a single string, so that a short list needs only one allocation. It consists of a
// record for each rule, a probe for each rule if the list has no index, the extra text, and for
// each rule its text and its pattern. If the pattern begins with the text, only the pattern is
// stored. The rules are in the order of their precedence. A rule is referred to by its number in
// this order.
const (
	recordSize = 11
	probeSize  = 2
	lowMask    = 1<<24 - 1
)

// A record describes a rule in List.data.
type record struct {
	at    uint32 // offset of the text in List.data
	size  uint32 // size of the text
	line  uint32
	flags flags
}

// flags are the properties of a packed rule.
type flags uint8

const (
	anchored  = flags(Anchored)
	wild      = flags(Wild)
	twoForms  = flags(TwoForms)
	allowing  = flags(1 << 3)
	rewritten = flags(1 << 4) // the pattern follows the text; otherwise it begins with the text
)

// record unpacks the record of the i-th rule.
func (l *List) record(i uint32) record {
	p := l.data[i*recordSize:][:recordSize]
	size := load32(p[4:])
	return record{
		at:    load32(p),
		size:  size & lowMask,
		line:  load32(p[7:]) >> 8,
		flags: flags(size >> 24),
	}
}

// text returns the text of a rule, which targets are compared with.
func (l *List) text(r record) string { return l.data[r.at : r.at+r.size] }

// head returns the bytes that a target must begin with if the rule matches. This is the text up to
// its first wildcard.
func (l *List) head(r record) string { return headOf(l.text(r), r.flags) }

func headOf(text string, f flags) string {
	if f&wild != 0 {
		return text[:strings.IndexByte(text, '*')]
	}
	return text
}

// same reports whether two rules have the same text and kind and so match the same targets.
func (l *List) same(a, b record) bool {
	const kinds = anchored | wild | twoForms
	return a.flags&kinds == b.flags&kinds && l.text(a) == l.text(b)
}

// rule returns the i-th rule.
func (l *List) rule(i uint32) Rule {
	r := l.record(i)
	start := r.at
	if r.flags&rewritten != 0 {
		start += r.size
	}
	end := uint32(len(l.data))
	if i+1 < l.count {
		end = l.record(i + 1).at
	}
	return Rule{Allow: r.flags&allowing != 0, Line: r.line, Pattern: l.data[start:end]}
}

// probes returns the probes of a list without an index.
func (l *List) probes() string { return l.data[l.count*recordSize:][:l.count*probeSize] }

// Extra returns the extra text that was passed to [New].
func (l *List) Extra() string {
	start := l.count * recordSize
	if l.index == nil {
		start += l.count * probeSize
	}
	end := uint32(len(l.data))
	if l.count > 0 {
		end = l.record(0).at
	}
	return l.data[start:end]
}

// pack returns the drafts, in the given order, and the extra text in the form of List.data.
func pack(drafts []Draft, order []uint64, extra string) string {
	at := len(order)*recordSize + len(extra)
	if len(order) < indexFrom {
		at += len(order) * probeSize
	}
	size := at
	for i := range drafts {
		size += drafts[i].packedSize()
	}
	data := make([]byte, 0, size)
	for _, i := range order {
		d := &drafts[i]
		data = binary.LittleEndian.AppendUint32(data, uint32(at))
		data = binary.LittleEndian.AppendUint32(data, uint32(len(d.Text))|uint32(d.flags())<<24)
		data = append(data, byte(d.Line), byte(d.Line>>8), byte(d.Line>>16))
		at += d.packedSize()
	}
	if len(order) < indexFrom {
		data = appendProbes(data, drafts, order)
	}
	data = append(data, extra...)
	for _, i := range order {
		d := &drafts[i]
		if d.rewritten {
			data = append(data, d.Text...)
		}
		data = append(data, d.Pattern...)
	}
	return unsafe.String(unsafe.SliceData(data), len(data)) // safe: data is not changed any more
}

// flags returns the flags of a draft.
func (d *Draft) flags() flags {
	f := flags(d.Kind)
	if d.Allow {
		f |= allowing
	}
	if d.rewritten {
		f |= rewritten
	}
	return f
}

// packedSize returns the size of the text and the pattern of a draft in List.data.
func (d *Draft) packedSize() int {
	n := len(d.Pattern)
	if d.rewritten {
		n += len(d.Text)
	}
	return n
}

// appendProbes appends the probe of each draft, in the given order. A probe is a byte that a target
// must have at a certain position if the rule matches: the position, and then the byte. Checking
// the probe first avoids the comparison with most rules.
//
// The probe of a rule is a byte of its head that as few other heads as possible have at the same
// position, because the URLs of a site often resemble the rules. If there are several such bytes,
// it is the last one. If the head is empty, the probe is the slash at the beginning, which every
// target has.
func appendProbes(data []byte, drafts []Draft, order []uint64) []byte {
	var heads [indexFrom]string
	for n, i := range order {
		head := headOf(drafts[i].Text, flags(drafts[i].Kind))
		heads[n] = head[:min(len(head), math.MaxUint8+1)]
	}
	for _, head := range heads[:len(order)] {
		if head == "" {
			data = append(data, 0, '/')
			continue
		}
		at := rarestByte(head, heads[:len(order)])
		data = append(data, byte(at), head[at])
	}
	return data
}

// rarestByte returns the position of the byte of a head that the fewest heads have at the same
// position.
func rarestByte(head string, heads []string) (rarest int) {
	fewest := math.MaxInt
	for at := len(head) - 1; at >= 0 && fewest > 1; at-- {
		n := 0
		for _, other := range heads {
			if at < len(other) && other[at] == head[at] {
				n++
				if n >= fewest {
					break
				}
			}
		}
		if n < fewest {
			fewest = n
			rarest = at
		}
	}
	return rarest
}

// load32 is like binary.LittleEndian.Uint32 for strings.
func load32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
