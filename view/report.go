package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"
)

// reportHosts is the number of hosts in a report.
const reportHosts = maxRows

// reportPage is the template of the report.
var reportPage = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"plain": plain, "short": short, "why": why, "pace": pace, "notes": notes, "because": because, "times": times, "clock": clock,
	"ruleText": ruleText, "bars": barsOf, "line": sparkline, "many": many,
}).ParseFS(assets, "assets/report.html"))

// reportStyle is the style sheet of the report, which is part of the file.
var reportStyle = func() string {
	style, err := assets.ReadFile("assets/report.css")
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(style)
}()

// reportPolicy is the Content-Security-Policy of the report. It allows only its own style sheet.
var reportPolicy = func() string {
	sum := sha256.Sum256([]byte(reportStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}()

// reportData is the content of a report.
type reportData struct {
	*state
	Style  template.CSS
	Policy string
	Cause  string // why the crawl has ended; "" if it has not
	Left   string
	Took   time.Duration
}

// WriteReport writes a report of the crawl as one HTML file, which needs no other files, no scripts
// and no network. It has the sums, the responses, the denials by rule, the sitemaps, and the 200
// hosts with the most pages. Call it after Close of the plugin, so that it also says when the crawl
// ended, why, and how many pages were left. Before that it says that the crawl is running. The
// error is that of w.
func (h *Page) WriteReport(w io.Writer) error {
	var body bytes.Buffer
	st := h.stateFor(question{sort: "done", n: reportHosts}, &cursor{})
	data := reportData{state: st, Style: template.CSS(reportStyle), Policy: reportPolicy, Took: st.Time.Sub(st.Started)}
	if st.Closed {
		data.Cause = st.cause()
		data.Left = st.leftover()
		data.Took = st.End.Sub(st.Started)
	}
	data.Took = data.Took.Truncate(time.Second)
	if err := reportPage.Execute(&body, data); err != nil {
		return err
	}
	_, err := w.Write(body.Bytes())
	return err
}

// serveReport serves the report.
func (h *Page) serveReport(w http.ResponseWriter, _ *http.Request) {
	var body bytes.Buffer
	if err := h.WriteReport(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", reportPolicy+"; frame-ancestors 'none'")
	w.Write(body.Bytes())
}

// ruleText returns the text of the rule, or the reason, of denials.
func ruleText(d deniedRule) string {
	if d.Reason == "rule" && d.Pattern != "" {
		key := "Disallow"
		if d.Allow {
			key = "Allow"
		}
		return key + ": " + plain(d.Pattern)
	}
	if d.Reason == other {
		return "not denied by robots.txt"
	}
	return because(denial{Reason: d.Reason, Option: d.Option, Error: "see the hosts"})
}

// A chartBar is a bar of a chart in the report.
type chartBar struct {
	Name  string
	Class string
	Count uint32
	Width float64 // in percent of the widest bar
}

// barsOf returns the bars of the statuses that have occurred.
func barsOf(s statuses) []chartBar {
	all := []chartBar{
		{Name: "2xx", Class: "good", Count: s.OK},
		{Name: "3xx", Class: "good", Count: s.Redirect},
		{Name: "4xx", Class: "warn", Count: s.Refused},
		{Name: "429 or 503", Class: "bad", Count: s.Throttled},
		{Name: "other 5xx", Class: "bad", Count: s.Failed},
		{Name: "no response", Class: "bad", Count: s.NoResponse},
	}
	most := uint32(1)
	for _, b := range all {
		most = max(most, b.Count)
	}
	var some []chartBar
	for _, b := range all {
		if b.Count == 0 {
			continue
		}
		b.Width = 100 * float64(b.Count) / float64(most)
		some = append(some, b)
	}
	return some
}

// sparkline returns the path of a line through values in a box of 120 by 24.
func sparkline(values []int, most int) string {
	if len(values) < 2 {
		return ""
	}
	var b strings.Builder
	for i, n := range values {
		fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(i, 1)], float64(i)*120/float64(len(values)-1), 23-22*float64(n)/float64(max(most, 1)))
	}
	return b.String()
}

// Most returns the largest number of requests in a bin.
func (s *seriesState) Most() int {
	most := 0
	for _, n := range s.Starts {
		most = max(most, n)
	}
	for _, n := range s.Failures {
		most = max(most, n)
	}
	return most
}

// Peak returns the largest number of requests per second, as the average of a bin.
func (s *seriesState) Peak() string { return fmt.Sprintf("%.1f", float64(s.Most())/float64(s.Width)) }
