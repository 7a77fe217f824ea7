package view

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
)

// A state is what a page is told of the crawl: docs/view.md has each field. Durations are texts
// such as "1.5s", as in Stats.
type state struct {
	Time    time.Time `json:"time"`
	Started time.Time `json:"started,omitzero"`
	Closed  bool      `json:"closed,omitempty"` // the plugin is

	Totals       collyrobots.HostStats                           `json:"totals"`
	Rate         float64                                         `json:"rate"` // requests a second, over the last ten
	GapOverDelay float64                                         `json:"gap_over_delay"`
	Decisions    map[collyrobots.Reason]int                      `json:"decisions,omitempty"`
	Policies     map[collyrobots.Meaning]collyrobots.PolicyStats `json:"policies,omitempty"`
	Left         *left                                           `json:"left,omitempty"` // nil: nothing waits
	Known        int                                             `json:"known"`          // hosts in all
	Matching     int                                             `json:"matching"`       // of those, what q asks for
	Busy         int                                             `json:"busy"`           // hosts for which something waits
	Hosts        []hostState                                     `json:"hosts"`
	Denials      *[]denial                                       `json:"denials,omitempty"`
	DeniedBy     map[string]int                                  `json:"denied_by,omitempty"` // as far as it was heard of
	Sitemaps     *sitemapsState                                  `json:"sitemaps,omitempty"`
	Missed       int                                             `json:"missed,omitempty"` // events that are in no chart and no list
}

// A left is how long what waits now will take, and which host decides that.
type left struct {
	Duration duration                `json:"duration"`
	Host     string                  `json:"host"`
	Waiting  int                     `json:"waiting"`
	Delay    duration                `json:"delay"`
	Source   collyrobots.DelaySource `json:"source,omitempty"`
	Line     int                     `json:"line,omitempty"`
}

// A hostState is a row of the table.
type hostState struct {
	Stats  collyrobots.HostStats `json:"stats"`
	Left   duration              `json:"left"`            // how long what waits for it will take
	Fresh  bool                  `json:"fresh,omitempty"` // Starts has all dots: forget what was known of the host
	Starts dots                  `json:"starts,omitempty"`
}

type sitemapsState struct {
	Stats collyrobots.FeedStats `json:"stats"`
	Files []sitemapFile         `json:"files"`
}

// A duration is a time.Duration that is written as a text.
type duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// A cursor is how much of the state somebody was told before. The zero cursor: nothing.
type cursor struct {
	shown    map[string]bool // hosts
	dots     uint64
	lists    uint64
	feed     collyrobots.FeedStats
	notFirst bool
}

// maxListed is how many denials and sitemaps a state has.
const maxListed = 60

// stateFor returns the state for a question, but for what c was told before, and moves c.
func (h *handler) stateFor(q question, c *cursor) *state {
	s := h.sampler.read(h.plugin)
	st := &state{
		Time: time.Now(), Started: s.stats.Started, Closed: s.stats.Closed, Totals: s.stats.Totals, GapOverDelay: s.stats.GapOverDelay,
		Decisions: s.stats.Decisions, Policies: s.stats.Policies, Left: s.left, Known: len(s.stats.Hosts), Busy: s.busy,
	}
	rows, matching := q.pick(s.stats.Hosts, s.at)
	st.Matching = matching
	st.Hosts = make([]hostState, 0, len(rows))

	r := h.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	st.DeniedBy = maps.Clone(r.deniedBy)
	st.Rate, st.Missed = r.starts.rate.perSecond(st.Time), r.missed
	shown := make(map[string]bool, len(rows))
	for _, row := range rows {
		host := hostState{Stats: *row, Left: duration(row.Left(s.at)), Fresh: !c.shown[row.Host]}
		change := c.dots
		if host.Fresh {
			change = 0
		}
		host.Starts = r.starts.since(row.Host, change)
		st.Hosts = append(st.Hosts, host)
		shown[row.Host] = true
	}
	if !c.notFirst || c.lists != r.lists || c.feed != s.stats.Sitemaps {
		denials := r.denialsFor(q)
		st.Denials, st.Sitemaps = &denials, &sitemapsState{s.stats.Sitemaps, r.sitemapsFor(q)}
	}
	*c = cursor{shown, r.starts.changes, r.lists, s.stats.Sitemaps, true}
	return st
}

// denialsFor returns the last denials that a question is about. r.mu is held.
func (r *recorder) denialsFor(q question) []denial {
	denials := []denial{}
	for d := range r.denials.all() {
		if len(denials) < maxListed && q.matches(d.Host) {
			denials = append(denials, *d)
		}
	}
	return denials
}

func (r *recorder) sitemapsFor(q question) []sitemapFile {
	files := []sitemapFile{}
	for f := range r.sitemaps.all() {
		if len(files) < maxListed && q.matches(f.Host) {
			files = append(files, *f)
		}
	}
	return files
}

// serveState serves the state as it is now.
func (h *handler) serveState(w http.ResponseWriter, r *http.Request) {
	st := h.stateFor(questionOf(r), &cursor{})
	writeJSON(w, st)
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// Std returns d as package time knows it.
func (d duration) Std() time.Duration { return time.Duration(d) }
