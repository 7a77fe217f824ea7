package view

import (
	"net/http"

	"github.com/collyrobots/collyrobots/report"
)

// A hostDetails describes one host; see docs/reference/view.md.
type hostDetails struct {
	Host     string            `json:"host"`
	Stats    *report.HostStats `json:"stats,omitempty"` // nil if there is no such host
	Statuses statuses          `json:"statuses"`
	Fault    *robotsFault      `json:"robots_fault,omitempty"`
	Gaps     []uint32          `json:"gaps,omitempty"` // the counts of gaps up to each of Bounds, and above the last one
	Bounds   []float64         `json:"gap_bounds"`     // multiples of the delay
	Requests []request         `json:"requests"`       // the latest ones, newest first
	Denials  []denial          `json:"denials"`
}

// serveHost serves the details of one host.
func (h *Page) serveHost(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("host")
	if name == "" || len(name) > maxText {
		http.Error(w, "the parameter host must be the name of a host", http.StatusBadRequest)
		return
	}
	q := question{q: name, exact: true, sort: "host", n: 1}
	details := &hostDetails{Host: name, Bounds: gapBounds[:], Requests: []request{}, Denials: []denial{}}
	for _, picked := range h.sampler.read(h.source, h.recorder, q).hosts.best {
		details.Stats = &picked.HostStats
	}
	h.recorder.addDetails(details)
	writeJSON(w, details)
}

// addDetails adds what the recorder has about the host.
func (r *recorder) addDetails(d *hostDetails) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Statuses = r.counts.byHost[d.Host]
	d.Fault = r.faultOf(d.Host)
	for denial := range r.denials.all() {
		if denial.Host == d.Host && len(d.Denials) < maxListed {
			d.Denials = append(d.Denials, *denial)
		}
	}
	history, ok := r.starts.hosts.get(d.Host)
	if !ok {
		return
	}
	d.Gaps = append(d.Gaps, history.gaps[:]...)
	for i := len(history.requests) - 1; i >= 0; i-- {
		d.Requests = append(d.Requests, history.requests[i])
	}
}
