package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// A Question is one line that a parser reads from its standard input: a case without its answer, in
// one dialect. Exactly one of Robots and RobotsBase64 is set. A file that is not valid UTF-8 is in
// RobotsBase64. Time is set if the case asks for Interval or Open.
type Question struct {
	ID           string    `json:"id"`
	Dialect      string    `json:"dialect"`
	Robots       *string   `json:"robots,omitempty"`
	RobotsBase64 []byte    `json:"robots_base64,omitempty"`
	Agent        string    `json:"agent"`
	URL          string    `json:"url"`
	Time         time.Time `json:"time,omitzero"`
}

// An Answer is one line that a parser writes to its standard output. Only Allowed or Error must be
// set. The other fields are compared if they are set.
type Answer struct {
	Allowed  *bool     `json:"allowed,omitempty"`
	Line     *int      `json:"line,omitempty"`
	Delay    *float64  `json:"delay,omitempty"` // seconds
	Sitemaps *[]string `json:"sitemaps,omitempty"`
	Clean    string    `json:"clean,omitempty"`    // the URL without the parameters of Clean-param
	Interval *float64  `json:"interval,omitempty"` // seconds for each document at the time of the question
	Open     *bool     `json:"open,omitempty"`     // whether requests may be sent at that time

	// Error says why there is no decision, for example because the parser rejects the file. The
	// case is then not passed.
	Error string `json:"error,omitempty"`
}

// Questions returns the questions of a case, one for each of its dialects.
func (c *Case) Questions() []Question {
	var questions []Question
	for _, dialect := range c.Dialects {
		questions = append(questions, c.Question(dialect))
	}
	return questions
}

// Question returns the question of a case in one dialect.
func (c *Case) Question(dialect string) Question {
	q := Question{ID: c.ID, Dialect: dialect, Agent: c.Agent, URL: c.URL, Time: c.Time}
	if utf8.Valid(c.Robots) {
		text := string(c.Robots)
		q.Robots = &text
	} else {
		q.RobotsBase64 = c.Robots
	}
	return q
}

// File returns the robots.txt of a question.
func (q *Question) File() []byte {
	if q.Robots != nil {
		return []byte(*q.Robots)
	}
	return q.RobotsBase64
}

// Check returns the fault of an answer to a case, or nil if there is none.
func (c *Case) Check(a Answer) (faults []string) {
	if a.Error != "" {
		return []string{"error: " + a.Error}
	}
	if a.Allowed == nil {
		return []string{"no answer"}
	}
	if got := verdictOf(*a.Allowed); got != c.Expect {
		faults = append(faults, fmt.Sprintf("%s, want %s", got, c.Expect))
	}
	if a.Line != nil && c.Line != nil && *a.Line != *c.Line {
		faults = append(faults, fmt.Sprintf("line %d, want %d", *a.Line, *c.Line))
	}
	if a.Delay != nil && c.Delay != nil && !sameDelay(*a.Delay, *c.Delay) {
		faults = append(faults, fmt.Sprintf("delay %v, want %v", *a.Delay, *c.Delay))
	}
	if a.Sitemaps != nil && c.Sitemaps != nil && !slices.Equal(*a.Sitemaps, *c.Sitemaps) {
		faults = append(faults, fmt.Sprintf("sitemaps %q, want %q", *a.Sitemaps, *c.Sitemaps))
	}
	if a.Clean != "" && c.Clean != "" && a.Clean != c.Clean {
		faults = append(faults, fmt.Sprintf("clean %q, want %q", a.Clean, c.Clean))
	}
	if a.Interval != nil && c.Interval != nil && !sameDelay(*a.Interval, *c.Interval) {
		faults = append(faults, fmt.Sprintf("interval %v, want %v", *a.Interval, *c.Interval))
	}
	if a.Open != nil && c.Open != nil && *a.Open != *c.Open {
		faults = append(faults, fmt.Sprintf("open %v, want %v", *a.Open, *c.Open))
	}
	return faults
}

func verdictOf(allowed bool) Verdict {
	if allowed {
		return Allowed
	}
	return Denied
}

// sameDelay compares two delays in seconds. It ignores differences of less than a microsecond.
func sameDelay(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// maxQuestion is the maximum size of a line in bytes. A question contains at most maxRobots bytes,
// and each takes at most six bytes in JSON.
const maxQuestion = 6*maxRobots + 1<<16

// Serve implements the protocol for a parser in Go: it reads questions from r, and writes the
// answers of the function to w, one line for each, until r ends.
func Serve(r io.Reader, w io.Writer, answer func(Question) Answer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxQuestion)
	out := json.NewEncoder(w)
	for lines.Scan() {
		q, err := ParseQuestion(lines.Bytes())
		if err != nil {
			return err
		}
		if err := out.Encode(answer(q)); err != nil {
			return fmt.Errorf("conformance: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	return nil
}

// ParseQuestion parses one line of the protocol. It ignores fields that it does not know, because
// a later version of the protocol may add some.
func ParseQuestion(line []byte) (Question, error) {
	var q Question
	if err := json.Unmarshal(line, &q); err != nil {
		return Question{}, fmt.Errorf("conformance: question: %w", err)
	}
	if (q.Robots != nil) == (q.RobotsBase64 != nil) {
		return Question{}, errors.New("conformance: question: exactly one of robots and robots_base64 must be set")
	}
	return q, nil
}
