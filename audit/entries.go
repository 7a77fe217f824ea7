package audit

import (
	"bytes"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
)

// Entries returns the entries of the log in a folder with their indexes, in order. An entry
// that cannot be read has an error and is zero. Entries checks no hashes; see Verify.
func Entries(dir string) iter.Seq2[IndexedEntry, error] {
	return func(yield func(IndexedEntry, error) bool) {
		reader := tiles.NewReader(dir)
		signed, _, err := looseCheckpoint(reader)
		if err != nil && !yield(IndexedEntry{}, fmt.Errorf("audit: %s: %w", dir, err)) {
			return
		}
		for s := range scan(reader, signed, nil) {
			e := IndexedEntry{Index: s.Index, Entry: s.entry}
			switch {
			case s.fault != "":
				err = fmt.Errorf("audit: %s: %s", dir, s.fault)
			case s.err != nil:
				err = fmt.Errorf("audit: entry %d of %s: %w", s.Index, dir, s.err)
			case s.Item.Entry == nil:
				continue
			default:
				err = nil
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// An IndexedEntry is an Entry with its index in the log, starting at 0.
type IndexedEntry struct {
	Index uint64
	Entry
}

// looseCheckpoint returns the size and root of the last checkpoint without verifying its signature.
func looseCheckpoint(reader tiles.Reader) (tree tlog.Tree, checkpoint []byte, err error) {
	checkpoint, err = reader.Checkpoint()
	if err != nil || checkpoint == nil {
		return emptyTree, nil, err
	}
	text, _, ok := bytes.Cut(checkpoint, []byte("\n\n"))
	origin, _, _ := bytes.Cut(text, []byte("\n"))
	if !ok {
		return emptyTree, nil, fmt.Errorf("%w: the checkpoint is malformed", ErrDamaged)
	}
	tree, err = parseCheckpoint(string(text)+"\n", string(origin))
	if err != nil {
		return emptyTree, nil, err
	}
	return tree, checkpoint, nil
}
