package dialect

import (
	"strings"
	"sync"
)

// Rules is a parsed robots.txt: what it says to whom. It is immutable, so any
// number of goroutines may use it at once.
type Rules struct {
	dialect Dialect
	text    string // a copy of what was read
	records []record
	temoto  *temotoRules // nil except for Temoto
}

// A record is a line that counts. Rules follow the User-agent lines they are
// for; rules of nobody are left out.
type record struct {
	from, to uint32 // the value in Rules.text
	line     uint32
	kind     kind
}

// value returns the value of a record as it is written.
func (r *Rules) value(rec record) string { return r.text[rec.from:rec.to] }

// Parse parses a robots.txt file. It never fails: malformed lines are ignored,
// and input beyond [SizeLimit] is not read, except under [Temoto]. It does not
// retain body.
func (d Dialect) Parse(body []byte) *Rules {
	if d == Temoto() {
		return parseTemoto(body)
	}
	p := parsers.Get().(*parser)
	*p = parser{v: d.variant(), records: p.records[:0]}
	text := string(clip(body))
	p.parse(text)
	r := &Rules{dialect: d, text: text, records: append([]record(nil), p.records...)}
	parsers.Put(p)
	return r
}

// Sitemaps returns the values of the Sitemap lines in the order of the file, as
// they are written: absolute URLs under Google, possibly relative to the
// robots.txt under RFC9309 and CocCoc, none under Original1994. The caller
// decides which of them are worth a request.
func (r *Rules) Sitemaps() []string {
	if r.temoto != nil {
		return r.temoto.sitemaps()
	}
	var list []string
	for _, rec := range r.records {
		if rec.kind == sitemapLine {
			list = append(list, strings.Clone(r.value(rec))) // not a window into the text
		}
	}
	return list
}

// parsers keeps the working space of Parse.
var parsers = sync.Pool{New: func() any { return new(parser) }}

// A parser sorts lines into records.
type parser struct {
	v       *variant
	records []record
	open    bool // a User-agent line came before
	// In a dialect of records only:
	start int  // of the current record
	ruled bool // the current record has a Disallow
}

func (p *parser) parse(text string) {
	rest := skipMark(text, p.v.lenient)
	bareCR := hasBareCR(rest)
	for n := uint32(1); rest != ""; n++ {
		start := len(text) - len(rest)
		var line string
		line, rest = nextLine(rest, bareCR)
		k, from, to := p.v.parseLine(line)
		switch {
		case k != otherLine:
			p.add(record{uint32(start + from), uint32(start + to), n, k}, line[from:to])
		case p.v.records && trimLeft(line) == "":
			p.endRecord()
		}
	}
	p.endRecord()
}

// add takes a record in if it counts, and returns why if it does not.
func (p *parser) add(rec record, value string) Problem {
	switch {
	case rec.kind == agentLine:
		if p.v.records && p.ruled {
			p.endRecord()
		}
		p.open = true
	case rec.kind == sitemapLine && p.v.records, rec.kind == allowLine && p.v.records:
		return Unsupported
	case rec.kind == sitemapLine:
		if value == "" || p.v.fullSitemaps && !isAbsolute(value) {
			return BadSitemap
		}
	case !p.open:
		return OrphanRule
	case rec.kind == disallowLine:
		p.ruled = true
	}
	p.records = append(p.records, rec)
	return noProblem
}

// endRecord ends a record of 1994, and returns it if it was none for want of a
// Disallow. Other dialects have no records.
func (p *parser) endRecord() (dropped []record) {
	if !p.v.records {
		return nil
	}
	if !p.ruled {
		dropped = p.records[p.start:]
		p.records = p.records[:p.start]
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
