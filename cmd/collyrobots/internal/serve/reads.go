package serve

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
)

// check serves GET /v1/check.
func (s *service) check(w http.ResponseWriter, r *http.Request) {
	page := r.URL.Query().Get("url")
	agent := r.URL.Query().Get("agent")
	purpose, err := purposeOf(r.URL.Query()["purpose"])
	err = errors.Join(checkURL("url", page), checkAgent(agent), err)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx := collyrobots.WithPurpose(r.Context(), purpose)
	d, err := s.robots.Check(collyrobots.WithUserAgent(ctx, agent), page)
	if err != nil {
		retryAfter(w, 5*time.Second)
		fail(w, http.StatusServiceUnavailable, plain(err))
		return
	}
	respond(w, http.StatusOK, d)
}

// stats serves GET /v1/stats.
func (s *service) stats(w http.ResponseWriter, _ *http.Request) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	respond(w, http.StatusOK, s.robots.Stats())
}

// An entry is a page that a sitemap lists, or an error.
type entry struct {
	Loc        string    `json:"loc,omitempty"`
	LastMod    time.Time `json:"lastmod,omitzero"`
	ChangeFreq string    `json:"changefreq,omitempty"`
	Priority   float64   `json:"priority,omitempty"`
	Sitemap    string    `json:"sitemap,omitempty"`
	Error      string    `json:"error,omitempty"` // if set, the other fields are empty
}

func entryOf(e sitemap.Entry, err error) entry {
	if err != nil {
		return entry{Error: plain(err)}
	}
	return entry{Loc: e.Loc, LastMod: e.LastMod, ChangeFreq: e.ChangeFreq, Priority: e.Priority, Sitemap: e.Sitemap}
}

// sitemap serves GET /v1/sitemap.
func (s *service) sitemap(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	site := q.Get("site")
	since, err := sinceOf(q)
	err = errors.Join(checkURL("site", site), checkAgent(q.Get("agent")), err)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithCancel(collyrobots.WithUserAgent(r.Context(), q.Get("agent")))
	defer cancel()
	defer context.AfterFunc(s.running, cancel)()
	out := newLines(w)
	for e, err := range s.robots.Pages(ctx, collyrobots.Feed{Since: since}, site) {
		if ctx.Err() != nil || out.write(entryOf(e, err)) != nil {
			return
		}
	}
}

// sinceOf returns the time of the parameter since: a date, or a time in RFC 3339.
func sinceOf(q url.Values) (time.Time, error) {
	text := q.Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("since is neither a date such as 2026-01-31 nor a time such as 2026-01-31T12:00:00Z")
	}
	return at, nil
}

// events serves GET /v1/events until the client goes away or the service stops.
func (s *service) events(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	events := make(chan *collyrobots.Event)
	defer s.robots.Listen(func(e *collyrobots.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})()
	out := newLines(w)
	for {
		select {
		case e := <-events:
			if out.write(e) != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-s.running.Done():
			return
		}
	}
}

// lines is a response of JSON lines, each of which is sent at once.
type lines struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// newLines begins a response. Its header is sent at once.
func newLines(w http.ResponseWriter) *lines {
	w.Header().Set("Content-Type", "application/jsonl")
	l := &lines{w: w, rc: http.NewResponseController(w)}
	l.rc.Flush()
	return l
}

// write writes a line. It returns an error if the client does not read it in time.
func (l *lines) write(v any) error {
	l.rc.SetWriteDeadline(time.Now().Add(writeTime))
	err := encode(l.w, v)
	if err != nil {
		return err
	}
	return l.rc.Flush()
}
