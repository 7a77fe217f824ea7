package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
)

// askWeb asks one plugin for each dialect. They share a store, so each host's robots.txt is fetched once.
func (q *question) askWeb(ctx context.Context) ([]answer, error) {
	facts := store.Memory()
	defer facts.Close()
	answers := make([]answer, len(q.urls))
	for _, d := range q.dialects {
		robots, err := collyrobots.WithRobots(
			colly.NewCollector(colly.UserAgent(q.tokens[0]+"/1.0 (+https://github.com/collyrobots/collyrobots)")),
			collyrobots.Dialect(d),
			collyrobots.ProductToken(q.tokens...),
			collyrobots.Store(facts),
			collyrobots.Logger(slog.New(slog.DiscardHandler))) // what it would say is in the answers
		if err != nil {
			return nil, err
		}
		for i, u := range q.urls {
			decision, err := robots.Check(ctx, u)
			if err != nil {
				return nil, errors.Join(err, robots.Close())
			}
			answers[i].add(decision)
		}
		if err := robots.Close(); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (a *answer) add(d collyrobots.Decision) {
	if a.url == "" {
		a.url, a.source = d.URL, d.RobotsURL
		if d.Status != 0 {
			a.source += fmt.Sprintf(", status %d", d.Status)
		}
	}
	a.readings = append(a.readings, reading{
		dialect: d.Dialect.String(), allowed: d.Allowed, because: because(d), group: d.Group, delay: d.CrawlDelay,
	})
}

// because says in a few words why.
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
		cause = end // net/http says the URL once more
	}
	return fmt.Sprintf("%s: %s", why, cause)
}

// ruleText says which rule decided.
func ruleText(allowed bool, r dialect.Rule) string {
	switch {
	case r.Line == 0 && allowed:
		return "no rule matches"
	case r.Line == 0: // temoto keeps no line numbers
		return "some rule, temoto does not say which"
	case r.Allow:
		return fmt.Sprintf("line %d: Allow: %s", r.Line, r.Pattern)
	default:
		return fmt.Sprintf("line %d: Disallow: %s", r.Line, r.Pattern)
	}
}

// askFile answers from a file of rules, and tells what the dialect that was asked for has to say about it.
func (q *question) askFile() ([]answer, []dialect.Issue, error) {
	body, err := os.ReadFile(q.robots)
	if err != nil {
		return nil, nil, err
	}
	answers := make([]answer, len(q.urls))
	for i, u := range q.urls {
		answers[i] = answer{url: redacted(u), source: q.robots}
		for _, d := range q.dialects {
			group := d.Parse(body).Group(q.tokens...)
			decision := group.Decide(target(u))
			delay, _ := group.CrawlDelay()
			answers[i].readings = append(answers[i].readings, reading{
				dialect: d.String(), allowed: decision.Allowed, because: ruleText(decision.Allowed, decision.Rule), group: group.Name(), delay: delay,
			})
		}
	}
	return answers, q.dialects[0].Lint(body), nil
}

// redacted returns a URL without its password.
func redacted(rawURL string) string {
	if u, err := url.Parse(rawURL); err == nil {
		return u.Redacted()
	}
	return rawURL
}

// target returns what rules are matched against, for a path or a URL.
func target(s string) string {
	s, _, _ = strings.Cut(s, "#")
	u, err := url.ParseRequestURI(s)
	if err != nil {
		return s // a path that no URL has, such as /%zz: as it is
	}
	return dialect.Target(u)
}
