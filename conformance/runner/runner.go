// Package runner runs the cases of package conformance on parsers: on package dialect, and on
// programs that speak the protocol of conformance/README.md.
package runner

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/conformance"
)

// A Parser answers questions. It returns one answer for each question, in the same order. If it
// could not answer all questions, it returns an error and either zero values for the missing
// answers or no answers at all.
type Parser func(ctx context.Context, questions []conformance.Question) ([]conformance.Answer, error)

// A Selection says which cases are run. The zero value selects all.
type Selection struct {
	Dialect string // if set, only this dialect
	Pattern string // if set, only the cases whose ID matches it; see Match

	// Skip has patterns of cases that are not run, as in Match.
	Skip []string
}

// DialectsOf returns the dialects that a case is run in, given its ID and all of its dialects. The
// result is empty if the case is not selected.
func (s Selection) DialectsOf(id string, dialects []string) []string {
	switch {
	case !Match(s.Pattern, id), slices.ContainsFunc(s.Skip, func(pattern string) bool { return Match(pattern, id) }):
		return nil
	case s.Dialect == "":
		return dialects
	case slices.Contains(dialects, s.Dialect):
		return []string{s.Dialect}
	}
	return nil
}

// Match reports whether the ID of a case matches a pattern. The pattern is the beginning of an ID,
// or a pattern of path.Match if it contains one of its special characters.
func Match(pattern, id string) bool {
	if strings.ContainsAny(pattern, `*?[\`) {
		matched, err := path.Match(pattern, id)
		return err == nil && matched
	}
	return strings.HasPrefix(id, pattern)
}

// A Result is the answer of a parser to a case in one dialect.
type Result struct {
	Case    *conformance.Case
	Dialect string
	Answer  conformance.Answer
	Faults  []string // empty if the answer is right
}

// Passed reports whether the answer is right.
func (r *Result) Passed() bool { return len(r.Faults) == 0 }

// Run runs the selected cases on a parser and returns one result for each case and dialect. It
// returns no results if the parser has returned no answers.
func Run(ctx context.Context, p Parser, cases []conformance.Case, s Selection) ([]Result, error) {
	results := selected(cases, s)
	if len(results) == 0 {
		return nil, fmt.Errorf("no case matches dialect %q and pattern %q", s.Dialect, s.Pattern)
	}
	questions := make([]conformance.Question, len(results))
	for i, r := range results {
		questions[i] = r.Case.Question(r.Dialect)
	}
	answers, err := p(ctx, questions)
	if len(answers) != len(questions) {
		return nil, err
	}
	for i := range results {
		r := &results[i]
		r.Answer = answers[i]
		r.Faults = r.Case.Check(r.Answer)
	}
	return results, err
}

// Suite runs the selected cases of package conformance on a program, or on our own parser if program
// is nil. If there is an error, the report may be nil.
func Suite(ctx context.Context, program *Program, s Selection) (*Report, error) {
	parser := Own
	if program != nil {
		parser = program.Ask
	}
	results, err := Run(ctx, parser, conformance.Cases(), s)
	if results == nil {
		return nil, err
	}
	return ReportOf(results), err
}

// selected returns results without answers for the selected cases.
func selected(cases []conformance.Case, s Selection) []Result {
	var results []Result
	for i := range cases {
		c := &cases[i]
		for _, d := range s.DialectsOf(c.ID, c.Dialects) {
			results = append(results, Result{Case: c, Dialect: d})
		}
	}
	return results
}
