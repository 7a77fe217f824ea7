package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// ending says when and why the crawl has ended, and how many pages were left, as ended in view.js.
// It returns "" if the crawl has not ended.
func ending(d pageData) string {
	st := d.state
	if !st.Closed {
		return ""
	}
	return fmt.Sprintf(" The crawl ended on %s after %s. %s %s", clock(st.End), short(st.End.Sub(st.Started).Truncate(time.Second)), st.cause(), st.leftover())
}

// cause says why the crawl has ended.
func (st *state) cause() string {
	var all []string
	if n := st.Ended[report.EndingCanceled]; n > 0 {
		all = append(all, fmt.Sprintf("It was canceled while %s had pages.", many(n, "host")))
	}
	if n := st.Ended[report.EndingClosed]; n > 0 {
		all = append(all, fmt.Sprintf("It was closed while %s had pages.", many(n, "host")))
	}
	if len(all) > 0 {
		return strings.Join(all, " ")
	}
	if n := st.Ended[report.EndingThrottled]; n > 0 {
		return fmt.Sprintf("Pages of %s were given up, because of status 429 or 503.", many(n, "host"))
	}
	if st.Ended[report.EndingBudget]+st.Ended[report.EndingRefused] > 0 {
		return "No page was waiting."
	}
	return "All pages were done."
}

// leftover says which pages were not sent.
func (st *state) leftover() string {
	var all []string
	add := func(n int, what string) {
		if n > 0 {
			all = append(all, many(n, "page")+" "+what)
		}
	}
	add(st.NotSent[report.EndingCanceled], "canceled")
	add(st.NotSent[report.EndingClosed], "waiting when it was closed")
	add(st.NotSent[report.EndingBudget], "over the budget")
	add(st.NotSent[report.EndingRefused], "of hosts that refuse")
	if st.Frontier != nil {
		add(st.Frontier.Waiting, "in the frontier")
	}
	if len(all) == 0 {
		return "No page was left."
	}
	return "Left: " + strings.Join(all, ", ") + "."
}

// many returns a number with a noun.
func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
