package dialect

import (
	"slices"
	"strings"
	"sync"
)

// Rules is a parsed robots.txt file. It is immutable and safe for concurrent use.
type Rules struct {
	dialect Dialect
	text    string // a copy of the part of the file that was parsed
	records []record
	usage   bool         // records has lines about the use of content
	temoto  *temotoRules // nil except for Temoto
}

// A record is a line with a meaning. The lines of a group follow its User-agent lines. Lines of a
// group before any User-agent line are omitted.
type record struct {
	from, to uint32 // the value is Rules.text[from:to]
	line     uint32
	kind     kind
}

// value returns the value of a record as it is written.
func (r *Rules) value(rec record) string { return r.text[rec.from:rec.to] }

// Parse parses a robots.txt file. It never fails: it ignores malformed lines and, except for
// [Temoto], everything after [SizeLimit] bytes. Parse does not retain body.
func (d Dialect) Parse(body []byte) *Rules {
	if d == Temoto() {
		return parseTemoto(body)
	}
	p := parsers.Get().(*parser)
	*p = parser{v: d.variant(), records: p.records[:0]}
	text := string(clip(body))
	p.parse(text)
	if p.v.limited && (len(body) > SizeLimit || p.rules > maxRules) {
		p.records = slices.DeleteFunc(p.records, record.isOfGroup) // the file restricts nothing
	}
	r := &Rules{dialect: d, text: text, records: append([]record(nil), p.records...), usage: p.usage}
	parsers.Put(p)
	return r
}

// isOfGroup reports whether a line belongs to a group, and not to the file as a whole.
func (r record) isOfGroup() bool {
	switch r.kind {
	case sitemapLine, cleanLine, siteSignalLine, licenseLine:
		return false
	}
	return true
}

// Sitemaps returns the values of the Sitemap lines as they are written, in the order of the file.
// For Google and Yandex, they are absolute URLs. For RFC9309, CocCoc and Seznam, they may be
// relative to the URL of the robots.txt. For Original1994, there are none. Sitemaps does not check
// whether the URLs can or should be fetched.
func (r *Rules) Sitemaps() []string {
	if r.temoto != nil {
		return r.temoto.sitemaps()
	}
	var list []string
	for _, rec := range r.records {
		if rec.kind == sitemapLine {
			list = append(list, strings.Clone(r.value(rec))) // do not keep the text alive
		}
	}
	return list
}

// parsers holds parsers whose buffers Parse reuses.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// A parser collects the lines that have a meaning.
type parser struct {
	v       *variant
	records []record
	open    bool // there has been a User-agent line
	inRun   bool // there has been no rule and no gapLine since the last User-agent line
	rules   int  // number of Allow and Disallow lines in groups
	usage   bool // there has been a line about the use of content

	// These fields are used only if v.records is set. A record of 1994 spans several lines.
	start int  // index of its first line in records
	ruled bool // it has a rule
}

func (p *parser) parse(text string) {
	rest := skipMark(text, p.v.lenient)
	bareCR := hasBareCR(rest)
	for n := uint32(1); rest != ""; n++ {
		start := len(text) - len(rest)
		var line string
		line, rest = nextLine(rest, bareCR)
		k, from, to := p.v.parseLine(line)
		if p.v.shortRuns && p.inRun && breaksRun(k, line) {
			p.records = append(p.records, record{kind: gapLine})
			p.inRun = false
		}
		switch {
		case k != otherLine:
			rec := record{from: uint32(start + from), to: uint32(start + to), line: n, kind: k}
			p.add(rec, line[from:to])
		case p.v.records && trimLeft(line) == "":
			p.endRecord()
		}
	}
	p.endRecord()
}

// breaksRun reports whether a line that is neither a User-agent line nor a rule ends a run of
// User-agent lines in Yandex's program. Every line with a colon does, and so does a line without
// any text before its comment.
func breaksRun(k kind, line string) bool {
	switch k {
	case agentLine, allowLine, disallowLine:
		return false
	}
	text, _, _ := strings.Cut(line, "#")
	return trimLeft(text) == "" || strings.IndexByte(text, ':') >= 0
}

// add adds a line. If the line must be ignored, add returns the reason instead.
func (p *parser) add(rec record, value string) Problem {
	switch {
	case rec.kind == agentLine:
		if p.v.records && p.ruled {
			p.endRecord()
		}
		p.open = true
		p.inRun = true
	case p.v.onlyDisallow && (rec.kind == sitemapLine || rec.kind == allowLine):
		return Unsupported
	case rec.kind == cleanLine && !p.v.cleanParams:
		return Unsupported
	case rec.kind == cleanLine:
		if _, ok := parseCleanParam(value); !ok {
			return BadCleanParam
		}
	case rec.kind == sitemapLine:
		if value == "" || p.v.fullSitemaps && !isAbsolute(value) {
			return BadSitemap
		}
	case rec.kind == licenseLine:
		p.usage = true
	case rec.kind == signalLine && !p.open:
		p.usage = true
		rec.kind = siteSignalLine
	case !p.open:
		return OrphanRule
	case rec.kind == usageLine, rec.kind == signalLine:
		p.usage = true
	case rec.kind == disallowLine, rec.kind == allowLine:
		p.ruled = true
		p.inRun = false
		p.rules++
	case !p.v.onlyDisallow:
		p.ruled = true // a Crawl-delay, a Request-rate or a Visit-time
	}
	p.records = append(p.records, rec)
	return noProblem
}

// endRecord ends the current record of 1994. If the record has no rule, endRecord removes it and
// returns the number of its first line; otherwise it returns 0. In other dialects, endRecord does
// nothing.
func (p *parser) endRecord() (dropped uint32) {
	if !p.v.records {
		return 0
	}
	if !p.ruled {
		if i := slices.IndexFunc(p.records[p.start:], record.isOfGroup); i >= 0 {
			dropped = p.records[p.start+i].line
		}
		kept := slices.DeleteFunc(p.records[p.start:], record.isOfGroup)
		p.records = p.records[:p.start+len(kept)]
	}
	p.start = len(p.records)
	p.open, p.ruled = false, false
	return dropped
}

// isAbsolute reports whether s is a URL with a scheme and a host.
func isAbsolute(s string) bool {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme == "" || rest == "" || strings.IndexByte("/?#", rest[0]) >= 0 {
		return false
	}
	for i := 0; i < len(scheme); i++ {
		c := scheme[i]
		if !isLetter(c) && (i == 0 || c < '0' || c > '9') && (i == 0 || strings.IndexByte("+-.", c) < 0) {
			return false
		}
	}
	return true
}
