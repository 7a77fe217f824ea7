package view

import (
	"net/http"
)

// A Control pauses hosts of a crawl. It is usually the *collyrobots.Plugin of the crawl.
type Control interface {
	// Pause stops the requests to a host, or to all hosts if host is "".
	Pause(host string) error
	// Resume ends the pause of a host, or all pauses if host is "".
	Resume(host string) error
}

// actions are what a POST to the page can do, by the last element of its path.
var actions = map[string]func(Control, string) error{
	"pause":  Control.Pause,
	"resume": Control.Resume,
}

// serveAction pauses or resumes the host in the form of a request. An empty host means all hosts, so
// the form must have the field.
func (h *Page) serveAction(w http.ResponseWriter, r *http.Request, act func(Control, string) error) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*maxText)
	err := r.ParseForm()
	if err != nil || len(r.PostForm["host"]) != 1 {
		http.Error(w, "the form must have one field, host", http.StatusBadRequest)
		return
	}
	err = act(h.control, r.PostForm.Get("host"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// isAction reports whether a request, which is to be answered by this page, pauses or resumes a host.
func (h *Page) isAction(r *http.Request, name string) bool {
	return h.control != nil && r.Method == http.MethodPost && actions[name] != nil
}
