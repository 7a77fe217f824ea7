// Package witnesstest has a witness of transparency logs for the tests of the command. It cosigns
// every checkpoint of a log that it knows, and checks no proofs: the tests of package audit do that.
// See https://c2sp.org/tlog-witness and https://c2sp.org/tlog-cosignature.
package witnesstest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// A Witness is an HTTP handler with the call add-checkpoint. Its methods may be called from any
// goroutine.
type Witness struct {
	name     string
	private  ed25519.PrivateKey
	material []byte // the type and the public key

	mu   sync.Mutex
	logs []note.Verifier // the keys of the logs that it knows
}

// New returns a witness with a new key. It knows no log.
func New(name string) *Witness {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return &Witness{name: name, private: private, material: append([]byte{0x04}, public...)}
}

// Key returns the verifier key.
func (w *Witness) Key() string {
	return fmt.Sprintf("%s+%x+%s", w.name, w.hash(), base64.StdEncoding.EncodeToString(w.material))
}

// hash returns the four bytes that identify the key.
func (w *Witness) hash() []byte {
	sum := sha256.Sum256(append([]byte(w.name+"\n"), w.material...))
	return sum[:4]
}

// Know makes a log known by its verifier key.
func (w *Witness) Know(key string) error {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, verifier)
	return nil
}

// ServeHTTP implements http.Handler. The status is 404 if the witness does not know the log.
func (w *Witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, 1<<20))
	if err != nil || r.URL.Path != "/add-checkpoint" {
		http.Error(out, "not a call of add-checkpoint", http.StatusBadRequest)
		return
	}
	_, checkpoint, _ := bytes.Cut(body, []byte("\n\n"))
	w.mu.Lock()
	defer w.mu.Unlock()
	signed, err := note.Open(checkpoint, note.VerifierList(w.logs...))
	if err != nil {
		http.Error(out, err.Error(), http.StatusNotFound)
		return
	}
	io.WriteString(out, w.cosign(signed.Text))
}

// cosign returns the cosignature line for the text of a checkpoint.
func (w *Witness) cosign(text string) string {
	at := uint64(time.Now().Unix())
	signature := ed25519.Sign(w.private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))
	line := binary.BigEndian.AppendUint64(w.hash(), at)
	return fmt.Sprintf("— %s %s\n", w.name, base64.StdEncoding.EncodeToString(append(line, signature...)))
}
