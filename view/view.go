// Package view shows a running crawl on a web page: which host is slow and why, which line of which
// robots.txt denies a request, the requests on a time axis, and the estimated time left. A spider
// shows the page by mounting one handler:
//
//	http.Handle("/robots/", view.New(robots, view.Options{}))
//	go http.ListenAndServe("127.0.0.1:8090", nil)
//
// The page is read-only, except with Options.Control, and uses only files that are embedded in this
// package. It shows every URL
// of the crawl to every client that can reach it, and does not ask for a password. Serve it on the
// loopback interface, or behind a proxy that asks for a password and sets the Host header to
// "localhost". The file docs/view.md of this repository says which requests are rejected, and
// describes the content and the parameters of the pages.
//
// The handler uses only the last element of the path, so it works below any prefix that ends in a
// slash, with or without http.StripPrefix:
//
//	""            the page, with the parameters of state.json
//	state.json    the state that the page shows, as JSON
//	events        the same as server-sent events, whenever it changes
//	host.json     the last requests of one host, and its statuses, gaps and denials
//	report.html   a report of the crawl in one file
//	robots.json   a robots.txt, and the decision of each dialect about a URL for a product token
//	pause         with Options.Control, a POST that pauses the host in its form; resume ends the pause
package view

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"strings"

	"github.com/collyrobots/collyrobots/report"
)

//go:embed assets
var assets embed.FS

// New returns a handler that serves a page about a crawl, which is usually a *collyrobots.Plugin.
// Call it before the crawl starts: it records the starts of requests, denials and robots.txt files
// from then on. It keeps the latest of each in bounded memory. After the plugin is closed, the page
// shows how the crawl ended. If source is nil, the page shows a crawl without hosts. The Page is an
// http.Handler.
//
// The crawl never waits for the page. A stream of events ends after a minute, and the browser opens
// the next one. Therefore Shutdown of an http.Server may take up to a minute while the page is open
// in a browser.
func New(source report.Source, o Options) *Page {
	if source == nil {
		source = noCrawl{}
	}
	h := &Page{name: clip(o.Name), source: source, control: o.Control, recorder: newRecorder()}
	source.Listen(h.recorder.hear)
	return h
}

// Options are the settings of a Page.
type Options struct {
	Name string // the name of the crawl, which the title of the page and the report show

	// Control gives the page buttons that pause hosts. Everyone who can reach the page can use them;
	// pages of other origins cannot. If nil, the page is read-only.
	Control Control
}

// noCrawl is a report.Source without hosts.
type noCrawl struct{}

func (noCrawl) Listen(func(*report.Event)) (stop func()) { return func() {} }

func (noCrawl) StatsFunc(func(report.HostStats)) report.Stats { return report.Stats{} }

func (noCrawl) Check(context.Context, string) (report.Decision, error) {
	return report.Decision{}, errors.New("view: there is no crawl")
}

// A Page serves the page of one crawl, and writes its report. It may be used by several goroutines
// at the same time.
type Page struct {
	name     string
	source   report.Source
	control  Control // nil if the page is read-only
	recorder *recorder
	sampler  sampler
	streams  streams
	trying   trying
}

// ServeHTTP implements http.Handler.
func (h *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header(w)
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	acts := h.isAction(r, name)
	if status, why := refusal(r, acts); status != 0 {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		http.Error(w, why, status)
		return
	}
	if acts {
		h.serveAction(w, r, actions[name])
		return
	}
	switch name {
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
	case "host.json":
		h.serveHost(w, r)
	case "report.html":
		h.serveReport(w, r)
	case "robots.json":
		h.serveRobots(w, r)
	default:
		serveAsset(w, r, name)
	}
}

// addSlash redirects a request for the prefix without its final slash to the page, because relative
// URLs need the slash. The prefix is taken from the request line, because http.StripPrefix removes
// it from r.URL.
func addSlash(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	w.Header().Set("Location", "./"+path[strings.LastIndexByte(path, '/')+1:]+"/")
	w.WriteHeader(http.StatusFound)
}

// types are the media types of the assets by extension. They do not depend on the configuration of
// the system, as those of package mime do.
var types = map[string]string{
	"css": "text/css; charset=utf-8",
	"js":  "text/javascript; charset=utf-8",
	"svg": "image/svg+xml",
}

// serveAsset serves a script, the style sheet or the icon of the page.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	_, extension, _ := strings.Cut(name, ".")
	content, err := assets.ReadFile("assets/" + name)
	if name == "reasons.js" {
		content = reasonsScript()
		err = nil
	}
	if err != nil || types[extension] == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[extension])
	w.Write(content)
}
