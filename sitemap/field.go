package sitemap

import (
	"bytes"
	"errors"
	"strconv"
)

// errCut says that the document ended within a field, which is then dropped.
var errCut = errors.New("cut")

// fieldText consumes the text of the field whose start tag has been consumed,
// up to the next tag, whichever that is. The text is valid until the window or
// the scratch buffer changes.
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

// unpack is fieldText for texts that are not what is written: those with
// references, CDATA or comments, or too long ones.
func (r *Reader) unpack() ([]byte, error) {
	w := &r.win
	r.scratch = r.scratch[:0]
	over := false
	for {
		n := w.index("<", r.Limits.Field)
		if n >= 0 {
			r.scratch = appendText(r.scratch, w.rest()[:n])
			w.pos += n
		} else if over = true; !w.find('<') {
			return nil, errCut
		}
		more, fits := r.unpackMarkup()
		if over = over || !fits || int64(len(r.scratch)) > r.Limits.Field; over {
			r.scratch = r.scratch[:0]
		}
		switch {
		case more:
		case len(w.rest()) < 2:
			return nil, errCut
		case over:
			return nil, &LimitError{"Field", r.Limits.Field}
		default:
			return r.scratch, nil
		}
	}
}

// unpackMarkup consumes a comment or the like, or a CDATA section, whose text
// it keeps if it fits. It reports false for more at what ends the field.
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

// set puts the text of a field into the entry. Of several the first counts,
// but for the locations of formats where each is an entry.
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

// keepUnread keeps the text of a field once.
func (r *Reader) keepUnread(name, text string) {
	for _, f := range r.entry.Unread {
		if f.Name == name {
			return
		}
	}
	r.entry.Unread = append(r.entry.Unread, Field{name, text})
}

// setLoc takes a location. In sitemaps proper, what was read since the last
// location belongs to that one; feeds have one location an item.
func (r *Reader) setLoc(text []byte, at int64) error {
	if r.has || len(trim(text)) == 0 {
		return nil
	}
	if r.told {
		r.entry, r.at = Entry{}, at
	}
	loc := r.locate(text)
	if loc == "" {
		return r.refuse(roleLoc, at, string(text), ErrBadLoc)
	}
	r.entry.Loc, r.has = loc, true
	return nil
}

// setHref takes the location of an Atom link, if it is one of the entry
// itself.
func (r *Reader) setHref(attrs []byte, at int64) error {
	if rel, ok := attribute(attrs, "rel"); ok && !equalFold(rel, "alternate") {
		return nil
	}
	href, _ := attribute(attrs, "href")
	if int64(len(href)) > r.Limits.Field {
		return r.refuse(roleHref, at, "", &LimitError{"Field", r.Limits.Field})
	}
	r.scratch = appendText(r.scratch[:0], href)
	return r.setLoc(r.scratch, at)
}

// parseFreq reads a changefreq.
func parseFreq(b []byte) (string, bool) {
	for _, f := range [...]string{"daily", "weekly", "monthly", "yearly", "hourly", "always", "never"} {
		if equalFold(b, f) {
			return f, true
		}
	}
	return "", false
}

// parsePriority reads a number between 0 and 1.
func parsePriority(b []byte) (float64, bool) {
	if len(b) == 3 && b[0] == '0' && b[1] == '.' && '0' <= b[2] && b[2] <= '9' {
		return float64(b[2]-'0') / 10, true // most are
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
