package robotstest

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// Verify fails the test for each request in the log of w that a polite crawler would not have made,
// or not yet, if it reads robots.txt as d does:
//
//   - a request for a page that the robots.txt of its scheme and host denies to its user agent.
//     Sitemaps and the targets of redirects are pages, too;
//   - a request that came to its host sooner after the one before than the Crawl-delay. All
//     requests count, those for robots.txt included, and http and https of a host are one. In a
//     bubble this is exact to the microsecond; on the loopback interface 80 % of the delay is
//     enough.
//
// What counts is the robots.txt that the web served last before the request, redirects followed. If
// nobody had asked for it, what it would say now counts. If it could not be read, the host is
// closed where d says so and as long as d says so, but an earlier robots.txt stays in force. While
// a changed robots.txt may be on its way to the crawler, both the old and the new one will do.
//
// A robots.txt knows the crawler by the product token of the request's User-Agent header (see
// [dialect.ProductToken]; under [dialect.Temoto] by the whole header), or, if tokens are given, by
// those, the most specific first.
//
// Verify also fails the test if the web was asked for nothing: that would prove nothing, and most
// likely the crawler does not use the web's transport.
func Verify(t testing.TB, w *Web, d dialect.Dialect, tokens ...string) {
	t.Helper()
	log := w.Log("")
	if len(log) == 0 {
		t.Error("robotstest: nothing was asked for: is the crawler's transport that of the web?")
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

// A verifier judges requests by what each robots.txt said.
type verifier struct {
	web     *Web
	dialect dialect.Dialect
	tokens  []string
	bubble  bool
	said    map[dialect.Authority][]edition // oldest first
}

// An edition is what a robots.txt says from an instant on.
type edition struct {
	from   time.Time
	rules  *dialect.Rules // nil: there are none
	closed time.Duration  // for so long it closes the host, because it could not be read
}

func newVerifier(w *Web, d dialect.Dialect, tokens []string) *verifier {
	v := &verifier{web: w, dialect: d, tokens: tokens, bubble: w.network.bubble}
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

// What an answer without a robots.txt closes a host for.
const (
	forRFC9309 = 30 * 24 * time.Hour // RFC 9309, section 2.3.1.4
	forGoogle  = 12 * time.Hour      // "How Google interprets the robots.txt specification"
	forOthers  = 1<<63 - 1           // who say nothing of an end
)

// read returns what an answer means under a dialect.
func read(answer robotsAnswer, d dialect.Dialect) edition {
	e := edition{from: answer.known}
	google, cocCoc, temoto := d == dialect.Google(), d == dialect.CocCoc(), d == dialect.Temoto()
	switch status := answer.status; {
	case status == http.StatusOK, status > 200 && status < 300 && !cocCoc:
		e.rules = d.Parse(answer.body)
	case google && (status == 0 || status == http.StatusTooManyRequests || status >= 500):
		e.closed = forGoogle
	case status == 0 && (cocCoc || temoto):
		e.closed = forOthers
	case status == 0, status >= 500 && !cocCoc && !temoto:
		e.closed = forRFC9309
	}
	return e
}

// editions returns what the robots.txt of an authority may have said to whoever sent a request at
// an instant: the newest that must have been known by then, and what has only just come. If it had
// not come yet, that is what it said first, or would have said, and known is false.
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

// onItsWay is how long, outside a bubble, an answer or a request may be on its way.
const onItsWay = 100 * time.Millisecond

// rules returns what is wrong with a request by the rules for its host, or "".
func (v *verifier) rules(r Request) (fault string) {
	u, err := url.Parse(r.url())
	if r.robots || err != nil {
		return ""
	}
	editions, _ := v.editions(r.authority(), r.Time)
	for _, e := range editions {
		if e.closed > 0 && r.Time.Sub(e.from) < e.closed {
			fault = fmt.Sprintf("its robots.txt could not be read, which closes the host under %v", v.dialect)
			continue
		}
		decision := v.group(e, r).DecideURL(u)
		if decision.Allowed {
			return ""
		}
		fault = fmt.Sprintf("its robots.txt denies that to %q under %v", v.names(r)[0], v.dialect)
		if rule := decision.Rule; rule.Line > 0 {
			fault += fmt.Sprintf(", line %d: %v", rule.Line, rule)
		}
	}
	return fault
}

// delay returns what is to be between a request and the one before it to its host. A robots.txt
// speaks for those who know it: only for its own pages a crawler should have asked for it.
func (v *verifier) delay(r Request) (delay time.Duration) {
	for _, a := range []dialect.Authority{{Scheme: "http", Host: r.Host}, {Scheme: "https", Host: r.Host}} {
		editions, known := v.editions(a, r.Time)
		if !known && (r.robots || a != r.authority()) {
			continue
		}
		least, _ := v.group(editions[0], r).CrawlDelay()
		for _, e := range editions[1:] {
			d, _ := v.group(e, r).CrawlDelay()
			least = min(least, d)
		}
		delay = max(delay, least)
	}
	return delay
}

// tolerated returns how short a gap may be under a delay.
func (v *verifier) tolerated(delay time.Duration) time.Duration {
	if v.bubble {
		return delay - time.Microsecond
	}
	return delay * 8 / 10
}

// group returns what an edition says to the sender of a request.
func (v *verifier) group(e edition, r Request) *dialect.Group {
	if e.rules == nil {
		return dialect.RFC9309().Parse(nil).Group()
	}
	return e.rules.Group(v.names(r)...)
}

// names returns by what names a robots.txt may know the sender of a request. There is at least one.
func (v *verifier) names(r Request) []string {
	if len(v.tokens) > 0 {
		return v.tokens
	}
	if v.dialect == dialect.Temoto() {
		return []string{r.Header.Get("User-Agent")}
	}
	return []string{dialect.ProductToken(r.Header.Get("User-Agent"))}
}
