package sigverify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// This file parses the structured fields (RFC 8941) that signatures use: dictionaries whose members
// are strings, byte sequences or inner lists of strings. It does not accept any other type, so it
// is stricter than the RFC.

// A member is a member of a dictionary.
type member struct {
	key    string
	value  any     // a string, a []byte, or []item for an inner list
	params []param // of the value
}

// An item is a string with parameters, in an inner list.
type item struct {
	value  string
	params []param
}

// A param is a parameter. Its value is a string, an int64, or true.
type param struct {
	key   string
	value any
}

// A parser reads a field value.
type parser struct{ rest string }

var errSyntax = errors.New("malformed structured field")

// parseDictionary parses the values of one field. A key that is given twice is an error, although
// the RFC allows that.
func parseDictionary(values []string) ([]member, error) {
	p := &parser{rest: strings.Trim(strings.Join(values, ", "), " ")}
	var members []member
	seen := make(map[string]bool)
	for {
		m, err := p.member()
		if err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("%w: member %s is given twice", errSyntax, m.key)
		}
		seen[m.key] = true
		members = append(members, m)
		p.skipBlanks()
		if p.rest == "" {
			return members, nil
		}
		if !p.accept(",") {
			return nil, errSyntax
		}
		p.skipBlanks()
	}
}

// find returns the member with a key.
func find(members []member, key string) (member, bool) {
	for _, m := range members {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

func (p *parser) skipBlanks() { p.rest = strings.TrimLeft(p.rest, " \t") }

// accept removes a prefix and reports whether it was there.
func (p *parser) accept(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// key parses the key of a member or a parameter.
func (p *parser) key() (string, error) {
	n := 0
	for n < len(p.rest) && isKeyByte(p.rest[n], n == 0) {
		n++
	}
	if n == 0 {
		return "", errSyntax
	}
	key := p.rest[:n]
	p.rest = p.rest[n:]
	return key, nil
}

// isKeyByte reports whether c may be in a key (RFC 8941, section 3.1.2).
func isKeyByte(c byte, first bool) bool {
	if 'a' <= c && c <= 'z' || c == '*' {
		return true
	}
	return !first && ('0' <= c && c <= '9' || strings.IndexByte("_-.", c) >= 0)
}

func (p *parser) member() (member, error) {
	key, err := p.key()
	if err != nil {
		return member{}, err
	}
	if !p.accept("=") {
		return member{}, errSyntax
	}
	m := member{key: key}
	switch {
	case strings.HasPrefix(p.rest, "("):
		m.value, err = p.innerList()
	case strings.HasPrefix(p.rest, ":"):
		m.value, err = p.bytes()
	default:
		m.value, err = p.string()
	}
	if err != nil {
		return member{}, err
	}
	m.params, err = p.params()
	return m, err
}

func (p *parser) innerList() ([]item, error) {
	p.accept("(")
	items := []item{}
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		if p.accept(")") {
			return items, nil
		}
		value, err := p.string()
		if err != nil {
			return nil, err
		}
		params, err := p.params()
		if err != nil {
			return nil, err
		}
		items = append(items, item{value: value, params: params})
		if !strings.HasPrefix(p.rest, " ") && !strings.HasPrefix(p.rest, ")") {
			return nil, errSyntax
		}
	}
}

func (p *parser) params() ([]param, error) {
	var params []param
	for p.accept(";") {
		p.rest = strings.TrimLeft(p.rest, " ")
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		var value any = true
		if p.accept("=") {
			value, err = p.paramValue()
			if err != nil {
				return nil, err
			}
		}
		params = append(params, param{key: key, value: value})
	}
	return params, nil
}

func (p *parser) paramValue() (any, error) {
	if strings.HasPrefix(p.rest, `"`) {
		return p.string()
	}
	n := 0
	for n < len(p.rest) && '0' <= p.rest[n] && p.rest[n] <= '9' {
		n++
	}
	value, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil || n > 15 {
		return nil, errSyntax
	}
	p.rest = p.rest[n:]
	return value, nil
}

func (p *parser) string() (string, error) {
	if !p.accept(`"`) {
		return "", errSyntax
	}
	var s strings.Builder
	for i := 0; i < len(p.rest); i++ {
		c := p.rest[i]
		switch {
		case c == '"':
			p.rest = p.rest[i+1:]
			return s.String(), nil
		case c == '\\':
			i++
			if i == len(p.rest) || p.rest[i] != '"' && p.rest[i] != '\\' {
				return "", errSyntax
			}
			s.WriteByte(p.rest[i])
		case c < ' ' || c > '~':
			return "", errSyntax
		default:
			s.WriteByte(c)
		}
	}
	return "", errSyntax
}

func (p *parser) bytes() ([]byte, error) {
	p.accept(":")
	text, rest, ok := strings.Cut(p.rest, ":")
	if !ok {
		return nil, errSyntax
	}
	p.rest = rest
	return base64.StdEncoding.Strict().DecodeString(text)
}

// quote returns a string as a structured field.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// formatParams returns parameters as a structured field.
func formatParams(params []param) string {
	var s strings.Builder
	for _, p := range params {
		s.WriteString(";" + p.key)
		switch v := p.value.(type) {
		case string:
			s.WriteString("=" + quote(v))
		case int64:
			s.WriteString("=" + strconv.FormatInt(v, 10))
		}
	}
	return s.String()
}

// identifier returns the component identifier of an item.
func (i item) identifier() string { return quote(i.value) + formatParams(i.params) }
