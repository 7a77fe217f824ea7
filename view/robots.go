package view

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

// A robotsState is a robots.txt, and what it says about a URL to a name: see docs/view.md.
type robotsState struct {
	URL    string      `json:"url"`             // that is tried
	Name   string      `json:"name,omitempty"`  // the product token; "": nobody's, the groups of *
	Robots string      `json:"robots"`          // the URL of the robots.txt that governs it
	File   *robotsFile `json:"file,omitempty"`  // nil: the crawl has not read it since the page's handler was made
	Kept   bool        `json:"kept"`            // whether the file's text is there
	Total  int         `json:"total,omitempty"` // lines of the file
	From   int         `json:"from,omitempty"`  // the number of the first of Lines
	Lines  []string    `json:"lines,omitempty"`

	Readings []reading             `json:"readings,omitempty"` // of each dialect, if the text is there
	Decision *collyrobots.Decision `json:"decision,omitempty"` // what the crawl itself decides, under its own name
	Error    string                `json:"error,omitempty"`    // why there is no Decision
}

// A reading is what one dialect makes of the URL.
type reading struct {
	Dialect    dialect.Dialect `json:"dialect"`
	Allowed    bool            `json:"allowed"`
	Rule       dialect.Rule    `json:"rule,omitzero"`
	Group      string          `json:"group,omitempty"`
	CrawlDelay duration        `json:"crawl_delay,omitempty"`
	Error      string          `json:"error,omitempty"` // why it was not read
}

const (
	maxLines  = 400             // of a file in one answer
	maxLine   = 2000            // octets of a line that are shown
	checkTime = 2 * time.Second // in which the crawl has to decide
)

// trying makes those who try URLs wait for each other: it costs the crawl at most one processor.
type trying struct{ sync.Mutex }

// serveRobots serves the robots.txt that governs a URL, and the decisions about that.
func (h *handler) serveRobots(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	u, at, err := triedURL(values.Get("robots"), values.Get("url"))
	name := values.Get("name")
	if err == nil && len(name) > maxQ {
		err = errTooLong
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, _ := strconv.Atoi(values.Get("from"))
	st := &robotsState{URL: u.Redacted(), Name: name, Robots: at}
	h.recorder.mu.Lock()
	st.File, _ = h.recorder.files.get(clip(at))
	h.recorder.mu.Unlock()
	if st.File != nil {
		h.trying.Lock()
		defer h.trying.Unlock()
		h.try(r.Context(), st, u, from)
	}
	writeJSON(w, st)
}

// A requestError is what is wrong with a URL that somebody wants to try.
type requestError string

func (e requestError) Error() string { return string(e) }

const (
	errTooLong = requestError("that is too long")
	errNoURL   = requestError("that is no http or https URL")
)

// triedURL returns the URL that is meant, which may be relative to that of a robots.txt, and the
// URL of the robots.txt that governs it.
func triedURL(base, text string) (u *url.URL, robots string, err error) {
	if len(base) > 2*maxText || len(text) > 2*maxText {
		return nil, "", errTooLong
	}
	u, err = url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, "", errNoURL
	}
	if !u.IsAbs() {
		b, err := url.Parse(base)
		if err != nil {
			return nil, "", errNoURL
		}
		u = b.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", errNoURL
	}
	at, err := dialect.Locate(u)
	if err != nil {
		return nil, "", errNoURL
	}
	return u, at.String(), nil
}

// try fills in what the file says about u. Every field of st.File but the body is shared and not
// changed.
func (h *handler) try(ctx context.Context, st *robotsState, u *url.URL, from int) {
	decided := 0
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if d, err := h.plugin.Check(ctx, u.String()); err != nil {
		st.Error = err.Error()
	} else {
		st.Decision, decided = &d, d.Rule.Line
	}
	body := st.File.body
	if body == nil {
		return
	}
	st.Kept = true
	for _, d := range dialect.All() {
		st.Readings = append(st.Readings, read(d, body, st.Name, u))
	}
	if from < 1 {
		for _, r := range st.Readings {
			if decided == 0 {
				decided = r.Rule.Line
			}
		}
		from = decided - maxLines/2
	}
	st.From = max(1, from)
	st.Lines, st.Total = linesOf(body, st.From, maxLines)
}

// read returns what a dialect makes of u in a file.
func read(d dialect.Dialect, body []byte, name string, u *url.URL) reading {
	if d == dialect.Temoto() && len(body) > dialect.SizeLimit {
		return reading{Dialect: d, Error: "the file is too large to be tried here"} // temoto has no limit
	}
	group := d.Parse(body).Group(name)
	decision := group.DecideURL(u)
	delay, _ := group.CrawlDelay()
	return reading{Dialect: d, Allowed: decision.Allowed, Rule: decision.Rule, Group: group.Name(), CrawlDelay: duration(delay)}
}

// linesOf returns at most n lines of a file from line number from on, and how many there are in
// all. They end as the lines of every dialect end: at CR, LF or CR LF.
func linesOf(body []byte, from, n int) (lines []string, total int) {
	for len(body) > 0 {
		end, next := len(body), len(body)
		for i, c := range body {
			if c == '\n' || c == '\r' {
				end, next = i, i+1
				if c == '\r' && next < len(body) && body[next] == '\n' {
					next++
				}
				break
			}
		}
		if total++; total >= from && len(lines) < n {
			lines = append(lines, strings.ToValidUTF8(string(body[:min(end, maxLine)]), "\uFFFD"))
		}
		body = body[next:]
	}
	return lines, total
}
