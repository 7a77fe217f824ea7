package sitemap

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// outcome returns one line for each entry and error of a document.
func outcome(r *Reader) []string {
	var out []string
	for e, err := range r.All() {
		if err != nil {
			out = append(out, "error: "+err.Error())
			continue
		}
		out = append(out, strings.Join([]string{e.Loc, e.LastMod.String(), e.ChangeFreq}, " "))
	}
	return out
}

// FuzzRead reads arbitrary documents. Reading must come to an end. The result must not depend on
// how the bytes are divided into reads, on compression, or on whether extensions are read. Each
// location must be a valid http or https URL in UTF-8. Each error must be an *Error.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		urlset(one, two), "http://e.test/1\n/2", zip(urlset(one)), wide(urlset(one), true), laughs(), "\ufeff <urlset><url><loc>a",
		"<rss><item><link>http://e.test/</link><guid>x</guid></item></rss>", "<feed><entry><link href=/1 rel=alternate></entry></feed>",
		"<a:urlset><a:loc><![CDATA[/1]]></a:loc><!-- --><?x ?><!DOCTYPE x [", "<?xml version='1.0' encoding='latin1'?><urlset><loc>/\xe9</loc></urlset>",
		"<urlset><url><loc>/1</loc><image:image><image:loc>/i</image:loc></image:image><xhtml:link rel=alternate hreflang=de href=/de /><news:news><news:title>x</news:title></url>",
		"<sitemapindex><sitemap><loc>/1</loc><lastmod>2024-05-06T07:08:09.123+02:00</lastmod></sitemap>",
	} {
		f.Add([]byte(s))
	}
	z := gzip.NewWriter(nil) // shared by all inputs, because a Writer is large
	f.Fuzz(func(t *testing.T, doc []byte) {
		b := base(t, "http://e.test/dir/s")
		limits := Limits{Raw: 1 << 20, Decompressed: 1 << 20}
		read := func(src io.Reader) []string {
			r := NewReader(src, b)
			r.Limits = limits
			return outcome(r)
		}
		got := read(bytes.NewReader(doc))
		if other := read(iotest.OneByteReader(bytes.NewReader(doc))); !slices.Equal(got, other) {
			t.Errorf("at once:\n%q\nbyte by byte:\n%q", got, other)
		}
		var zipped bytes.Buffer
		z.Reset(&zipped)
		z.Write(doc)
		z.Close()
		if other := read(&zipped); !bytes.HasPrefix(doc, []byte("\x1f\x8b\x08")) && !slices.Equal(got, other) {
			t.Errorf("plain:\n%q\ncompressed:\n%q", got, other)
		}
		with, _ := extended(bytes.NewReader(doc), limits)
		without, _ := locsAt(string(doc), b.String())
		if len(with) != len(without) {
			t.Errorf("%d entries with extensions, %d without", len(with), len(without))
		}
		for e, err := range NewReader(bytes.NewReader(doc), b).All() {
			var se *Error
			switch {
			case err != nil && (!errors.As(err, &se) || se.Err == nil || se.Offset < 0):
				t.Errorf("error %#v", err)
			case err == nil && (!hasHTTP(e.Loc) || !utf8.ValidString(e.Loc) || strings.ContainsAny(e.Loc, "#\t\r\n")):
				t.Errorf("location %q", e.Loc)
			}
		}
	})
}

// FuzzXML compares the Reader with encoding/xml on well-formed documents. Both must find the same
// locations, regardless of comments, CDATA sections, extensions and references.
func FuzzXML(f *testing.F) {
	f.Add("http://e.test/1", "2024-05-06", "a comment", "<url>", byte(0))
	f.Add("/a?b=c&d=e", "&amp;", "<loc>/no</loc>", "]]>", byte(0xff))
	f.Add("//x.test/ü", "\t", "<!-- -", "</urlset>", byte(0x55))
	f.Fuzz(func(t *testing.T, loc, lastmod, comment, ext string, shape byte) {
		doc, ok := wellFormed(loc, lastmod, comment, ext, shape)
		if !ok {
			return
		}
		want, err := reference(doc)
		if err != nil {
			t.Fatalf("%v in %s", err, doc)
		}
		var expect []string
		for _, text := range want {
			r := NewReader(nil, base(t, "http://e.test/dir/s"))
			if s := r.locate([]byte(text)); s != "" && len(trim([]byte(text))) > 0 {
				expect = append(expect, s)
			}
		}
		got, _ := locsAt(doc, "http://e.test/dir/s")
		if !slices.Equal(got, expect) {
			t.Errorf("got %q, encoding/xml %q\n%s", got, expect, doc)
		}
	})
}

// wellFormed returns a sitemap with the given texts. The bits of shape select variants of the
// markup. It returns false for texts that XML cannot contain, and for texts that the Reader treats
// in another way on purpose. For example, XML never preserves a carriage return.
func wellFormed(loc, lastmod, comment, ext string, shape byte) (string, bool) {
	for _, s := range []string{loc, lastmod, comment, ext} {
		if len(s) > 1000 || !utf8.ValidString(s) || strings.ContainsFunc(s, notXML) {
			return "", false
		}
	}
	if strings.Contains(comment, "--") || strings.HasSuffix(comment, "-") || strings.Contains(comment, "?>") {
		return "", false
	}
	escape := func(s string) string {
		var b strings.Builder
		xml.EscapeText(&b, []byte(s))
		return b.String()
	}
	bit := func(i int, s string) string {
		if shape>>i&1 == 1 {
			return s
		}
		return ""
	}
	text := escape(loc)
	if shape&1 == 1 && !strings.Contains(loc, "]]>") {
		text = "<![CDATA[" + loc + "]]>"
	}
	prefix := bit(1, "s:")
	el := func(name, text string) string {
		return "<" + prefix + name + bit(2, ` a="`+escape(ext)+`"`) + ">" + text + "</" + prefix + name + bit(3, "\n") + ">"
	}
	extension := "<x:loc>" + escape(ext) + "</x:loc><x:y z='" + escape(ext) + "'/>"
	return bit(4, "<!--"+comment+"-->") + el("urlset",
		el("url", bit(5, extension)+el("loc", bit(6, "\n  ")+text+bit(7, "<!--"+comment+"-->"))+el("lastmod", escape(lastmod)))+
			"<!--"+comment+"--><?pi "+comment+"?>"+
			el("url", el("priority", "1")+el("loc", "/last"))), true
}

func notXML(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' || c == 0xfffe || c == 0xffff || c == utf8.RuneError
}

// FuzzWellFormed compares the Reader with encoding/xml on every document that encoding/xml accepts
// as a urlset.
func FuzzWellFormed(f *testing.F) {
	for _, s := range []string{
		urlset(one, two), "<urlset><url><loc>/a&amp;<![CDATA[b]]>c<!-- -->d</loc><lastmod>2024</lastmod></url></urlset>",
		"<s:urlset xmlns:s='x'><s:url><s:loc a='>'>/1</s:loc></s:url><loc>/2</loc><x:loc>/3</x:loc></s:urlset>",
		"<!DOCTYPE a [<!ENTITY b 'c'>]><urlset><?pi <loc>/1</loc> ?><url><loc/><loc>&#47;1&#x32;</loc></url></urlset><!-- -->",
		"<urlset><url><loc>/1<b>x</b>y</loc></url></urlset>", "<urlset>\n<loc\n>\n/1\n</loc\n></urlset>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		texts, err := reference(doc)
		if err != nil || len(doc) > 4000 || strings.Contains(doc, "encoding") {
			return
		}
		var want []string
		r := NewReader(nil, mustURL("http://e.test/dir/s"))
		for _, text := range texts {
			if s := r.locate([]byte(text)); s != "" && len(trim([]byte(text))) > 0 {
				want = append(want, s)
			}
		}
		if got, _ := locsAt(doc, "http://e.test/dir/s"); !slices.Equal(got, want) {
			t.Errorf("got %q, encoding/xml %q\n%q", got, want, doc)
		}
	})
}

// doctype matches a DOCTYPE whose internal subset is complete (XML 1.0, production 28).
// encoding/xml does not check that: it ends a DOCTYPE at the ">". doctype does not match a ">" in
// an identifier, because there the Reader assumes a missing quote.
var doctype = regexp.MustCompile(`^DOCTYPE (?:[^][<>"']|"[^">]*"|'[^'>]*')+(?:\[(?:[^]["']|"[^"]*"|'[^']*')*\])?[ \t\r\n]*$`)

var errOther = errors.New("not a urlset, or the Reader reads it in another way on purpose")

// reference returns the text of each loc of a urlset, up to the next tag, according to
// encoding/xml.
func reference(doc string) (texts []string, err error) {
	d := xml.NewDecoder(strings.NewReader(doc))
	var root xml.Name
	field := false
	for {
		tok, err := d.RawToken()
		if err == io.EOF && root.Local != "" {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if root.Local == "" {
				root = tok.Name
			}
			own := tok.Name.Space == "" || tok.Name.Space == root.Space
			field = own && tok.Name.Local == "loc"
			if field {
				texts = append(texts, "")
			}
			if root.Local != "urlset" || odd(tok.Name, own) {
				return nil, errOther
			}
		case xml.EndElement:
			field = false
			if tok.Name == root {
				return texts, nil
			}
		case xml.CharData:
			if field {
				texts[len(texts)-1] += string(tok)
			}
		case xml.Directive:
			if root.Local != "" || !doctype.Match(tok) {
				return nil, errOther
			}
		case xml.ProcInst:
			if strings.HasPrefix(strings.ToLower(tok.Target), "xml") {
				return nil, errOther
			}
		}
	}
}

// odd reports whether the Reader and encoding/xml treat a name differently. For example,
// encoding/xml distinguishes upper case from lower case.
func odd(n xml.Name, own bool) bool {
	name := n.Space + n.Local
	return strings.ToLower(name) != name || strings.Contains(n.Local, ":") || len(name) > 50 || n.Local == "" ||
		own && slices.Contains([]string{"image", "video", "news", "sitemapindex"}, n.Local)
}

func locsAt(doc, at string) (got []string, errs []error) {
	r := NewReader(strings.NewReader(doc), mustURL(at))
	for e, err := range r.All() {
		if err != nil {
			errs = append(errs, err)
		} else {
			got = append(got, e.Loc)
		}
	}
	return got, errs
}

// FuzzGzip truncates a compressed sitemap or changes one of its bytes. If the sitemap was only
// truncated, the Reader must return the first entries of the original and nothing else. If entries
// are missing or wrong, it must return an error.
func FuzzGzip(f *testing.F) {
	f.Add(uint16(50), uint16(0), byte(0))
	f.Add(uint16(1000), uint16(20), byte(1))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.Copy(z, generate("<urlset>", 50, plainEntry, "</urlset>"))
	z.Close()
	whole, _ := locsAt(b.String(), "http://e.test/")
	f.Fuzz(func(t *testing.T, length, at uint16, change byte) {
		doc := bytes.Clone(b.Bytes()[:min(int(length), b.Len())])
		if len(doc) < 4 {
			return
		}
		changed := change != 0 && int(at) >= 10 && int(at) < len(doc)
		if changed {
			doc[at] ^= change
		}
		got, errs := locsAt(string(doc), "http://e.test/")
		// A changed bit may be a padding bit. It then has no effect, so there is no error.
		if len(errs) == 0 && (len(doc) < b.Len() || !slices.Equal(got, whole)) {
			t.Errorf("got %d entries and no error", len(got))
		}
		if !changed && (len(got) > len(whole) || !slices.Equal(got, whole[:len(got)])) {
			t.Errorf("got %q", got)
		}
	})
}
