package benchmarks

import (
	"bytes"
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
)

var urls = flag.Int("urls", 0, "TestFeed: how many URLs the sitemaps list; 0: few")

// perFile is how many URLs a sitemap may list.
const perFile = 50_000

// TestFeed feeds a Sink what the sitemaps of one site list, with a robots.txt decision about each,
// and prints what a URL costs beside the tokens of encoding/xml, in processor time, and how much
// memory the process has at the most. Each document is held whole while it is read, by the server
// and by the feed.
func TestFeed(t *testing.T) {
	files := max(1, *urls/perFile)
	if *urls == 0 && !underRace {
		files = 8
	}
	site, n := &listing{files: files, document: listed()}, files*perFile
	fed := 0
	c, p := obedient(t, site, collyrobots.FollowSitemaps(collyrobots.Feed{Sink: func(string) error { fed++; return nil }}))
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
	t.Logf("%d URLs: %v each, encoding/xml %v, ratio %.2f; %.1f bytes each retained, %d MB in all at the most",
		n, feeding, decoding, float64(feeding)/float64(decoding), float64(retained)/float64(n), site.most/1_000_000)
	if fed != n {
		t.Errorf("%d of %d URLs were fed: %+v", fed, n, p.Stats().Sitemaps)
	}
	if most := 90_000_000 + 26*n; site.most > most && !underRace {
		t.Errorf("the process had %d bytes, want at most %d", site.most, most)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// decode returns how long encoding/xml takes for a URL of a document.
func decode(t *testing.T, document []byte) time.Duration {
	t.Helper()
	_, began := stopwatch()
	if _, err := readTokens(document); err != nil {
		t.Fatal(err)
	}
	_, ended := stopwatch()
	return (ended - began) / perFile
}

// A listing is a site of many sitemaps.
type listing struct {
	files    int
	document []byte // each of them, but for the numbers of its pages

	mu   sync.Mutex
	most int // bytes that the process had when one was asked for
}

// listed returns a sitemap of as many URLs as it may have.
func listed() []byte {
	var doc bytes.Buffer
	doc.WriteString(urlsetHead)
	for i := range perFile {
		fmt.Fprintf(&doc, "  <url>\n    <loc>https://www.example.com/catalogue/%s/section-%d/item-%d.html</loc>\n"+
			"    <lastmod>2024-05-%02dT10:20:30+02:00</lastmod>\n    <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n",
			numberless, i%97, i, i%28+1)
	}
	doc.WriteString("</urlset>\n")
	return doc.Bytes()
}

// numberless is where a document has its number.
const numberless = "######"

// RoundTrip answers with a page, an index of the sitemaps, or a sitemap.
func (l *listing) RoundTrip(r *http.Request) (*http.Response, error) {
	robots := rulesFor(9) + "Sitemap: https://www.example.com/index.xml\n"
	resp, err := (&web{robots: func(string) string { return robots }, page: "<title>x</title>"}).RoundTrip(r)
	var file int
	if r.URL.Path == "/index.xml" {
		resp.Body = io.NopCloser(strings.NewReader(l.index()))
	} else if _, none := fmt.Sscanf(r.URL.Path, "/map%d.xml", &file); none == nil {
		l.measure()
		doc := bytes.ReplaceAll(l.document, []byte(numberless), fmt.Appendf(nil, "%06d", file))
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

// measure notes how much memory the process has.
func (l *listing) measure() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, int(m.Sys-m.HeapReleased))
}
