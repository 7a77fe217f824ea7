package robotstags

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/collyrobots/collyrobots/internal/metatags"
)

// maxField is the number of bytes that are read from each source. draft-illyes-repext-03, section
// 3.1.1, requires at least 8 KiB. The bytes after that are ignored, and so is an item that is cut
// off there.
const maxField = 8 << 10

// FromHeader returns the rules in the headers X-Robots-Tag and Robots-Tag of a response that apply
// to all crawlers, or to a crawler with one of the names in bots. Names are not case-sensitive.
// FromHeader ignores malformed rules.
//
// X-Robots-Tag is a list of rules, separated by commas or blanks. The name of a crawler and a colon
// before a rule limit that rule, and those after it in the same line, to that crawler:
//
//	X-Robots-Tag: noindex, max-snippet: 20
//	X-Robots-Tag: examplebot: nofollow, unavailable_after: Thu, 25 Jun 2026 15:00:00 GMT
//
// A word before a colon is the name of a crawler, unless it is a known rule or a number follows.
// The syntax of Robots-Tag is also accepted in X-Robots-Tag, as the draft requires.
//
// Robots-Tag is a List of RFC 9651: each member is the name of a crawler or "*", and its parameters
// are the rules. A header that is not a valid List is ignored, as RFC 9651, section 4.2, requires.
//
//	Robots-Tag: *;nosnippet, ExampleBot;noindex;max-snippet=20
func FromHeader(h http.Header, bots ...string) Tags {
	c := collector{bots: bots}
	c.xRobotsTag(h["X-Robots-Tag"])
	c.robotsTag(h["Robots-Tag"])
	return c.tags
}

// HasHeader reports whether a response has a header that FromHeader reads.
func HasHeader(h http.Header) bool {
	return len(h["X-Robots-Tag"]) > 0 || len(h["Robots-Tag"]) > 0
}

// FromHTML returns the rules in the meta elements of an HTML page in UTF-8. It reads the elements
// with the name robots, and those with one of the names in bots. Only elements in the head count
// (draft-illyes-repext-03, section 4), and only in the first MiB of the page. The content is a list
// of rules, separated by commas or blanks. Broken HTML is not an error.
func FromHTML(page []byte, bots ...string) Tags {
	c := collector{bots: bots}
	rest := maxField
	for _, tag := range metatags.Read(page) {
		if !c.isFor(tag.Name) {
			continue
		}
		content := tag.Content
		if len(content) > rest {
			content = upToComma(content, rest)
			rest = 0
		}
		rest -= min(rest, len(content))
		l := list{rest: content, bot: nameOf(tag.Name)}
		c.addAll(&l, SourceMeta)
	}
	return c.tags
}

// A collector collects the rules for a crawler with the names in bots.
type collector struct {
	bots []string
	tags Tags
	seen map[Rule]bool
}

// isFor reports whether a rule for the crawler with this name applies.
func (c *collector) isFor(name string) bool {
	if nameOf(name) == "" {
		return true
	}
	for _, bot := range c.bots {
		if strings.EqualFold(bot, name) {
			return true
		}
	}
	return false
}

// nameOf returns the name of a crawler in lower case, or "" if it means all crawlers.
func nameOf(name string) string {
	name = strings.ToLower(name)
	if name == "*" || name == "robots" {
		return ""
	}
	return name
}

// add adds a rule if it applies and is new.
func (c *collector) add(r Rule) {
	if r.Name == "" || !c.isFor(r.Bot) && r.Bot != "" || c.seen[r] {
		return
	}
	if c.seen == nil {
		c.seen = make(map[Rule]bool)
	}
	c.seen[r] = true
	c.tags = append(c.tags, r)
}

// addAll adds the rules of a list.
func (c *collector) addAll(l *list, from Source) {
	for {
		r, ok := l.next()
		if !ok {
			return
		}
		r.Source = from
		c.add(r)
	}
}

// xRobotsTag adds the rules of the lines of X-Robots-Tag.
func (c *collector) xRobotsTag(lines []string) {
	rest := maxField
	for _, line := range lines {
		if len(line) > rest {
			line = upToComma(line, rest)
			rest = 0
		}
		rest -= min(rest, len(line))
		c.addAll(&list{rest: line, named: true}, SourceXRobotsTag)
	}
}

// robotsTag adds the rules of the lines of Robots-Tag. The draft says that rules are
// case-insensitive, but RFC 9651 allows only keys in lower case, so the header is read in lower
// case.
func (c *collector) robotsTag(lines []string) {
	if len(lines) == 0 {
		return
	}
	text := strings.ToLower(strings.Join(lines, ", "))
	if len(text) > maxField {
		text = completeMembers(text)
	}
	members, err := httpsfv.UnmarshalList([]string{text})
	if err != nil {
		return
	}
	for _, member := range members {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue // an inner list names no crawler
		}
		name := ""
		switch v := item.Value.(type) {
		case httpsfv.Token:
			name = string(v)
		case string:
			name = v
		}
		if name == "" || !c.isFor(name) {
			continue
		}
		for _, rule := range item.Params.Names() {
			value, _ := item.Params.Get(rule)
			if value == false {
				continue
			}
			c.add(Rule{Name: Name(rule), Value: textOf(value), Bot: nameOf(name), Source: SourceRobotsTag})
		}
	}
}

// textOf returns the value of a parameter as text. It returns "" for true, because a parameter
// without a value is true.
func textOf(value any) string {
	switch v := value.(type) {
	case bool:
		return ""
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	}
	return fmt.Sprint(value)
}

// upToComma returns the part of text before the last comma in its first n bytes, or "" if there is
// none.
func upToComma(text string, n int) string {
	return text[:max(0, strings.LastIndexByte(text[:n], ','))]
}

// completeMembers returns the members of a list that are complete within the first maxField bytes.
func completeMembers(text string) string {
	end := 0
	quoted := false
	for i := 0; i <= maxField; i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			end = i
		}
	}
	return text[:end]
}

// A list reads the rules of one line of X-Robots-Tag, or of one meta element.
type list struct {
	rest  string
	named bool   // names of crawlers may precede the rules
	bot   string // the crawler of the next rules; "" for all crawlers
	item  bool   // bot applies to the rules up to the next comma, as in Robots-Tag
}

const blanks = " \t\r\n\f"

// next returns the next rule, without its Source. ok is false at the end of the list.
func (l *list) next() (r Rule, ok bool) {
	for {
		l.skip()
		if l.rest == "" {
			return Rule{}, false
		}
		word := l.word(",;:" + blanks)
		name := Name(strings.ToLower(word))
		after := strings.TrimLeft(l.rest, blanks)
		switch {
		case strings.HasPrefix(after, ":"):
			l.rest = strings.TrimLeft(after[1:], blanks)
			if l.named && !known[name] && !isNumber(l.rest) {
				l.bot = nameOf(word)
				l.item = false
				continue
			}
			return Rule{Name: name, Value: l.value(name), Bot: l.bot}, true
		case l.named && strings.HasPrefix(after, ";") && !known[name] && !l.item:
			l.bot = nameOf(word)
			l.item = true
			continue
		}
		before, value, _ := strings.Cut(word, "=")
		return Rule{Name: Name(strings.ToLower(before)), Value: value, Bot: l.bot}, true
	}
}

// skip skips the separators between two rules.
func (l *list) skip() {
	rest := strings.TrimLeft(l.rest, ",;:"+blanks)
	if l.item && strings.Contains(l.rest[:len(l.rest)-len(rest)], ",") {
		l.bot = ""
		l.item = false
	}
	l.rest = rest
}

// word reads up to one of the characters in end.
func (l *list) word(end string) string {
	n := strings.IndexAny(l.rest, end)
	if n < 0 {
		n = len(l.rest)
	}
	word := l.rest[:n]
	l.rest = l.rest[n:]
	return word
}

// value reads the value of a rule after the colon.
func (l *list) value(name Name) string {
	if name == UnavailableAfter {
		return l.date()
	}
	return l.word(",;" + blanks)
}

// date reads the value of unavailable_after, which may contain blanks and a comma. A malformed date
// ends before the next known rule or comma.
func (l *list) date() string {
	first := strings.IndexByte(l.rest, ',')
	if first < 0 {
		first = len(l.rest)
	}
	second := len(l.rest)
	if first < len(l.rest) {
		if n := strings.IndexByte(l.rest[first+1:], ','); n >= 0 {
			second = first + 1 + n
		}
	}
	for _, end := range []int{second, first} {
		text := l.rest[:end]
		_, ok := parseDate(text)
		if ok {
			l.rest = l.rest[end:]
			return strings.TrimSpace(text)
		}
	}
	text := l.rest[:first]
	for i := 0; i < len(text); i++ {
		word, _, _ := strings.Cut(text[i:], " ")
		name, _, _ := strings.Cut(strings.ToLower(word), ":")
		if known[Name(name)] {
			text = text[:i]
			break
		}
		i += len(word)
	}
	l.rest = l.rest[len(text):]
	return strings.TrimSpace(text)
}

// isNumber reports whether a text begins with a number.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && '0' <= text[0] && text[0] <= '9'
}
