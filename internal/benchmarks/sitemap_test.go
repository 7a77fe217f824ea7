package benchmarks

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"testing"

	"github.com/antchfx/xmlquery"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A format is a kind of sitemap.
type format struct {
	name  string
	head  string
	tail  string
	entry func(w io.Writer, i int) // writes the entry with number i
}

const urlsetHead = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
  xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
`

var formats = []format{
	{name: "plain", head: urlsetHead, tail: "</urlset>\n", entry: func(w io.Writer, i int) {
		fmt.Fprintf(w, "  <url>\n    <loc>https://www.example.com/catalogue/section-%d/item-%d.html</loc>\n"+
			"    <lastmod>2024-05-%02dT10:20:30+02:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n",
			i%97, i, i%28+1)
	}},
	{name: "dense", head: urlsetHead, tail: "</urlset>\n", entry: func(w io.Writer, i int) {
		fmt.Fprintf(w, "<url><loc>https://www.example.com/p/%d</loc><lastmod>2024-05-06</lastmod></url>\n", i)
	}},
	{name: "extended", head: urlsetHead, tail: "</urlset>\n", entry: func(w io.Writer, i int) {
		fmt.Fprintf(w, "  <url>\n    <loc>https://www.example.com/catalogue/section-%d/item-%d.html</loc>\n", i%97, i)
		for _, lang := range [...]string{"de", "en-GB", "fr", "x-default"} {
			fmt.Fprintf(w, "    <xhtml:link rel=\"alternate\" hreflang=\"%s\" href=\"https://www.example.com/%s/item-%d.html\"/>\n", lang, lang, i)
		}
		fmt.Fprintf(w, "    <image:image><image:loc>https://img.example.com/%d.jpg</image:loc>"+
			"<image:title>Item &amp; %d</image:title></image:image>\n  </url>\n", i, i)
	}},
	{name: "index", head: `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n", tail: "</sitemapindex>\n", entry: func(w io.Writer, i int) {
		fmt.Fprintf(w, "  <sitemap>\n    <loc>https://www.example.com/sitemaps/part-%d.xml.gz</loc>\n    <lastmod>2024-05-01</lastmod>\n  </sitemap>\n", i)
	}},
}

// document returns a sitemap of about size bytes.
func (f format) document(size int) []byte {
	var doc bytes.Buffer
	doc.WriteString(f.head)
	for i := 0; doc.Len() < size; i++ {
		f.entry(&doc, i)
	}
	doc.WriteString(f.tail)
	return doc.Bytes()
}

// BenchmarkSitemap reads whole sitemaps in three ways: with package sitemap; with encoding/xml,
// reading only the tokens; and with xmlquery, as Colly's OnXML does, which builds a tree of the
// document and then runs a query.
func BenchmarkSitemap(b *testing.B) {
	for _, f := range formats {
		doc := f.document(2_000_000)
		for _, reader := range []struct {
			name string
			read func([]byte) (int, error)
		}{{"sitemap", readEntries}, {"encoding_xml", readTokens}, {"xmlquery", query}} {
			b.Run(f.name+"/"+reader.name, func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if n, err := reader.read(doc); n == 0 || err != nil {
						b.Fatal(n, err)
					}
				}
			})
		}
	}
}

// readEntries returns the number of pages or sitemaps in doc. readTokens and query do the same.
func readEntries(doc []byte) (n int, err error) {
	r := sitemap.NewReader(bytes.NewReader(doc), &url.URL{Scheme: "https", Host: "www.example.com"})
	for _, err := range r.All() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func readTokens(doc []byte) (n int, err error) {
	d := xml.NewDecoder(bytes.NewReader(doc))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if start, ok := token.(xml.StartElement); ok && (start.Name.Local == "url" || start.Name.Local == "sitemap") {
			n++
		}
	}
}

func query(doc []byte) (int, error) {
	tree, err := xmlquery.Parse(bytes.NewReader(doc))
	if err != nil {
		return 0, err
	}
	return len(xmlquery.Find(tree, "//url/loc")) + len(xmlquery.Find(tree, "//sitemap/loc")), nil
}

// TestSitemapReadersAgree checks that all readers find the same number of entries.
func TestSitemapReadersAgree(t *testing.T) {
	for _, f := range formats {
		doc := f.document(50_000)
		entries, err1 := readEntries(doc)
		elements, err2 := readTokens(doc)
		nodes, err3 := query(doc)
		if entries == 0 || entries != elements || entries != nodes || err1 != nil || err2 != nil || err3 != nil {
			t.Errorf("%s: %d entries (%v), %d elements (%v), %d nodes (%v)", f.name, entries, err1, elements, err2, nodes, err3)
		}
	}
}
