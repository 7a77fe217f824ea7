package tiles_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// TestScanWhileWriting scans a log again and again while entries and checkpoints are written. No
// scan has a fault, and each has all entries of its checkpoint.
func TestScanWhileWriting(t *testing.T) {
	dir := t.TempDir()
	w, err := tiles.Open(dir, tlog.Tree{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	sign := func(size uint64, root tlog.Hash) ([]byte, error) {
		return fmt.Appendf(nil, "%d\n%s\n", size, root), nil
	}
	if err := w.Checkpoint(sign); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	end := make(chan struct{})
	writer.Go(func() {
		defer close(end)
		random := rand.New(rand.NewPCG(1, 2))
		for n := range 600 {
			for range random.IntN(40) {
				w.Append(fmt.Append(nil, "entry ", n))
			}
			err := w.Flush()
			if n%3 == 0 {
				err = w.Checkpoint(sign)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	scans := 0
	for running := true; running; scans++ {
		select {
		case <-end:
			running = false
		default:
		}
		text, err := tiles.NewReader(dir).Checkpoint()
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(text, []byte("\n"))
		var signed tlog.Tree
		fmt.Sscan(string(lines[0]), &signed.N)
		signed.Hash, err = tlog.ParseHash(string(lines[1]))
		if err != nil {
			t.Fatal(err)
		}
		next := uint64(0)
		for item := range tiles.NewReader(dir).Scan(signed, nil, func(index uint64, text string) {
			t.Errorf("scan %d of %d entries: entry %d: %s", scans, signed.N, index, text)
		}) {
			if item.Index != next {
				t.Fatalf("entry %d comes after entry %d", item.Index, next)
			}
			next++
		}
		if next < uint64(signed.N) {
			t.Errorf("a scan has %d entries of %d", next, signed.N)
		}
	}
	writer.Wait()
	t.Logf("%d scans of up to %d entries", scans, w.Size())
}
