package audit

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/report"
)

// Verify checks the logs in these folders. Logs of processes that shared their pace are checked
// together. It is the zero Verifier.
func Verify(dirs ...string) (*Report, error) { return new(Verifier).Verify(dirs...) }

// A Verifier checks logs. It decides again about each request, from the robots.txt files in the
// log, and does not use the network. The zero Verifier trusts the keys that it finds in the
// folders.
type Verifier struct {
	// Keys are the keys of the logs that the caller trusts: verifier keys of
	// golang.org/x/mod/sumdb/note, such as the content of key.pub. If there are none, the key of
	// each folder is used.
	Keys []string
	// Checkpoints are checkpoints that another party holds. Each must be signed by the key of one of
	// the logs, which must have its entries.
	Checkpoints [][]byte
}

// Verify checks the logs in these folders. The result says which faults there are. The error says
// that a folder could not be read.
//
// The memory that Verify uses does not depend on the number of entries. The process needs about 30
// MB, and 400 bytes for each host, 300 bytes for each different robots.txt, and 80 bytes for each
// request that has not ended. A site whose robots.txt was read 64 times or more needs 2.5 kB. Parsed
// robots.txt files need at most another 100 MB.
func (v *Verifier) Verify(dirs ...string) (*Report, error) {
	if len(dirs) == 0 {
		return nil, errors.New("audit: no folder to verify")
	}
	r := newReport(len(dirs))
	var streams []*stream
	for i, dir := range dirs {
		s, err := v.open(dir, r, &r.Logs[i])
		if err != nil {
			return nil, fmt.Errorf("audit: cannot verify %s: %w", dir, err)
		}
		defer s.stop()
		streams = append(streams, s)
	}
	v.foreign(streams)
	newReplay(r).run(streams)
	return r, nil
}

// newReport returns the report of a number of logs, without results.
func newReport(logs int) *Report {
	r := &Report{Logs: make([]LogReport, logs)}
	for _, c := range checks {
		r.Checks = append(r.Checks, CheckReport{Check: c.check})
	}
	return r
}

// A stream is the entries of one log in order.
type stream struct {
	log    *LogReport
	report *Report
	bodies string // the folder with the robots.txt files
	next   func() (scanned, bool)
	stop   func()
	clock  logClock
	held   []int          // the indexes of the Verifier's Checkpoints that are of this log
	open   map[uint64]int // requests that have started and not ended, by replay.exchange

	index   uint64    // of the current entry
	entry   Entry     // the current entry
	at      time.Time // of the current entry
	process int       // the number of the process that has written it
}

// open opens a log for reading and checks its checkpoint.
func (v *Verifier) open(dir string, r *Report, l *LogReport) (*stream, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("not a folder")
	}
	l.Dir = dir
	s := &stream{log: l, report: r, bodies: filepath.Join(dir, "robots"), open: make(map[uint64]int)}
	reader := tiles.NewReader(dir)
	signed, earlier := v.checkpoint(reader, s)
	l.Signed = uint64(signed.N)
	s.next, s.stop = iter.Pull(scan(reader, signed, earlier))
	return s, nil
}

// fault adds a fault that belongs to an entry rather than to an event.
func (s *stream) fault(check Check, index uint64, text string) {
	s.report.add(Finding{Check: check, Dir: s.log.Dir, Entry: index, Text: text})
}

// foreign adds a fault for each of the Checkpoints that belongs to none of the logs.
func (v *Verifier) foreign(streams []*stream) {
	for i := range v.Checkpoints {
		known := slices.ContainsFunc(streams, func(s *stream) bool { return slices.Contains(s.held, i) })
		if !known {
			streams[0].fault(CheckTree, 0, "another party holds a checkpoint that none of the logs has signed, so a log or its key was replaced")
		}
	}
}

// checkpoint returns the size and root of the last checkpoint of a log, and those of the
// Checkpoints with its origin.
func (v *Verifier) checkpoint(reader tiles.Reader, s *stream) (signed tlog.Tree, earlier []tlog.Tree) {
	text, err := reader.Checkpoint()
	if err == nil && text == nil {
		err = errors.New("there is no checkpoint, so nothing is signed")
	}
	if err != nil {
		s.fault(CheckTree, 0, err.Error())
		return emptyTree, nil
	}
	keys := v.keys(s)
	signed, s.log.Origin, err = openCheckpoint(text, keys)
	if err != nil {
		s.fault(CheckTree, 0, err.Error())
		return emptyTree, nil
	}
	for i, text := range v.Checkpoints {
		tree, origin, err := openCheckpoint(text, keys)
		if err != nil || origin != s.log.Origin {
			continue // it is that of another log
		}
		s.held = append(s.held, i)
		if tree.N > signed.N {
			s.fault(CheckTree, uint64(signed.N), fmt.Sprintf("the log has %d entries, and another party holds a checkpoint of %d", signed.N, tree.N))
			continue
		}
		earlier = append(earlier, tree)
	}
	return signed, earlier
}

var emptyTree = tlog.Tree{Hash: tiles.EmptyRoot}

// keys returns the keys that the checkpoint of a log may be signed with.
func (v *Verifier) keys(s *stream) note.Verifiers {
	texts := v.Keys
	if len(texts) == 0 {
		s.log.OwnKey = true
		text, err := readPublicKey(s.log.Dir)
		if err != nil {
			s.fault(CheckTree, 0, "there is no key.pub, so the checkpoint cannot be verified")
		}
		texts = []string{strings.TrimSpace(string(text))}
	}
	var keys []note.Verifier
	for _, text := range texts {
		key, err := note.NewVerifier(text)
		if err != nil {
			s.fault(CheckTree, 0, fmt.Sprintf("the key %q is malformed", text))
			continue
		}
		keys = append(keys, key)
	}
	return note.VerifierList(keys...)
}

// readPublicKey returns the content of key.pub, or its first bytes if it is too large for a key.
func readPublicKey(dir string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, "key.pub"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<10))
}

// openCheckpoint verifies a checkpoint. It returns its size, its root and its origin.
func openCheckpoint(text []byte, keys note.Verifiers) (tree tlog.Tree, origin string, err error) {
	n, err := note.Open(text, keys)
	if err != nil {
		return tlog.Tree{}, "", fmt.Errorf("the checkpoint cannot be verified: %w", err)
	}
	for _, signature := range n.Sigs {
		tree, err = parseCheckpoint(n.Text, signature.Name)
		if err == nil {
			return tree, signature.Name, nil
		}
	}
	return tlog.Tree{}, "", err
}

// advance reads the next entry that can be checked. It reports false at the end.
func (s *stream) advance() bool {
	for {
		item, ok := s.next()
		if !ok {
			return false
		}
		if item.fault != "" {
			s.fault(CheckTree, item.Index, item.fault)
			continue
		}
		s.report.check(CheckTree).Checked++
		if !item.Signed {
			s.log.Unsigned++
		}
		switch {
		case item.Item.Entry == nil:
			continue
		case item.err != nil:
			s.fault(CheckComplete, item.Index, "the entry cannot be read: "+item.err.Error())
			continue
		}
		s.index = item.Index
		s.entry = item.entry
		s.at = item.entry.time()
		return true
	}
}

// forget counts the requests that have not ended, which are no longer expected to end.
func (s *stream) forget() {
	for _, n := range s.open {
		s.log.Open += n
	}
	clear(s.open)
}

// time returns the time of an entry.
func (e Entry) time() time.Time {
	if e.Event != nil {
		return e.Event.Time
	}
	return e.Log.Time
}

// finding returns a finding about the current event.
func (s *stream) finding(check Check, text string, args ...any) Finding {
	f := Finding{Check: check, Dir: s.log.Dir, Entry: s.index, Time: s.at, Text: fmt.Sprintf(text, args...)}
	if e := s.entry.Event; e != nil {
		f.Host = e.Host
		f.URL = e.URL
	}
	return f
}

// seen records the time of an event.
func (s *stream) seen(e *report.Event) {
	if s.log.First.IsZero() {
		s.log.First = e.Time
	}
	s.log.Last = e.Time
}
