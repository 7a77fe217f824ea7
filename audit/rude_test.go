package audit_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// TestPermittedPrograms checks that the logs of programs that use an option instead of a robots.txt
// have an exception for each host and option, and no faults.
func TestPermittedPrograms(t *testing.T) {
	for _, x := range permittedPrograms() {
		x.loose = "the options replace what the sites say"
		t.Run(x.name, x.check)
	}
}

// TestRudePrograms checks that the logs of programs that break the rules have exactly the faults
// that say so.
func TestRudePrograms(t *testing.T) {
	for _, x := range rudePrograms() {
		x.loose = "the program breaks the rules"
		t.Run(x.name, x.check)
	}
}

// TestSlowListener checks that a log says how many events are missing if it is too slow for OnEvent.
func TestSlowListener(t *testing.T) {
	const pages = 3000
	x := program{name: "", loose: "there are no rules", sites: siteOf(404, ""), run: func(p *programRun) {
		slow := func(e *report.Event) {
			time.Sleep(10 * time.Millisecond)
			p.log.Event(e)
		}
		robots := p.withListener(func(*report.Event) {}, collyrobots.OnEvent(slow))
		c := p.collector(robots)
		for _, u := range every("shop.test", pages) {
			c.Visit(u)
		}
		time.Sleep(time.Minute) // the listener gets what was not dropped
		robots.Close()
	}}
	r, requests := x.result(t)
	missing := 0
	for _, f := range r.Findings {
		n := 0
		fmt.Sscanf(f.Text, "%d events are missing, because the listener was too slow", &n)
		missing += n
	}
	logged := int(r.Logs[0].Signed) - 2 - len(r.Findings) // without the notices and the findings' own entries
	if requests != pages+1 || missing == 0 || missing+logged != 2*requests+1 {
		t.Errorf("the server got %d requests, the log has %d events, and %d are missing", requests, logged, missing)
	}
}

func permittedPrograms() []program {
	forShop := func(opts ...collyrobots.HostOption) []collyrobots.Option {
		return []collyrobots.Option{collyrobots.ForHosts("shop.test", opts...)}
	}
	pages := []string{"http://shop.test/1", "http://shop.test/cart", "http://blog.test/"}
	visit := func(opts ...collyrobots.Option) func(p *programRun) {
		return func(p *programRun) { p.visit(opts, pages...) }
	}
	return []program{
		{name: "MaxCrawlDelay", exceptions: []string{"shop.test: MaxCrawlDelay: the crawl delay of 2s was capped at 1s"}, run: visit(collyrobots.MaxCrawlDelay(time.Second))},
		{name: "a host without its delay", exceptions: []string{"shop.test: MaxCrawlDelay: the crawl delay of 2s was capped at 1ms"}, run: visit(forShop(collyrobots.MaxCrawlDelay(time.Millisecond))...)},
		{name: "permission for a host", exceptions: []string{"shop.test: IgnoreRobots: robots.txt was not requested", "shop.test: 2 requests by " + permitted.String()}, run: visit(forShop(collyrobots.IgnoreRobots(permitted))...)},
		{name: "permission for all hosts", exceptions: []string{
			"shop.test: IgnoreRobots: robots.txt was not requested", "blog.test: IgnoreRobots: robots.txt was not requested",
			"shop.test: 2 requests by " + permitted.String(), "blog.test: 1 requests by " + permitted.String(),
		}, run: visit(collyrobots.IgnoreRobots(permitted))},
		{name: "the operator's robots.txt", exceptions: []string{"shop.test: RobotsTxt: the option decided in place of the site"}, run: visit(forShop(collyrobots.RobotsTxt([]byte("User-agent: *\nAllow: /\n")))...)},
		{name: "the operator's robots.txt denies", exceptions: []string{"shop.test: RobotsTxt: the option decided in place of the site"}, run: visit(forShop(collyrobots.RobotsTxt([]byte("User-agent: *\nDisallow: /\n")))...)},
		{name: "an empty robots.txt of the operator", exceptions: []string{"shop.test: RobotsTxt: the option decided in place of the site"}, run: visit(forShop(collyrobots.RobotsTxt([]byte{}))...)},
		{name: "a listener that hides the delay in force", exceptions: []string{"shop.test: MaxCrawlDelay: the crawl delay of 2s was capped at 0s"}, run: func(p *programRun) {
			p.visitChanged(func(e *report.Event) { e.Delay = 0 }, every("shop.test", 2)...)
		}},
		{name: "a listener that hides the request rate", exceptions: []string{"shop.test: MaxCrawlDelay: the request rate of one in 10s was capped at 0s"}, sites: siteOf("User-agent: *\nRequest-rate: 1/10s\n", ""), run: func(p *programRun) {
			hide := func(e *report.Event) {
				hidden := cloned(e)
				hidden.Delay = 0
				p.log.Event(hidden)
			}
			p.visitWith(p.withListener(hide, collyrobots.Dialect(dialect.Seznam())), every("shop.test", 2)...)
		}},
		{name: "unreachable", exceptions: []string{"shop.test: WhenUnreachable: the option decided in place of the site"}, sites: siteOf(503, ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll)}, every("shop.test", 2)...)
		}},
		{name: "forbidden", exceptions: []string{"shop.test: WhenForbidden: the option decided in place of the site"}, sites: siteOf(403, ""), run: func(p *programRun) {
			p.visit([]collyrobots.Option{collyrobots.WhenForbidden(collyrobots.DenyAll)}, every("shop.test", 2)...)
		}},
	}
}

func rudePrograms() []program {
	return []program{
		{name: "a client beside the plugin, whose requests the program logs", faults: []string{
			"delay: shop.test/cart: 1s after the last request to the host, but the delay was 2s (as before)",
			"rules: shop.test/cart: the request was sent without a decision",
			"delay: shop.test/tea: 1s after the last request to the host, but the delay was 2s (crawl_delay)",
			"delay: shop.test/cart: 1s after the last request to the host, but the delay was 2s (as before)",
			"rules: shop.test/cart: the request was sent without a decision",
		}, run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.OnResponse(func(*colly.Response) { p.getLogged("http://shop.test/cart", nil) })
			c.Visit("http://shop.test/")
			c.Visit("http://shop.test/tea")
		}},
		{name: "a client beside the plugin that is logged with the decision about another page", faults: []string{
			"rules: shop.test/cart: the decision is about http://shop.test/tea",
		}, run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.Visit("http://shop.test/")
			time.Sleep(time.Second)
			d, _ := robots.Check(p.Context(), "http://shop.test/tea")
			p.getLogged("http://shop.test/cart", &d)
		}},
		{name: "a client beside the plugin that does not mind a denial", faults: []string{
			"rules: shop.test/cart: the request was sent although it was denied: rule",
			`rules: shop.test/cart: rfc9309 decides denied by "Disallow: /cart" in line 2, and the log has allowed by "Disallow: /cart" in line 2`,
		}, run: func(p *programRun) {
			robots := p.with(collyrobots.ProductToken("ExampleBot"))
			defer robots.Close()
			c := p.collector(robots)
			c.Visit("http://shop.test/")
			time.Sleep(time.Second)
			d, _ := robots.Check(p.Context(), "http://shop.test/cart")
			p.getLogged("http://shop.test/cart", &d)
			time.Sleep(time.Second)
			d.Allowed = true
			p.getLogged("http://shop.test/cart", &d)
		}},
		{name: "a transport that requests pages again, which the program logs", faults: []string{
			"delay: shop.test/2: 1s after the last request to the host, but the delay was 2s (as before)",
			"rules: shop.test/2: the request was sent without a decision",
			"delay: shop.test/2: 1s after the last request to the host, but the delay was 2s (crawl_delay)",
		}, sites: siteOf(twoSeconds, inTurn(text(""), status(500))), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.WithTransport(again{p, p.web.Transport()})
			c.Visit("http://shop.test/1")
			c.Visit("http://shop.test/2")
		}},
		{name: "a dry run", faults: []string{
			"delay: shop.test/: 0s after the last request to the host, but the delay was 2s (crawl_delay)",
			"delay: shop.test/tea: 0s after the last request to the host, but the delay was 2s (crawl_delay)",
			"delay: shop.test/cart/2: 0s after the last request to the host, but the delay was 2s (crawl_delay)",
			"rules: shop.test/cart/2: the request was sent although it was denied: rule",
			"delay: shop.test/cart: 0s after the last request to the host, but the delay was 2s (crawl_delay)",
			"rules: shop.test/cart: the request was sent although it was denied: rule",
			"delay: shop.test/gone: 0s after the last request to the host, but the delay was 2s (crawl_delay)",
		}, run: func(p *programRun) { p.spider(collyrobots.DryRun(true)) }},
		{name: "the clock is set back", faults: []string{
			"complete: shop.test/3: the clock was set back: the log shows -59m58s since the last request to the host, and 2s have passed",
			"complete: shop.test/3: the clock of the log and those of the servers differ by 59m59s more than before",
		}, run: func(p *programRun) { p.visitWithClock(-time.Hour) }},
		{name: "the clock is set forward", faults: []string{
			"complete: shop.test/3: the clock was set forward, or a request is missing: the log shows 1h0m2s since the last request to the host, and 2s have passed",
			"complete: shop.test/3: the clock of the log and those of the servers differ by -59m59s more than before",
		}, run: func(p *programRun) { p.visitWithClock(time.Hour) }},
		{name: "a listener that drops requests", faults: []string{
			"complete: shop.test/3: the clock was set forward, or a request is missing: the log shows 4s since the last request to the host, and 2s have passed",
		}, run: func(p *programRun) {
			p.visitThrough(func(e *report.Event) bool { return !strings.HasSuffix(e.URL, "/2") }, every("shop.test", 4)...)
		}},
		{name: "a listener that drops starts", faults: []string{
			"complete: shop.test/2: the request has ended but not started",
			"complete: shop.test/3: the clock was set forward, or a request is missing: the log shows 4s since the last request to the host, and 2s have passed",
		}, run: func(p *programRun) {
			p.visitThrough(func(e *report.Event) bool {
				return e.Kind != report.EventStarted || !strings.HasSuffix(e.URL, "/2")
			}, every("shop.test", 4)...)
		}},
		{name: "a listener that logs only requests", faults: []string{
			"rules: shop.test/0: the log does not have the robots.txt that decided",
			"complete: shop.test/0: nothing was known about http://shop.test/robots.txt when the request was sent",
			"rules: shop.test/1: the log does not have the robots.txt that decided",
			"complete: shop.test/1: nothing was known about http://shop.test/robots.txt when the request was sent",
		}, run: func(p *programRun) {
			p.visitThrough(func(e *report.Event) bool {
				return e.Kind == report.EventStarted || e.Kind == report.EventAnswered
			}, every("shop.test", 2)...)
		}},
		{name: "a listener that changes the delay", faults: []string{
			"rules: shop.test/0: the crawl delay is 2s, and the log has 0s",
			"rules: shop.test/1: the crawl delay is 2s, and the log has 0s",
		}, run: func(p *programRun) {
			p.visitChanged(func(e *report.Event) {
				e.Delay = 0
				if e.Decision != nil {
					d := *e.Decision
					d.CrawlDelay = 0
					e.Decision = &d
				}
			}, every("shop.test", 2)...)
		}},
		{name: "a listener that hides a permission", exceptions: []string{"shop.test: IgnoreRobots: robots.txt was not requested"}, faults: []string{
			"rules: shop.test/0: robots.txt was ignored without a permission",
			"rules: shop.test/1: robots.txt was ignored without a permission",
		}, run: func(p *programRun) { p.visitPermitted(nil) }},
		{name: "a permission that has ended", exceptions: []string{
			"shop.test: IgnoreRobots: robots.txt was not requested", "shop.test: 2 requests by " + endedPermission.String(),
		}, faults: []string{
			"rules: shop.test/0: the " + endedPermission.String() + " had ended",
			"rules: shop.test/1: the " + endedPermission.String() + " had ended",
		}, run: func(p *programRun) { p.visitPermitted(&endedPermission) }},
		{name: "a listener that starts a goroutine for each event", faults: []string{
			"complete: shop.test/1: the request has ended but not started",
			"rules: shop.test/1: the log does not have the robots.txt that decided",
			"complete: shop.test/1: nothing was known about http://shop.test/robots.txt when the request was sent",
			"complete: shop.test/robots.txt: the request has ended but not started",
			"delay: shop.test/robots.txt: -2s after the last request to the host, but the delay was 2s (as before)",
		}, run: func(p *programRun) {
			var held []*report.Event
			robots := p.withListener(func(e *report.Event) { held = append(held, e) })
			c := p.collector(robots)
			c.Visit("http://shop.test/1")
			robots.Close()
			for i := range held {
				p.log.Event(held[len(held)-1-i])
			}
		}},
		{name: "a listener that is added late", faults: []string{
			"rules: shop.test/2: the log does not have the robots.txt that decided",
			"complete: shop.test/2: nothing was known about http://shop.test/robots.txt when the request was sent",
		}, run: func(p *programRun) {
			robots := p.withListener(func(*report.Event) {})
			defer robots.Close()
			c := p.collector(robots)
			c.Visit("http://shop.test/1")
			robots.Listen(p.log.Event)
			c.Visit("http://shop.test/2")
		}},
		{name: "two plugins for one host", faults: []string{
			"delay: shop.test/robots.txt: 1s after the last request to the host, but the delay was 2s (as before)",
			"delay: shop.test/1: 1s after the last request to the host, but the delay was 2s (crawl_delay)",
		}, run: func(p *programRun) {
			one := p.with()
			defer one.Close()
			two := p.with()
			defer two.Close()
			a := p.collector(one)
			b := p.collector(two)
			a.Visit("http://shop.test/0")
			time.Sleep(time.Second)
			b.Visit("http://shop.test/0")
			time.Sleep(time.Second)
			a.Visit("http://shop.test/1")
		}},
		{name: "a transport with a cache that is never emptied", faults: []string{
			"fresh: shop.test/robots.txt: the response was 39h59m59s old, as its Date says: a cache has kept it",
		}, sites: siteOf(inTurn(text("User-agent: *\nAllow: /\n"), text(twoSeconds)), ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			c.WithTransport(&staleCache{next: p.web.Transport()})
			for _, u := range every("shop.test", 4) {
				c.Visit(u)
				time.Sleep(20 * time.Hour)
			}
		}},
		{name: "another robots.txt in the folder", faults: []string{
			"tree: shop.test/robots.txt: the file robots/2c025b606f6f776356387188104df053cb72e63a2d3abbe17a418f0b11655a06 was replaced: it has another hash",
			"rules: shop.test/1: the log does not have the robots.txt that decided",
			"rules: shop.test/cart: the log does not have the robots.txt that decided",
		}, run: func(p *programRun) {
			p.visit(nil, "http://shop.test/1", "http://shop.test/cart")
			files, _ := filepath.Glob(filepath.Join(p.dir, "robots", "*"))
			os.WriteFile(files[0], []byte("User-agent: *\nAllow: /\n"), 0o600)
		}},
		{name: "the reason of another site", faults: []string{
			"fresh: shop.test/1: the decision was not made by the http://shop.test/robots.txt of 2000-01-01 00:00:00",
		}, sites: siteOf(503, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			p.collector(robots).Visit("http://shop.test/1")
			d, _ := robots.Check(p.Context(), "http://shop.test/1")
			d.Allowed = true
			d.Reason = report.ReasonNoRobots
			p.getLogged("http://shop.test/1", &d)
		}},
		{name: "a new plugin for each page", faults: []string{
			"delay: shop.test/robots.txt: 1s after the last request to the host, but the delay was 2s (as before)",
		}, run: func(p *programRun) {
			began := time.Now()
			p.visit(nil, "http://shop.test/0")
			time.Sleep(time.Until(began.Add(3 * time.Second))) // the page was requested after 2 s
			p.visit(nil, "http://shop.test/1")
		}},
	}
}

// getLogged requests a page without the plugin, and logs the request.
func (p *programRun) getLogged(url string, d *report.Decision) {
	time.Sleep(time.Second) // the log gets the events so far
	at := time.Now()
	e := &report.Event{Kind: report.EventStarted, Time: at, Host: "shop.test", URL: url, RequestKind: report.RequestPage, Decision: d}
	if d != nil {
		e.Delay = d.Delay
		e.Source = report.SourceCrawlDelay
	}
	p.log.Event(e)
	p.get(&http.Client{Transport: p.web.Transport()}, url)
	p.log.Event(&report.Event{Kind: report.EventAnswered, Time: time.Now(), Host: e.Host, URL: url, RequestKind: e.RequestKind, Status: 200, Took: time.Since(at)})
}

// visitThrough visits pages with a log that gets the events that keep accepts.
func (p *programRun) visitThrough(keep func(*report.Event) bool, urls ...string) {
	p.visitWith(p.withListener(func(e *report.Event) {
		if keep(e) {
			p.log.Event(e)
		}
	}), urls...)
}

// visitChanged visits pages with a log that gets changed copies of the events.
func (p *programRun) visitChanged(change func(*report.Event), urls ...string) {
	p.visitThrough(func(e *report.Event) bool {
		changed := cloned(e)
		change(changed)
		p.log.Event(changed)
		return false
	}, urls...)
}

// permitted has not ended in any test, and endedPermission ended before all of them.
var (
	permitted       = report.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	endedPermission = report.Permission{By: "the owner", Reference: "a contract", Until: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}
)

// visitPermitted visits pages with IgnoreRobots, and logs that they were permitted by another permission.
func (p *programRun) visitPermitted(by *report.Permission) {
	p.visitWith(p.withListener(func(e *report.Event) {
		changed := cloned(e)
		if e.Decision != nil {
			d := *e.Decision
			d.Permission = by
			changed.Decision = &d
		}
		p.log.Event(changed)
	}, collyrobots.IgnoreRobots(permitted), collyrobots.MinDelay(2*time.Second)), every("shop.test", 2)...)
}

// visitWithClock visits pages while the clock of the machine is set. The process has a monotonic
// clock, which goes on.
func (p *programRun) visitWithClock(shift time.Duration) {
	isSet := false
	p.visitChanged(func(e *report.Event) {
		isSet = isSet || strings.HasSuffix(e.URL, "/3")
		if isSet {
			e.Time = e.Time.Add(shift)
		}
	}, append(every("shop.test", 6), every("blog.test", 2)...)...)
}

// An again is a transport that requests a page again after an error, like many retrying clients.
type again struct {
	p    *programRun // logs another request before that; may be nil
	next http.RoundTripper
}

func (a again) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err == nil && resp.StatusCode == 500 {
		resp.Body.Close()
		if a.p != nil {
			a.p.getLogged(req.URL.String(), nil)
		}
		return a.next.RoundTrip(req)
	}
	return resp, err
}

// A staleCache is a transport that keeps the first robots.txt for ever.
type staleCache struct {
	next http.RoundTripper
	kept *http.Response
	body []byte
}

func (s *staleCache) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		return s.next.RoundTrip(req)
	}
	if s.kept == nil {
		resp, err := s.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		s.kept = resp
		s.body, err = io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
	}
	copied := *s.kept
	copied.Request = req
	copied.Body = io.NopCloser(bytes.NewReader(s.body))
	return &copied, nil
}
