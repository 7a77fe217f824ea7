package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/collyrobots/collyrobots/report"
)

// page is the template of the page. Scripts fill it. For browsers without scripts it contains
// tables, and it reloads.
var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"plain": plain, "short": short, "why": why, "pace": pace, "notes": notes, "until": until, "because": because, "times": times, "ending": ending,
}).ParseFS(assets, "assets/page.html"))

// pageData is the data that the page shows without scripts.
type pageData struct {
	*state
	Q string
}

// servePage serves the page.
func (h *Page) servePage(w http.ResponseWriter, r *http.Request) {
	q := questionOf(r)
	var body bytes.Buffer
	if err := page.Execute(&body, pageData{h.stateFor(q, &cursor{}), q.q}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(body.Bytes())
}

// plain makes invisible characters visible, such as those that change the direction of text, and
// truncates long text.
func plain(s string) string {
	const most = 300
	var b strings.Builder
	n := 0
	for _, r := range s {
		n++
		if n > most {
			b.WriteString("…")
			break
		}
		if unicode.IsGraphic(r) && (r == ' ' || !unicode.IsSpace(r)) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}

// short formats a duration for the page: "1.5 s", "2 min 5 s", "3 h 20 min".
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.3g s", max(d, time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// until formats the time from now until t.
func until(t, now time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + short(t.Sub(now))
}

// why returns a description of the source of a host's delay.
func why(s report.HostStats) string {
	switch s.Source {
	case report.SourceCrawlDelay:
		return ofLine("Crawl-delay", s.Line)
	case report.SourceRequestRate:
		return ofLine("Request-rate", s.Line)
	case report.SourceVisitTime:
		return ofLine("Visit-time", s.Line)
	case report.SourceMinDelay:
		return "MinDelay of this crawl"
	case report.SourceHours:
		return "CrawlHours of this crawl"
	case report.SourceAdaptive:
		return "AdaptiveDelay, the host responds in " + short(s.ResponseTime)
	case report.SourceBackOff:
		return "back-off after 429 or 503"
	case report.SourceRetryAfter:
		return "Retry-After"
	case report.SourcePaused:
		return "paused by the operator"
	case report.SourceMaxRate:
		return "MaxRate of this crawl, for all hosts together"
	}
	return "no delay requested"
}

// pace returns how fast requests to a host are sent, in a word or two, as pace in hosts.js.
func pace(h hostState, now time.Time) string {
	if h.Fault != nil {
		return h.Fault.text(now)
	}
	s := h.Stats
	if !s.Stopped.IsZero() {
		return fmt.Sprintf("refusing since %s, next try %s", clock(s.Stopped), clock(s.NextTry))
	}
	if s.Opens.After(now) {
		return "closed until " + clock(s.Opens)
	}
	return short(s.Delay)
}

// notes returns other facts about a host, as notes in hosts.js.
func notes(s report.HostStats) string {
	var all []string
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	isUsedUp := s.MaxPagesPerHost > 0 && s.PagesSent >= s.MaxPagesPerHost
	add(s.SharedWith > 0, "shares its pace with %d other host%s (%s)", s.SharedWith, plural(s.SharedWith), plain(s.Group))
	add(isUsedUp, "budget used up: %d pages", s.MaxPagesPerHost)
	add(s.MaxPagesPerHost > 0 && !isUsedUp, "%d of %d pages sent", s.PagesSent, s.MaxPagesPerHost)
	add(s.RefusalsInRow > 0 && s.Stopped.IsZero(), "refused %d requests in a row", s.RefusalsInRow)
	add(s.Retried > 0, "%d requests repeated, %d pages given up", s.Retried, s.GivenUp)
	add(s.Unchanged > 0, "%d pages unchanged", s.Unchanged)
	return strings.Join(all, ", ")
}

// plural returns the ending of a noun after a number.
func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// text describes the fault, as pace in hosts.js.
func (f *robotsFault) text(now time.Time) string {
	status := "without a response"
	if f.Status > 0 {
		status = strconv.Itoa(f.Status)
	}
	if f.Walled {
		status += " with a web page"
	}
	switch {
	case f.NextTry.IsZero():
		return "closed: robots.txt " + status
	case f.NextTry.After(now):
		return fmt.Sprintf("closed: robots.txt %s, next try in %s", status, short(f.NextTry.Sub(now)))
	}
	return fmt.Sprintf("closed: robots.txt %s, next try with the next page", status)
}

// clock formats a time in the time zone of the crawl, because that of the browser is not known
// without scripts.
func clock(t time.Time) string { return t.Local().Format("2 Jan 15:04 MST") }

// ofLine returns the name of a key of robots.txt and its line, if that is known.
func ofLine(key string, line int) string {
	if line == 0 {
		return key
	}
	return fmt.Sprintf("%s, robots.txt line %d", key, line)
}

// because returns a description of the reason for a denial.
func because(d denial) string {
	reason := report.Reason(d.Reason)
	switch reason {
	case report.ReasonRule:
		if d.Line > 0 {
			file := ""
			if d.Option == "RobotsTxt" {
				file = " of the option RobotsTxt"
			}
			return fmt.Sprintf("Disallow: %s, line %d%s", plain(d.Pattern), d.Line, file)
		}
		return "a rule that " + d.Dialect + " does not report"
	case report.ReasonUnreachable, report.ReasonUsage:
		return reason.Text() + ": " + plain(d.Error)
	case other:
		return plain(d.Error)
	}
	return reason.Text()
}

// reasonsScript returns a script for the page with the texts of the reasons.
func reasonsScript() []byte {
	var texts [][2]string
	for _, r := range report.Reasons() {
		texts = append(texts, [2]string{string(r), r.Text()})
	}
	texts = append(texts, [2]string{other, "not denied by robots.txt"})
	list, _ := json.Marshal(texts) // it has only strings
	return fmt.Appendf(nil, "export const reasons = Object.fromEntries(%s);\n", list)
}

// times formats the ratio of a gap to the delay. It rounds down, so that a gap below the delay
// never appears as 1.00. A line may not break before the multiplication sign.
func times(ratio float64) string { return fmt.Sprintf("%.2f\u00a0×", math.Floor(ratio*100)/100) }
