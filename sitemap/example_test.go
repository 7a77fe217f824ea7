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

// A document with mistakes still yields all its valid entries and fields.
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
	// sitemap: https://example.com/sitemap.xml: offset 142: location is not a valid http or https URL: loc "mailto:info@example.com"
	// sitemap: https://example.com/sitemap.xml: offset 219: invalid value: lastmod "last week"
	// https://example.com/about?a=1&b=2 0001-01-01
}

// files maps the URLs of a site to its sitemaps. Its method open is an Opener.
type files map[string]string

func (f files) open(_ context.Context, loc string) (io.ReadCloser, string, error) {
	content, ok := f[loc]
	if !ok {
		return nil, "", errors.New("no such file")
	}
	return io.NopCloser(strings.NewReader(content)), loc, nil
}

// A walk continues after an error, and its loop should do the same. A loop that stops at the first
// error is wrong: if one sitemap of an index is missing, it loses all sitemaps after it.
func ExampleWalk() {
	site := files{
		"https://example.com/index.xml": `<sitemapindex>
			<sitemap><loc>https://example.com/pages.xml</loc></sitemap>
			<sitemap><loc>https://example.com/gone.xml</loc></sitemap>
			<sitemap><loc>/news.txt</loc></sitemap>
		</sitemapindex>`,
		"https://example.com/pages.xml": "<urlset><url><loc>https://example.com/1</loc></url></urlset>",
		"https://example.com/news.txt":  "https://example.com/2\nhttps://example.com/3\n",
	}
	for entry, err := range sitemap.Walk(context.Background(), "https://example.com/index.xml", site.open) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(entry.Loc, "of", entry.Sitemap)
	}

	for entry, err := range sitemap.Walk(context.Background(), "https://example.com/index.xml", site.open) {
		if err != nil {
			break // wrong
		}
		fmt.Println("only", entry.Loc)
	}
	// Output:
	// https://example.com/1 of https://example.com/pages.xml
	// sitemap: https://example.com/gone.xml: offset 0: no such file
	// https://example.com/2 of https://example.com/news.txt
	// https://example.com/3 of https://example.com/news.txt
	// only https://example.com/1
}

// A Walker sets the limits of a walk. If its field Extensions is set, it also reads Google's
// extensions of each page.
func ExampleWalker() {
	site := files{"https://example.com/sitemap.xml": `<urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
		<url><loc>https://example.com/1</loc><image:image><image:loc>/1.png</image:loc></image:image></url>
		<url><loc>https://example.com/2</loc></url>
		<url><loc>https://example.com/3</loc></url>
	</urlset>`}
	walker := sitemap.Walker{Limits: sitemap.Limits{URLs: 2}, Extensions: true}
	for entry, err := range walker.Walk(context.Background(), "https://example.com/sitemap.xml", site.open) {
		var limit *sitemap.LimitError
		if errors.As(err, &limit) {
			fmt.Println("stopped by", limit.Limit, limit.Max)
			continue
		}
		fmt.Println(entry.Loc, entry.Images)
	}
	// Output:
	// https://example.com/1 [{https://example.com/1.png    }]
	// https://example.com/2 []
	// stopped by URLs 2
}

// An Opener that fetches with net/http. Reads of the body must fail once ctx is done. The body of a
// request that was created with ctx does that.
func ExampleOpener() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved.xml" {
			http.Redirect(w, r, "/sitemap.xml", http.StatusMovedPermanently)
			return
		}
		io.WriteString(w, "<urlset><url><loc>https://example.com/1</loc></url></urlset>")
	}))
	defer site.Close()
	defer http.DefaultClient.CloseIdleConnections()

	var open sitemap.Opener = func(ctx context.Context, loc string) (io.ReadCloser, string, error) {
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
			return nil, "", errors.New(resp.Status)
		}
		return resp.Body, resp.Request.URL.String(), nil
	}
	for entry, err := range sitemap.Walk(context.Background(), site.URL+"/moved.xml", open) {
		fmt.Println(entry.Loc, strings.TrimPrefix(entry.Root, site.URL), err)
	}
	// Output:
	// https://example.com/1 /sitemap.xml <nil>
}
