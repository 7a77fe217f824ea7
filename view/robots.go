package view

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/seconds"
	"github.com/collyrobots/collyrobots/report"
)

// A robotsState is a robots.txt with the decisions about a URL for a product token; see
// docs/reference/view.md.
type robotsState struct {
	URL    string      `json:"url"`             // the URL to decide about
	Name   string      `json:"name,omitempty"`  // the product token; if "", the groups of * apply
	Robots string      `json:"robots"`          // the URL of the robots.txt that applies
	File   *robotsFile `json:"file,omitempty"`  // nil if the crawl has not read it since New was called
	Kept   bool        `json:"kept"`            // whether the text of the file is available
	Total  int         `json:"total,omitempty"` // the number of lines of the file
	From   int         `json:"from,omitempty"`  // the number of the first of Lines
	Lines  []string    `json:"lines,omitempty"`

	Readings []reading        `json:"readings,omitempty"` // one for each dialect, if the text is available
	Decision *report.Decision `json:"decision,omitempty"` // the decision of the crawl, for its own product token
	Error    string           `json:"error,omitempty"`    // the reason if Decision is nil
}

// A reading is the decision of one dialect about the URL.
type reading struct {
	Dialect    dialect.Dialect  `json:"dialect"`
	Allowed    bool             `json:"allowed"`
	Rule       dialect.Rule     `json:"rule,omitzero"`
	Group      string           `json:"group,omitempty"`
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	Error      string           `json:"error,omitempty"` // the reason if the dialect did not read the file
}

const (
	maxLines  = 400             // lines in one response
	maxLine   = 2000            // bytes shown of a line
	checkTime = 2 * time.Second // the time limit for the decision of the crawl
)

// trying serializes the requests that parse robots.txt, so that they use at most one processor.
type trying struct{ sync.Mutex }

// serveRobots serves the robots.txt that applies to a URL, and the decisions about the URL.
func (h *Page) serveRobots(w http.ResponseWriter, r *http.Request) {
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

// A requestError reports an invalid parameter of a request.
type requestError string

func (e requestError) Error() string { return string(e) }

const (
	errTooLong = requestError("the URL or product token is too long")
	errNoURL   = requestError("not an http or https URL")
)

// triedURL parses text, which may be relative to base, the URL of a robots.txt. It returns the URL
// and the URL of the robots.txt that applies to it.
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

// try adds the decisions about u to st. It does not change st.File, which is shared.
func (h *Page) try(ctx context.Context, st *robotsState, u *url.URL, from int) {
	decided := 0
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	body := st.File.body
	d, err := h.source.Check(ctx, u.String())
	switch {
	case err == nil:
		st.Decision = &d
		decided = d.Rule.Line
	case errors.Is(err, report.ErrClosed) && body == nil:
		st.Error = "the crawl has ended"
	case errors.Is(err, report.ErrClosed):
		st.Error = "the crawl has ended; these are the readings of its last robots.txt"
	default:
		st.Error = err.Error()
	}
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

// read returns the decision of a dialect about u.
func read(d dialect.Dialect, body []byte, name string, u *url.URL) reading {
	if d == dialect.Temoto() && len(body) > dialect.SizeLimit {
		return reading{Dialect: d, Error: "the file is too large"} // temoto would parse a file of any size
	}
	group := d.Parse(body).Group(name)
	decision := group.DecideURL(u)
	delay, _ := group.CrawlDelay()
	return reading{Dialect: d, Allowed: decision.Allowed, Rule: decision.Rule, Group: group.Name(), CrawlDelay: seconds.Duration(delay)}
}

// linesOf returns at most n lines of a file, beginning with line number from, and the total number
// of lines. A line ends at CR, LF or CR LF, as in every dialect.
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
		total++
		if total >= from && len(lines) < n {
			lines = append(lines, strings.ToValidUTF8(string(body[:min(end, maxLine)]), "\uFFFD"))
		}
		body = body[next:]
	}
	return lines, total
}
