// Package nofollow knows which links of a page must not be followed, and for each request the page
// whose link it follows.
package nofollow

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A Page has the links of an HTML page, as they are written.
type Page struct {
	// Base is the attribute href of the first base element, or "" if there is none.
	Base string
	// Links has the attributes href of the elements a and area, which are the links of the HTML
	// standard. The value is true if every link with this href has the link type nofollow.
	Links map[string]bool
	// Nofollow reports whether a link has the link type nofollow.
	Nofollow bool
}

// Read returns the links of an HTML page in UTF-8. Broken HTML is not an error.
func Read(page []byte) Page {
	p := Page{Links: make(map[string]bool)}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return p
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := z.TagName()
			if !hasAttributes {
				continue
			}
			switch atom.Lookup(name) {
			case atom.Base:
				if href, _, ok := readLink(z); ok && p.Base == "" {
					p.Base = href
				}
			case atom.A, atom.Area:
				href, rel, ok := readLink(z)
				if !ok {
					continue
				}
				nofollow := hasNofollow(rel)
				p.Nofollow = p.Nofollow || nofollow
				before, known := p.Links[href]
				p.Links[href] = nofollow && (before || !known)
			}
		}
	}
}

// readLink returns the attributes href and rel of the element whose name z has just read. If an
// attribute is repeated, the first one counts. ok is false if there is no href.
func readLink(z *html.Tokenizer) (href, rel string, ok bool) {
	hasRel := false
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch {
		case string(key) == "href" && !ok:
			href = string(value)
			ok = true
		case string(key) == "rel" && !hasRel:
			rel = string(value)
			hasRel = true
		}
	}
	return href, rel, ok
}

// hasNofollow reports whether the attribute rel, a set of words separated by blanks, contains
// nofollow (HTML standard, "Link types").
func hasNofollow(rel string) bool {
	for word := range strings.FieldsFuncSeq(rel, func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) }) {
		if strings.EqualFold(word, "nofollow") {
			return true
		}
	}
	return false
}
