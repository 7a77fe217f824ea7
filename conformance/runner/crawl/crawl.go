// Package crawl runs the fetch cases of package conformance on crawlers: on the plugin of this
// module, and on programs. It serves the script of each case on the loopback interface and compares
// the requests that arrive with those of the case.
package crawl

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
)

// A Crawler fetches the URLs of each question that robots.txt allows. It returns one answer for
// each question, in the same order.
type Crawler func(ctx context.Context, questions []conformance.FetchQuestion) ([]conformance.FetchAnswer, error)

// A Result is what a crawler has requested in one case and dialect.
type Result struct {
	Case     *conformance.FetchCase
	Dialect  string
	Requests []string // as "GET {site}/path", in the order of their arrival
	Faults   []string // empty if the requests are right
}

// Passed reports whether the requests are right.
func (r *Result) Passed() bool { return len(r.Faults) == 0 }

// Run runs the selected cases on a crawler and returns one result for each case and dialect. It
// returns no results if the crawler has failed and returned no answers.
func Run(ctx context.Context, c Crawler, cases []conformance.FetchCase, s runner.Selection) ([]Result, error) {
	webs, err := serveAll(cases, s)
	defer func() {
		for _, w := range webs {
			w.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	if len(webs) == 0 {
		return nil, fmt.Errorf("no case matches dialect %q and pattern %q", s.Dialect, s.Pattern)
	}
	questions := make([]conformance.FetchQuestion, len(webs))
	for i, w := range webs {
		questions[i] = w.question()
	}
	answers, err := c(ctx, questions)
	if err != nil && len(answers) == 0 {
		return nil, err
	}
	results := make([]Result, len(webs))
	for i, w := range webs {
		results[i] = w.result()
		if i < len(answers) && answers[i].Error != "" {
			results[i].Faults = append(results[i].Faults, "error: "+answers[i].Error)
		}
	}
	return results, err
}

// Suite is like runner.Suite for the fetch cases and for a program that is a crawler.
func Suite(ctx context.Context, program *runner.Program, s runner.Selection) (*runner.Report, error) {
	crawler := Own
	if program != nil {
		crawler = Program(program)
	}
	results, err := Run(ctx, crawler, conformance.FetchCases(), s)
	if results == nil {
		return nil, err
	}
	return ReportOf(results), err
}

// serveAll starts the servers of the selected cases, for each of their dialects. If there is an
// error, the caller must close the webs that were started before it.
func serveAll(cases []conformance.FetchCase, s runner.Selection) ([]*web, error) {
	var webs []*web
	for i := range cases {
		c := &cases[i]
		for _, d := range s.DialectsOf(c.ID, c.Dialects) {
			w, err := serve(c, d)
			if err != nil {
				return webs, err
			}
			webs = append(webs, w)
		}
	}
	return webs, nil
}

// Program returns the Crawler that a program implements.
func Program(p *runner.Program) Crawler {
	return func(ctx context.Context, questions []conformance.FetchQuestion) ([]conformance.FetchAnswer, error) {
		return runner.Exchange(ctx, p, questions, parseAnswer)
	}
}

func parseAnswer(line []byte) conformance.FetchAnswer {
	var a conformance.FetchAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		return conformance.FetchAnswer{Error: fmt.Sprintf("%.60q is not an answer: %v", line, err)}
	}
	return a
}

// ReportOf returns the Report of results.
func ReportOf(results []Result) *runner.Report {
	outcomes := make([]runner.Outcome, len(results))
	for i := range results {
		r := &results[i]
		outcomes[i] = runner.Outcome{
			ID:       r.Case.ID,
			Dialect:  r.Dialect,
			Passed:   r.Passed(),
			Disputed: r.Case.Disputed,
			Faults:   r.Faults,
			Requests: r.Requests,
			Details:  []string{r.Case.About},
		}
	}
	return runner.NewReport(outcomes)
}
