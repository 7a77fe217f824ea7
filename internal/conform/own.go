package conform

import (
	"context"
	"fmt"
	"net/url"

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
	return conformance.Answer{
		Allowed:  &decision.Allowed,
		Line:     &decision.Rule.Line,
		Delay:    &seconds,
		Sitemaps: &sitemaps,
	}
}
