package sitemap

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// drain reads the whole sitemap and returns the number of entries and the errors.
func drain(r *Reader) (n int, errs []string) {
	for _, err := range r.All() {
		if err == nil {
			n++
		} else {
			var se *Error
			errors.As(err, &se)
			errs = append(errs, summary(se))
		}
	}
	return n, errs
}

// bomb returns n MiB of zeros, compressed with gzip to about one kilobyte per MiB.
func bomb(n int) string { return strings.Repeat(zip(strings.Repeat("\x00", 1<<20)), n) }

const (
	mebibyte  = 1 << 20
	allowance = 8 * mebibyte // memory that reading a document of any size may use
)

// TestHostile reads documents that are designed to exhaust memory or time. Reading must stop at the
// intended limit, must not read more of the source than necessary, and must allocate less than the
// allowance in total.
func TestHostile(t *testing.T) {
	flood := func(p []byte) {
		for i := range p {
			p[i] = 'x'
		}
	}
	for _, c := range []struct {
		name   string
		src    io.Reader
		limits Limits
		n      int
		errs   string
		raw    int64 // maximum number of bytes read
	}{
		{name: "1 GiB in 1 MiB", src: strings.NewReader(bomb(1024)), errs: "file limit Ratio", raw: 64 << 10},
		{name: "a bomb in a bomb", src: strings.NewReader(zip(bomb(1024))), errs: "file limit Ratio", raw: 64 << 10},
		{name: "a bomb that yields nothing", src: strings.NewReader(zip(strings.Repeat(zip(""), 100_000))), errs: "file limit Ratio", raw: 64 << 10},
		{name: "a bomb behind the root", src: strings.NewReader(zip(urlset(one)) + bomb(1024)), n: 1, errs: "file limit Ratio", raw: 64 << 10},
		{name: "decompressed", src: strings.NewReader(zip(strings.Repeat(" ", mebibyte))), limits: Limits{Decompressed: 100_000}, errs: "file limit Decompressed", raw: mebibyte},
		{name: "raw", src: generate("<urlset>", 1<<30, func(w io.Writer, _ int) { io.WriteString(w, one) }, ""), limits: Limits{Raw: int64(8 + 1000*len(one))}, n: 1000, errs: "file limit Raw", raw: int64(8 + 1000*len(one) + 1)},
		{name: "raw, just fits", src: strings.NewReader(urlset(one)), limits: Limits{Raw: int64(len(urlset(one)))}, n: 1, raw: int64(len(urlset(one)))},
		{name: "one tag for ever", src: io.MultiReader(strings.NewReader("<urlset>"+one+"<url a='"), fill(flood)), limits: Limits{Raw: 4 * mebibyte}, n: 1, errs: "file limit Raw", raw: 5 * mebibyte},
		{name: "one loc for ever", src: io.MultiReader(strings.NewReader("<urlset>"+one+"<loc>"), fill(flood)), limits: Limits{Raw: 4 * mebibyte}, n: 1, errs: "file limit Raw", raw: 5 * mebibyte},
		{name: "one line for ever", src: io.MultiReader(strings.NewReader("http://e.test/1\nhttp://e.test/"), fill(flood)), limits: Limits{Raw: 4 * mebibyte}, n: 1, errs: "entry loc limit Field; file limit Raw", raw: 5 * mebibyte},
		{name: "one name for ever", src: io.MultiReader(strings.NewReader("<urlset>"+one+"<"), fill(flood)), limits: Limits{Raw: 4 * mebibyte}, n: 1, errs: "field " + strings.Repeat("x", 63) + " limit Tag; file limit Raw", raw: 5 * mebibyte},
		{name: "a long tag", src: strings.NewReader(urlset(one, "<x:y z='"+strings.Repeat("x", 20_000)+"'/>", two)), n: 2, errs: "field y limit Tag", raw: 100_000},
		{name: "a long tag of a field", src: strings.NewReader(urlset(one, "<url><loc z='"+strings.Repeat("x", 20_000)+"'>http://e.test/3</loc></url>", two)), n: 2, errs: "entry loc limit Tag", raw: 100_000},
		{name: "a quote that does not end", src: strings.NewReader(urlset(one, "<url><loc z='>http://e.test/3</loc></url>", strings.Repeat(" ", 20_000), two)), n: 2, errs: "entry loc limit Tag", raw: 100_000},
		{name: "no root", src: fill(flood), limits: Limits{Raw: 4 * mebibyte}, errs: "file limit Raw", raw: 5 * mebibyte},
		{name: "no root, tags", src: strings.NewReader(strings.Repeat("<br>", 4*mebibyte)), errs: notOne, raw: 256 << 10},
		{name: "errors", src: strings.NewReader(urlset(one, "<url></url><url></url>", two, "<url></url>", two)), limits: Limits{Errors: 2}, n: 2, errs: "entry entry without a location; entry entry without a location; file limit Errors", raw: 1000},
		{name: "entries", src: strings.NewReader(urlset(one, two, one)), limits: Limits{Entries: 2}, n: 2, errs: "file limit Entries", raw: 1000},
		{name: "200,000 nested elements", src: strings.NewReader(urlset(one, strings.Repeat("<a>", 200_000), one, strings.Repeat("</a>", 200_000), two)), n: 3, raw: 2 * mebibyte},
		{name: "20,000 nested urls", src: strings.NewReader(urlset(strings.Repeat("<url>", 20_000), one)), n: 1, errs: "20,000 times", raw: 2 * mebibyte},
		{name: "no progress", src: fill(nil), errs: "file multiple Read calls return no data or error", raw: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := &counter{r: c.src}
			r := NewReader(src, nil)
			r.Limits = c.limits
			if c.errs == "20,000 times" {
				n, errs := drain(r)
				if n != c.n || len(errs) != 20_000 || errs[0] != "entry entry without a location" {
					t.Errorf("got %d entries, %d errors, want %d and 20,000", n, len(errs), c.n)
				}
				return
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, errs := drain(r)
			runtime.ReadMemStats(&after)
			if n != c.n || strings.Join(errs, "; ") != c.errs {
				t.Errorf("got %d entries, errors %q, want %d, %q", n, errs, c.n, c.errs)
			}
			if src.n > c.raw {
				t.Errorf("read %d bytes, want at most %d", src.n, c.raw)
			}
			if d := after.TotalAlloc - before.TotalAlloc; d > allowance {
				t.Errorf("allocated %d bytes, want at most %d", d, allowance)
			}
		})
	}
}

// fill is an endless source. It calls itself to fill each buffer. If it is nil, each read returns
// no bytes and no error.
type fill func([]byte)

func (f fill) Read(p []byte) (int, error) {
	if f == nil {
		return 0, nil
	}
	f(p)
	return len(p), nil
}

// TestDefaults reads an endless document with the default limits. Reading must stop after 50 MiB
// and one byte, and the live heap must grow by less than the allowance.
func TestDefaults(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 50 MiB")
	}
	src := &counter{r: generate(urlsetHead, 1<<30, func(w io.Writer, _ int) { io.WriteString(w, longEntry) }, "")}
	base := liveHeap()
	var peak uint64
	var errs []string
	n := 0
	for _, err := range NewReader(src, nil).All() {
		if err != nil {
			errs = append(errs, summary(err.(*Error)))
			continue
		}
		n++
		if n%4000 == 0 {
			peak = max(peak, liveHeap())
		}
	}
	if got := strings.Join(errs, "; "); got != "file limit Raw" || src.n != 50*mebibyte+1 {
		t.Errorf("errors %q after %d bytes", got, src.n)
	}
	if peak > base+allowance {
		t.Errorf("the live heap grew from %d to %d bytes", base, peak)
	}
	t.Logf("%d entries, the live heap grew by at most %d KiB", n, (int64(peak)-int64(base))/1024)
}

// longEntry has two kilobytes, so that 50 MiB hold about 25,000 entries.
var longEntry = "<url><loc>http://e.test/" + strings.Repeat("x", 2000) + "</loc></url>\n"

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestOversize reads more entries than the protocol allows, within the Limits. All entries and one
// notice must be returned.
func TestOversize(t *testing.T) {
	r := NewReader(generate("<urlset>", 50_002, func(w io.Writer, i int) { fmt.Fprintf(w, "<url><loc>http://e.test/%d</loc></url>", i) }, "</urlset>"), nil)
	n, errs := drain(r)
	if n != 50_002 || strings.Join(errs, "; ") != "notice more than 50,000 entries or 50 MiB" {
		t.Errorf("%d entries, errors %q", n, errs)
	}
	n, errs = drain(NewReader(generate("", 50_000, func(w io.Writer, i int) { fmt.Fprintf(w, "http://e.test/%d\n", i) }, ""), nil))
	if n != 50_000 || errs != nil {
		t.Errorf("got %d entries, errors %q of a text with as many entries as allowed", n, errs)
	}
}

// TestFirstEntry counts the bytes that are read before the first entry is returned.
func TestFirstEntry(t *testing.T) {
	many := func(w io.Writer, i int) { io.WriteString(w, longEntry) }
	for name, r := range map[string]io.Reader{
		"plain":        generate(urlsetHead, 1000, many, urlsetTail),
		"gzip":         strings.NewReader(varied(t, false)),
		"UTF-16":       strings.NewReader(varied(t, true)),
		"text":         generate("", 1000, func(w io.Writer, i int) { fmt.Fprintf(w, "http://e.test/%d\n", i) }, ""),
		"after 60 KiB": generate(strings.Repeat(" ", 60<<10)+urlsetHead, 1000, many, urlsetTail),
	} {
		src := &counter{r: r}
		if _, err := NewReader(src, nil).Read(); err != nil || src.n > 128<<10 {
			t.Errorf("%s: read %d bytes, %v", name, src.n, err)
		}
	}
}

// varied returns a document in UTF-16 or compressed with gzip. Its content is random, so that it is
// long even when it is compressed.
func varied(t *testing.T, utf16 bool) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	doc, _ := io.ReadAll(generate(urlsetHead, 5000, func(w io.Writer, _ int) {
		fmt.Fprintf(w, "<url><loc>http://e.test/%x%x%x%x</loc></url>\n", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
	}, urlsetTail))
	s := zip(string(doc))
	if utf16 {
		s = wide(string(doc), true)
	}
	if len(s) < 150<<10 {
		t.Fatalf("the document has only %d bytes", len(s))
	}
	return s
}

// steps is a source that returns a document in parts of one entry each. The test fails if a part is
// read before the entry of the previous part has been returned.
type steps struct {
	t     *testing.T
	parts []string
	given int // number of entries that the Reader has returned
	n     int // number of parts that were read
}

func (s *steps) Read(p []byte) (int, error) {
	if s.n == len(s.parts) {
		return 0, io.EOF
	}
	if s.given < s.n {
		s.t.Fatalf("part %d was read after %d entries", s.n, s.given)
	}
	s.n++
	return copy(p, s.parts[s.n-1]), nil
}

// TestStream checks that the Reader returns each entry before it reads bytes after that entry.
func TestStream(t *testing.T) {
	for name, parts := range map[string][]string{
		"urlset":      {"<urlset>" + one, two, two, "</urlset>"},
		"declaration": {"<?xml version='1.0' encoding='latin1'?>\n<urlset>" + one, two, "</urlset>"},
		"text":        {"http://e.test/1\n", "http://e.test/2\n", ""},
		"feed":        {"<feed><entry><link href='/1'/></entry>", "<entry><link href='/2'/></entry>", "</feed>"},
	} {
		t.Run(name, func(t *testing.T) {
			src := &steps{t: t, parts: parts}
			for e, err := range NewReader(src, mustURL("http://e.test/")).All() {
				if err != nil {
					t.Error(e, err)
				}
				src.given++
			}
			if src.given != len(parts)-1 {
				t.Errorf("got %d entries from %d parts", src.given, len(parts))
			}
		})
	}
}

// TestAllocations checks that an entry costs one allocation, in addition to those per document.
func TestAllocations(t *testing.T) {
	for name, entry := range map[string]func(io.Writer, int){"plain": plainEntry, "extended": extendedEntry} {
		const n = 2000
		doc, _ := io.ReadAll(generate(urlsetHead, n, entry, urlsetTail))
		got := testing.AllocsPerRun(5, func() { drain(NewReader(strings.NewReader(string(doc)), nil)) })
		if got > n+50 {
			t.Errorf("%s: %v allocations for %d entries, want one for each", name, got, n)
		}
	}
}

// A dripping source returns one byte per second.
type dripping struct{ io.Reader }

func (d dripping) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return d.Reader.Read(p[:1])
}

// TestTime reads from a source that returns one byte per second. The consumer takes an hour for
// each entry, which must not count towards Limits.Time.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		doc := "<urlset>" + strings.Repeat(one, 1000)
		n, late := 0, time.Duration(0)
		for _, err := range NewReader(dripping{strings.NewReader(doc)}, &url.URL{}).All() {
			if err == nil {
				n++
				time.Sleep(time.Hour)
				continue
			}
			late = time.Since(start) - time.Duration(n)*time.Hour
			if got := summary(err.(*Error)); got != "file limit Time" {
				t.Error(got)
			}
		}
		if n != 8 || late != 5*time.Minute {
			t.Errorf("stopped after %d entries and %v", n, late)
		}
	})
}
