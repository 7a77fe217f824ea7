package dialect

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// A CleanParam is a Clean-param line: query parameters that do not change the pages under a path.
type CleanParam struct {
	Names []string // case-sensitive
	Path  string   // the beginning of the paths; * matches any bytes; empty for all paths
	Line  int      // line number in the file, starting at 1
}

// CleanParams are the Clean-param lines of a file. The nil value has none. CleanParams are
// immutable and safe for concurrent use.
type CleanParams []CleanParam

// CleanParams returns the Clean-param lines of the file, in their order. They apply to all
// crawlers, whatever group they are in ("Clean-param": the directive is intersectional). Only
// [Yandex] has them. For other dialects, CleanParams returns nil.
func (r *Rules) CleanParams() CleanParams {
	var list CleanParams
	for _, rec := range r.records {
		if rec.kind == cleanLine {
			p, _ := parseCleanParam(strings.Clone(r.value(rec))) // do not keep the text alive
			p.Line = int(rec.line)
			list = append(list, p)
		}
	}
	return list
}

// maxCleanParam is the maximum number of characters of a Clean-param value ("Clean-param").
const maxCleanParam = 500

// parseCleanParam parses a Clean-param value: names that are separated by &, and optionally white
// space and a path. Two adjacent & are an error, as in Yandex's program. The path may have only the
// characters that the page lists. The page does not list those of a name, so the program decides.
func parseCleanParam(value string) (p CleanParam, ok bool) {
	fields := strings.FieldsFunc(value, isBlank)
	if len(fields) == 0 || len(fields) > 2 || utf8.RuneCountInString(value) > maxCleanParam {
		return CleanParam{}, false
	}
	if strings.Contains(fields[0], "&&") || !consistsOf(fields[0], "&+-=_%[]{}():.") {
		return CleanParam{}, false
	}
	p.Names = strings.FieldsFunc(fields[0], func(c rune) bool { return c == '&' })
	if len(fields) == 2 {
		p.Path = fields[1]
	}
	return p, len(p.Names) > 0 && consistsOf(p.Path, ".-/*_")
}

// consistsOf reports whether s has only letters and digits of ASCII and the given characters.
func consistsOf(s, characters string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte(characters, c) < 0 {
			return false
		}
	}
	return true
}

// Clean returns u without the query parameters that do not change the page. All lines whose path
// matches apply. The other parameters keep their order and spelling. If nothing is removed, Clean
// returns u itself; otherwise it returns a copy and does not change u.
func (c CleanParams) Clean(u *url.URL) *url.URL {
	if len(c) == 0 || u.RawQuery == "" {
		return u
	}
	path := targetPath(u)
	var names []string
	for i := range c {
		if c[i].matches(path) {
			names = append(names, c[i].Names...)
		}
	}
	query := removeParams(u.RawQuery, names)
	if query == u.RawQuery {
		return u
	}
	cleaned := *u
	cleaned.RawQuery = query
	cleaned.ForceQuery = false
	return &cleaned
}

// matches reports whether a path begins with the path of p.
func (p *CleanParam) matches(path string) bool {
	first, rest, wild := strings.Cut(p.Path, "*")
	if !strings.HasPrefix(path, first) {
		return false
	}
	path = path[len(first):]
	for wild {
		var piece string
		piece, rest, wild = strings.Cut(rest, "*")
		i := strings.Index(path, piece)
		if i < 0 {
			return false
		}
		path = path[i+len(piece):]
	}
	return true
}

// removeParams returns a query without the parameters that have one of the names.
func removeParams(query string, names []string) string {
	if len(names) == 0 {
		return query
	}
	var kept []string
	for param := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(param, "=")
		if param == "" || !slices.Contains(names, name) && !slices.Contains(names, unescaped(name)) {
			kept = append(kept, param)
		}
	}
	return strings.Join(kept, "&")
}

// unescaped returns a name without its escapes, or the name itself if it has invalid escapes.
func unescaped(name string) string {
	if s, err := url.QueryUnescape(name); err == nil {
		return s
	}
	return name
}
