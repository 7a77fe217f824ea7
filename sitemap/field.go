package sitemap

import (
	"bytes"
	"errors"
	"strconv"
)

// errCut reports that the document ended within a field. The field is then dropped.
var errCut = errors.New("cut")

// fieldText consumes the text of a field up to the next tag, regardless of its name. The start tag
// of the field must have been consumed. The returned text is valid until the window or the scratch
// buffer changes.
func (r *Reader) fieldText() ([]byte, error) {
	w := &r.win
	for w.pos < w.end && isBlank(w.buf[w.pos]) || w.pos == w.end && w.more() {
		if isBlank(w.buf[w.pos]) {
			w.pos++
		}
	}
	rest := w.rest()
	i := bytes.IndexByte(rest, '<')
	if i >= 0 && i+1 < len(rest) && rest[i+1] != '!' && rest[i+1] != '?' &&
		int64(i) <= r.Limits.Field && bytes.IndexByte(rest[:i], '&') < 0 {
		w.pos += i
		return rest[:i], nil
	}
	return r.unpack()
}

// unpack is the slow path of fieldText, for a text that has references, CDATA sections or comments
// or is too long. It decodes the text into the scratch buffer.
func (r *Reader) unpack() ([]byte, error) {
	w := &r.win
	r.scratch = r.scratch[:0]
	over := false
	for {
		n := w.index("<", r.Limits.Field)
		if n >= 0 {
			r.scratch = appendText(r.scratch, w.rest()[:n])
			w.pos += n
		} else {
			over = true
			if !w.find('<') {
				return nil, errCut
			}
		}
		more, fits := r.unpackMarkup()
		over = over || !fits || int64(len(r.scratch)) > r.Limits.Field
		if over {
			r.scratch = r.scratch[:0]
		}
		switch {
		case more:
		case len(w.rest()) < 2:
			return nil, errCut
		case over:
			return nil, &LimitError{Limit: "Field", Max: r.Limits.Field}
		default:
			return r.scratch, nil
		}
	}
}

// unpackMarkup consumes a comment, a processing instruction or a CDATA section. It appends the text
// of a CDATA section to the scratch buffer. If that text is longer than Limits.Field or has no end,
// it is dropped and fits is false. At a tag, which ends the field, more is false.
func (r *Reader) unpackMarkup() (more, fits bool) {
	w := &r.win
	if !w.starts("<![cdata[") {
		return (w.starts("<!") || w.starts("<?")) && r.skipMarkup(), true
	}
	w.pos += len("<![cdata[")
	n := w.index("]]>", r.Limits.Field)
	if n >= 0 {
		r.scratch = append(r.scratch, w.rest()[:n]...)
	}
	w.skipPast("]]>")
	return true, n >= 0
}

// set stores the text of a field in the entry, or returns the error for a text that cannot be
// parsed. A location is handled by setLoc.
func (r *Reader) set(role role, text []byte, at int64) error {
	if role == roleLoc {
		return r.setLoc(text, at)
	}
	text = trim(text)
	if len(text) == 0 {
		return nil
	}
	ok := true
	switch role {
	case roleGUID:
		r.guid = r.locate(text)
	case roleLastMod:
		if r.entry.LastMod.IsZero() {
			r.entry.LastMod, ok = parseTime(text)
		}
	case roleFreq:
		r.entry.ChangeFreq, ok = parseFreq(text)
	case rolePriority:
		r.entry.Priority, ok = parsePriority(text)
	}
	if ok {
		return nil
	}
	r.keepUnread(role.String(), string(text))
	return r.refuse(role, at, string(text), ErrBadValue)
}

// keepUnread adds the text of a field to Unread, unless Unread already has that field.
func (r *Reader) keepUnread(name, text string) {
	for _, f := range r.entry.Unread {
		if f.Name == name {
			return
		}
	}
	r.entry.Unread = append(r.entry.Unread, Field{Name: name, Text: text})
}

// setLoc stores a location in the entry. It ignores an empty text. It also ignores a location while
// an entry is pending, which happens only in feeds: their items have one location each. If the page
// element has already yielded a location, the new location begins a new entry, and the fields that
// were read before it are dropped, because they belong to the earlier location.
func (r *Reader) setLoc(text []byte, at int64) error {
	if r.has || len(trim(text)) == 0 {
		return nil
	}
	if r.yielded {
		r.entry = Entry{}
		r.at = at
	}
	loc := r.locate(text)
	if loc == "" {
		return r.refuse(roleLoc, at, string(text), ErrBadLoc)
	}
	r.entry.Loc = loc
	r.has = true
	return nil
}

// setHref stores the location of an Atom link, unless the link has a rel other than "alternate".
func (r *Reader) setHref(attrs []byte, at int64) error {
	if rel, ok := attribute(attrs, "rel"); ok && !equalFold(rel, "alternate") {
		return nil
	}
	href, _ := attribute(attrs, "href")
	if int64(len(href)) > r.Limits.Field {
		return r.refuse(roleHref, at, "", &LimitError{Limit: "Field", Max: r.Limits.Field})
	}
	r.scratch = appendText(r.scratch[:0], href)
	return r.setLoc(r.scratch, at)
}

// parseFreq parses a changefreq and returns it in lower case.
func parseFreq(b []byte) (string, bool) {
	for _, f := range [...]string{"daily", "weekly", "monthly", "yearly", "hourly", "always", "never"} {
		if equalFold(b, f) {
			return f, true
		}
	}
	return "", false
}

// parsePriority parses a number between 0 and 1.
func parsePriority(b []byte) (float64, bool) {
	if len(b) == 3 && b[0] == '0' && b[1] == '.' && '0' <= b[2] && b[2] <= '9' {
		return float64(b[2]-'0') / 10, true // the most common form
	}
	for _, c := range b {
		if c != '.' && (c < '0' || c > '9') {
			return 0, false
		}
	}
	p, err := strconv.ParseFloat(string(b), 64)
	if err != nil || p > 1 {
		return 0, false
	}
	return p, true
}
