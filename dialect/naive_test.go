package dialect_test

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// This file is a second implementation, written from the table of dialects for
// clarity alone, which the tests hold the fast one to. It takes no care of time
// and memory and does not read files beyond the size limit.

type naiveGroup struct {
	agents []string
	rules  []dialect.Rule
	delays []string
}

type naiveFile struct {
	groups   []*naiveGroup
	sitemaps []string
}

var (
	newline     = regexp.MustCompile(`\r\n|\r|\n`)
	strictLine  = regexp.MustCompile(`(?is)^[ \t]*(user-agent|allow|disallow|sitemap|crawl-delay)[ \t]*:[ \t]*(.*?)[ \t]*$`)
	colonLine   = regexp.MustCompile(`(?s)^[ \t\n\v\f\r]*([^:]*?)[ \t\n\v\f\r]*:[ \t\n\v\f\r]*(.*?)[ \t\n\v\f\r]*$`)
	wordsLine   = regexp.MustCompile(`(?s)^[ \t\n\v\f\r]*([^ \t]+)[ \t]+([^ \t]+)[ \t\n\v\f\r]*$`)
	absolute    = regexp.MustCompile(`(?s)^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]`)
	seconds     = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)
	globalAgent = regexp.MustCompile(`^\*($|[ \t\n\v\f\r])`)
	wholeName   = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
	firstToken  = regexp.MustCompile(`^[A-Za-z_-]*`)
)

// naiveLine returns the lower-case key and the value of a line, "" if it has
// none.
func naiveLine(d dialect.Dialect, line string) (key, value string) {
	if d != dialect.Google() {
		line, _, _ = strings.Cut(line, "#")
		if m := strictLine.FindStringSubmatch(latin(line)); m != nil {
			return strings.ToLower(m[1]), unlatin(m[2])
		}
		return "", ""
	}
	line = line[:min(len(line), 16663)]
	line, _, _ = strings.Cut(line, "\x00")
	line, _, _ = strings.Cut(line, "#")
	m := colonLine.FindStringSubmatch(latin(line))
	if m == nil {
		m = wordsLine.FindStringSubmatch(strings.Trim(latin(line), " \t\n\v\f\r"))
	}
	if m == nil {
		return "", ""
	}
	for _, k := range []struct{ key, prefixes string }{
		{"user-agent", "user-agent,useragent,user agent"},
		{"allow", "allow"},
		{"disallow", "disallow,dissallow,dissalow,disalow,diasllow,disallaw"},
		{"sitemap", "sitemap,site-map"},
		{"crawl-delay", "crawl-delay"},
	} {
		for _, prefix := range strings.Split(k.prefixes, ",") {
			if strings.HasPrefix(naiveLower(m[1]), prefix) {
				return k.key, unlatin(m[2])
			}
		}
	}
	return "", ""
}

// latin makes every octet a character, so that regexp takes any of them.
func latin(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

func unlatin(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// naiveLower makes ASCII letters lower case.
func naiveLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return string(b)
}

func naiveParse(d dialect.Dialect, body string) *naiveFile {
	f := &naiveFile{}
	for i := 3; i > 0; i-- {
		if mark := "\xEF\xBB\xBF"[:i]; strings.HasPrefix(body, mark) && (i == 3 || d == dialect.Google()) {
			body = body[i:]
			break
		}
	}
	var open *naiveGroup // takes rules
	run := false         // takes User-agent lines, too
	for n, line := range newline.Split(body, -1) {
		key, value := naiveLine(d, line)
		if d == dialect.Original1994() {
			if strings.Trim(line, " \t") == "" {
				open, run = nil, false
			}
			if key != "user-agent" && key != "disallow" && key != "crawl-delay" {
				continue
			}
		}
		switch key {
		case "user-agent":
			if !run {
				open, run = &naiveGroup{}, true
				f.groups = append(f.groups, open)
			}
			open.agents = append(open.agents, value)
		case "allow", "disallow":
			run = false
			if open != nil {
				open.rules = append(open.rules, dialect.Rule{Allow: key == "allow", Pattern: value, Line: n + 1})
			}
		case "crawl-delay":
			if d == dialect.CocCoc() {
				run = false
			}
			if open != nil {
				open.delays = append(open.delays, value)
			}
		case "sitemap":
			value = strings.TrimSpace(value)
			if value != "" && (d != dialect.Google() || absolute.MatchString(latin(value))) {
				f.sitemaps = append(f.sitemaps, value)
			}
		}
	}
	return f
}

// naiveNames reports whether a User-agent value names a crawler; a name of *
// asks for the group of all others.
func naiveNames(d dialect.Dialect, value, name string) bool {
	value, name = naiveLower(value), naiveLower(name)
	switch d {
	case dialect.Google():
		if globalAgent.MatchString(value) {
			return name == "*"
		}
		cut := firstToken.FindString(value)
		return cut != "" && cut == name
	case dialect.Original1994():
		for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == '\t' }) {
			part, _, _ = strings.Cut(part, "/")
			if name == "*" && part == "*" {
				return true
			}
			bare, _, _ := strings.Cut(name, "/")
			if name != "*" && part != "*" && part != "" && strings.Contains(bare, part) {
				return true
			}
		}
		return false
	case dialect.RFC9309():
		if value != "*" && !wholeName.MatchString(value) {
			return false
		}
	}
	return value != "" && value == name && !strings.ContainsAny(value, " \t")
}

// naiveGroupFor combines the groups for a crawler.
func naiveGroupFor(d dialect.Dialect, f *naiveFile, tokens []string) *naiveGroup {
	var names []string
	for _, token := range tokens {
		if token == "*" {
			continue
		}
		names = append(names, token)
		for d == dialect.CocCoc() && strings.Contains(token, "-") {
			token = token[:strings.LastIndex(token, "-")]
			names = append(names, token)
		}
	}
	for _, name := range append(names, "*") {
		var all *naiveGroup
		for _, g := range f.groups {
			if d == dialect.Original1994() && len(g.rules) == 0 {
				continue
			}
			for _, agent := range g.agents {
				if naiveNames(d, agent, name) {
					if all == nil {
						all = &naiveGroup{agents: []string{agent}}
					}
					all.rules = append(all.rules, g.rules...)
					all.delays = append(all.delays, g.delays...)
					break
				}
			}
		}
		if all != nil {
			return all
		}
	}
	return &naiveGroup{agents: []string{""}}
}

// naiveDelay reads the delays of a group without regard to the dialect.
func (g *naiveGroup) writtenDelay() (time.Duration, bool) {
	longest, ok := time.Duration(-1), false
	for _, value := range g.delays {
		if !seconds.MatchString(value) {
			continue
		}
		ok = true
		r, _ := new(big.Rat).SetString("0" + value + "0")
		if !strings.Contains(value, ".") {
			r, _ = new(big.Rat).SetString(value)
		}
		r.Mul(r, big.NewRat(1e9, 1))
		n := new(big.Int).Add(r.Num(), r.Denom()) // round up
		n.Sub(n, big.NewInt(1))
		n.Div(n, r.Denom())
		d := time.Duration(math.MaxInt64)
		if n.IsInt64() {
			d = time.Duration(n.Int64())
		}
		longest = max(longest, d)
	}
	return max(longest, 0), ok
}

// crawlDelay reads the delays as a dialect does.
func (g *naiveGroup) crawlDelay(d dialect.Dialect) (time.Duration, bool) {
	delay, ok := g.writtenDelay()
	switch {
	case !ok || d == dialect.Google() || d == dialect.Original1994():
		return 0, false
	case d == dialect.CocCoc():
		for s := range 10 {
			if delay <= time.Duration(s)*time.Second {
				return time.Duration(s) * time.Second, true
			}
		}
		return 10 * time.Second, true
	}
	return delay, true
}

// decide finds the rule with the most octets, Allow before Disallow, the first
// in the file.
func (g *naiveGroup) decide(d dialect.Dialect, target string) dialect.Decision {
	target, _, _ = strings.Cut(target, "#")
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if d == dialect.RFC9309() && naiveText(naiveUnits(d, target, false)) == "/robots.txt" {
		return dialect.Decision{Allowed: true}
	}
	best, most := dialect.Decision{Allowed: true}, -1
	for _, r := range g.rules {
		octets := naiveMatch(d, r, target)
		if octets > most || octets == most && octets >= 0 && r.Allow && !best.Rule.Allow {
			best, most = dialect.Decision{Allowed: r.Allow || r.Pattern == "", Rule: r}, octets
		}
	}
	return best
}

// naiveMatch returns the bytes of a rule's pattern if it matches, otherwise -1.
// A pattern may match as it is written or with normal escapes.
func naiveMatch(d dialect.Dialect, r dialect.Rule, target string) int {
	normal := r
	normal.Pattern = naiveEscapes(r.Pattern)
	return max(naiveMatchWritten(d, r, target), naiveMatchWritten(d, normal, target))
}

func naiveMatchWritten(d dialect.Dialect, r dialect.Rule, target string) int {
	p := r.Pattern
	switch d {
	case dialect.Original1994():
		if strings.HasPrefix(target, p) {
			return len(p)
		}
		return -1
	case dialect.RFC9309():
		if p != "" && p[0] != '/' && p[0] != '*' {
			return -1
		}
	}
	units := naiveUnits(d, p, true)
	if unitsMatch(units, naiveUnits(d, target, false)) {
		return naiveLength(d, units)
	}
	if slash := strings.LastIndex(p, "/"); d == dialect.Google() && r.Allow && slash >= 0 && strings.HasPrefix(p[slash:], "/index.htm") {
		return naiveMatch(d, dialect.Rule{Allow: true, Pattern: p[:slash+1] + "$"}, target)
	}
	return -1
}

// A unit is an octet or its escape, in a pattern also a wildcard or the anchor.
type unit struct {
	text    string
	special bool // wildcard or anchor
	inQuery bool // after a literal ?
}

var naiveEscape = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// naiveUnits splits a pattern or a target in units.
func naiveUnits(d dialect.Dialect, s string, pattern bool) []unit {
	var units []unit
	query := false
	for s != "" {
		u := unit{inQuery: query}
		n := max(1, len(naiveEscape.FindString(s)))
		text := s[:n]
		s = s[n:]
		switch {
		case pattern && (text == "*" || text == "$" && s == ""):
			u.text, u.special = text, true
		case d == dialect.Google() && !pattern && n == 3:
			// Octet by octet.
			for i := range 3 {
				units = append(units, unit{text: text[i : i+1]})
			}
			continue
		case d == dialect.Google() && n == 3:
			for _, c := range strings.ToUpper(text) {
				units = append(units, unit{text: string(c)})
			}
			continue
		case d == dialect.Google() && pattern && text[0] >= 0x80:
			for _, c := range hexOf(text[0]) {
				units = append(units, unit{text: string(c)})
			}
			continue
		case d == dialect.Google():
			u = unit{text: text}
		default:
			u.text = naiveNormal(text)
		}
		query = query || text == "?"
		units = append(units, u)
	}
	return units
}

// naiveNormal brings an octet or an escape into the normal form of RFC 9309.
func naiveNormal(text string) string {
	const (
		unreservedBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
		reservedBytes   = ":/?#[]@!&'()+,;=" // without * and $
	)
	if len(text) == 3 {
		c := unhexByte(text)
		if strings.Contains(unreservedBytes, string(rune(c))) && c < 0x80 {
			return string(rune(c))
		}
		return strings.ToUpper(text)
	}
	if c := text[0]; c < 0x80 && strings.Contains(unreservedBytes+reservedBytes+"%", text) {
		return text
	}
	return hexOf(text[0])
}

// naiveEscapes makes hex digits upper case and escapes each lone percent sign.
func naiveEscapes(s string) string {
	var b strings.Builder
	for s != "" {
		text := s[:max(1, len(naiveEscape.FindString(s)))]
		s = s[len(text):]
		switch {
		case len(text) == 3:
			text = strings.ToUpper(text)
		case text == "%":
			text = "%25"
		}
		b.WriteString(text)
	}
	return b.String()
}

func hexOf(c byte) string {
	const digits = "0123456789ABCDEF"
	return "%" + digits[c/16:c/16+1] + digits[c%16:c%16+1]
}

func unhexByte(escape string) byte {
	const digits = "0123456789ABCDEF"
	e := strings.ToUpper(escape)
	return byte(strings.IndexByte(digits, e[1])*16 + strings.IndexByte(digits, e[2]))
}

// queryText makes one of the spellings that are equal in the query.
func queryText(text string) string {
	for _, c := range ":/?[]@" {
		if text == string(c) {
			return hexOf(byte(c))
		}
	}
	return text
}

func naiveText(units []unit) string {
	var b strings.Builder
	for _, u := range units {
		b.WriteString(u.text)
	}
	return b.String()
}

// naiveLength is the length of the encoded pattern.
func naiveLength(d dialect.Dialect, units []unit) int {
	n := 0
	for _, u := range units {
		text := u.text
		if u.inQuery && d != dialect.Google() && !u.special {
			text = queryText(text)
		}
		n += len(text)
	}
	return n
}

// unitsMatch follows all places of the target at which the pattern may match.
// It compares bytes, so a lone % matches the beginning of every escape.
func unitsMatch(pattern, target []unit) bool {
	var text string
	var inQuery []bool
	for _, t := range target {
		if t.inQuery {
			t.text = pathText(t.text)
		}
		text += t.text
		for range t.text {
			inQuery = append(inQuery, t.inQuery)
		}
	}
	at := make([]bool, len(text)+1)
	at[0] = true
	for _, p := range pattern {
		next := make([]bool, len(at))
		for i := range at {
			switch {
			case p.special && p.text == "*":
				next[i] = at[i] || i > 0 && next[i-1]
			case !at[i]:
			case p.special:
				next[i] = i == len(text)
			case strings.HasPrefix(text[i:], p.text):
				next[i+len(p.text)] = true
			case i < len(text) && inQuery[i] && strings.HasPrefix(text[i:], pathText(p.text)):
				next[i+len(pathText(p.text))] = true
			}
		}
		at = next
	}
	return slices.Contains(at, true)
}

// pathText undoes queryText.
func pathText(text string) string {
	for _, c := range ":/?[]@" {
		if text == hexOf(byte(c)) {
			return string(c)
		}
	}
	return text
}
