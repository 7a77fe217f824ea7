package lint

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A line is a line of the file that has a key.
type line struct {
	number int
	key    string // in lower case
	value  string // without a comment
}

// linesOf returns the lines of a file that have a key. As in the dialects, a line ends with CR, LF
// or both.
func linesOf(body []byte) (lines []line) {
	text := withLF(bytes.TrimPrefix(body[:min(len(body), dialect.SizeLimit)], []byte("\xEF\xBB\xBF")))
	number := 0
	for text := range strings.SplitSeq(text, "\n") {
		number++
		text, _, _ = strings.Cut(text, "#")
		k, value, ok := strings.Cut(text, ":")
		if words := strings.Fields(text); !ok && len(words) == 2 {
			k = words[0] // some dialects accept a line without a colon
			value = words[1]
			ok = true
		}
		if ok {
			lines = append(lines, line{number: number, key: strings.ToLower(strings.TrimSpace(k)), value: strings.TrimSpace(value)})
		}
	}
	return lines
}

// withLF returns a text with an LF at the end of each line.
func withLF(text []byte) string {
	return strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\r", "\n")
}

// foreignKeys has the keys of other systems, each with a remark.
var foreignKeys = map[string]string{
	"cache-delay":    "no search engine reads it",
	"clean-param":    "Yandex reads it",
	"content-signal": "it says how the content may be used",
	"content-usage":  "it says how the content may be used",
	"domain":         "no search engine reads it",
	"host":           "Yandex read it until 2018",
	"license":        "it has the URL of a license (RSL)",
	"noindex":        "search engines have ignored it since 2019",
	"request-rate":   "Seznam reads it",
	"revisit-after":  "no search engine reads it",
	"robot-version":  "it is from a draft of 1996",
	"visit-time":     "it is from a draft of 1996",
}

// lintLines adds the findings that do not depend on the dialect.
func (l *linter) lintLines() {
	if bytes.HasPrefix(l.body, []byte("\xEF\xBB\xBF")) {
		l.addToAll("byte-order-mark", 1, "the file begins with a byte order mark")
	}
	if at := bytes.IndexByte(l.body, 0); at >= 0 {
		l.addToAll("nul-byte", 1+strings.Count(withLF(l.body[:at]), "\n"), "the line has a NUL")
	}
	empty := line{} // the first User-agent line of a group without rules
	for _, line := range l.lines {
		switch line.key {
		case "user-agent":
			if empty.key == "" {
				empty = line
			}
		case "allow", "disallow":
			empty.key = ""
			l.lintPattern(line)
		case "content-usage", "content-signal", "license":
			empty.key = ""
			l.addToAll("foreign-key", line.number, line.key+" is not a rule: "+foreignKeys[line.key])
			l.lintUsage(line)
		case "sitemap", "host", "clean-param":
		default:
			empty.key = "" // perhaps a rule with a misspelt key
		}
	}
	if empty.key != "" {
		l.addToAll("empty-group", empty.number, "the group has no rules: "+shorten(empty.value))
	}
}

// lintPattern finds patterns with a blank.
func (l *linter) lintPattern(line line) {
	if !strings.ContainsAny(line.value, " \t") {
		return
	}
	text := "the pattern has a blank: " + shorten(line.value)
	if strings.Contains(line.value, " /") {
		text += " (a line has one pattern only)"
	}
	l.addToAll("pattern-blank", line.number, text)
}

// A vocabulary has the labels and the values of a key about the use of content.
type vocabulary struct {
	labels map[string][]string // the values by label
	old    map[string]string   // by label of an old draft: the current label, or "" if there is none
}

var vocabularies = map[string]vocabulary{
	"content-usage": {
		labels: map[string][]string{"search": {"y", "n"}, "ai-use": {"y", "n"}, "train-ai": {"y", "n"}},
		old:    map[string]string{"ai": "ai-use", "genai": "train-ai", "train-genai": "train-ai", "ai-output": "ai-use", "bots": ""},
	},
	"content-signal": {
		labels: map[string][]string{"search": {"yes", "no"}, "ai-input": {"yes", "no"}, "ai-train": {"yes", "no"}, "use": {"immediate", "reference", "full"}},
	},
}

// lintUsage finds faults in a line about the use of content.
func (l *linter) lintUsage(line line) {
	if line.key == "license" && !isLicense(line.value) {
		l.addToAll("usage-license", line.number, "not an absolute URL, so the license is ignored: "+shorten(line.value))
	}
	known, ok := vocabularies[line.key]
	if !ok {
		return
	}
	list := line.value
	if strings.HasPrefix(list, "/") { // a path precedes the list
		_, list, _ = strings.Cut(strings.ReplaceAll(list, "\t", " "), " ")
	}
	if line.key == "content-usage" && !isDictionary(list) {
		l.addToAll("usage-syntax", line.number, "not a dictionary, so the line means nothing: "+shorten(list))
		return
	}
	for member := range strings.SplitSeq(list, ",") {
		label, value, _ := strings.Cut(member, "=")
		label = strings.TrimSpace(label)
		value, _, _ = strings.Cut(value, ";") // the parameters of a member
		known.lint(l, line, label, strings.TrimSpace(value))
	}
}

// isLicense reports whether the value of a License line names a license.
func isLicense(value string) bool {
	robots := usage.ParseRobotsTxt([]dialect.UsageLine{{Key: "License", Value: value}})
	return len(usage.Sources{Robots: robots}.Terms(new(url.URL)).Licenses) > 0
}

// isDictionary reports whether the value of a Content-Usage line can be parsed. It appends a
// member, which counts only if the value is valid.
func isDictionary(list string) bool {
	if strings.TrimSpace(list) == "" {
		return true
	}
	return usage.ParseContentUsage([]string{list + ", search=y"}, usage.Source{}).Search.Preference == usage.Allowed
}

// lint finds faults in one member of a line.
func (v vocabulary) lint(l *linter, line line, label, value string) {
	if line.key == "content-signal" {
		label = strings.ToLower(label)
		value = strings.ToLower(value)
	}
	values, ok := v.labels[label]
	current, old := v.old[label]
	switch {
	case label == "":
	case old && current != "":
		l.addToAll("usage-old-label", line.number, fmt.Sprintf("%s is a label of an old draft; the current one is %s", shorten(label), current))
	case old:
		l.addToAll("usage-old-label", line.number, shorten(label)+" is a label of an old draft; there is no current one")
	case !ok:
		l.addToAll("usage-unknown-label", line.number, fmt.Sprintf("%s has no label %s", line.key, shorten(label)))
	case !slices.Contains(values, value):
		l.addToAll("usage-value", line.number, fmt.Sprintf("%s has the value %q; it must be one of %s", label, shorten(value), strings.Join(values, ", ")))
	}
}
