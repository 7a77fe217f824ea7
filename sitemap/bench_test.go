package sitemap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
)

// A generator is a document that is generated while it is read. It consists of a head, n entries
// that the function entry writes, and a tail.
type generator struct {
	buf   bytes.Buffer
	entry func(w io.Writer, i int)
	tail  string
	i, n  int
}

func generate(head string, n int, entry func(w io.Writer, i int), tail string) *generator {
	g := &generator{entry: entry, n: n, tail: tail}
	g.buf.WriteString(head)
	return g
}

func (g *generator) Read(p []byte) (int, error) {
	for g.buf.Len() < len(p) && g.i <= g.n {
		if g.i < g.n {
			g.entry(&g.buf, g.i)
		} else {
			g.buf.WriteString(g.tail)
		}
		g.i++
	}
	return g.buf.Read(p)
}

const (
	urlsetHead = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"` +
		` xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">` + "\n"
	urlsetTail = "</urlset>\n"
	indexHead  = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	indexTail  = "</sitemapindex>\n"
)

func plainEntry(w io.Writer, i int) {
	fmt.Fprintf(w, "  <url>\n    <loc>https://www.example.com/catalogue/section-%d/item-%d.html</loc>\n"+
		"    <lastmod>2024-05-%02dT10:20:30+02:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n",
		i%97, i, i%28+1)
}

func extendedEntry(w io.Writer, i int) {
	fmt.Fprintf(w, "  <url>\n    <loc>https://www.example.com/catalogue/section-%d/item-%d.html</loc>\n", i%97, i)
	for _, lang := range [...]string{"de", "en-GB", "fr", "x-default"} {
		fmt.Fprintf(w, "    <xhtml:link rel=\"alternate\" hreflang=\"%s\" href=\"https://www.example.com/%s/item-%d.html\"/>\n", lang, lang, i)
	}
	fmt.Fprintf(w, "    <image:image><image:loc>https://img.example.com/%d.jpg</image:loc><image:title>Item &amp; %d</image:title></image:image>\n  </url>\n", i, i)
}

func indexEntry(w io.Writer, i int) {
	fmt.Fprintf(w, "  <sitemap>\n    <loc>https://www.example.com/sitemaps/part-%d.xml.gz</loc>\n    <lastmod>2024-05-01</lastmod>\n  </sitemap>\n", i)
}

// document returns a document of about size bytes.
func document(b *testing.B, head string, entry func(io.Writer, int), tail string, size int) []byte {
	b.Helper()
	var one bytes.Buffer
	entry(&one, 100_000)
	doc, err := io.ReadAll(generate(head, size/one.Len(), entry, tail))
	if err != nil {
		b.Fatal(err)
	}
	return doc
}

// BenchmarkRead reads sitemaps of 50 MB. The module internal/benchmarks compares the results with XML
// libraries.
func BenchmarkRead(b *testing.B) {
	const size = 50_000_000
	docs := []struct {
		name string
		doc  []byte
	}{
		{"plain", document(b, urlsetHead, plainEntry, urlsetTail, size)},
		{"extended", document(b, urlsetHead, extendedEntry, urlsetTail, size)},
		{"index", document(b, indexHead, indexEntry, indexTail, size)},
		{"dense", document(b, urlsetHead, denseEntry, urlsetTail, size)},
	}
	for _, d := range docs {
		b.Run(d.name, func(b *testing.B) { benchReader(b, d.doc, int64(len(d.doc)), false) })
	}
	doc := docs[0].doc
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(doc)
	z.Close()
	b.Run("gzip", func(b *testing.B) { benchReader(b, zipped.Bytes(), int64(len(doc)), false) })
	b.Run("extended, asked for", func(b *testing.B) { benchReader(b, docs[1].doc, int64(len(docs[1].doc)), true) })
}

func benchReader(b *testing.B, doc []byte, size int64, extensions bool) {
	b.SetBytes(size)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = 0
		r := NewReader(bytes.NewReader(doc), &url.URL{Scheme: "https", Host: "www.example.com"})
		r.Extensions = extensions
		for _, err := range r.All() {
			if err == nil {
				n++
			}
		}
	}
	b.ReportMetric(float64(n), "entries")
}

// BenchmarkHostile reads documents that repeat one piece of text or markup. No document
// should take much longer per byte than the others.
func BenchmarkHostile(b *testing.B) {
	for _, c := range []struct{ name, part string }{
		{"tags without end", "<a"}, {"fields without end", "<loc"}, {"quotes", `<loc "`}, {"other quotes", `<loc "><loc '>`}, {"ampersands", "<loc>" + strings.Repeat("&", 1000)},
		{"references", "<loc>" + strings.Repeat("&a;", 1000)}, {"comments", "<!-->"}, {"doctypes", "<!DOCTYPE ["}, {"CDATA", "<![CDATA["}, {"in a loc", "<loc><![CDATA[]]>"},
		{"declarations", "<?xml"}, {"instructions", "<?a"}, {"links", `<xhtml:link rel="alternate" hreflang="a" href="`}, {"attributes", `<xhtml:link ` + strings.Repeat("a ", 8000) + ">"},
		{"faults", "<lastmod>x</lastmod>"}, {"empty", "<url></url>"}, {"images", "<url><image:image>"}, {"roots", "<urlset>"},
	} {
		b.Run(c.name, func(b *testing.B) {
			doc := "<urlset><url>" + strings.Repeat(c.part, 4<<20/len(c.part))
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				r := NewReader(strings.NewReader(doc), nil)
				r.Extensions = true
				for range r.All() {
				}
			}
		})
	}
}

func denseEntry(w io.Writer, i int) {
	fmt.Fprintf(w, "<url><loc>https://www.example.com/p/%d</loc><lastmod>2024-05-06</lastmod></url>\n", i)
}
