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

// This file is a second implementation of all published dialects. The tests compare the package
// with it. It is written for clarity only, without regard to time and memory. It does not apply the
// size limit.

// A naiveGroup is a group of a file, or several that are combined.
type naiveGroup struct {
	agents []string
	rules  []dialect.Rule
	delays []string // as written
	rates  []naiveTimed
	visits []naiveTimed
}

// A naiveTimed is a Request-rate or a Visit-time line.
type naiveTimed struct {
	value string
	line  int
}

// A naiveFile is a parsed file.
type naiveFile struct {
	groups   []*naiveGroup
	sitemaps []string
}

var (
	newline     = regexp.MustCompile(`\r\n|\r|\n`)
	strictLine  = regexp.MustCompile(`(?is)^[ \t]*(user-agent|allow|disallow|sitemap|crawl-delay|request-rate|visit-time|clean-param)[ \t]*:[ \t]*(.*?)[ \t]*$`)
	colonLine   = regexp.MustCompile(`(?s)^[ \t\n\v\f\r]*([^:]*?)[ \t\n\v\f\r]*:[ \t\n\v\f\r]*(.*?)[ \t\n\v\f\r]*$`)
	wordsLine   = regexp.MustCompile(`(?s)^[ \t\n\v\f\r]*([^ \t]+)[ \t]+([^ \t]+)[ \t\n\v\f\r]*$`)
	absolute    = regexp.MustCompile(`(?s)^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]`)
	seconds     = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)
	globalAgent = regexp.MustCompile(`^\*($|[ \t\n\v\f\r])`)
	rateValue   = regexp.MustCompile(`(?i)^([0-9]+)/([0-9]+)([smhd]?)(?:[ \t]+([0-9].*))?$`)
	windowValue = regexp.MustCompile(`^([01][0-9]|2[0-3])([0-5][0-9])[ \t]*-[ \t]*(?:([01][0-9]|2[0-3])([0-5][0-9])|(24)(00))$`)
	wholeName   = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
	firstToken  = regexp.MustCompile(`^[A-Za-z_-]*`)
)

// naiveLine returns the key of a line in lower case and its value. If the line has no key with a
// meaning, naiveLine returns "".
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
		{"request-rate", "request-rate"},
		{"visit-time", "visit-time"},
		{"clean-param", "clean-param"},
	} {
		for _, prefix := range strings.Split(k.prefixes, ",") {
			if strings.HasPrefix(naiveLower(m[1]), prefix) {
				return k.key, unlatin(m[2])
			}
		}
	}
	return "", ""
}

// latin returns a string with one character for each byte of s, so that a regular expression can
// match any byte. unlatin converts it back.
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

// naiveLower returns s with ASCII letters in lower case.
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
	var open *naiveGroup // the group of the following rules; nil if they have no group
	run := false         // a User-agent line adds a name to the open group
	for n, line := range newline.Split(body, -1) {
		key, value := naiveLine(d, line)
		if strings.Trim(line, " \t") == "" {
			switch d {
			case dialect.Original1994(), dialect.Seznam():
				open = nil
				run = false
			}
		}
		if text, _, _ := strings.Cut(line, "#"); d == dialect.Yandex() && key != "user-agent" && (strings.Contains(text, ":") || strings.Trim(text, " \t") == "") {
			run = false
		}
		if d == dialect.Original1994() && (key == "allow" || key == "sitemap") {
			continue
		}
		switch key {
		case "user-agent":
			if !run {
				open = &naiveGroup{}
				run = true
				f.groups = append(f.groups, open)
			}
			open.agents = append(open.agents, value)
		case "allow", "disallow":
			run = false
			if open != nil {
				open.rules = append(open.rules, dialect.Rule{Allow: key == "allow", Pattern: value, Line: n + 1})
			}
		case "crawl-delay":
			if d == dialect.CocCoc() || d == dialect.Seznam() {
				run = false
			}
			if open != nil {
				open.delays = append(open.delays, value)
			}
		case "request-rate", "visit-time":
			if open == nil {
				break
			}
			if timed := (naiveTimed{value, n + 1}); key == "visit-time" {
				open.visits = append(open.visits, timed)
			} else {
				open.rates = append(open.rates, timed)
			}
			run = run && d != dialect.Seznam()
		case "sitemap":
			value = strings.TrimSpace(value)
			if value != "" && (d != dialect.Google() && d != dialect.Yandex() || absolute.MatchString(latin(value))) {
				f.sitemaps = append(f.sitemaps, value)
			}
		}
	}
	return f
}

// naiveNames reports whether a User-agent value names a crawler. The name * stands for the crawlers
// that have no group of their own.
func naiveNames(d dialect.Dialect, value, name string) bool {
	value = naiveLower(value)
	name = naiveLower(name)
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
	case dialect.Seznam():
		return naiveNames(dialect.Original1994(), value, name)
	case dialect.Yandex():
		if value == "*" || name == "*" {
			return value == name
		}
		value, _, _ = strings.Cut(value, "/")
		name, _, _ = strings.Cut(name, "/")
		return value != "" && value == name
	case dialect.RFC9309():
		if value != "*" && !wholeName.MatchString(value) {
			return false
		}
	}
	return value != "" && value == name && !strings.ContainsAny(value, " \t")
}

// naiveGroupFor returns the combined groups for the crawler with the given tokens.
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
		if bare, _, _ := strings.Cut(token, "/"); d == dialect.Yandex() && strings.HasPrefix(naiveLower(bare), "yandex") {
			for n := len(bare) - 1; n >= len("yandex"); n-- {
				names = append(names, bare[:n])
			}
		}
	}
	for _, name := range append(names, "*") {
		var all *naiveGroup
		for _, g := range f.groups {
			if d == dialect.Original1994() && len(g.rules) == 0 || d == dialect.Seznam() && len(g.rules)+len(g.rates)+len(g.visits)+len(g.delays) == 0 {
				continue
			}
			for _, agent := range g.agents {
				if naiveNames(d, agent, name) {
					if all == nil {
						all = &naiveGroup{agents: []string{agent}}
					}
					all.rules = append(all.rules, g.rules...)
					all.delays = append(all.delays, g.delays...)
					all.rates = append(all.rates, g.rates...)
					all.visits = append(all.visits, g.visits...)
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

// writtenDelay returns the longest delay of a group in decimal seconds, whatever the dialect.
func (g *naiveGroup) writtenDelay() (time.Duration, bool) {
	longest := time.Duration(-1)
	ok := false
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

// crawlDelay returns the longest delay of a group as a dialect interprets it.
func (g *naiveGroup) crawlDelay(d dialect.Dialect) (time.Duration, bool) {
	delay, ok := g.writtenDelay()
	switch {
	case !ok || d == dialect.Google() || d == dialect.Original1994() || d == dialect.Yandex() || d == dialect.Seznam():
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

// schedule returns the lines of a group that can be read, whatever the dialect. It returns nil if
// there are none.
func (g *naiveGroup) schedule() *dialect.Schedule {
	s := &dialect.Schedule{}
	for _, r := range g.rates {
		m := rateValue.FindStringSubmatch(r.value)
		if m == nil {
			continue
		}
		documents := naiveBillion(m[1])
		units := naiveBillion(m[2])
		length := map[string]int64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[strings.ToLower(m[3])]
		window, ok := dialect.Window{}, true
		if m[4] != "" {
			window, ok = naiveWindow(m[4])
		}
		if documents.Sign() == 0 || units.Sign() == 0 || !ok {
			continue
		}
		period := units.Mul(units, big.NewInt(length*1e9))
		if !period.IsInt64() {
			period.SetInt64(math.MaxInt64)
		}
		period.Add(period, documents).Sub(period, big.NewInt(1)).Div(period, documents) // round up
		s.Rates = append(s.Rates, dialect.Rate{Delay: time.Duration(period.Int64()), Window: window, Line: r.line})
	}
	for _, v := range g.visits {
		if window, ok := naiveWindow(v.value); ok {
			s.Visits = append(s.Visits, dialect.Visit{Window: window, Line: v.line})
		}
	}
	if len(s.Rates)+len(s.Visits) == 0 {
		return nil
	}
	return s
}

// naiveBillion returns a number of digits, at most a billion.
func naiveBillion(digits string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	if most := big.NewInt(1e9); n.Cmp(most) > 0 {
		return most
	}
	return n
}

func naiveWindow(value string) (w dialect.Window, ok bool) {
	m := windowValue.FindStringSubmatch(value)
	if m == nil {
		return w, false
	}
	minutes := func(hours, minutes string) time.Duration {
		d, _ := time.ParseDuration(hours + "h" + minutes + "m")
		return d
	}
	w.From = minutes(m[1], m[2])
	w.To = min(minutes(m[3]+m[5], m[4]+m[6])+time.Minute, 24*time.Hour)
	if w.To-w.From == 24*time.Hour || w.To == w.From {
		return dialect.Window{}, true
	}
	return w, true
}

// decide decides by the matching rule with the most bytes. If several have the same number of
// bytes, Allow is used before Disallow, and the first rule in the file before later ones.
func (g *naiveGroup) decide(d dialect.Dialect, target string) dialect.Verdict {
	target, _, _ = strings.Cut(target, "#")
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	if d == dialect.RFC9309() && naiveText(naiveUnits(d, target, false)) == "/robots.txt" {
		return dialect.Verdict{Allowed: true}
	}
	best := dialect.Verdict{Allowed: true}
	most := -1
	for _, r := range g.rules {
		size := naiveMatch(d, r, target)
		if d == dialect.Yandex() && size >= 0 && (r.Pattern != "" || !r.Allow) {
			size = max(size, 1)
		}
		wins := func(r dialect.Rule) bool { return r.Allow || d == dialect.Yandex() && r.Pattern == "" }
		if size > most || size == most && size >= 0 && wins(r) && !wins(best.Rule) {
			best = dialect.Verdict{Allowed: r.Allow || r.Pattern == "", Rule: r}
			most = size
		}
	}
	return best
}

// naiveMatch returns the number of bytes of a rule's pattern if the rule matches, and otherwise -1.
// A pattern may match as it is written or with normal escapes.
func naiveMatch(d dialect.Dialect, r dialect.Rule, target string) int {
	normal := r
	normal.Pattern = naiveEscapes(r.Pattern)
	return max(naiveMatchWritten(d, r, target), naiveMatchWritten(d, normal, target))
}

// naiveMatchWritten is like naiveMatch and compares the pattern only as it is written.
func naiveMatchWritten(d dialect.Dialect, r dialect.Rule, target string) int {
	p := r.Pattern
	switch d {
	case dialect.Original1994():
		if strings.HasPrefix(target, p) {
			return len(p)
		}
		return -1
	case dialect.RFC9309(), dialect.Yandex():
		if p != "" && p[0] != '/' && p[0] != '*' || d == dialect.Yandex() && len([]rune(p)) > 1024 {
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

// A unit is a byte or its escape. In a pattern, it may also be a wildcard or the anchor.
type unit struct {
	text    string
	special bool // a wildcard or the anchor
	inQuery bool // the unit is after a literal ?
}

var naiveEscape = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// naiveUnits splits a pattern or a target into units in normal form.
func naiveUnits(d dialect.Dialect, s string, pattern bool) []unit {
	var units []unit
	query := false
	for s != "" {
		text := s[:max(1, len(naiveEscape.FindString(s)))]
		s = s[len(text):]
		switch {
		case pattern && (text == "*" || text == "$" && s == ""):
			units = append(units, unit{text: text, special: true})
		case d == dialect.Google():
			for _, c := range []byte(naiveGoogle(text, pattern)) {
				units = append(units, unit{text: string([]byte{c})})
			}
		default:
			units = append(units, unit{text: naiveNormal(text), inQuery: query})
		}
		query = query || text == "?"
	}
	return units
}

// naiveGoogle returns the form of a byte or an escape that Google's matcher compares.
func naiveGoogle(text string, pattern bool) string {
	switch {
	case !pattern:
		return text
	case len(text) == 3:
		return strings.ToUpper(text)
	case text[0] >= 0x80:
		return hexOf(text[0])
	}
	return text
}

// naiveNormal returns the normal form of a byte or an escape according to RFC 9309. A byte that may
// be in a URL with or without an escape becomes a NUL, \x01 and the byte, so that a lone percent
// sign does not match the beginning.
func naiveNormal(text string) string {
	const (
		unreservedBytes    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
		reservedBytes      = ":/?#[]@!&'()+,;=" // without * and $
		rarelyEscapedBytes = "*$\"<>\\^`{|}"
	)
	if len(text) == 3 {
		c := unhexByte(text)
		if strings.Contains(unreservedBytes, string(rune(c))) && c < 0x80 {
			return string(rune(c))
		}
		if strings.Contains(rarelyEscapedBytes, string(rune(c))) {
			return "\x00\x01" + string([]byte{c})
		}
		return strings.ToUpper(text)
	}
	if c := text[0]; c < 0x80 && strings.Contains(unreservedBytes+reservedBytes+"%", text) {
		return text
	}
	if strings.Contains(rarelyEscapedBytes, text) {
		return "\x00\x01" + text
	}
	return hexOf(text[0])
}

// naiveEscapes returns s with the hex digits of escapes in upper case and with each lone percent
// sign escaped.
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

// hexOf returns the escape of a byte, and unhexByte the byte of an escape.
func hexOf(c byte) string {
	const digits = "0123456789ABCDEF"
	return "%" + digits[c/16:c/16+1] + digits[c%16:c%16+1]
}

func unhexByte(escape string) byte {
	const digits = "0123456789ABCDEF"
	e := strings.ToUpper(escape)
	return byte(strings.IndexByte(digits, e[1])*16 + strings.IndexByte(digits, e[2]))
}

// queryText returns the escape of a byte that equals its escape only in the query. It returns all
// other texts unchanged.
func queryText(text string) string {
	for _, c := range ":/?[]@" {
		if text == string(c) {
			return hexOf(byte(c))
		}
	}
	return text
}

// pathText is the inverse of queryText.
func pathText(text string) string {
	for _, c := range ":/?[]@" {
		if text == hexOf(byte(c)) {
			return string(c)
		}
	}
	return text
}

// naiveText returns the text of some units.
func naiveText(units []unit) string {
	var b strings.Builder
	for _, u := range units {
		b.WriteString(u.text)
	}
	return b.String()
}

// naiveLength returns the number of bytes of a pattern that count when rules are compared.
func naiveLength(d dialect.Dialect, units []unit) int {
	n := 0
	for _, u := range units {
		text := u.text
		if u.special && d == dialect.Yandex() {
			continue
		}
		if u.inQuery && d != dialect.Google() && !u.special {
			text = queryText(text)
		}
		n += len(text)
	}
	return n
}

// unitsMatch reports whether a pattern matches the beginning of a target. For each unit of the
// pattern, it computes the positions that the units up to it can reach. It compares bytes, so a
// lone percent sign matches the beginning of every escape in the target.
func unitsMatch(pattern, target []unit) bool {
	var text string    // the text of the target
	var inQuery []bool // for each byte of text
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
