package sitemap_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A document with a mistake still gives everything else in it.
func ExampleReader() {
	base, _ := url.Parse("https://example.com/sitemap.xml")
	const doc = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>https://example.com/</loc><lastmod>2024-05-06</lastmod></url>
  <url><loc>mailto:info@example.com</loc></url>
  <url><loc>/about?a=1&b=2#top</loc><lastmod>last week</lastmod></url>
</urlset>`
	for entry, err := range sitemap.NewReader(strings.NewReader(doc), base).All() {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(entry.Loc, entry.LastMod.Format("2006-01-02"))
	}
	// Output:
	// https://example.com/ 2024-05-06
	// sitemap https://example.com/sitemap.xml: offset 142: location is no http or https URL: loc "mailto:info@example.com"
	// sitemap https://example.com/sitemap.xml: offset 219: value cannot be read: lastmod "last week"
	// https://example.com/about?a=1&b=2 0001-01-01
}

// Stopping at the first error is the wrong way to use a walk: one child that
// is missing would cost all that come after it.
func ExampleWalk() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index.xml":
			io.WriteString(w, `<sitemapindex>
				<sitemap><loc>/gone.xml</loc></sitemap>
				<sitemap><loc>/pages.txt</loc></sitemap></sitemapindex>`)
		case "/pages.txt":
			io.WriteString(w, "https://example.com/1\nhttps://example.com/2\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	defer http.DefaultClient.CloseIdleConnections()

	errStatus := errors.New("not found")
	open := func(ctx context.Context, loc string) (io.ReadCloser, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, loc, nil)
		if err != nil {
			return nil, "", err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, "", err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, "", errStatus
		}
		return resp.Body, resp.Request.URL.String(), nil
	}
	for entry, err := range sitemap.Walk(context.Background(), site.URL+"/index.xml", open) {
		if err != nil {
			fmt.Println("error:", errors.Is(err, errStatus))
			continue
		}
		fmt.Println(entry.Loc)
	}
	// Output:
	// error: true
	// https://example.com/1
	// https://example.com/2
}
