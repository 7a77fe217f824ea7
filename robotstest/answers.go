package robotstest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
)

// Page returns an HTML page that contains links.
func Page(links ...string) string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>A page</title>")
	for _, l := range links {
		fmt.Fprintf(&b, "\n<a href=\"%s\">a link</a>", html.EscapeString(l))
	}
	return b.String()
}

// Pages returns a site with a robots.txt, n pages "/0", "/1" and so on, and a page "/" that links
// to them.
func Pages(n int, robots string) Site {
	s := Site{"/robots.txt": robots}
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprint("/", i)
		s[links[i]] = Page()
	}
	s["/"] = Page(links...)
	return s
}

// Redirect returns an answer that redirects to another URL, with status 302.
func Redirect(to string) http.Handler { return http.RedirectHandler(to, http.StatusFound) }

// Sitemap returns a sitemap that lists locs. A loc may begin with its lastmod and a space:
// "2026-01-31 https://a.test/1".
func Sitemap(locs ...string) string { return listing("urlset", "url", locs) }

// SitemapIndex returns a sitemap index that lists the sitemaps at locs. Each loc has the format
// that [Sitemap] accepts.
func SitemapIndex(locs ...string) string { return listing("sitemapindex", "sitemap", locs) }

func listing(root, element string, locs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, root)
	for _, loc := range locs {
		lastmod := ""
		if day, rest, ok := strings.Cut(loc, " "); ok {
			loc, lastmod = rest, "<lastmod>"+html.EscapeString(day)+"</lastmod>"
		}
		fmt.Fprintf(&b, "<%s><loc>%s</loc>%s</%s>", element, html.EscapeString(loc), lastmod, element)
	}
	fmt.Fprintf(&b, "</%s>", root)
	return b.String()
}

// Gzip returns s compressed with gzip.
func Gzip(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s) // writing to a bytes.Buffer never fails
	z.Close()
	return b.Bytes()
}

// handlerOf returns a handler that serves an answer of a [Site]. It returns nil if answer is nil.
func handlerOf(answer any) (http.Handler, error) {
	switch a := answer.(type) {
	case nil:
		return nil, nil
	case string:
		return body{a, contentType(a)}, nil
	case []byte:
		return body{string(a), ""}, nil
	case int:
		if a < 200 || a > 999 {
			return nil, fmt.Errorf("%d is not a valid status", a)
		}
		return status(a), nil
	case http.Handler:
		return a, nil
	case func(http.ResponseWriter, *http.Request):
		return http.HandlerFunc(a), nil
	}
	return nil, fmt.Errorf("a %T is not a valid answer; see Site for the types", answer)
}

// A status is an answer without a body.
type status int

func (s status) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(s)) }

// A body is an answer with status 200. If kind is empty, net/http detects the content type.
type body struct{ text, kind string }

func (b body) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if b.kind != "" {
		w.Header().Set("Content-Type", b.kind)
	}
	io.WriteString(w, b.text)
}

// contentType returns the content type of a string answer.
func contentType(text string) string {
	for _, beginning := range []string{"<?xml", "<urlset", "<sitemapindex"} {
		if strings.HasPrefix(text, beginning) {
			return "application/xml; charset=utf-8"
		}
	}
	if strings.HasPrefix(text, "<") {
		return "text/html; charset=utf-8"
	}
	return "text/plain; charset=utf-8"
}
