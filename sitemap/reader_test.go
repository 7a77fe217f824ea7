package sitemap

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func base(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// locs returns the locations of a document, and its errors.
func locs(t testing.TB, doc string) (got []string, errs []*Error) {
	t.Helper()
	for e, err := range NewReader(strings.NewReader(doc), base(t, "http://example.com/dir/sitemap.xml")).All() {
		if err != nil {
			var se *Error
			if !errors.As(err, &se) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			errs = append(errs, se)
			continue
		}
		got = append(got, e.Loc)
	}
	return got, errs
}

func TestFormats(t *testing.T) {
	for _, doc := range []string{
		`<urlset><url><loc>http://a.test/1</loc></url><url><loc>http://a.test/2</loc></url></urlset>`,
		`<sitemapindex><sitemap><loc>http://a.test/1</loc></sitemap><sitemap><loc>http://a.test/2</loc></sitemap></sitemapindex>`,
		"http://a.test/1\r\nhttp://a.test/2",
		`<rss><channel><link>http://a.test/</link><item><link>http://a.test/1</link></item><item><guid>http://a.test/2</guid></item></channel></rss>`,
		`<feed><link href="http://a.test/"/><entry><link href="http://a.test/1"/></entry><entry><link rel="edit" href="/3"/><link rel='alternate' href='http://a.test/2'/></entry></feed>`,
	} {
		got, errs := locs(t, doc)
		if strings.Join(got, " ") != "http://a.test/1 http://a.test/2" || errs != nil {
			t.Errorf("%s: %v %v", doc, got, errs)
		}
	}
}
