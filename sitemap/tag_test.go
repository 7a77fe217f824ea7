package sitemap

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTagMemory reads random documents twice: all bytes at once, which uses the cache of tags, and
// byte by byte, which does not. The results must be equal.
func TestTagMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := strings.Split("<url>|</url>|<URL>|<Url |<url/>|<loc>|</loc>|<LOC>|</Loc >|<loc/>|<locx>|<lo|<sm:loc>|</sm:loc>|<sm:url>|<image:loc>|</image:loc>|"+
		"<lastmod>|</lastmod>|<LastMod>|2024-05-06|https://example.com/a|https://example.com/b|<!-- <loc> -->|<![CDATA[https://example.com/c]]>|>|<|</|"+
		"<sitemap>|</sitemap>|<video>|</video>|<priority>0.5</priority>|<url><loc>https://example.com/d</loc></url>|<url><loc>https://example.com/e</loc></url>", "|")
	for range 3000 {
		doc := "<urlset>"
		for range r.IntN(40) {
			doc += pieces[r.IntN(len(pieces))]
		}
		doc += "</urlset>"
		base := &url.URL{Scheme: "https", Host: "example.com"}
		want := transcript(NewReader(iotest.OneByteReader(strings.NewReader(doc)), base))
		if got := transcript(NewReader(strings.NewReader(doc), base)); got != want {
			t.Fatalf("%s\ngot\n%swant\n%s", doc, got, want)
		}
	}
}

// transcript returns one line for each result of r.Read.
func transcript(r *Reader) string {
	var b strings.Builder
	for {
		e, err := r.Read()
		fmt.Fprintln(&b, e, err)
		if err == io.EOF {
			return b.String()
		}
	}
}
