// Package witnesstest has a witness of transparency logs for tests. It was written from
// https://c2sp.org/tlog-witness and https://c2sp.org/tlog-cosignature, and shares nothing with package
// audit.
package witnesstest

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Witness is an HTTP handler with the call add-checkpoint. Its methods may be called from any
// goroutine. It keeps what it has seen in memory.
type Witness struct {
	name string

	mu       sync.Mutex
	private  ed25519.PrivateKey
	now      func() time.Time
	logs     map[string]note.Verifiers // the keys of the logs that it knows, by their origins
	seen     map[string]tlog.Tree      // the last tree that it has cosigned, by origin
	asked    *sync.Cond                // there was a request
	statuses []int
}

// New returns a witness with a new key. It knows no log, and its clock is time.Now.
func New(name string) *Witness {
	w := &Witness{name: name, now: time.Now, logs: make(map[string]note.Verifiers), seen: make(map[string]tlog.Tree)}
	w.asked = sync.NewCond(&w.mu)
	w.Rotate()
	return w
}

// Rotate gives the witness a new key.
func (w *Witness) Rotate() {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.private = private
}

// material returns the type and the public key.
func (w *Witness) material() []byte {
	return append([]byte{0x04}, w.private.Public().(ed25519.PublicKey)...)
}

// hash returns the four bytes that identify the key.
func (w *Witness) hash() []byte {
	sum := sha256.Sum256(append([]byte(w.name+"\n"), w.material()...))
	return sum[:4]
}

// Key returns the verifier key.
func (w *Witness) Key() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%s+%x+%s", w.name, w.hash(), base64.StdEncoding.EncodeToString(w.material()))
}

// Know makes a log known by its verifier key. The origin of the log is the name of the key.
func (w *Witness) Know(key string) error {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[verifier.Name()] = note.VerifierList(verifier)
	return nil
}

// SetClock sets the clock for cosignatures.
func (w *Witness) SetClock(now func() time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// Seen returns the last tree of a log that the witness has cosigned.
func (w *Witness) Seen(origin string) tlog.Tree {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[origin]
}

// SetSeen replaces the last tree of a log, as if the state of the witness was lost or damaged.
func (w *Witness) SetSeen(origin string, tree tlog.Tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[origin] = tree
}

// Wait waits until the witness has cosigned a tree of a log with at least size entries.
func (w *Witness) Wait(origin string, size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.seen[origin].N < size {
		w.asked.Wait()
	}
}

// Statuses returns the statuses of all responses, and forgets them.
func (w *Witness) Statuses() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	statuses := w.statuses
	w.statuses = nil
	return statuses
}

// ServeHTTP implements http.Handler.
func (w *Witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint" {
		http.NotFound(out, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, 1<<20))
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	status, text := w.add(body)
	w.statuses = append(w.statuses, status)
	w.asked.Broadcast()
	if status == http.StatusConflict {
		out.Header().Set("Content-Type", "text/x.tlog.size")
	}
	out.WriteHeader(status)
	io.WriteString(out, text)
}

// add does the call add-checkpoint. w.mu is held, so that a check and the change after it are one
// step.
func (w *Witness) add(body []byte) (status int, text string) {
	head, checkpoint, _ := bytes.Cut(body, []byte("\n\n"))
	old, proof, err := parseHead(head)
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	origin, _, _ := strings.Cut(string(checkpoint), "\n")
	keys, known := w.logs[origin]
	if !known {
		return http.StatusNotFound, "unknown origin"
	}
	signed, err := note.Open(checkpoint, keys)
	if err != nil {
		return http.StatusForbidden, err.Error()
	}
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + strings.TrimPrefix(signed.Text, origin+"\n")))
	if err != nil || old > tree.N {
		return http.StatusBadRequest, "malformed checkpoint, or the old size is larger"
	}
	seen := w.seen[origin]
	if old != seen.N {
		return http.StatusConflict, fmt.Sprintf("%d\n", seen.N)
	}
	switch {
	case old == tree.N && old > 0 && seen.Hash != tree.Hash:
		return http.StatusConflict, fmt.Sprintf("%d\n", seen.N)
	case old == 0 && len(proof) > 0:
		return http.StatusUnprocessableEntity, "the proof must be empty"
	case old > 0 && tlog.CheckTree(proof, tree.N, tree.Hash, old, seen.Hash) != nil:
		return http.StatusUnprocessableEntity, "the proof is wrong"
	}
	w.seen[origin] = tree
	return http.StatusOK, w.cosign(signed.Text)
}

// parseHead parses the lines before the checkpoint.
func parseHead(head []byte) (old int64, proof tlog.TreeProof, err error) {
	lines := bufio.NewScanner(bytes.NewReader(head))
	if !lines.Scan() {
		return 0, nil, fmt.Errorf("no old size")
	}
	text, ok := strings.CutPrefix(lines.Text(), "old ")
	old, err = strconv.ParseInt(text, 10, 64)
	if err != nil || !ok || old < 0 || strconv.FormatInt(old, 10) != text {
		return 0, nil, fmt.Errorf("malformed old size %q", lines.Text())
	}
	for lines.Scan() {
		hash, err := tlog.ParseHash(lines.Text())
		if err != nil {
			return 0, nil, err
		}
		proof = append(proof, hash)
	}
	if len(proof) > 63 {
		return 0, nil, fmt.Errorf("the proof has %d lines", len(proof))
	}
	return old, proof, lines.Err()
}

// Cosign returns a cosignature line for the text of any checkpoint, without a check.
func (w *Witness) Cosign(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cosign(text)
}

func (w *Witness) cosign(text string) string {
	at := uint64(w.now().Unix())
	signature := ed25519.Sign(w.private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))
	line := binary.BigEndian.AppendUint64(w.hash(), at)
	return fmt.Sprintf("— %s %s\n", w.name, base64.StdEncoding.EncodeToString(append(line, signature...)))
}
