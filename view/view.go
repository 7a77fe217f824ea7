// Package view shows a running crawl on a web page: which host is slow and why, what is denied by
// which line of which robots.txt, what the requests look like on a time axis, and how long what
// waits will take. Any spider gets it by mounting one handler:
//
//	http.Handle("/robots/", view.Handler(robots))
//	go http.ListenAndServe("127.0.0.1:8090", nil)
//
// The page is read-only, and made of nothing but what this package embeds. It shows every URL of
// the crawl to whoever can reach it and asks nobody for a password: it belongs on the loopback
// interface, or behind something that asks. It refuses what another web site makes a browser ask
// for, and requests for a host name that is neither localhost, or below that, nor an IP address,
// which is how a site would get around that (DNS rebinding); a proxy in front of it sets the Host
// header to "localhost".
//
// The handler answers by the last element of the path, so it works below any prefix that ends in a
// slash, with or without http.StripPrefix:
//
//	""            the page; with the parameters of state.json
//	state.json    what it shows, as JSON
//	events        the same as server-sent events, as it changes
//	robots.json   a robots.txt, and what each dialect makes of a URL under a name
//
// What is in them, and which parameters there are, is in docs/view.md of this repository.
package view

import (
	"embed"
	"net/http"
	"strings"

	"github.com/collyrobots/collyrobots"
)

//go:embed assets
var assets embed.FS

// Handler returns a page about the crawl of p. Call it before the crawl: starts of requests,
// denials and robots.txt files are remembered from now on, the last ones of each in bounded memory,
// until p is closed; after that it shows how the crawl ended. With nil it shows a crawl without
// hosts.
//
// The crawl never waits for the page. A stream of events ends by itself after a minute, and the
// browser asks for the next one: Shutdown of an http.Server may take that long while somebody
// looks.
func Handler(p *collyrobots.Plugin) http.Handler {
	h := &handler{plugin: p, recorder: newRecorder()}
	p.Listen(h.recorder.hear)
	return h
}

// A handler serves what is known of one crawl.
type handler struct {
	plugin   *collyrobots.Plugin
	recorder *recorder
	sampler  sampler
	streams  streams
	trying   trying
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header(w)
	if status, why := refusal(r); status != 0 {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		http.Error(w, why, status)
		return
	}
	switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
	case "":
		if r.URL.Path == "" {
			addSlash(w, r)
			return
		}
		h.servePage(w, r)
	case "state.json":
		h.serveState(w, r)
	case "events":
		h.serveEvents(w, r)
	case "robots.json":
		h.serveRobots(w, r)
	default:
		serveAsset(w, r, name)
	}
}

// addSlash sends who asks for the prefix without its slash to the page: relative URLs need it. The
// prefix is known to the request line alone.
func addSlash(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	w.Header().Set("Location", "./"+path[strings.LastIndexByte(path, '/')+1:]+"/")
	w.WriteHeader(http.StatusFound)
}

// types are the media types of the assets, which may differ from what the system says.
var types = map[string]string{
	"css": "text/css; charset=utf-8",
	"js":  "text/javascript; charset=utf-8",
	"svg": "image/svg+xml",
}

// serveAsset serves one of the files that the page is made of.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	_, extension, _ := strings.Cut(name, ".")
	content, err := assets.ReadFile("assets/" + name)
	if err != nil || types[extension] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[extension])
	w.Write(content)
}
