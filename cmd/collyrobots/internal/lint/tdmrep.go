package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/collyrobots/collyrobots/usage"
)

// IsTDMRep reports whether a file is a TDMRep file.
func IsTDMRep(body []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF")), " \t\r\n")
	return len(text) > 0 && (text[0] == '[' || text[0] == '{') && bytes.Contains(text, []byte(`"tdm-`))
}

// lintTDMRep finds faults in a TDMRep file.
func (l *linter) lintTDMRep() {
	_, err := usage.ParseTDMFile(l.body, usage.Source{})
	if err != nil {
		l.addToAll("tdm-syntax", 0, "not a JSON array, so the file declares nothing")
		return
	}
	body := bytes.TrimPrefix(l.body, []byte("\xEF\xBB\xBF"))
	d := json.NewDecoder(bytes.NewReader(body))
	d.Token() // the bracket
	rules := make(tdmRules)
	line := 1
	counted := 0 // the bytes before line
	for d.More() {
		var text json.RawMessage
		if d.Decode(&text) != nil {
			return
		}
		start := int(d.InputOffset()) - len(text)
		line += bytes.Count(body[counted:start], []byte("\n"))
		counted = start
		l.lintTDMRule(text, line, rules)
	}
}

// lintTDMRule finds faults in one rule of a TDMRep file.
func (l *linter) lintTDMRule(text []byte, line int, earlier tdmRules) {
	var rule struct {
		Location    string          `json:"location"`
		Reservation json.RawMessage `json:"tdm-reservation"`
		Policy      string          `json:"tdm-policy"`
	}
	err := json.Unmarshal(text, &rule)
	if err != nil || !strings.HasPrefix(rule.Location, "/") {
		l.addToAll("tdm-rule", line, "not a rule with a location that begins with a slash: "+shorten(string(text)))
		return
	}
	value := string(rule.Reservation)
	if !declares(value) {
		l.addToAll("tdm-value", line, fmt.Sprintf("tdm-reservation is %q; it must be the number 0 or 1", shorten(value)))
	}
	if value == "" || value == "null" {
		return // not a rule
	}
	if by := earlier.covering(rule.Location); by != 0 {
		l.addToAll("tdm-shadowed", line, fmt.Sprintf("the rule in line %d precedes it for each URL: %s", by, shorten(rule.Location)))
	}
	earlier.add(rule.Location, line)
}

// declares reports whether a rule with this tdm-reservation declares anything.
func declares(reservation string) bool {
	f, err := usage.ParseTDMFile([]byte(`[{"location": "/", "tdm-reservation": `+reservation+`}]`), usage.Source{})
	return err == nil && f.Of("/").Reservation != usage.Unknown
}

// tdmRules has the lines of the rules by their locations. A location without wildcards and escapes,
// which matches each path that begins with it, has a "*" at its end.
type tdmRules map[string]int

func (r tdmRules) add(location string, line int) {
	prefix := strings.TrimRight(location, "*")
	if !strings.ContainsAny(prefix, "*$%") {
		location = prefix + "*"
	}
	if r[location] == 0 {
		r[location] = line
	}
}

// covering returns the line of a rule that matches each URL that a location matches, or 0 if none
// is known.
func (r tdmRules) covering(location string) (line int) {
	const longest = 2048 // that is compared
	literal := location
	if end := strings.IndexAny(location, "*$"); end >= 0 {
		literal = location[:end]
	}
	for n := range min(len(literal), longest) + 1 {
		if line := r[literal[:n]+"*"]; line != 0 {
			return line
		}
	}
	return r[location]
}
