package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"time"

	"golang.org/x/net/html/charset"
)

// A stopwatch adds up the time spent inside another party's calls and, if it
// has something to abort, does so when the time is up.
type stopwatch struct {
	limit, spent time.Duration
	abort        func() // may be nil
}

// run calls f on the clock.
func (s *stopwatch) run(f func()) error {
	if s.abort != nil {
		defer time.AfterFunc(s.limit-s.spent, s.abort).Stop()
	}
	start := time.Now()
	f()
	s.spent += time.Since(start)
	if s.spent >= s.limit {
		return &LimitError{"Time", int64(s.limit)}
	}
	return nil
}

// A source reads the raw octets within the limits of size and time.
type source struct {
	r     io.Reader
	watch *stopwatch
	max   int64
	n     int64 // read so far
	idle  int   // reads without an octet in a row
	err   error // that ended it, for good
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	p = p[:min(int64(len(p)), s.max-s.n+1)] // one more octet shows whether there is more
	var n int
	late := s.watch.run(func() { n, s.err = s.r.Read(p) })
	if late != nil && s.err != io.EOF {
		s.err = late
	}
	if s.idle++; n > 0 {
		s.idle = 0
	} else if s.idle > 100 && s.err == nil {
		s.err = io.ErrNoProgress
	}
	if s.n += int64(n); s.n > s.max {
		n--
		s.err = &LimitError{"Raw", s.max}
	}
	return n, s.err
}

// A meter bounds what a layer of compression yields, in all and for each raw
// octet. Each layer has its own, since an inner one may turn a flood of octets
// into nothing.
type meter struct {
	r      io.Reader
	raw    *source
	limits *Limits
	n      int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	switch {
	case m.n > m.limits.Decompressed:
		return n, &LimitError{"Decompressed", m.limits.Decompressed}
	case m.n > ratioFrom && (m.n-1)/m.limits.Ratio >= m.raw.n:
		return n, &LimitError{"Ratio", m.limits.Ratio}
	}
	return n, err
}

// unzip removes the layers of gzip that magic octets announce, whatever names
// and headers said.
func unzip(raw *source, limits *Limits) (r *bufio.Reader, layers int, err error) {
	r = bufio.NewReaderSize(raw, 16<<10)
	for ; ; layers++ {
		if magic, _ := r.Peek(3); string(magic) != "\x1f\x8b\x08" {
			return r, layers, nil
		}
		if layers == maxLayers {
			return nil, layers, &LimitError{"Layers", maxLayers}
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, layers, noEOF(err)
		}
		r = bufio.NewReaderSize(&meter{r: z, raw: raw, limits: limits}, 16<<10)
	}
}

// noEOF returns the error for an end where none should be.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decode turns r into UTF-8. What the octets show goes before what they
// declare; a label that is unknown, or cannot be true, means UTF-8.
func decode(r *bufio.Reader) (utf8 io.Reader, decoded bool) {
	head := peekHead(r)
	label := shown(head)
	if label == "" {
		if label = declared(head); label == "" {
			return r, false
		}
	}
	enc, name := charset.Lookup(label)
	if enc == nil || name == "utf-8" || name == "replacement" {
		return r, false
	}
	return enc.NewDecoder().Reader(r), true
}

// peekHead returns the first octets of r, as many as the encoding depends on:
// no more than that, so that a slow document does not have to be waited for.
func peekHead(r *bufio.Reader) []byte {
	for n := 4; ; n = r.Buffered() + 1 {
		if _, err := r.Peek(n); err != nil || r.Buffered() >= headSize || settled(r) {
			head, _ := r.Peek(min(r.Buffered(), headSize))
			return head
		}
	}
}

// headSize is where the search for an XML declaration ends.
const headSize = 1024

// settled reports whether a declaration or a root is at hand, or a URL.
func settled(r *bufio.Reader) bool {
	head, _ := r.Peek(r.Buffered())
	if _, decl, ok := bytes.Cut(head, []byte("<?xml")); ok {
		return bytes.IndexByte(decl, '>') >= 0
	}
	for _, f := range formats {
		if bytes.Contains(head, []byte("<"+f.name)) {
			return true
		}
	}
	return bytes.HasPrefix(head, []byte("http"))
}

// shown recognises UTF-8 by its mark, UTF-16 by its mark or by the NUL beside
// the first character, which is ASCII in any sitemap.
func shown(head []byte) string {
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		return "utf-8"
	}
	if len(head) < 2 {
		return ""
	}
	switch a, b := head[0], head[1]; {
	case a == 0xfe && b == 0xff, a == 0 && b != 0:
		return "utf-16be"
	case a == 0xff && b == 0xfe, a != 0 && b == 0:
		return "utf-16le"
	}
	return ""
}

// declared returns the encoding named in the XML declaration, unless it is
// UTF-16 or wider: a declaration that can be read as ASCII refutes that.
func declared(head []byte) string {
	_, decl, ok := bytes.Cut(head, []byte("<?xml"))
	if !ok {
		return ""
	}
	if end := bytes.IndexByte(decl, '>'); end >= 0 {
		decl = bytes.TrimSuffix(decl[:end], []byte("?"))
	}
	label, _ := attribute(decl, "encoding")
	label = bytes.ToLower(label)
	if bytes.HasPrefix(label, []byte("utf-16")) || bytes.HasPrefix(label, []byte("utf-32")) ||
		bytes.HasPrefix(label, []byte("ucs-")) || bytes.HasPrefix(label, []byte("iso-10646")) {
		return ""
	}
	return string(label)
}
