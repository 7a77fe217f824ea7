package sitemap

// findRoot consumes everything up to the start tag of the root and that tag.
// A warning that a program wrote first, a declaration, comments and a DOCTYPE
// with whatever it holds are passed over.
func (r *Reader) findRoot() error {
	w := &r.win
	for w.find('<') && w.offset() < rootWithin {
		if r.skipMarkup() {
			continue
		}
		t := w.tag()
		if r.format = rootOf(t.local()); r.format == nil || t.end {
			w.pos += t.size
			continue
		}
		r.prefix, r.index = string(t.prefix()), r.format.name == "sitemapindex"
		attrs, empty, _, _ := w.pass(t.size, r.Limits.Tag)
		if r.empty = empty; r.Extensions && r.format.loose {
			r.declare(attrs)
		}
		return nil
	}
	if err := w.err; err != nil && noEOF(err) == err {
		return err
	}
	return ErrNotSitemap
}

// skipMarkup consumes what begins like a tag and is none. In it, a "<" does
// not begin a tag.
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
	case w.starts("<?xml"): // often without its second "?"
		w.skipPast(">")
	case w.starts("<?"):
		w.skipPast("?>")
	default:
		w.pos++
	}
	return true
}

// skipDoctype consumes a DOCTYPE. Nothing that it declares is ever used.
func (r *Reader) skipDoctype() {
	w := &r.win
	var quote byte
	subset := false
	for w.pos < w.end || w.more() {
		c := w.buf[w.pos]
		w.pos++
		switch {
		case c == '>' && !subset: // also in quotes: rather one that does not end than a "<" in them
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

// readXML reads the next entry or error of a document within its root. A tag
// that completes an entry is looked at again once the entry has been given.
func (r *Reader) readXML(e *Entry) error {
	for r.win.find('<') {
		t, role := r.tag()
		if role == rolePage {
			r.adoptGUID(t.end)
		}
		if r.has && r.completes(role, t.end) {
			err := r.deliver(e)
			if err == nil && t.end && role != roleRoot {
				r.win.pos += t.size // the entry is all that this tag is for
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

// completes reports whether a tag ends the entry at hand.
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

// element consumes a tag, and the field if it begins one.
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

// skip consumes the beginning of an element without a role; the search for the
// next tag does the rest. It looks ahead only to report a long tag, and no
// farther than that search will have to.
func (r *Reader) skip(t *tag, at int64) error {
	if local := t.local(); len(local) > 0 && (local[0] == '!' || local[0] == '?') && r.skipMarkup() {
		return nil
	}
	if r.prefixes != nil {
		if ok, err := r.extension(t, at); ok {
			return err
		}
	}
	w, max := &r.win, r.Limits.Tag
	w.pos += t.size
	if t.end || w.index("<", max) >= 0 || int64(len(w.rest())) <= max || w.index(">", max) >= 0 {
		return nil
	}
	return r.fault(ScopeField, at, string(t.local()), "", &LimitError{"Tag", max})
}

// page begins or ends a page element.
func (r *Reader) page(role role, end bool, at int64) error {
	missing := r.open && !r.told
	began := r.at
	r.entry, r.guid, r.other, r.extra = Entry{}, "", false, 0
	r.at, r.open, r.told = at, !end, end
	r.index = role == roleIndex
	if missing {
		return r.fault(ScopeEntry, began, "", "", ErrNoLoc)
	}
	return nil
}

// adoptGUID takes the permanent link of an item that ends without another.
func (r *Reader) adoptGUID(end bool) {
	if end && r.open && !r.told && !r.has && r.guid != "" {
		r.entry.Loc, r.has = r.guid, true
	}
}

// field consumes a field and puts it into the entry.
func (r *Reader) field(role role, t *tag, at int64) error {
	attrs, empty, long, ok := r.win.pass(t.size, r.Limits.Tag)
	if !ok {
		return nil
	}
	if long {
		return r.refuse(role, at, "", &LimitError{"Tag", r.Limits.Tag})
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

// refuse returns the error for a field that is not to be used.
func (r *Reader) refuse(role role, at int64, text string, err error) error {
	scope := ScopeField
	if role == roleLoc || role == roleHref {
		scope = ScopeEntry
		r.told = true
	}
	return r.fault(scope, at, role.String(), text, err)
}
