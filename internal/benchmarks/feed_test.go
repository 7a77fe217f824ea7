package benchmarks

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
)

var urls = flag.Int("urls", 0, "TestFeed and TestResume: number of URLs in the sitemaps; if 0, 400,000 and 200,000")

// perFile is the largest number of URLs that a sitemap may list.
const perFile = 50_000

// TestFeed feeds the URLs in the sitemaps of one site to a Sink, with a robots.txt decision about
// each URL. It prints the processor time for a URL, compared with reading the tokens of the same
// document with encoding/xml, and the largest amount of memory of the process. The server and the
// feed both keep a whole document in memory while it is read.
func TestFeed(t *testing.T) {
	files := max(1, *urls/perFile)
	if *urls == 0 && !underRace {
		files = 8
	}
	site := &listing{files: files, document: listed()}
	n := files * perFile
	fed := 0
	c, p := obedient(t, site, collyrobots.FollowSitemaps(collyrobots.Feed{Sink: func(context.Context, sitemap.Entry) error { fed++; return nil }}))
	decoding := decode(t, site.document)
	before := heap()
	_, began := stopwatch()
	if err := c.Visit("https://www.example.com/"); err != nil {
		t.Fatal(err)
	}
	_, ended := stopwatch()
	retained := heap() - before
	decoding = min(decoding, decode(t, site.document))
	feeding := (ended - began) / time.Duration(n)
	t.Logf("%d URLs: %v per URL, encoding/xml %v, ratio %.2f; %.1f bytes per URL retained; at most %d MB in total",
		n, feeding, decoding, float64(feeding)/float64(decoding), float64(retained)/float64(n), site.most/1_000_000)
	if fed != n {
		t.Errorf("%d of %d URLs were fed: %+v", fed, n, p.Stats().Sitemaps)
	}
	if most := 90_000_000 + 26*n; site.most > most && !underRace {
		t.Errorf("the process used %d bytes, want at most %d", site.most, most)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// decode returns the processor time that encoding/xml needs for one URL of a document.
func decode(t *testing.T, document []byte) time.Duration {
	t.Helper()
	_, began := stopwatch()
	if _, err := readTokens(document); err != nil {
		t.Fatal(err)
	}
	_, ended := stopwatch()
	return (ended - began) / perFile
}

// A listing is the transport of a site with many sitemaps.
type listing struct {
	files    int
	document []byte // a sitemap, with a placeholder for its number

	mu   sync.Mutex
	most int // the most bytes that the process used when a sitemap was requested
}

// listed returns a sitemap with the largest number of URLs.
func listed() []byte {
	var doc bytes.Buffer
	doc.WriteString(urlsetHead)
	for i := range perFile {
		fmt.Fprintf(&doc, "  <url>\n    <loc>https://www.example.com/catalogue/%s/section-%d/item-%d.html</loc>\n"+
			"    <lastmod>2024-05-%02dT10:20:30+02:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n",
			placeholder, i%97, i, i%28+1)
	}
	doc.WriteString("</urlset>\n")
	return doc.Bytes()
}

// placeholder stands for the number of a document.
const placeholder = "######"

// RoundTrip answers with robots.txt, an index of the sitemaps, a sitemap, or a page.
func (l *listing) RoundTrip(r *http.Request) (*http.Response, error) {
	robots := rulesFor(9) + "Sitemap: https://www.example.com/index.xml\n"
	resp, err := (&web{robots: func(string) string { return robots }, page: "<title>x</title>"}).RoundTrip(r)
	var file int
	if r.URL.Path == "/index.xml" {
		resp.Body = io.NopCloser(strings.NewReader(l.index()))
	} else if _, none := fmt.Sscanf(r.URL.Path, "/map%d.xml", &file); none == nil {
		l.measure()
		doc := bytes.ReplaceAll(l.document, []byte(placeholder), fmt.Appendf(nil, "%06d", file))
		resp.Body = io.NopCloser(bytes.NewReader(doc))
	}
	resp.ContentLength = -1
	return resp, err
}

func (l *listing) index() string {
	var b strings.Builder
	b.WriteString("<sitemapindex>")
	for i := range l.files {
		fmt.Fprintf(&b, "<sitemap><loc>https://www.example.com/map%d.xml</loc></sitemap>", i)
	}
	return b.String() + "</sitemapindex>"
}

// measure records how much memory the process uses.
func (l *listing) measure() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, int(m.Sys-m.HeapReleased))
}
