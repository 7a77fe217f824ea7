package audit

import (
	"iter"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// A scanned is an entry of a log, or a fault of the log.
type scanned struct {
	tiles.Item        // only the Index if there is a fault
	fault      string // "" for an entry
	entry      Entry  // zero if Item.Entry is nil or there is an error
	err        error  // why Item.Entry cannot be read
}

// scan reads the entries of a log in order, see tiles.Reader.Scan. It decodes about 256 of them at
// a time, on all processors, because decoding takes much longer than reading.
func scan(r tiles.Reader, signed tlog.Tree, earlier []tlog.Tree) iter.Seq[scanned] {
	return func(yield func(scanned) bool) {
		var batch []scanned
		pass := func() (goOn bool) {
			decodeAll(batch)
			for _, s := range batch {
				if !yield(s) {
					return false
				}
			}
			clear(batch)
			batch = batch[:0]
			return true
		}
		fault := func(index uint64, text string) {
			batch = append(batch, scanned{Item: tiles.Item{Index: index}, fault: text})
		}
		for item := range r.Scan(signed, earlier, fault) {
			batch = append(batch, scanned{Item: item})
			if len(batch) >= tiles.Width && !pass() {
				return
			}
		}
		pass()
	}
}

// decodeAll decodes the entries of a batch. It returns when all goroutines have ended.
func decodeAll(batch []scanned) {
	processors := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for part := range slices.Chunk(batch, len(batch)/processors+1) {
		all.Go(func() {
			for i := range part {
				s := &part[i]
				if s.Item.Entry != nil {
					s.entry, s.err = decodeEntry(s.Item.Entry)
				}
			}
		})
	}
	all.Wait()
}
