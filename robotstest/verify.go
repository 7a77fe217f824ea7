package robotstest

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// Verify fails the test for each request in the log of w that a polite crawler, which reads
// robots.txt as d does, would not have made or would have made later:
//
//   - A request for a page that the robots.txt of its scheme and host disallows for its user
//     agent. Sitemaps and the targets of redirects are also pages.
//   - A request that started sooner after the previous request to its host than the Crawl-delay
//     allows or, if d supports it, the Request-rate. All requests count, including those for
//     robots.txt, and http and https of a host count together. In a bubble, this check is exact
//     to the microsecond. On the loopback interface, 80 % of the delay is enough. If the
//     machine is busy, it logs requests late, so Verify measures how late it runs goroutines,
//     and accepts gaps that are shorter by that.
//
// Verify uses the robots.txt that the web served last before the request, after redirects. If the
// crawler had not requested it, Verify uses the robots.txt that the web would serve now. If
// robots.txt could not be read, d decides whether and for how long all of the host is disallowed;
// an earlier robots.txt stays in force. While a changed robots.txt may still be on its way to the
// crawler, a request may follow either the old or the new one.
//
// Rules are selected by the product token of the request's User-Agent header; see
// [dialect.TokenOf]. Under [dialect.Temoto], they are selected by the whole header. If tokens
// are given, they are used instead; list the most specific one first.
//
// Verify also fails the test if the web received no requests, because then the crawler probably
// does not use the web's transport, and the test would prove nothing.
func Verify(t testing.TB, w *Web, d dialect.Dialect, tokens ...string) {
	t.Helper()
	log := w.Log("")
	if len(log) == 0 {
		t.Error("robotstest: the web received no requests; check that the crawler uses a transport of the web")
		return
	}
	v := newVerifier(w, d, tokens)
	last := make(map[string]Request)
	for _, r := range log {
		if fault := v.rules(r); fault != "" {
			t.Errorf("%s %s at %v: %s", r.Method, r.url(), r.Elapsed, fault)
		}
		before, ok := last[r.Host]
		if delay := v.delay(r); ok && r.Time.Sub(before.Time) < v.tolerated(delay) {
			t.Errorf("%s %s at %v: %v after %s, want %v", r.Method, r.url(), r.Elapsed,
				r.Time.Sub(before.Time), before.URI, delay)
		}
		last[r.Host] = r
	}
}

// A verifier checks requests against what each robots.txt said.
type verifier struct {
	web     *Web
	dialect dialect.Dialect
	tokens  []string
	bubble  bool
	late    *lateness                       // nil in a bubble
	said    map[dialect.Authority][]edition // oldest first
}

// An edition is the content of a robots.txt from a certain time on.
type edition struct {
	from   time.Time
	rules  *dialect.Rules // nil if there are no rules
	closed time.Duration  // how long all of the host is disallowed, because robots.txt could not be read
}

func newVerifier(w *Web, d dialect.Dialect, tokens []string) *verifier {
	v := &verifier{web: w, dialect: d, tokens: tokens, bubble: w.network.bubble, late: w.network.late}
	v.said = make(map[dialect.Authority][]edition)
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, answers := range w.robots.answers {
		for _, answer := range answers {
			e := read(answer, d)
			if earlier := v.said[a]; e.closed == 0 || len(earlier) == 0 {
				v.said[a] = append(earlier, e)
			}
		}
	}
	return v
}

// The constants say for how long all of a host is disallowed after its robots.txt could not be
// read.
const (
	forRFC9309 = 30 * 24 * time.Hour // RFC 9309, section 2.3.1.4
	forGoogle  = 12 * time.Hour      // "How Google interprets the robots.txt specification"
	forOthers  = 1<<63 - 1           // the other dialects do not specify an end
)

// read returns the meaning of a response under a dialect.
func read(answer robotsAnswer, d dialect.Dialect) edition {
	e := edition{from: answer.known}
	google := d == dialect.Google()
	cocCoc := d == dialect.CocCoc()
	temoto := d == dialect.Temoto()
	yandex := d == dialect.Yandex()
	switch status := answer.status; {
	case status == http.StatusOK, status > 200 && status < 300 && !cocCoc && !yandex:
		e.rules = d.Parse(answer.body)
	case google && (status == 0 || status == http.StatusTooManyRequests || status >= 500):
		e.closed = forGoogle
	case status == 0 && (cocCoc || temoto):
		e.closed = forOthers
	case status == 0, status >= 500 && !cocCoc && !temoto && !yandex:
		e.closed = forRFC9309
	}
	return e
}

// editions returns the editions of an authority's robots.txt that the sender of a request may have
// known at a given time: the newest one that it must have known, and later ones that have only just
// been sent. If none had been sent by then, known is false, and the result is the first one that
// was sent later, or the one that would be sent now.
func (v *verifier) editions(a dialect.Authority, at time.Time) (editions []edition, known bool) {
	said := v.said[a]
	if len(said) == 0 {
		e := read(v.web.unasked(a), v.dialect)
		e.from = at
		return []edition{e}, false
	}
	settled := at
	if !v.bubble {
		settled = at.Add(-onItsWay)
	}
	first, end := 0, 1
	for i, e := range said {
		if e.from.Before(settled) {
			first, known = i, true
		}
		if !e.from.After(at) {
			end = i + 1
		}
	}
	return said[first:end], known
}

// onItsWay is the maximum time, outside a bubble, between sending and receiving a request or a
// response.
const onItsWay = 100 * time.Millisecond

// rules returns how a request breaks the rules for its host, or "" if it does not.
func (v *verifier) rules(r Request) (fault string) {
	u, err := url.Parse(r.url())
	if r.robots || err != nil {
		return ""
	}
	editions, _ := v.editions(r.authority(), r.Time)
	for _, e := range editions {
		if e.closed > 0 && r.Time.Sub(e.from) < e.closed {
			fault = fmt.Sprintf("robots.txt could not be read, so %v disallows all of the host", v.dialect)
			continue
		}
		decision := v.group(e, r).DecideURL(u)
		if decision.Allowed {
			return ""
		}
		fault = fmt.Sprintf("robots.txt disallows it for %q under %v", v.names(r)[0], v.dialect)
		if rule := decision.Rule; rule.Line > 0 {
			fault += fmt.Sprintf(", line %d: %v", rule.Line, rule)
		}
	}
	return fault
}

// delay returns the required time between a request and the previous one to its host. A robots.txt
// counts if the crawler knows it. A robots.txt that the crawler has not requested counts only for
// pages of its own scheme, because the crawler should have requested it for them.
func (v *verifier) delay(r Request) (delay time.Duration) {
	for _, a := range []dialect.Authority{{Scheme: "http", Host: r.Host}, {Scheme: "https", Host: r.Host}} {
		editions, known := v.editions(a, r.Time)
		if !known && (r.robots || a != r.authority()) {
			continue
		}
		least := delayAt(v.group(editions[0], r), r.Time)
		for _, e := range editions[1:] {
			least = min(least, delayAt(v.group(e, r), r.Time))
		}
		delay = max(delay, least)
	}
	return delay
}

// delayAt returns the delay that a group requests at t, as its dialect reads it: the Crawl-delay or
// the Request-rate.
func delayAt(g *dialect.Group, t time.Time) time.Duration {
	delay, _ := g.CrawlDelay()
	if s := g.Schedule(); s != nil {
		rate, _, _ := s.At(t)
		delay = max(delay, rate.Delay)
	}
	return delay
}

// tolerated returns the shortest gap that is accepted for a delay.
func (v *verifier) tolerated(delay time.Duration) time.Duration {
	if v.bubble {
		return delay - time.Microsecond
	}
	return max(0, delay*8/10-hops*v.late.most())
}

// hops is the number of goroutines that a request passes through before it is logged: those of the
// client, of a proxy, and of the server. Each of them can be late.
const hops = 4

// group returns the group of an edition for the sender of a request.
func (v *verifier) group(e edition, r Request) *dialect.Group {
	if e.rules == nil {
		return dialect.RFC9309().Parse(nil).Group()
	}
	return e.rules.Group(v.names(r)...)
}

// names returns the names that select the rules for a request. There is at least one.
func (v *verifier) names(r Request) []string {
	if len(v.tokens) > 0 {
		return v.tokens
	}
	if v.dialect == dialect.Temoto() {
		return []string{r.Header.Get("User-Agent")}
	}
	return []string{dialect.TokenOf(r.Header.Get("User-Agent"))}
}
