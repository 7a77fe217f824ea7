package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"html"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// demoSites are the hosts of the demo. Names under .test never exist in the world (RFC 6761, section 6.2).
var demoSites = map[string]demoSite{
	// Asks for a second between two requests.
	"slow.test": {
		"/robots.txt": text("User-agent: *\nCrawl-delay: 1\nDisallow: /admin\n"),
		"/":           links("/1", "/2", "/3", "/admin/login"),
		"/1":          links("/4"),
		"/2":          links("/1", "/admin"),
		"/3":          links("/"),
		"/4":          links("/5"),
		"/5":          links(),
		// What follows is closed.
		"/admin":       links(),
		"/admin/login": links(),
	},
	// Has rules with wildcards, and exceptions to them.
	"wild.test": {
		"/robots.txt": text("# Line 1 is a comment.\nUser-agent: *\nDisallow: /*?print$\nDisallow: /*.pdf$\n" +
			"Allow: /manuals/*.pdf$\nDisallow: /*/drafts/\n"),
		"/":              links("/a", "/a?print", "/a?print=no", "/report.pdf", "/manuals/m.pdf", "/anna/drafts/1", "/anna/"),
		"/a":             links("/a?print"),
		"/a?print=no":    links(),
		"/manuals/m.pdf": text("a manual"),
		"/anna/":         links("/anna/drafts/2", "/bob/drafts"),
		"/bob/drafts":    links(),
		// What follows is closed.
		"/a?print":       links(),
		"/report.pdf":    text("a report"),
		"/anna/drafts/1": links(),
		"/anna/drafts/2": links(),
	},
	// Redirects: to a page that is allowed, and to one that its host disallows.
	"moved.test": {
		"/robots.txt": text("User-agent: OtherBot\nDisallow: /\n"),
		"/":           links("/old", "/brochure"),
		"/old":        redirect("http://moved.test/new"),
		"/new":        links(),
		"/brochure":   redirect("http://wild.test/brochure.pdf"),
	},
	// Cannot say what it allows.
	"down.test": {
		"/robots.txt": answer{status: http.StatusServiceUnavailable, body: []byte("try later")},
		"/":           links("/1"),
		"/1":          links(),
	},
	// Has a sitemap index, of which one file is compressed. No link leads to the pages.
	"maps.test": {
		"/robots.txt": text("User-agent: *\nDisallow: /closed/\nSitemap: http://maps.test/sitemap.xml\n"),
		"/":           links(),
		"/sitemap.xml": text(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` +
			`<sitemap><loc>http://maps.test/books.xml</loc></sitemap>` +
			`<sitemap><loc>http://maps.test/films.xml.gz</loc></sitemap></sitemapindex>`),
		"/books.xml":    text(sitemapOf("/book/1", "/book/2", "/closed/book")),
		"/films.xml.gz": compressed(sitemapOf("/film/1", "/film/2", "/film/3")),
		"/book/1":       links(),
		"/book/2":       links("/film/1"),
		"/film/1":       links(),
		"/film/2":       links(),
		"/film/3":       links(),
		"/closed/book":  links(),
	},
}

// A demoSite is the answers of a host, by path and query.
type demoSite map[string]answer

type answer struct {
	status   int // 0: 200
	kind     string
	location string
	body     []byte
}

func text(body string) answer { return answer{kind: "text/plain", body: []byte(body)} }

func redirect(to string) answer { return answer{status: http.StatusFound, location: to} }

func links(paths ...string) answer {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><title>A page of the demo</title>\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "<p><a href=%q>%s</a></p>\n", html.EscapeString(p), html.EscapeString(p))
	}
	return answer{kind: "text/html; charset=utf-8", body: []byte(b.String())}
}

func sitemapOf(paths ...string) string {
	var b strings.Builder
	b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for _, p := range paths {
		fmt.Fprintf(&b, "<url><loc>http://maps.test%s</loc><lastmod>2026-01-02</lastmod></url>", p)
	}
	b.WriteString("</urlset>")
	return b.String()
}

func compressed(body string) answer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(body))
	z.Close()
	return answer{kind: "application/gzip", body: b.Bytes()}
}

// A demo serves the demo sites on one port of the loopback interface, and keeps an access log.
type demo struct {
	listener net.Listener
	server   *http.Server
	client   *http.Transport

	mu  sync.Mutex
	log []access
}

// An access is a line of the log.
type access struct {
	at     time.Time
	host   string
	path   string // and query
	status int
}

func newDemo() (*demo, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &demo{listener: listener}
	d.server = &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second}
	d.client = &http.Transport{DialContext: d.dial}
	go d.server.Serve(listener) // ends with close
	return d, nil
}

func (d *demo) close() {
	d.client.CloseIdleConnections()
	d.server.Close()
}

// starts returns the start page of each site.
func (d *demo) starts() []string {
	var urls []string
	for host := range demoSites {
		urls = append(urls, "http://"+host+"/")
	}
	slices.Sort(urls)
	return urls
}

// transport returns a client's transport to which every name is one of the demo's.
func (d *demo) transport() http.RoundTripper { return d.client }

func (d *demo) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, d.listener.Addr().String())
}

func (d *demo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	a, ok := demoSites[r.Host][r.URL.RequestURI()]
	switch {
	case !ok:
		a = answer{status: http.StatusNotFound}
	case a.status == 0:
		a.status = http.StatusOK
	}
	d.mu.Lock()
	d.log = append(d.log, access{at, r.Host, r.URL.RequestURI(), a.status})
	d.mu.Unlock()
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	if a.kind != "" {
		w.Header().Set("Content-Type", a.kind)
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}
