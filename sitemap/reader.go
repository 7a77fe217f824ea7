package sitemap

import (
	"io"
	"iter"
	"net/url"
)

// A Reader reads the entries of one sitemap, of whatever format, while its
// octets come in. It never holds more than a window of the document. Make one
// with [NewReader]. A Reader is for one goroutine at a time.
type Reader struct {
	// Limits bound the document. They are to be set before the first Read.
	Limits Limits

	// Extensions asks for the extensions of each entry. It is to be set before
	// the first Read.
	Extensions bool

	src     source
	watch   stopwatch
	base    *url.URL
	url     string // of the sitemap
	win     window
	tags    tagMemory
	layers  int  // of gzip
	decoded bool // from another encoding than UTF-8

	begun, done bool
	empty       bool    // the root is
	text        bool    // one location a line
	format      *format // if not text
	prefix      string  // of the root

	entry    Entry
	at       int64             // offset of the entry or its location
	has      bool              // entry has a location and is to be given
	told     bool              // of this page element, a location was given or refused
	index    bool              // the location is one of a sitemap
	open     bool              // within a page element
	other    bool              // within an element that speaks of something else
	guid     string            // location to use if there is no other
	count    int64             // entries given
	errors   int64             // errors given
	noticed  bool              // the protocol's limits were exceeded, and this was said
	prefixes map[string]string // of the extensions, if they are to be read
	extra    int64             // octets that those of the entry take
	scratch  []byte            // text of a field that is not as it is written
}

// NewReader returns a Reader of the sitemap in r. Base is the URL, after
// redirects, that the sitemap comes from; if it is nil, relative locations are
// refused. The Reader does not close r.
func NewReader(r io.Reader, base *url.URL) *Reader {
	rd := &Reader{base: base, told: true}
	rd.src.r = r
	if base != nil {
		rd.url = base.String()
	}
	return rd
}

// All returns what is left of the sitemap: entries, and the errors met on the
// way, which are [*Error] and come with a zero Entry. The loop may go on after
// each of them, and ends by itself after one with [ScopeFile].
func (r *Reader) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			var e Entry
			if err := r.next(&e); err == io.EOF || !yield(e, err) {
				return
			}
		}
	}
}

// Read returns the next entry, or an [*Error] after which reading goes on,
// or io.EOF when there is nothing more. What follows the end tag of the root
// is not looked at, unless it takes part in a checksum.
func (r *Reader) Read() (e Entry, err error) {
	err = r.next(&e)
	return e, err
}

// next is Read into e, which is zero: copies of an entry take their time.
func (r *Reader) next(e *Entry) error {
	if r.done {
		return io.EOF
	}
	if !r.begun {
		r.begun = true
		if err := r.begin(); err != nil {
			return r.fail(err)
		}
	}
	if r.empty {
		return r.finish()
	}
	if r.text {
		return r.readLine(e)
	}
	return r.readXML(e)
}

// begin finds out what the document is and leaves the window behind its root.
func (r *Reader) begin() error {
	r.Limits = r.Limits.WithDefaults()
	r.watch.limit = r.Limits.Time
	r.src.watch, r.src.max = &r.watch, r.Limits.Raw
	plain, layers, err := unzip(&r.src, &r.Limits)
	if err != nil {
		return err
	}
	r.layers = layers
	r.win.src, r.decoded = decode(plain)
	if r.beginsWithURL() || r.beginsWithHeading() {
		r.text = true
		return nil
	}
	return r.findRoot()
}

// deliver puts the entry that is complete into e. It is called before the tag
// that completes it is consumed, so that errors can come first.
func (r *Reader) deliver(e *Entry) error {
	if !r.noticed && (r.count == protocolEntries || r.win.offset() > protocolSize) {
		r.noticed = true
		return r.fault(ScopeNotice, r.at, "", "", ErrOversize)
	}
	if r.count == r.Limits.Entries {
		return r.fail(&LimitError{"Entries", r.count})
	}
	r.count++
	*e = r.entry
	e.Sitemap, e.Index = r.url, r.index
	r.entry, r.has, r.told, r.extra = Entry{}, false, true, 0
	return nil
}

// fault returns the error for a field or an entry, or a notice. If there were
// too many it is the last.
func (r *Reader) fault(s Scope, at int64, field, text string, err error) error {
	if r.errors++; r.errors > r.Limits.Errors && s != ScopeFile {
		return r.fail(&LimitError{"Errors", r.Limits.Errors})
	}
	return &Error{Scope: s, URL: r.url, Offset: at, Field: field, Text: text, Err: err}
}

// fail ends the reading and returns the error for the file.
func (r *Reader) fail(err error) error {
	r.done = true
	return r.fault(ScopeFile, r.win.offset(), "", "", err)
}

// finish ends the reading where the document says so. Of compressed ones it
// reads the rest, which the checksum is about.
func (r *Reader) finish() error {
	for r.layers > 0 && r.win.more() {
		r.win.pos = r.win.end
	}
	r.done = true
	if err := r.win.err; err != nil && err != io.EOF {
		return r.fail(err)
	}
	return io.EOF
}

// cut ends the reading where the octets do, and the document does not.
func (r *Reader) cut() error { return r.fail(noEOF(r.win.err)) }
