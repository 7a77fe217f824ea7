package witness_test

import (
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/internal/witnesstest"
	"github.com/collyrobots/collyrobots/audit/witness"
	"github.com/collyrobots/collyrobots/report"
)

// The witness here is a server on this machine. A real one is run by another party, who publishes its
// URL and key, and gets the key of the log from you.
func ExampleAt() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "crawl.audit")
	logKey, logPublic, err := note.GenerateKey(nil, "example.com/crawl")
	if err != nil {
		log.Fatal(err)
	}
	w := witnesstest.New("witness.example/w1")
	w.Know(logPublic)
	server := httptest.NewServer(w)
	defer server.Close()
	witnessURL, witnessKey := server.URL, w.Key()

	records, err := audit.Open(dir, audit.Key(logKey), witness.At(witnessURL, witnessKey))
	if err != nil {
		log.Fatal(err)
	}
	// Usually a crawl does this: collyrobots.OnEveryEvent(records.Event).
	records.Event(report.Event{Kind: report.EventDenied, URL: "https://example.com/cart"})
	err = records.Close() // waits for the cosignature
	if err != nil {
		log.Fatal(err)
	}

	v := audit.Verifier{Keys: []string{logPublic}, Witnesses: []string{witnessKey}}
	report, err := v.Verify(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range report.Logs[0].Cosignatures {
		fmt.Println(c.Witness, "has cosigned", c.Entries, "entries; faults:", len(report.Findings))
	}
	// Output:
	// witness.example/w1 has cosigned 3 entries; faults: 0
}
