package sitemap

import (
	"io"
	"iter"
	"net/url"
)

// A Reader reads the entries of one sitemap in any of the formats. It returns each entry as soon as
// its bytes have arrived, and it never holds more than a window of the document in memory. Use
// [NewReader] to create a Reader. A Reader must not be used by several goroutines at the same time.
type Reader struct {
	// Limits bound the document. Set them before the first Read.
	Limits Limits

	// Extensions makes the Reader read the extensions of each entry. Set it before the first Read.
	Extensions bool

	src     source
	watch   stopwatch
	base    *url.URL
	url     string // URL of the sitemap
	win     window
	tags    tagMemory
	layers  int  // number of gzip layers
	decoded bool // the document is in an encoding other than UTF-8

	begun  bool    // begin was called
	done   bool    // there are no more entries
	empty  bool    // the root is an empty-element tag
	text   bool    // the format is text
	format *format // nil if the format is text
	prefix string  // namespace prefix of the root

	entry    Entry             // being read
	at       int64             // offset of the entry or of its location
	has      bool              // entry has a location and has not been returned yet
	yielded  bool              // the page element has already yielded a location or an error for one
	index    bool              // the location is the URL of a sitemap
	open     bool              // within a page element
	other    bool              // within an element whose fields do not belong to the entry
	guid     string            // location to use if the item has no other
	count    int64             // entries returned
	errors   int64             // errors returned
	noticed  bool              // ErrOversize has been returned
	prefixes map[string]string // namespace prefix to extension; nil if extensions are not read
	extra    int64             // approximate size of the extensions of entry, in bytes
	scratch  []byte            // text of a field that had to be decoded
}

// NewReader returns a Reader of the sitemap in r. Base is the URL that the sitemap was fetched
// from, after redirects. If base is nil, relative locations are reported as errors. The Reader does
// not close r.
func NewReader(r io.Reader, base *url.URL) *Reader {
	rd := &Reader{base: base, yielded: true}
	rd.src.r = r
	if base != nil {
		rd.url = base.String()
	}
	return rd
}

// All returns an iterator over the rest of the sitemap: its entries and the errors that were found.
// Each error is an [*Error] and comes with a zero Entry. The loop may continue after an error. It
// ends by itself after an error with [SeverityFile].
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

// Read returns the next entry or an [*Error]. Reading may continue after an error. At the end of
// the sitemap, and after an error with [SeverityFile], Read returns io.EOF. Read ignores the bytes
// after the end tag of the root. If the document is compressed, Read decompresses them to verify
// the checksum.
func (r *Reader) Read() (e Entry, err error) {
	err = r.next(&e)
	return e, err
}

// next is like Read but stores the entry in e, which must be zero, because copying an Entry is
// slow.
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

// begin detects the format and the encoding of the document. It consumes everything up to the end
// of the root's start tag or, in a text sitemap, up to the first URL.
func (r *Reader) begin() error {
	r.Limits = r.Limits.WithDefaults()
	r.watch.limit = r.Limits.Time
	r.src.watch = &r.watch
	r.src.max = r.Limits.Raw
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

// deliver stores the complete entry in e. It is called before the tag that completes the entry is
// consumed. If deliver returns a notice instead of the entry, the next Read therefore meets the
// same tag again and delivers the entry.
func (r *Reader) deliver(e *Entry) error {
	if !r.noticed && (r.count == protocolEntries || r.win.offset() > protocolSize) {
		r.noticed = true
		return r.fault(SeverityNotice, r.at, "", "", ErrOversize)
	}
	if r.count == r.Limits.Entries {
		return r.fail(&LimitError{Limit: "Entries", Max: r.count})
	}
	r.count++
	*e = r.entry
	e.Sitemap = r.url
	e.Index = r.index
	r.entry = Entry{}
	r.has = false
	r.yielded = true
	r.extra = 0
	return nil
}

// fault returns an Error with the given fields. If the document has had more errors than
// Limits.Errors allows, fault ends the reading and returns a LimitError with SeverityFile instead.
func (r *Reader) fault(s Severity, at int64, field, text string, err error) error {
	r.errors++
	if r.errors > r.Limits.Errors && s != SeverityFile {
		return r.fail(&LimitError{Limit: "Errors", Max: r.Limits.Errors})
	}
	return &Error{Severity: s, URL: r.url, Offset: at, Field: field, Text: text, Err: err}
}

// fail ends the reading and returns the error for the file.
func (r *Reader) fail(err error) error {
	r.done = true
	return r.fault(SeverityFile, r.win.offset(), "", "", err)
}

// finish ends the reading of a complete document. If the document is compressed, finish reads the
// rest of it, so that the checksum is verified.
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

// cut ends the reading of a document that is incomplete.
func (r *Reader) cut() error { return r.fail(noEOF(r.win.err)) }
