package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/robotsfile"
	"github.com/collyrobots/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/store"
)

// askWeb reads the robots.txt files of the hosts of the URLs. It may return answers and an error,
// if only some of the URLs could be checked.
func (q *question) askWeb(ctx context.Context) (*result, error) {
	answers, err := q.askDialects(ctx, robotsfile.New(q.transport), q.dialects)
	if len(answers) == 0 {
		return nil, err
	}
	return q.result(answers, nil), err
}

// askDialects checks the URLs with one plugin for each dialect. The plugins share a store, so each
// robots.txt is fetched once. It returns the answers for hosts that exist, and an error for each
// URL of another host.
func (q *question) askDialects(ctx context.Context, files *robotsfile.Files, dialects []dialect.Dialect) ([]answer, error) {
	facts := store.Memory()
	defer facts.Close()
	answers := make([]answer, len(q.urls))
	missing := make([]error, len(q.urls))
	failures := &failures{next: files, errs: make(map[string]error)}
	for _, d := range dialects {
		robots, err := collyrobots.WithRobots(
			colly.NewCollector(colly.UserAgent(q.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)")),
			collyrobots.Dialect(d),
			collyrobots.MinDelay(time.Second),
			collyrobots.ProductToken(q.tokens...),
			collyrobots.Store(facts),
			collyrobots.HTTPClient(&http.Client{Transport: failures}),
			collyrobots.Logger(slog.New(slog.DiscardHandler))) // the answers contain the same information
		if err != nil {
			return nil, err
		}
		for i, u := range q.urls {
			if missing[i] != nil {
				continue
			}
			decision, err := robots.Check(ctx, u)
			if err != nil {
				return nil, errors.Join(err, robots.Close())
			}
			if unknown := (*net.DNSError)(nil); errors.As(decision.Err, &unknown) && unknown.IsNotFound {
				missing[i] = fmt.Errorf("cannot check %s: %w", decision.URL, unknown)
				continue
			}
			text, _ := files.Text(decision.RobotsURL)
			answers[i].URL = decision.URL
			answers[i].Robots = decision.RobotsURL
			answers[i].Status = decision.Status
			answers[i].add(readingOf(decision, text))
		}
		if err := robots.Close(); err != nil {
			return nil, err
		}
		failures.repeat = true
	}
	answers = slices.DeleteFunc(answers, func(a answer) bool { return a.URL == "" })
	return answers, errors.Join(missing...)
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
	if f.repeat && err != nil {
		return nil, err
	}
	resp, err := f.next.RoundTrip(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs[u] = err
	return resp, err
}

// askFile checks the URLs against the rules in a file, and lists the issues of the file under the
// selected dialect.
func (q *question) askFile() (*result, error) {
	text, err := os.ReadFile(q.robots)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(q.urls))
	for i, u := range q.urls {
		answers[i].URL = u
		answers[i].Robots = q.robots
		for _, d := range q.dialects {
			group := d.Parse(text).Group(q.tokens...)
			rule := group.DecideURL(sentURL(u))
			decision := collyrobots.Decision{
				Dialect: d, Allowed: rule.Allowed, Rule: rule.Rule, Group: group.Name(), Reason: collyrobots.ReasonRule,
			}
			if rule.Allowed && rule.Rule.Line == 0 {
				decision.Reason = collyrobots.ReasonNoRule
			}
			decision.CrawlDelay, _ = group.CrawlDelay()
			answers[i].add(readingOf(decision, text))
		}
	}
	return q.result(answers, issuesOf(q.robots, q.dialects[0], text)), nil
}

// readingOf returns the reading for a decision. text is the robots.txt.
func readingOf(d collyrobots.Decision, text []byte) reading {
	r := reading{
		Dialect: d.Dialect.String(), Allowed: d.Allowed, Reason: string(d.Reason), Because: because(d), Line: d.Rule.Line,
		Group: d.Group, Delay: term.Seconds(d.CrawlDelay),
	}
	if d.Reason == collyrobots.ReasonRule && d.Rule.Line == 0 { // temoto keeps no line numbers
		if refused, ok := refusal(d.Dialect, text); ok {
			r.Line = refused.Line
			r.Because = fmt.Sprintf("temoto refuses the file because of line %d: %s", refused.Line, refused.Detail)
		}
	}
	return r
}

// refusal returns the first line because of which a dialect refuses the whole file, if there is
// one.
func refusal(d dialect.Dialect, text []byte) (refused dialect.Issue, ok bool) {
	for _, issue := range d.Lint(text) {
		if issue.Problem == dialect.FileRefused {
			return issue, true
		}
	}
	return refused, false
}

// because returns the reason for a decision in words.
func because(d collyrobots.Decision) string {
	if d.Reason == collyrobots.ReasonRule || d.Reason == collyrobots.ReasonNoRule {
		return ruleText(d.Allowed, d.Rule)
	}
	why := strings.ReplaceAll(string(d.Reason), "_", " ")
	if d.Reason == collyrobots.ReasonNoRobots {
		why = "no robots.txt"
	}
	if d.Err == nil {
		return why
	}
	cause := d.Err.Error()
	if _, end, ok := strings.Cut(cause, strconv.Quote(d.RobotsURL)+": "); ok {
		cause = end // the error of net/http begins with the URL
	}
	return fmt.Sprintf("%s: %s", why, cause)
}

// ruleText describes the rule that decided.
func ruleText(allowed bool, r dialect.Rule) string {
	switch {
	case r.Line == 0 && allowed:
		return "no rule matches"
	case r.Line == 0: // temoto keeps no line numbers
		return "a rule; temoto does not return which one"
	case r.Allow:
		return fmt.Sprintf("line %d: Allow: %s", r.Line, r.Pattern)
	default:
		return fmt.Sprintf("line %d: Disallow: %s", r.Line, r.Pattern)
	}
}

// percent matches a percent sign, with the two digits after it if it begins an escape.
var percent = regexp.MustCompile(`%([0-9A-Fa-f]{2})?`)

// sentURL returns the URL that Colly sends for a path or a URL. Colly escapes a percent sign that
// does not begin an escape.
func sentURL(s string) *url.URL {
	s, _, _ = strings.Cut(s, "#")
	escaped := percent.ReplaceAllStringFunc(s, func(escape string) string {
		if escape == "%" {
			return "%25"
		}
		return escape
	})
	u, err := url.ParseRequestURI(escaped)
	if err != nil {
		return &url.URL{Path: s}
	}
	return u
}
