// Package demo serves a few web sites on the loopback interface, with an access log. Programs use
// it for demonstrations that send nothing to other machines.
package demo

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

// Sites are the sites of the demo by host. Names under .test never exist on the internet (RFC 6761,
// section 6.2).
var Sites = map[string]Site{
	// slow.test asks for a crawl delay of one second.
	"slow.test": {
		"/robots.txt": text("User-agent: *\nCrawl-delay: 1\nDisallow: /admin\n"),
		"/":           links("/1", "/2", "/3", "/admin/login"),
		"/1":          links("/4"),
		"/2":          links("/1", "/admin"),
		"/3":          links("/"),
		"/4":          links("/5"),
		"/5":          links(),
		// The following pages are disallowed.
		"/admin":       links(),
		"/admin/login": links(),
	},
	// wild.test has rules with wildcards, and exceptions to them.
	"wild.test": {
		"/robots.txt": text("# Line 1 is a comment.\nUser-agent: *\nDisallow: /*?print$\nDisallow: /*.pdf$\n" +
			"Allow: /manuals/*.pdf$\nDisallow: /*/drafts/\n"),
		"/":              links("/a", "/a?print", "/a?print=no", "/report.pdf", "/manuals/m.pdf", "/anna/drafts/1", "/anna/"),
		"/a":             links("/a?print"),
		"/a?print=no":    links(),
		"/manuals/m.pdf": text("a manual"),
		"/anna/":         links("/anna/drafts/2", "/bob/drafts"),
		"/bob/drafts":    links(),
		// The following pages are disallowed.
		"/a?print":       links(),
		"/report.pdf":    text("a report"),
		"/anna/drafts/1": links(),
		"/anna/drafts/2": links(),
	},
	// moved.test redirects to an allowed page of its own, and to a disallowed page of another host.
	"moved.test": {
		"/robots.txt": text("User-agent: OtherBot\nDisallow: /\n"),
		"/":           links("/old", "/brochure"),
		"/old":        redirect("http://moved.test/new"),
		"/new":        links(),
		"/brochure":   redirect("http://wild.test/brochure.pdf"),
	},
	// down.test answers 503 to requests for robots.txt.
	"down.test": {
		"/robots.txt": Answer{Status: http.StatusServiceUnavailable, Body: []byte("try later")},
		"/":           links("/1"),
		"/1":          links(),
	},
	// maps.test has a sitemap index with two sitemaps, one of them compressed. No page has links to
	// their pages.
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

// A Site maps the paths and queries of a host to its answers.
type Site map[string]Answer

// An Answer is the response to a request.
type Answer struct {
	Status   int    // if 0, the status is 200
	Kind     string // the Content-Type header
	Location string
	Body     []byte
}

func text(body string) Answer { return Answer{Kind: "text/plain", Body: []byte(body)} }

func redirect(to string) Answer { return Answer{Status: http.StatusFound, Location: to} }

func links(paths ...string) Answer {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><title>A page of the demo</title>\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "<p><a href=%q>%s</a></p>\n", html.EscapeString(p), html.EscapeString(p))
	}
	return Answer{Kind: "text/html; charset=utf-8", Body: []byte(b.String())}
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

func compressed(body string) Answer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(body))
	z.Close()
	return Answer{Kind: "application/gzip", Body: b.Bytes()}
}

// A Server serves Sites on one port of the loopback interface, and keeps an access log. The zero
// Server is a handler.
type Server struct {
	server *http.Server
	client *http.Transport

	mu  sync.Mutex
	log []Access
}

// An Access is an entry of the log.
type Access struct {
	At     time.Time
	Host   string
	Path   string // with the query
	Status int
}

// Start starts a server, which runs until Close.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{client: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go s.server.Serve(listener) // ends with Close
	return s, nil
}

// Close stops the server and closes the connections of its Transport.
func (s *Server) Close() {
	s.client.CloseIdleConnections()
	s.server.Close()
}

// Starts returns the URLs of the start pages of all sites.
func Starts() []string {
	var urls []string
	for host := range Sites {
		urls = append(urls, "http://"+host+"/")
	}
	slices.Sort(urls)
	return urls
}

// Transport returns a transport that sends the requests for all hosts to s.
func (s *Server) Transport() http.RoundTripper { return s.client }

// Log returns the requests to a host so far, in their order.
func (s *Server) Log(host string) (log []Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.log {
		if a.Host == host {
			log = append(log, a)
		}
	}
	return log
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	a, ok := Sites[r.Host][r.URL.RequestURI()]
	switch {
	case !ok:
		a = Answer{Status: http.StatusNotFound}
	case a.Status == 0:
		a.Status = http.StatusOK
	}
	access := Access{At: at, Host: r.Host, Path: r.URL.RequestURI(), Status: a.Status}
	s.mu.Lock()
	s.log = append(s.log, access)
	s.mu.Unlock()
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	if a.Kind != "" {
		w.Header().Set("Content-Type", a.Kind)
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}
