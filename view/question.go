package view

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A question selects hosts: the first n, ordered by sort, of the hosts whose names contain q.
type question struct {
	q       string // in lower case
	exact   bool   // whether q is the whole name of one host
	sort    string // a key of orders
	reverse bool
	n       int
}

const (
	rows    = 50 // the default for n
	maxRows = 200
	maxQ    = 255
)

// questionOf parses the parameters of a request. It replaces invalid values by the defaults.
func questionOf(r *http.Request) question {
	values := r.URL.Query()
	q := question{q: strings.ToLower(strings.TrimSpace(values.Get("q")))}
	if len(q.q) > maxQ {
		q.q = q.q[:maxQ]
	}
	q.sort, q.reverse = strings.CutPrefix(values.Get("sort"), "-")
	if orders[q.sort] == nil {
		q.sort = "left"
		q.reverse = false
	}
	q.n, _ = strconv.Atoi(values.Get("n"))
	if q.n < 1 {
		q.n = rows
	}
	q.n = min(q.n, maxRows)
	return q
}

// matches reports whether the name of a host contains q.
func (q question) matches(host string) bool {
	if q.exact {
		return host == q.q
	}
	return q.q == "" || strings.Contains(host, q.q)
}

// orders are the comparison functions for sort, by the name of the column. The most important host
// comes first.
var orders = map[string]func(a, b *picked, now time.Time) int{
	"left": func(a, b *picked, now time.Time) int {
		return cmp.Or(cmp.Compare(b.TimeLeft(now), a.TimeLeft(now)), cmp.Compare(b.Delay, a.Delay), cmp.Compare(b.Requests, a.Requests))
	},
	"host":    func(a, b *picked, _ time.Time) int { return 0 },
	"delay":   func(a, b *picked, _ time.Time) int { return cmp.Compare(b.Delay, a.Delay) },
	"waiting": func(a, b *picked, _ time.Time) int { return cmp.Compare(waiting(&b.HostStats), waiting(&a.HostStats)) },
	"next":    func(a, b *picked, _ time.Time) int { return b.NextStart.Compare(a.NextStart) },
	"done":    func(a, b *picked, _ time.Time) int { return cmp.Compare(b.Pages, a.Pages) },
	"denied":  func(a, b *picked, _ time.Time) int { return cmp.Compare(b.Denied, a.Denied) },
	"status":  func(a, b *picked, _ time.Time) int { return cmp.Compare(b.LastStatus, a.LastStatus) },
	"failed":  func(a, b *picked, _ time.Time) int { return cmp.Compare(b.Failed, a.Failed) },
	"gap":     func(a, b *picked, _ time.Time) int { return cmp.Compare(gapOf(&a.HostStats), gapOf(&b.HostStats)) },
}

// A picker selects the hosts that a question asks for from all hosts, which come in any order.
type picker struct {
	question question
	now      time.Time
	best     []*picked // the first hosts of those that have come, in order
	matching int       // the number of hosts that match the question
}

// A picked is a host with what orders needs.
type picked struct {
	report.HostStats
}

// add adds a host. It keeps the host only if it is among the first n.
func (p *picker) add(host report.HostStats) {
	if !p.question.matches(host.Host) {
		return
	}
	p.matching++
	candidate := picked{HostStats: host}
	at, _ := slices.BinarySearchFunc(p.best, &candidate, p.compare)
	if at == p.question.n {
		return
	}
	if len(p.best) == p.question.n {
		p.best = p.best[:len(p.best)-1]
	}
	kept := candidate // only hosts that are kept are allocated
	p.best = slices.Insert(p.best, at, &kept)
}

// compare compares hosts in the order of the question.
func (p *picker) compare(a, b *picked) int {
	first := orders[p.question.sort](a, b, p.now)
	if first == 0 {
		first = strings.Compare(a.Host, b.Host)
	}
	if p.question.reverse {
		return -first
	}
	return first
}

// gapOf returns GapOverDelay. For a host without a gap it returns infinity, so that the host comes
// last.
func gapOf(host *report.HostStats) float64 {
	if host.GapOverDelay == 0 {
		return math.Inf(1)
	}
	return host.GapOverDelay
}
