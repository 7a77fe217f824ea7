package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/lint"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/readings"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/reasons"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
)

// atOnce is the number of hosts that are asked at once. It is large, because a host that does not
// answer takes until the timeout.
const atOnce = 512

// askWeb reads the robots.txt files of the hosts of the URLs and returns an answer for each URL. The
// requests go through files.
func (q *question) askWeb(ctx context.Context, files *robotsfile.Files) ([]*answer, error) {
	facts := store.NewMemory()
	defer facts.Close()
	failures := &failures{next: files, errs: make(map[string]error)}
	answers := make([]*answer, len(q.urls))
	for i, u := range q.urls {
		answers[i] = &answer{URL: u, written: q.written[i]}
	}
	for _, d := range q.dialects {
		c := q.collector(ctx)
		first := d == q.dialects[0]
		options := []collyrobots.Option{collyrobots.Dialect(d), collyrobots.Store(facts), collyrobots.TDMRep(q.page && first)}
		robots, err := collyrobots.WithRobots(c, append(options, q.options(failures)...)...)
		if err != nil {
			return nil, err
		}
		err = q.askDialect(ctx, robots, files, answers)
		if err == nil && q.page && first {
			err = requestPages(c, robots, answers)
		}
		if err := errors.Join(err, robots.Close()); err != nil {
			return nil, err
		}
		failures.repeat = true
	}
	return answers, nil
}

// options returns the options for each dialect. Requests for robots.txt go through transport.
func (q *question) options(transport http.RoundTripper) []collyrobots.Option {
	return []collyrobots.Option{
		collyrobots.MinDelay(time.Second),
		collyrobots.ProductToken(q.tokens...),
		collyrobots.RobotsClient(&http.Client{Transport: transport, Timeout: q.timeout}),
		collyrobots.Logger(slog.New(slog.DiscardHandler)), // the answers contain the same information
	}
}

// collector returns a collector with the name of the crawler.
func (q *question) collector(ctx context.Context) *colly.Collector {
	c := colly.NewCollector(
		colly.Async(), colly.StdlibContext(ctx), colly.AllowURLRevisit(), colly.ParseHTTPErrorResponse(), colly.MaxBodySize(1<<20),
		colly.UserAgent(q.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)"))
	c.WithTransport(q.transport)
	c.SetRequestTimeout(q.timeout)
	return c
}

// requestPages requests the pages that are allowed, one after the other on each host, and adds what
// they say to the answers.
func requestPages(c *colly.Collector, robots *collyrobots.Plugin, answers []*answer) error {
	const key = "answer"
	c.OnResponse(func(r *colly.Response) {
		a := r.Ctx.GetAny(key).(*answer)
		a.PageStatus = r.StatusCode
		a.Tags = robots.RobotsTags(r)
		a.setTerms(robots.Usage(r))
	})
	c.OnError(func(r *colly.Response, err error) {
		r.Ctx.GetAny(key).(*answer).PageError = err.Error()
	})
	var faults []error
	for _, a := range answers {
		if a.Error != "" || !a.Allowed {
			continue
		}
		ctx := colly.NewContext()
		ctx.Put(key, a)
		faults = append(faults, c.Request(http.MethodGet, a.URL, nil, ctx, nil))
	}
	c.Wait()
	return errors.Join(faults...)
}

// askDialect adds the decisions of the plugin's dialect to the answers. The plugins of all dialects
// share a store, so each robots.txt is fetched once.
func (q *question) askDialect(ctx context.Context, robots *collyrobots.Plugin, files *robotsfile.Files, answers []*answer) error {
	var group sync.WaitGroup
	var done atomic.Int64
	free := make(chan bool, atOnce)
	faults := make([]error, len(answers))
	for i, a := range answers {
		free <- true
		group.Go(func() {
			defer func() { <-free }()
			faults[i] = a.ask(ctx, robots, files, q.tokens)
			q.progress.Show(fmt.Sprintf("%s of %s asked", term.Count(int(done.Add(1))), term.Number(len(answers), "URL")))
		})
	}
	group.Wait()
	return errors.Join(faults...)
}

// ask adds the decision of one dialect.
func (a *answer) ask(ctx context.Context, robots *collyrobots.Plugin, files *robotsfile.Files, tokens []string) error {
	if a.Error != "" {
		return nil
	}
	decision, err := robots.Check(ctx, a.URL)
	if err != nil {
		return err
	}
	a.URL = decision.URL
	if decision.Err != nil && decision.Status == 0 {
		a.Error = reasons.Cause(decision)
		return nil
	}
	text, _ := files.Text(decision.RobotsURL)
	a.Robots = decision.RobotsURL
	a.Status = decision.Status
	a.Walled = decision.Walled
	if len(a.Readings) == 0 && decision.Allowed {
		a.setTerms(termsOf(readings.UsageOf(decision.Dialect.Parse(text), tokens...), a.URL))
		a.Usage = decision.Usage
	}
	refusal := func() (dialect.Issue, bool) { return readings.Refusal(decision.Dialect, text) }
	a.add(readingOf(decision, refusal))
	return nil
}

// failures is a transport that keeps the errors of requests. A store does not keep that a
// robots.txt got no answer, so without this transport each dialect would send the request again.
type failures struct {
	next   http.RoundTripper
	repeat bool // return the kept errors instead of sending the requests again

	mu   sync.Mutex
	errs map[string]error // by URL
}

// RoundTrip implements http.RoundTripper.
func (f *failures) RoundTrip(r *http.Request) (*http.Response, error) {
	u := r.URL.String()
	f.mu.Lock()
	err := f.errs[u]
	f.mu.Unlock()
	if err != nil && (f.repeat || isFinal(err)) {
		return nil, err
	}
	resp, err := f.next.RoundTrip(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[u] = err
	return resp, err
}

// isFinal reports whether another attempt makes no sense: the host does not exist, or an attempt has
// taken until the timeout.
func isFinal(err error) bool {
	var timeout net.Error
	var unknown *net.DNSError
	return errors.As(err, &timeout) && timeout.Timeout() || errors.As(err, &unknown) && unknown.IsNotFound
}

// askFile checks the URLs against the rules in a file. Each dialect parses the file once.
func (q *question) askFile() ([]*answer, error) {
	text, err := readFile(q.robots, q.stdin)
	if err != nil {
		return nil, err
	}
	q.warn(text)
	answers := make([]*answer, len(q.urls))
	for i, u := range q.urls {
		answers[i] = &answer{URL: u, Robots: q.robots}
	}
	for i, d := range q.dialects {
		rules := d.Parse(text)
		group := rules.Group(q.tokens...)
		refusal := sync.OnceValues(func() (dialect.Issue, bool) { return readings.Refusal(d, text) })
		for _, a := range answers {
			a.add(readingOf(decide(d, group, a.URL), refusal))
		}
		if i == 0 {
			addTerms(answers, readings.UsageOf(rules, q.tokens...))
		}
	}
	return answers, nil
}

// warn prints why a file may not be the robots.txt that the user means. collyrobots lint has the same
// findings.
func (q *question) warn(text []byte) {
	doubtful := map[string]bool{"html-page": true, "utf16": true, "file-cut": true, "file-too-large": true, "file-refused": true, "nul-byte": true}
	for _, f := range lint.Lint(text, lint.Options{Dialects: q.dialects[:1]}) {
		if doubtful[f.ID] {
			q.progress.Printf("collyrobots check: warning: %s, line %d: %s; collyrobots lint says more", q.robots, max(f.Line, 1), f.Text)
			delete(doubtful, f.ID)
		}
	}
}

// addTerms adds what a robots.txt says about the use of the pages that may be requested.
func addTerms(answers []*answer, robots *usage.RobotsTxt) {
	for _, a := range answers {
		if a.Allowed {
			a.setTerms(termsOf(robots, a.URL))
		}
	}
}

// termsOf returns what a robots.txt says about the use of a page.
func termsOf(robots *usage.RobotsTxt, u string) usage.Terms {
	return usage.Sources{Robots: robots}.Terms(readings.SentURL(u))
}

// decide returns the decision of a group about a URL or a path.
func decide(d dialect.Dialect, group *dialect.Group, u string) collyrobots.Decision {
	rule := group.DecideURL(readings.SentURL(u))
	decision := collyrobots.Decision{
		Dialect: d, Allowed: rule.Allowed, Rule: rule.Rule, Group: group.Name(), Reason: report.ReasonRule,
	}
	if rule.Allowed && rule.Rule.Line == 0 {
		decision.Reason = report.ReasonNoRule
	}
	decision.CrawlDelay, _ = group.CrawlDelay()
	return decision
}

// readingOf returns the reading for a decision. refusal returns the line that makes the dialect
// refuse the robots.txt, if there is one.
func readingOf(d collyrobots.Decision, refusal func() (refused dialect.Issue, ok bool)) reading {
	r := reading{
		Dialect: d.Dialect.String(), Allowed: d.Allowed, Reason: string(d.Reason), Because: reasons.Of(d), Line: d.Rule.Line,
		Group: d.Group, Delay: term.Seconds(d.CrawlDelay),
	}
	if d.Reason == report.ReasonRule && d.Rule.Line == 0 { // temoto keeps no line numbers
		if refused, ok := refusal(); ok {
			r.Line = refused.Line
			r.Because = fmt.Sprintf("temoto refuses the file because of line %d: %s", refused.Line, refused.Detail)
		}
	}
	return r
}
