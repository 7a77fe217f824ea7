package sitemap

// findRoot consumes everything up to and including the start tag of the root. It skips the
// declaration, comments, a DOCTYPE with its content, and any text before the root, such as the
// warning of a program.
func (r *Reader) findRoot() error {
	w := &r.win
	for w.find('<') && w.offset() < rootWithin {
		if r.skipMarkup() {
			continue
		}
		t := w.tag()
		r.format = rootOf(t.local())
		if r.format == nil || t.end {
			w.pos += t.size
			continue
		}
		r.prefix = string(t.prefix())
		r.index = r.format.name == "sitemapindex"
		attrs, empty, _, _ := w.pass(t.size, r.Limits.Tag)
		r.empty = empty
		if r.Extensions && r.format.loose {
			r.declare(attrs)
		}
		return nil
	}
	if err := w.err; err != nil && noEOF(err) == err {
		return err
	}
	return ErrNotSitemap
}

// skipMarkup consumes a comment, a CDATA section, a DOCTYPE or a processing instruction, within
// which a "<" does not begin a tag. Of any other "<!", it consumes the first byte. It reports
// whether the document continued with "<!" or "<?".
func (r *Reader) skipMarkup() bool {
	w := &r.win
	if !w.starts("<!") && !w.starts("<?") {
		return false
	}
	switch {
	case w.starts("<!--"):
		w.pos += len("<!--")
		w.skipPast("-->")
	case w.starts("<![cdata["):
		w.skipPast("]]>")
	case w.starts("<!doctype"):
		w.pos++
		r.skipDoctype()
	case w.starts("<?xml"): // real declarations often end in ">" instead of "?>"
		w.skipPast(">")
	case w.starts("<?"):
		w.skipPast("?>")
	default:
		w.pos++
	}
	return true
}

// skipDoctype consumes a DOCTYPE. Its declarations are never used. A ">" outside of the internal
// subset ends the DOCTYPE even within quotes, because a missing quote is more likely than a ">" in
// an identifier.
func (r *Reader) skipDoctype() {
	w := &r.win
	var quote byte
	subset := false
	for w.pos < w.end || w.more() {
		c := w.buf[w.pos]
		w.pos++
		switch {
		case c == '>' && !subset:
			return
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			subset = true
		case c == ']':
			subset = false
		case c == '<' && w.starts("!--"):
			w.skipPast("-->")
		}
	}
}

// readXML reads the next entry of an XML document into e, or returns the next error. A tag that
// completes an entry is not consumed before the entry has been delivered.
func (r *Reader) readXML(e *Entry) error {
	for r.win.find('<') {
		t, role := r.tag()
		if role == rolePage {
			r.adoptGUID(t.end)
		}
		if r.has && r.completes(role, t.end) {
			err := r.deliver(e)
			if err == nil && t.end && role != roleRoot {
				r.win.pos += t.size // an end tag has no other purpose
				r.open = false
			}
			return err
		}
		if err := r.element(role, t); err != nil {
			return err
		}
	}
	if r.has {
		return r.deliver(e)
	}
	return r.cut()
}

// completes reports whether a tag with that role completes the current entry.
func (r *Reader) completes(role role, end bool) bool {
	switch role {
	case rolePage, roleIndex:
		return true
	case roleRoot:
		return end
	case roleLoc:
		return !end && r.format.loose && !r.other
	}
	return false
}

// element consumes a tag. If the tag begins a field, element also consumes the field.
func (r *Reader) element(role role, t *tag) error {
	at := r.win.offset()
	switch {
	case role == roleNone:
		return r.skip(t, at)
	case role == roleRoot && t.end:
		r.win.pos += t.size
		return r.finish()
	case role == rolePage || role == roleIndex:
		r.win.pos += t.size
		return r.page(role, t.end, at)
	case role == roleOther:
		_, empty, _, _ := r.win.pass(t.size, r.Limits.Tag)
		r.other = !t.end && !empty
		return nil
	case role == roleRoot || t.end || r.other || !r.open && !r.format.loose:
		r.win.pos += t.size
		return nil
	}
	return r.field(role, t, at)
}

// skip consumes an extension, a comment or similar markup, or the name of another tag without a
// role. The search for the next tag then skips the rest. A tag that is longer than Limits.Tag is
// reported: to detect it, skip looks ahead, but never farther than the search for the next tag has
// to read anyway.
func (r *Reader) skip(t *tag, at int64) error {
	if local := t.local(); len(local) > 0 && (local[0] == '!' || local[0] == '?') && r.skipMarkup() {
		return nil
	}
	if r.prefixes != nil {
		if ok, err := r.extension(t, at); ok {
			return err
		}
	}
	w := &r.win
	max := r.Limits.Tag
	w.pos += t.size
	if t.end || w.index("<", max) >= 0 || int64(len(w.rest())) <= max || w.index(">", max) >= 0 {
		return nil
	}
	return r.fault(SeverityField, at, string(t.local()), "", &LimitError{Limit: "Tag", Max: max})
}

// page begins or ends a page element. It returns an error if the page element that was open had no
// location.
func (r *Reader) page(role role, end bool, at int64) error {
	missing := r.open && !r.yielded
	began := r.at
	r.entry = Entry{}
	r.guid = ""
	r.other = false
	r.extra = 0
	r.at = at
	r.open = !end
	r.yielded = end
	r.index = role == roleIndex
	if missing {
		return r.fault(SeverityEntry, began, "", "", ErrNoLoc)
	}
	return nil
}

// adoptGUID uses the permanent guid as the location when an item ends without a link.
func (r *Reader) adoptGUID(end bool) {
	if end && r.open && !r.yielded && !r.has && r.guid != "" {
		r.entry.Loc = r.guid
		r.has = true
	}
}

// field consumes a field and stores it in the entry.
func (r *Reader) field(role role, t *tag, at int64) error {
	attrs, empty, long, ok := r.win.pass(t.size, r.Limits.Tag)
	if !ok {
		return nil
	}
	if long {
		return r.refuse(role, at, "", &LimitError{Limit: "Tag", Max: r.Limits.Tag})
	}
	if role == roleHref {
		return r.setHref(attrs, at)
	}
	if role == roleGUID {
		if v, ok := attribute(attrs, "ispermalink"); ok && !equalFold(v, "true") {
			return nil
		}
	}
	if empty {
		return nil
	}
	text, err := r.fieldText()
	switch {
	case err == errCut:
		return nil
	case err != nil:
		return r.refuse(role, at, "", err)
	}
	err = r.set(role, text, at)
	r.win.passEnd(t)
	return err
}

// refuse returns the error for a field that cannot be used. An entry whose location cannot be used
// is lost, so the severity of that error is SeverityEntry.
func (r *Reader) refuse(role role, at int64, text string, err error) error {
	severity := SeverityField
	if role == roleLoc || role == roleHref {
		severity = SeverityEntry
		r.yielded = true
	}
	return r.fault(severity, at, role.String(), text, err)
}
