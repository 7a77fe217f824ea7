package runner

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/dialect"
)

// Own is the Parser of this module: package dialect.
func Own(_ context.Context, questions []conformance.Question) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, len(questions))
	for i := range questions {
		answers[i] = AnswerOf(questions[i])
	}
	return answers, nil
}

// AnswerOf returns the answer of package dialect to a question.
func AnswerOf(q conformance.Question) conformance.Answer {
	d, ok := dialect.ByName(q.Dialect)
	if !ok {
		return conformance.Answer{Error: fmt.Sprintf("unknown dialect %q", q.Dialect)}
	}
	u, err := url.Parse(q.URL)
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	rules := d.Parse(q.File())
	group := rules.Group(q.Agent)
	decision := group.DecideURL(u)
	delay, _ := group.CrawlDelay()
	seconds := delay.Seconds()
	sitemaps := append([]string{}, rules.Sitemaps()...) // [] in JSON, not null
	answer := conformance.Answer{
		Allowed:  &decision.Allowed,
		Line:     &decision.Rule.Line,
		Delay:    &seconds,
		Sitemaps: &sitemaps,
		Clean:    cleaned(rules.CleanParams(), u, q.URL),
	}
	if !q.Time.IsZero() {
		interval, open := scheduleAt(group.Schedule(), q.Time)
		answer.Interval = &interval
		answer.Open = &open
	}
	return answer
}

// cleaned returns u without the parameters that do not change the page. If there are none, it
// returns the text that u was parsed from.
func cleaned(params dialect.CleanParams, u *url.URL, text string) string {
	clean := params.Clean(u)
	if clean == u {
		return text
	}
	return clean.String()
}

// scheduleAt returns the seconds for each document at t, or 0 if there is no rate, and whether
// requests may be sent at t. The schedule may be nil.
func scheduleAt(s *dialect.Schedule, t time.Time) (interval float64, open bool) {
	if s == nil {
		return 0, true
	}
	rate, open, _ := s.At(t)
	return rate.Delay.Seconds(), open
}
