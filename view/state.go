package view

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/seconds"
	"github.com/collyrobots/collyrobots/report"
)

// A state is the content of a message to the page. See docs/reference/view.md for each field. Durations are
// numbers of seconds, as in Stats.
type state struct {
	Name    string    `json:"name,omitempty"` // the name of the crawl
	Time    time.Time `json:"time"`
	Started time.Time `json:"started,omitzero"`
	Closed  bool      `json:"closed,omitempty"`   // whether the plugin is closed
	End     time.Time `json:"closed_at,omitzero"` // when it was closed

	Totals       report.HostStats                           `json:"totals"`
	Rate         float64                                    `json:"rate"` // requests per second in the last ten seconds
	GapOverDelay float64                                    `json:"gap_over_delay"`
	Decisions    map[report.Reason]int                      `json:"decisions,omitempty"`
	Policies     map[report.RobotsStatus]report.PolicyStats `json:"policies,omitempty"`
	Ended        map[report.Ending]int                      `json:"ended,omitempty"`     // the number of hosts by their ending
	TimeLeft     *timeLeft                                  `json:"time_left,omitempty"` // nil if no request is waiting
	Known        int                                        `json:"known"`               // the number of hosts
	Matching     int                                        `json:"matching"`            // the number of hosts that match q
	Busy         int                                        `json:"busy"`                // the number of hosts with waiting requests
	Hosts        []hostState                                `json:"hosts"`
	Denials      *[]denial                                  `json:"denials,omitempty"`
	Rules        *[]deniedRule                              `json:"denied_rules,omitempty"`   // the denials of all hosts by rule; only with Denials
	Failures     *[]failedReason                            `json:"failed_reasons,omitempty"` // only with Denials
	Statuses     statuses                                   `json:"statuses"`
	Throttled    float64                                    `json:"throttled_rate,omitempty"` // responses with 429 or 503 per second in the last ten seconds
	Series       *seriesState                               `json:"series,omitempty"`         // requests and failures over the whole crawl
	NotSent      map[report.Ending]int                      `json:"not_sent,omitempty"`       // pages that were not sent, since New was called
	DeniedBy     map[string]int                             `json:"denied_by,omitempty"`      // the number of denials by reason, since New was called
	Sitemaps     *sitemapsState                             `json:"sitemaps,omitempty"`
	Frontier     *frontierState                             `json:"frontier,omitempty"`         // nil without the option Frontier, or if its urlstore.Store has no pages
	RobotsTags   report.RobotsTagStats                      `json:"robots_tags,omitzero"`       // pages with rules such as noindex
	Signatures   *report.SignatureStats                     `json:"signatures,omitempty"`       // nil if no request is signed
	Usage        *report.UsageStats                         `json:"usage,omitempty"`            // nil without the option Purpose
	Licenses     int                                        `json:"license_required,omitempty"` // responses that ask for a license
	Missed       int                                        `json:"missed,omitempty"`           // the number of events that are missing from the charts and lists
	CanPause     bool                                       `json:"can_pause,omitempty"`        // whether the page may pause hosts; see Options.Control
}

// A timeLeft is the estimated time left, and the host that takes longest.
type timeLeft struct {
	Duration seconds.Duration   `json:"duration"`
	Half     seconds.Duration   `json:"half"` // until half of the waiting pages have started
	Most     seconds.Duration   `json:"most"` // until 90 % of them have started
	Host     string             `json:"host"`
	Waiting  int                `json:"waiting"`
	Delay    seconds.Duration   `json:"delay"`
	Source   report.DelaySource `json:"source,omitempty"`
	Line     int                `json:"line,omitempty"`
}

// A hostState is a row of the table.
type hostState struct {
	Stats    report.HostStats `json:"stats"`
	TimeLeft seconds.Duration `json:"time_left"`       // the estimated time left for this host
	Fresh    bool             `json:"fresh,omitempty"` // whether Starts has all dots, so that earlier ones must be discarded
	Starts   dots             `json:"starts,omitempty"`
	Statuses statuses         `json:"statuses"`
	Fault    *robotsFault     `json:"robots_fault,omitempty"` // nil if the robots.txt does not close the host
}

type sitemapsState struct {
	Stats report.FeedStats `json:"stats"`
	Files []sitemapFile    `json:"files"`
}

// A cursor records which part of the state a client has received. The zero cursor means none.
type cursor struct {
	shown    map[string]bool // the hosts of the last message
	dots     uint64
	lists    uint64
	feed     report.FeedStats
	notFirst bool
}

// maxListed is the maximum number of denials, and of sitemaps, in a state.
const maxListed = 60

// stateFor returns the state for a question, except the parts that c says the client has received.
// It then advances c.
func (h *Page) stateFor(q question, c *cursor) *state {
	s := h.sampler.read(h.source, h.recorder, q)
	st := &state{
		Time:         time.Now(),
		Started:      s.stats.Started,
		Name:         h.name,
		Closed:       s.stats.Closed,
		End:          s.stats.ClosedAt,
		Totals:       s.stats.Totals,
		GapOverDelay: s.stats.GapOverDelay,
		Decisions:    s.stats.Decisions,
		Policies:     s.stats.Policies,
		Ended:        s.stats.Ended,
		RobotsTags:   s.stats.RobotsTags,
		Signatures:   s.stats.Signatures,
		Usage:        s.stats.Usage,
		Licenses:     s.stats.LicenseRequired,
		TimeLeft:     s.left,
		Known:        s.known,
		Matching:     s.hosts.matching,
		Busy:         s.busy,
		Frontier:     frontierOf(s.stats.Frontier, s.growth),
		CanPause:     h.control != nil,
	}
	rows := s.hosts.best
	st.Hosts = make([]hostState, 0, len(rows))

	r := h.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	st.DeniedBy = maps.Clone(r.deniedBy)
	st.Rate = r.starts.rate.perSecond(st.Time)
	st.Throttled = r.throttled.perSecond(st.Time)
	st.Missed = r.missed
	st.Statuses = r.counts.all
	st.Series = r.series.state()
	st.NotSent = maps.Clone(r.notSent)
	if s.stats.Frontier == nil { // otherwise these pages wait in the frontier again
		maps.Copy(st.NotSent, s.stats.NotSent)
	}
	shown := make(map[string]bool, len(rows))
	for _, row := range rows {
		host := hostState{
			Stats:    row.HostStats,
			TimeLeft: seconds.Duration(row.TimeLeft(s.at)),
			Fresh:    !c.shown[row.Host],
			Statuses: r.counts.byHost[row.Host],
			Fault:    r.faultOf(row.Host),
		}
		r.starts.show(row.Host, st.Time)
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
		rules := r.rulesFor(q)
		st.Rules = &rules
		st.Denials = &denials
		failures := r.failedReasons()
		st.Failures = &failures
		st.Sitemaps = &sitemapsState{Stats: s.stats.Sitemaps, Files: r.sitemapsFor(q)}
	}
	*c = cursor{shown: shown, dots: r.starts.changes, lists: r.lists, feed: s.stats.Sitemaps, notFirst: true}
	return st
}

// denialsFor returns the latest denials of the hosts that match q. r.mu must be held.
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

// serveState serves the current state.
func (h *Page) serveState(w http.ResponseWriter, r *http.Request) {
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
