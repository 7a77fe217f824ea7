package fscktest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cosigned "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/witness"
)

// A cosigner is an HTTP handler that answers with the cosignatures of another implementation. It does
// not check proofs.
type cosigner struct{ signer note.Signer }

// ServeHTTP implements http.Handler.
func (c cosigner) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	_, checkpoint, _ := strings.Cut(string(body), "\n\n")
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	signed, err := note.Sign(&note.Note{Text: text + "\n"}, c.signer)
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	_, lines, _ := strings.Cut(string(signed), "\n\n")
	io.WriteString(out, lines)
}

// TestCosignature lets another implementation cosign checkpoints. It then accepts them in the file,
// with the same time as package audit, and fsck accepts the log.
func TestCosignature(t *testing.T) {
	logKey, logPublic, err := note.GenerateKey(nil, "example.com/crawl")
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := note.GenerateKey(nil, "witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cosigned.NewSignerForCosignatureV1(private)
	if err != nil {
		t.Fatal(err)
	}
	witnessKey, err := cosigned.VKeyToCosignatureV1(public)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cosigner{signer: signer})
	defer server.Close()
	dir := t.TempDir()
	l, err := audit.Open(dir, audit.Key(logKey), witness.At(server.URL, witnessKey))
	if err != nil {
		t.Fatal(err)
	}
	addEvents(l, 598)
	err = l.Close()
	if err != nil {
		t.Fatal(err)
	}

	checkpoint, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(checkpoint, note.VerifierList(signer.Verifier()))
	if err != nil {
		t.Fatalf("the cosignature in the file: %v", err)
	}
	at, err := cosigned.CoSigV1Timestamp(n.Sigs[0])
	if err != nil {
		t.Fatal(err)
	}
	err = check(dir)
	if err != nil {
		t.Errorf("fsck: %v", err)
	}
	v := audit.Verifier{Keys: []string{logPublic}, Witnesses: []string{witnessKey}}
	r, err := v.Verify(dir)
	if err != nil || !r.OK() {
		t.Fatalf("Verify: %v, %+v", err, r)
	}
	want := audit.Cosignature{Witness: "witness.example/w1", Entries: 600, Time: at.UTC()}
	if c := r.Logs[0].Cosignatures; len(c) != 1 || c[0] != want {
		t.Errorf("the cosignatures are %+v, want %+v", c, want)
	}
}
