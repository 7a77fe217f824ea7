package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/note"
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

// Prove returns the proof that the last checkpoint of a log covers an entry, in the format
// tlog-proof (https://c2sp.org/tlog-proof). The extra data of the proof is the entry itself.
func Prove(dir string, index uint64) ([]byte, error) {
	proof, err := prove(dir, index)
	if err != nil {
		return nil, fmt.Errorf("audit: cannot prove entry %d of %s: %w", index, dir, err)
	}
	return proof, nil
}

func prove(dir string, index uint64) ([]byte, error) {
	reader := tiles.NewReader(dir)
	signed, checkpoint, err := looseCheckpoint(reader)
	if err != nil {
		return nil, err
	}
	if index >= uint64(signed.N) {
		return nil, fmt.Errorf("the checkpoint covers %d entries", signed.N)
	}
	entry, err := reader.Entry(signed, index)
	if err != nil {
		return nil, err
	}
	hashes, err := reader.Proof(signed, index)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("c2sp.org/tlog-proof@v1\n")
	fmt.Fprintf(&b, "extra %s\n", base64.StdEncoding.EncodeToString(entry))
	fmt.Fprintf(&b, "index %d\n", index)
	for _, h := range hashes {
		fmt.Fprintf(&b, "%s\n", h)
	}
	b.WriteString("\n")
	b.Write(checkpoint)
	return b.Bytes(), nil
}

// CheckProof checks a proof of Prove with the key of the log, the content of key.pub. It returns
// the entry.
func CheckProof(proof []byte, key string) (IndexedEntry, error) {
	e, err := checkProof(proof, key)
	if err != nil {
		return IndexedEntry{}, fmt.Errorf("audit: the proof is not valid: %w", err)
	}
	return e, nil
}

func checkProof(proof []byte, key string) (e IndexedEntry, err error) {
	head, checkpoint, ok := bytes.Cut(proof, []byte("\n\n"))
	lines := bytes.Split(head, []byte("\n"))
	if !ok || len(lines) < 3 || string(lines[0]) != "c2sp.org/tlog-proof@v1" {
		return e, errors.New("it is not in the format tlog-proof, or has no entry")
	}
	var encoded string
	_, err = fmt.Sscanf(string(lines[1]), "extra %s", &encoded)
	if err != nil {
		return e, errors.New("it has no entry")
	}
	entry, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return e, err
	}
	_, err = fmt.Sscanf(string(lines[2]), "index %d", &e.Index)
	if err != nil {
		return e, err
	}
	var hashes tlog.RecordProof
	for _, line := range lines[3:] {
		h, err := tlog.ParseHash(string(line))
		if err != nil {
			return e, err
		}
		hashes = append(hashes, h)
	}
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return e, err
	}
	signed, _, err := openCheckpoint(checkpoint, note.VerifierList(verifier))
	if err != nil {
		return e, err
	}
	if e.Index >= uint64(signed.N) {
		return e, errors.New("the checkpoint does not cover the entry")
	}
	err = tlog.CheckRecord(hashes, signed.N, signed.Hash, int64(e.Index), tlog.RecordHash(entry))
	if err != nil {
		return e, err
	}
	e.Entry, err = decodeEntry(entry)
	return e, err
}
