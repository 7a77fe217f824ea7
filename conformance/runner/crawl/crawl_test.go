package crawl

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestOwn runs all fetch cases on the plugin.
func TestOwn(t *testing.T) {
	results, err := Run(t.Context(), Own, conformance.FetchCases(), runner.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, fault := range r.Faults {
			t.Errorf("%s, %s: %s\nrequests: %q", r.Case.ID, r.Dialect, fault, r.Requests)
		}
	}
	if len(results) < 100 {
		t.Errorf("%d results", len(results))
	}
}

// TestCrawlersThatFail checks that crawlers that do not obey robots.txt fail the cases.
func TestCrawlersThatFail(t *testing.T) {
	for _, test := range []struct {
		name    string
		crawler Crawler
		id      string
		fault   string
	}{
		{name: "requests everything", crawler: reckless(""), id: "fetch/unreachable/50[0]", fault: "{site}/open was requested before robots.txt"},
		{name: "requests everything after robots.txt", crawler: reckless("/robots.txt"), id: "fetch/success/200", fault: "{site}/closed was requested"},
		{name: "requests nothing", crawler: idle, id: "fetch/success/empty", fault: "{site}/closed was not requested"},
		{name: "reads the rules of the redirect's target only", crawler: reckless("/r.txt"), id: "fetch/redirect/301", fault: "{site}/open was requested before robots.txt"},
		{name: "requests robots.txt twice", crawler: reckless("/robots.txt", "/robots.txt"), id: "fetch/caching/once", fault: "robots.txt was requested 2 times, want once"},
	} {
		results, err := Run(t.Context(), test.crawler, conformance.FetchCases(), runner.Selection{Dialect: "rfc9309", Pattern: test.id})
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %d results, error %v", test.name, len(results), err)
		}
		if !slices.Contains(results[0].Faults, test.fault) {
			t.Errorf("%s: faults %q, want %q", test.name, results[0].Faults, test.fault)
		}
	}
}

// reckless returns a crawler that requests some paths first, and then all URLs.
func reckless(first ...string) Crawler {
	return func(ctx context.Context, questions []conformance.FetchQuestion) ([]conformance.FetchAnswer, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for _, q := range questions {
			for _, path := range first {
				get(ctx, client, q.Site+path, q.Agent)
			}
			for _, u := range q.Fetch {
				get(ctx, client, u, q.Agent)
			}
		}
		return nil, nil
	}
}

// idle is a crawler that requests nothing.
func idle(context.Context, []conformance.FetchQuestion) ([]conformance.FetchAnswer, error) {
	return nil, nil
}
