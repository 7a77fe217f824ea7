package runner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/collyrobots/collyrobots/conformance"
)

// A Program is a parser in a process of its own, which speaks the protocol of
// conformance/README.md. Ask is a [Parser].
type Program struct {
	Args   []string      // the path of the program, and its arguments
	Dir    string        // the folder where it is run; if empty, the current one
	Stderr io.Writer     // receives its standard error
	Limit  time.Duration // all runs of the program together are ended after this time

	// OnAnswer is called after each answer, if it is not nil.
	OnAnswer func()

	// AnswerLimit is the time within which Ask expects each answer. The first answer of all may take
	// startFactor times as long, because a program may have to be compiled. If AnswerLimit is 0,
	// there is no such limit.
	AnswerLimit time.Duration
}

const startFactor = 6

// errLate says that an answer, or the end of the program after its last one, takes too long.
var errLate = errors.New("no answer and no end of the program")

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 1 << 20

// Ask sends questions to the program and returns its answers. See [Exchange]. If an answer does not
// arrive within AnswerLimit, Ask kills the program and starts it again with the questions that have
// no answer. A question that has no answer in time although it is the only one gets an answer with
// an error. If the program answers nothing at all, Ask returns only an error.
func (p *Program) Ask(ctx context.Context, questions []conformance.Question) ([]conformance.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	first := startFactor * p.AnswerLimit
	ask := func(ctx context.Context, part []conformance.Question) ([]conformance.Answer, error) {
		answers, err := exchangeWithin(ctx, first, p, part, parseAnswer)
		switch {
		case err == nil || answers != nil:
			first = p.AnswerLimit
		case first != p.AnswerLimit && len(part) == 1 && errors.Is(err, errLate):
			err = fmt.Errorf("%s has not answered the first question within %v", p.Args[0], first)
		}
		return answers, err
	}
	late := conformance.Answer{Error: fmt.Sprintf("no answer within %v", p.AnswerLimit)}
	return askInParts(ctx, questions, late, ask)
}

// askInParts asks questions. If ask returns errLate, a question after the last answer takes too
// long. It need not be the first one, because a program may buffer its output. Therefore the next
// question is then asked alone, and after it two, four and so on together. The answer to a question
// that takes too long alone is late.
func askInParts(ctx context.Context, questions []conformance.Question, late conformance.Answer, ask Parser) ([]conformance.Answer, error) {
	answers := make([]conformance.Answer, len(questions))
	answered := false      // whether there is an answer
	size := len(questions) // of the next part
	for done := 0; done < len(questions); {
		end := min(done+size, len(questions))
		part, err := ask(ctx, questions[done:end])
		copy(answers[done:], part)
		n := numberOfAnswers(part)
		answered = answered || n > 0
		switch {
		case err == nil:
			size *= 2
		case !answered && !errors.Is(err, errLate):
			return nil, err
		case !errors.Is(err, errLate) || n == end-done:
			return answers, err
		case end-done == 1:
			answers[done] = late
			n = 1
		default:
			size = 1
		}
		done += n
	}
	return answers, nil
}

// numberOfAnswers returns the number of answers before the first one that is missing.
func numberOfAnswers(answers []conformance.Answer) int {
	for i, a := range answers {
		if a.Allowed == nil && a.Error == "" {
			return i
		}
	}
	return len(answers)
}

// Exchange runs the program. It writes all questions while it reads the answers, so the program may
// buffer its output. If the program ends, fails or takes too long before it has answered all
// questions, Exchange returns an error and zero values for the missing answers, or no answers if the
// program has answered nothing.
func Exchange[Question, Answer any](ctx context.Context, p *Program, questions []Question, parse func(line []byte) Answer) ([]Answer, error) {
	return exchangeWithin(ctx, 0, p, questions, parse)
}

// exchangeWithin is like Exchange and returns errLate if the first answer takes longer than the
// given time, or if another answer, or the end of the program after the last answer, takes longer
// than AnswerLimit. If the given time is 0, there is no limit.
func exchangeWithin[Question, Answer any](ctx context.Context, first time.Duration, p *Program, questions []Question, parse func(line []byte) Answer) ([]Answer, error) {
	answers := make([]Answer, len(questions))
	input, err := encode(questions)
	if err != nil {
		return nil, err
	}
	n := 0 // number of answers
	err = p.exchange(ctx, first, input, func(line []byte) error {
		if n == len(answers) {
			return fmt.Errorf("%s wrote more than %d answers", p.Args[0], n)
		}
		answers[n] = parse(line)
		n++
		if p.OnAnswer != nil {
			p.OnAnswer()
		}
		return nil
	})
	if err == nil && n < len(answers) {
		err = fmt.Errorf("%s wrote %d answers to %d questions", p.Args[0], n, len(questions))
	}
	if err != nil && n == 0 {
		return nil, err
	}
	return answers, err
}

// encode returns values as lines of JSON.
func encode[T any](values []T) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, v := range values {
		if err := encoder.Encode(v); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// exchange runs the program with an input and calls the function for each line of its output. If
// the function returns an error, exchange kills the program and returns that error. It does the
// same with errLate if a line or the end takes too long, as exchangeWithin describes.
func (p *Program) exchange(ctx context.Context, first time.Duration, input []byte, each func(line []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if first > 0 {
		timer := time.AfterFunc(first, func() { stop(errLate) })
		defer timer.Stop()
		eachLine := each
		each = func(line []byte) error {
			timer.Reset(p.AnswerLimit)
			return eachLine(line)
		}
	}
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Dir = p.Dir
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = p.Stderr
	cmd.WaitDelay = time.Second // for pipes that children of the program keep open
	output, writer := io.Pipe()
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		return p.endedBy(ctx, err)
	}
	read := make(chan error, 1)
	go func() {
		err := readLines(output, each)
		if err != nil {
			cancel()
		}
		output.CloseWithError(err)
		read <- err
	}()
	exitErr := cmd.Wait()
	writer.Close()
	readErr := <-read
	if readErr != nil {
		return readErr
	}
	if exitErr != nil {
		exitErr = fmt.Errorf("%s: %w", p.Args[0], exitErr)
	}
	return p.endedBy(ctx, exitErr)
}

// endedBy returns err, with which a program has ended or because of which it was not started, or the
// limit that has caused it. err may be nil.
func (p *Program) endedBy(ctx context.Context, err error) error {
	switch {
	case context.Cause(ctx) == errLate:
		return fmt.Errorf("%s: %w within %v", p.Args[0], errLate, p.AnswerLimit)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s did not end within %v", p.Args[0], p.Limit)
	}
	return err
}

// readLines calls the function for each line of r.
func readLines(r io.Reader, each func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("an answer has more than %d bytes", maxAnswer)
	}
	return err
}

// parseAnswer parses a line that a program has written. A line that is not an answer becomes an
// answer with an error.
func parseAnswer(line []byte) conformance.Answer {
	var a conformance.Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return conformance.Answer{Error: fmt.Sprintf("%.60q is not an answer: %v", line, err)}
	}
	if a.Allowed == nil && a.Error == "" {
		return conformance.Answer{Error: fmt.Sprintf("%.60q has neither allowed nor error", line)}
	}
	return a
}
