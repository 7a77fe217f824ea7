// Package metatags reads the meta elements in the head of an HTML page. It tokenizes only the head,
// so its cost does not depend on the size of the page.
package metatags

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// MaxHead is the maximum number of bytes that Read reads. Read ignores the rest of a longer head.
const MaxHead = 1 << 20

// A Tag is a meta element with a name.
type Tag struct {
	Name    string // the attribute name, in lower case and without blanks around it
	Content string // the attribute content; "" if it is missing
}

// Tags are the meta elements of a page in their order.
type Tags []Tag

// Content returns the attribute content of the first element with a name, or "" if there is none.
// The name is in lower case.
func (t Tags) Content(name string) string {
	for _, tag := range t {
		if tag.Name == name {
			return tag.Content
		}
	}
	return ""
}

// Read returns the meta elements with a name in the head of an HTML page in UTF-8. Elements in the
// body do not count, because visitors of a site can often write there. The head ends at the first
// text or element that cannot be in a head, whether or not the page has tags for head and body
// (HTML standard, sections "in head" and "after head" of tree construction). Elements in comments,
// scripts and templates do not count. Broken HTML is not an error.
func Read(page []byte) Tags {
	z := html.NewTokenizer(io.LimitReader(bytes.NewReader(page), MaxHead))
	var tags Tags
	templates := 0 // the number of open templates
	raw := false   // the last token was the start of an element without markup, such as title
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return tags
		case html.TextToken:
			if !raw && templates == 0 && !isBlank(z.Raw()) {
				return tags
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := z.TagName()
			tag := atom.Lookup(name)
			raw = tag == atom.Title || tag == atom.Script || tag == atom.Style || tag == atom.Noframes
			switch {
			case tag == atom.Template:
				templates++
			case tag == atom.Noscript:
				z.NextIsNotRawText() // a crawler runs no scripts
			case templates > 0:
			case tag == atom.Meta && hasAttributes:
				if t := readTag(z); t.Name != "" {
					tags = append(tags, t)
				}
			case !inHead(tag):
				return tags
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			raw = false
			switch {
			case tag == atom.Template:
				templates = max(0, templates-1)
			case templates == 0 && (tag == atom.Body || tag == atom.Html || tag == atom.Br):
				return tags
			}
		}
	}
}

// inHead reports whether an element can be in the head or contain it, so that it does not begin the
// body.
func inHead(tag atom.Atom) bool {
	switch tag {
	case atom.Html, atom.Head, atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Noframes,
		atom.Noscript, atom.Script, atom.Style, atom.Template, atom.Title:
		return true
	}
	return false
}

// isBlank reports whether a text has only blanks after an optional byte order mark.
func isBlank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))) == 0
}

// readTag returns the element whose name z has just read. If an attribute is repeated, the first
// one counts.
func readTag(z *html.Tokenizer) Tag {
	var name, content *string
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		text := string(value)
		switch {
		case string(key) == "name" && name == nil:
			name = &text
		case string(key) == "content" && content == nil:
			content = &text
		}
	}
	var t Tag
	if name != nil {
		t.Name = strings.ToLower(strings.TrimSpace(*name))
	}
	if content != nil {
		t.Content = *content
	}
	return t
}
