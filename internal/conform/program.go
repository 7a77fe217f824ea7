package conform

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
	Limit  time.Duration // the program is killed after this time
}

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 1 << 20

// Ask sends questions to the program and returns its answers. See [Exchange].
func (p *Program) Ask(ctx context.Context, questions []conformance.Question) ([]conformance.Answer, error) {
	return Exchange(ctx, p, questions, parseAnswer)
}

// Exchange runs the program. It writes all questions while it reads the answers, so the program may
// buffer its output. If the program ends, fails or takes too long before it has answered all
// questions, Exchange returns an error and zero values for the missing answers.
func Exchange[Question, Answer any](ctx context.Context, p *Program, questions []Question, parse func(line []byte) Answer) ([]Answer, error) {
	answers := make([]Answer, len(questions))
	input, err := encode(questions)
	if err != nil {
		return nil, err
	}
	n := 0 // number of answers
	err = p.exchange(ctx, input, func(line []byte) error {
		if n == len(answers) {
			return fmt.Errorf("%s wrote more than %d answers", p.Args[0], n)
		}
		answers[n] = parse(line)
		n++
		return nil
	})
	if err == nil && n < len(answers) {
		err = fmt.Errorf("%s wrote %d answers to %d questions", p.Args[0], n, len(questions))
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
// the function returns an error, exchange kills the program and returns that error.
func (p *Program) exchange(ctx context.Context, input []byte, each func(line []byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Dir = p.Dir
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = p.Stderr
	cmd.WaitDelay = time.Second // for pipes that children of the program keep open
	output, writer := io.Pipe()
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		return err
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
	switch {
	case readErr != nil:
		return readErr
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s did not end within %v", p.Args[0], p.Limit)
	case exitErr != nil:
		return fmt.Errorf("%s: %w", p.Args[0], exitErr)
	}
	return nil
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
	return lines.Err()
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
