package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// ErrWitness is in the errors about witnesses: a witness has not cosigned the last checkpoint, or its
// clock and that of the log differ. The log itself is complete.
var ErrWitness = errors.New("audit: witness")

const (
	// cosignTimeout is how long a witness may take to cosign a checkpoint.
	cosignTimeout = 10 * time.Second
	// maxWitnessPause bounds the time until a witness that has failed is asked again.
	maxWitnessPause = 5 * time.Minute
	// witnessTolerance is how much the time of an entry may be after that of a cosignature.
	witnessTolerance = time.Minute
)

// A Post sends a request with the method POST and returns the status and the body of the response.
// It must not follow redirects, must bound the body, and must return when ctx is done.
type Post func(ctx context.Context, url string, body []byte) (status int, response []byte, err error)

// A witness asks one witness for cosignatures (https://c2sp.org/tlog-witness). Only one goroutine at
// a time uses it.
type witness struct {
	url  string // of the call add-checkpoint
	key  *witnessKey
	post Post
	wake chan struct{} // has room for one value, which says that there may be a new checkpoint

	cosigned int64         // the size of the last checkpoint with a cosignature of this witness
	failing  bool          // the last request has failed, and OnError was called
	pause    time.Duration // after the last failure
	next     time.Time     // when the pause ends
}

// A checkpoint is a signed tree.
type checkpoint struct {
	tree tlog.Tree
	text []byte // with all signatures
}

// wakeWitnesses says that there may be a checkpoint to cosign.
func (l *Log) wakeWitnesses() {
	for _, w := range l.witnesses {
		select {
		case w.wake <- struct{}{}:
		default: // it has not seen the last call yet
		}
	}
}

// follow asks w for a cosignature whenever it wakes up, until ctx is done.
func (l *Log) follow(ctx context.Context, w *witness) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		last := l.lastCheckpoint()
		if last.tree.N == w.cosigned || time.Now().Before(w.next) {
			continue
		}
		err := l.cosign(ctx, w, last)
		if ctx.Err() != nil {
			return // Close asks again
		}
		if err != nil && !w.failing {
			go l.onError(err)
		}
		w.note(err != nil)
	}
}

// note records whether a request has failed. Each failure in a row doubles the pause.
func (w *witness) note(failing bool) {
	w.failing = failing
	w.pause = min(max(checkpointEvery, 2*w.pause), maxWitnessPause)
	if !failing {
		w.pause = 0
	}
	w.next = time.Now().Add(w.pause)
}

// cosignLast asks all witnesses to cosign the last checkpoint.
func (l *Log) cosignLast() error {
	last := l.lastCheckpoint()
	errs := make([]error, len(l.witnesses))
	var asking sync.WaitGroup
	for i, w := range l.witnesses {
		asking.Go(func() { errs[i] = l.cosign(context.Background(), w, last) })
	}
	asking.Wait()
	return errors.Join(errs...)
}

func (l *Log) lastCheckpoint() checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signed
}

// cosign asks w to cosign the last checkpoint, and adds the cosignature to the file.
func (l *Log) cosign(ctx context.Context, w *witness, last checkpoint) error {
	ctx, cancel := context.WithTimeout(ctx, cosignTimeout)
	defer cancel()
	s, err := w.ask(ctx, tiles.NewReader(l.dir), last)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", cosignTimeout)
	}
	if err != nil {
		return fmt.Errorf("%w: %s has not cosigned the %d entries of %s: %w", ErrWitness, w.key.name, last.tree.N, l.dir, err)
	}
	err = l.addCosignature(last, s)
	if err != nil {
		return fmt.Errorf("%w: the cosignature of %s could not be written: %w", ErrWitness, w.key.name, err)
	}
	w.cosigned = last.tree.N
	if late := time.Since(cosignedAt(s)); late > witnessTolerance {
		return fmt.Errorf("%w: the clock of %s is %v behind that of this machine", ErrWitness, w.key.name, late.Round(time.Second))
	}
	return nil
}

// addCosignature adds a cosignature of c to the file, if c is still the last checkpoint.
func (l *Log) addCosignature(c checkpoint, s note.Signature) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signed.tree != c.tree {
		return nil
	}
	text := fmt.Appendf(bytes.Clone(l.signed.text), "— %s %s\n", s.Name, s.Base64)
	err := l.writer.WriteCheckpoint(text)
	if err == nil {
		l.signed.text = text
	}
	return err
}

// The statuses of the call add-checkpoint that have a meaning.
const (
	statusCosigned   = 200
	statusUnknownKey = 403
	statusUnknownLog = 404
	statusConflict   = 409 // the witness has cosigned another size; the body has this size
	statusNoProof    = 422
)

// ask asks the witness to cosign c and returns its cosignature, which it has verified. If the witness
// has cosigned another number of entries than w knows, ask asks a second time.
func (w *witness) ask(ctx context.Context, log tiles.Reader, c checkpoint) (note.Signature, error) {
	status, response, err := w.send(ctx, log, c, w.cosigned)
	if err != nil {
		return note.Signature{}, err
	}
	size, known := parseSize(response)
	if status != statusConflict || !known {
		return w.answer(c, w.cosigned, status, response)
	}
	if size > c.tree.N {
		return note.Signature{}, fmt.Errorf("it has cosigned %d entries of this log: the log was truncated or replaced, or another copy was continued", size)
	}
	status, response, err = w.send(ctx, log, c, size)
	if err != nil {
		return note.Signature{}, err
	}
	return w.answer(c, size, status, response)
}

// send sends a checkpoint with the proof that its tree continues the one with old entries.
func (w *witness) send(ctx context.Context, log tiles.Reader, c checkpoint, old int64) (status int, response []byte, err error) {
	var request bytes.Buffer
	fmt.Fprintf(&request, "old %d\n", old)
	if old > 0 {
		proof, err := log.Consistency(c.tree, old)
		if err != nil {
			return 0, nil, err
		}
		for _, hash := range proof {
			fmt.Fprintf(&request, "%s\n", hash)
		}
	}
	request.WriteString("\n")
	request.Write(c.text)
	return w.post(ctx, w.url, request.Bytes())
}

// answer returns the cosignature in a response, or says why there is none.
func (w *witness) answer(c checkpoint, old int64, status int, response []byte) (note.Signature, error) {
	switch status {
	case statusCosigned:
		return w.key.find(c, response)
	case statusUnknownKey:
		return note.Signature{}, errors.New("it does not know the key of the log (status 403): give its operator the content of key.pub")
	case statusUnknownLog:
		return note.Signature{}, errors.New("it does not know the log, or its URL is wrong (status 404): give its operator the content of key.pub")
	case statusConflict:
		return note.Signature{}, fmt.Errorf("it has cosigned another tree (status 409): the log was replaced, or another copy was continued")
	case statusNoProof:
		return note.Signature{}, fmt.Errorf("the log does not continue the first %d entries, which it has cosigned (status 422): the log was replaced, or another copy was continued", old)
	}
	return note.Signature{}, fmt.Errorf("it has answered with the status %d and the text %.100q", status, response)
}

// find returns the cosignature of c with the key among the signature lines of a response. It ignores
// those with other keys.
func (k *witnessKey) find(c checkpoint, lines []byte) (note.Signature, error) {
	text, _, _ := bytes.Cut(c.text, []byte("\n\n"))
	n, err := note.Open(fmt.Appendf(nil, "%s\n\n%s", text, lines), note.VerifierList(k))
	switch {
	case err != nil:
		return note.Signature{}, fmt.Errorf("its answer has no valid cosignature with this key: %w", err)
	case n.Text != string(text)+"\n":
		return note.Signature{}, errors.New("its answer does not consist of signature lines")
	}
	return n.Sigs[0], nil
}

// parseSize returns the size in the body of a conflict: a decimal number and a newline.
func parseSize(body []byte) (size int64, ok bool) {
	text, ok := strings.CutSuffix(string(body), "\n")
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), ok && err == nil
}
