package crawl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/report"
)

// waits describes what a crawl is waiting for. It returns a line for each of the hosts that take
// longest, at most as many as most says, and a line for the other hosts together.
func waits(s collyrobots.Stats, now time.Time, most int) (lines []string) {
	var hosts []report.HostStats
	for _, h := range s.Hosts {
		if waiting(h) > 0 || h.NextStart.After(now) {
			hosts = append(hosts, h)
		}
	}
	if waiting(s.Totals) > 0 {
		hosts = slices.DeleteFunc(hosts, func(h report.HostStats) bool { return waiting(h) == 0 })
	}
	slices.SortStableFunc(hosts, func(a, b report.HostStats) int {
		return cmp.Or(cmp.Compare(b.TimeLeft(now), a.TimeLeft(now)), b.NextStart.Compare(a.NextStart))
	})
	if len(hosts) == 0 {
		return []string{"waiting for responses"}
	}
	rest := waiting(s.Totals)
	for _, h := range hosts[:min(most, len(hosts))] {
		lines = append(lines, wait(h, now))
		rest -= waiting(h)
	}
	if n := len(hosts) - most; n > 0 && rest > 0 {
		lines = append(lines, fmt.Sprintf("%s waiting for %s", term.Number(rest, "more page"), term.Number(n, "other host")))
	}
	return lines
}

// waiting returns the number of pages of a host that wait, in the plugin and in the frontier.
func waiting(h report.HostStats) int { return h.Waiting + h.OnDisk }

// wait describes how long a crawl is waiting for a host, and why.
func wait(h report.HostStats, now time.Time) string {
	next := "after its response"
	if until := h.NextStart.Sub(now); until > 0 {
		next = "in " + seconds(until)
	}
	line := fmt.Sprintf("%s waiting for %s, next %s", term.Number(waiting(h), "page"), h.Host, next)
	switch waiting(h) {
	case 0: // its pages are not known yet, or its sitemaps are read
		line = fmt.Sprintf("waiting for %s, next request %s", h.Host, next)
	case 1:
	default:
		line += fmt.Sprintf(", about %s left", seconds(h.TimeLeft(now)))
	}
	if why := source(h); why != "" {
		line += " (" + why + ")"
	}
	return line
}

// seconds formats a time that is counted down.
func seconds(d time.Duration) string {
	if d < time.Second {
		return term.Duration(max(d.Round(100*time.Millisecond), 100*time.Millisecond))
	}
	return term.Duration(d.Round(time.Second))
}

// ofLine appends the line of robots.txt to a text, if it is known.
func ofLine(text string, line int) string {
	if line == 0 {
		return text
	}
	return fmt.Sprintf("%s, line %d", text, line)
}

// source describes the source of a host's delay.
func source(h report.HostStats) string {
	switch h.Source {
	case report.SourceCrawlDelay:
		return ofLine(fmt.Sprintf("Crawl-delay: %v", h.CrawlDelay.Seconds()), h.Line)
	case report.SourceRequestRate:
		return ofLine(fmt.Sprintf("Request-rate, %v", h.Delay), h.Line)
	case report.SourceVisitTime:
		return ofLine("Visit-time", h.Line)
	case report.SourceHours:
		return "-hours"
	case report.SourceAdaptive:
		return fmt.Sprintf("-adaptive, response time %s", term.Duration(h.ResponseTime))
	case report.SourceMinDelay:
		return fmt.Sprintf("-delay %v", h.Delay)
	case report.SourceBackOff:
		return fmt.Sprintf("back-off of %s after 429 or 503", term.Duration(h.Delay))
	case report.SourceRetryAfter:
		return "Retry-After"
	case report.SourceMaxRate:
		return "-max-rate"
	}
	return ""
}
