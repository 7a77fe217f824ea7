package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/report"
)

var (
	// ErrClosed is passed to the function of OnError for the first event after Close.
	ErrClosed = errors.New("audit: the log is closed")

	// ErrInUse is returned by Open if another process has the log open.
	ErrInUse = errors.New("audit: another process has the log open")

	// ErrDamaged is returned by Open if the entries do not have the root of the last checkpoint, or
	// if files are missing. Verify says what is wrong.
	ErrDamaged = tiles.ErrDamaged

	// ErrKey is returned by Open if the last checkpoint was not signed with the key of the log.
	ErrKey = errors.New("audit: the checkpoint was not signed with the key of the log")
)

const (
	// flushEvery is how long an entry stays in memory at most.
	flushEvery = 250 * time.Millisecond
	// checkpointEvery is the time between two checkpoints, if there are new entries.
	checkpointEvery = 10 * time.Second
	// maxUnwritten is the largest number of bytes in memory. Event then waits until they are
	// written.
	maxUnwritten = 4 << 20
)

// A Log writes the events of crawls to a folder. Any number of plugins may use one Log, and its
// methods may be called from any goroutine. Only one process may have a folder open at a time.
//
// An entry is on the disk 250 ms after its event was delivered, and a checkpoint is written every
// ten seconds and by Close. So a process that is killed loses the events of less than a second.
//
// If the disk cannot be written, the function of OnError is called once. The Log keeps up to 4 MiB of entries in
// memory, and writes them when the disk can be written again. Further events are counted, and their
// number is logged.
type Log struct {
	dir     string
	key     *key
	onError func(error)
	conceal concealer
	end     chan struct{} // closed by Close
	ended   chan struct{} // closed when run has returned
	added   chan struct{} // has an element if there may be an event since the last call of idle

	// mu protects the fields below it. It is held while the log writes to the disk.
	mu         sync.Mutex
	lock       *os.File
	writer     *tiles.Writer
	entry      []byte                     // the memory of the last entry, for the next one
	bodies     map[[sha256.Size]byte]bool // the robots.txt files that are in the folder
	signed     tlog.Tree                  // that of the last checkpoint
	lost       int                        // events that could not be written, and are not logged yet
	failing    bool                       // a write has failed, and OnError was called
	closed     bool
	toldClosed bool
}

// Open opens the log in a folder, which it creates if necessary, and writes a notice about that.
// Only the owner can read the files. The error joins all faults of the options.
func Open(dir string, opts ...Option) (*Log, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	l, err := open(dir, c)
	if err != nil {
		return nil, fmt.Errorf("audit: cannot open %s: %w", dir, err)
	}
	err = l.notice(Notice{Kind: NoticeOpened, Version: version(), Go: runtime.Version(), Clock: clockID()})
	if err == nil {
		err = l.checkpoint()
	}
	if err != nil {
		return nil, fmt.Errorf("audit: cannot write to %s: %w", dir, errors.Join(err, l.release()))
	}
	go l.run()
	return l, nil
}

// open opens the folder. It writes no entry.
func open(dir string, c config) (*Log, error) {
	err := os.MkdirAll(filepath.Join(dir, "robots"), 0o700)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir:     dir,
		onError: c.onError,
		conceal: c.conceal,
		end:     make(chan struct{}),
		ended:   make(chan struct{}),
		added:   make(chan struct{}, 1),
		lock:    lock,
		bodies:  make(map[[sha256.Size]byte]bool),
	}
	var signed tlog.Tree
	l.key, signed, err = openKey(dir, c.key)
	if err == nil {
		l.writer, err = tiles.Open(dir, signed)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

// version returns the version of this module, or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	const path = "github.com/collyrobots/collyrobots"
	if info.Main.Path == path {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "(devel)"
}

// clockID returns Notice.Clock, a hash of the identifier that Linux makes when it is started.
func clockID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:8])
}

// Event adds an event to the log. It is the function for collyrobots.OnEveryEvent. With
// collyrobots.OnEvent, events may be dropped, and Verify reports that.
//
// Event returns when the event is in memory. If 4 MiB wait to be written, it writes them first.
// After Close it does nothing, except that the first call calls the function of OnError.
func (l *Log) Event(e *report.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.tellClosed()
		return
	}
	select {
	case l.added <- struct{}{}:
	default: // run has not seen the last one yet
	}
	if l.writer.Unwritten() > maxUnwritten && !l.write(l.save) {
		l.lost++
		return
	}
	if e.Body != nil && !l.write(func() error { return l.keepBody(e.Body) }) {
		l.lost++
		return
	}
	text, err := encodeEvent(l.entry[:0], l.conceal.event(e))
	if err == nil {
		l.entry = text
		_, err = l.writer.Append(text)
	}
	if err != nil { // such an event does not occur
		l.lost++
		slog.Error("audit: event cannot be logged", "error", err)
	}
}

// tellClosed tells OnError once that there are events after Close. l.mu is held.
func (l *Log) tellClosed() {
	if !l.toldClosed {
		l.toldClosed = true
		go l.onError(ErrClosed)
	}
}

// write calls f, which writes to the disk. It reports whether f has succeeded. The first failure is
// passed to OnError. l.mu is held.
func (l *Log) write(f func() error) bool {
	err := f()
	if err != nil && !l.failing {
		l.failing = true
		go l.onError(fmt.Errorf("audit: cannot write to %s: %w", l.dir, err))
	}
	return err == nil
}

// keepBody writes a robots.txt to the folder, unless it is there. l.mu is held.
func (l *Log) keepBody(body []byte) error {
	sum := sha256.Sum256(body)
	if l.bodies[sum] {
		return nil
	}
	name := filepath.Join(l.dir, "robots", hex.EncodeToString(sum[:]))
	if _, err := os.Stat(name); err != nil {
		err := writeWhole(name, body)
		if err != nil {
			return err
		}
	}
	if len(l.bodies) >= maxBodies {
		clear(l.bodies)
	}
	l.bodies[sum] = true
	return nil
}

// maxBodies bounds the memory of Log.bodies. After that, the folder is asked again.
const maxBodies = 10_000

// writeWhole writes a file through a temporary file, so that it is never there in part.
func writeWhole(name string, content []byte) error {
	temporary := name + ".new"
	err := os.WriteFile(temporary, content, 0o600)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// run writes the entries at intervals until Close is called.
func (l *Log) run() {
	defer close(l.ended)
	opened := time.Now()
	signed := time.Duration(0) // when the last checkpoint was due, after opened
	for {
		if l.idle() {
			select {
			case <-l.end:
				return
			case <-l.added:
				signed = time.Since(opened).Truncate(checkpointEvery)
			}
		}
		select {
		case <-l.end:
			return
		case <-time.After(flushEvery - time.Since(opened)%flushEvery):
		}
		due := time.Since(opened)-signed >= checkpointEvery
		l.flush(due)
		if due {
			signed = time.Since(opened).Truncate(checkpointEvery)
		}
	}
}

// idle reports whether there is nothing to do until the next event.
func (l *Log) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Size() == uint64(l.signed.N) && l.lost == 0 && !l.failing
}

// flush writes the entries that are in memory, and a checkpoint if sign is true.
func (l *Log) flush(sign bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.write(l.save) {
		return
	}
	l.failing = l.lost > 0
	if l.lost > 0 && l.notice(Notice{Kind: NoticeLost, Count: l.lost}) == nil {
		l.lost = 0
	}
	if sign && l.writer.Size() > uint64(l.signed.N) {
		l.write(l.checkpoint)
	}
}

// save writes the entries that are in memory. l.mu is held.
func (l *Log) save() error {
	err := l.checkFolder()
	if err != nil {
		return err
	}
	return l.writer.Flush()
}

// checkFolder returns an error if the folder was removed or renamed, or if another one has its name.
// Without the check, the rest of the log would begin another folder.
func (l *Log) checkFolder() error {
	held, err := l.lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(l.lock.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(held, there) {
		return errors.New("another folder has its name")
	}
	return nil
}

// checkpoint writes a checkpoint. l.mu is held, or l is not shared yet.
func (l *Log) checkpoint() error {
	err := l.checkFolder()
	if err != nil {
		return err
	}
	err = l.writer.Checkpoint(l.key.sign)
	if err == nil {
		l.signed = tlog.Tree{N: int64(l.writer.Size()), Hash: l.writer.Root()}
	}
	return err
}

// notice adds an entry about the log. l.mu is held, or l is not shared yet.
func (l *Log) notice(n Notice) error {
	n.Time = time.Now()
	text, err := Entry{Log: &n}.encode(nil)
	if err != nil {
		return err
	}
	_, err = l.writer.Append(text)
	return err
}

// Close writes all entries, a notice and a checkpoint. Close the plugins before, because their last
// events come during Plugin.Close. It returns an error if something could not be written; the
// entries that are on the disk then have no checkpoint. A second call has no effect.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	close(l.end)
	<-l.ended
	err := errors.Join(l.finish(), l.release())
	if err != nil {
		return fmt.Errorf("audit: cannot close %s: %w", l.dir, err)
	}
	return nil
}

// finish writes what Close writes.
func (l *Log) finish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.lost > 0 {
		err = l.notice(Notice{Kind: NoticeLost, Count: l.lost})
	}
	return errors.Join(err, l.notice(Notice{Kind: NoticeClosed}), l.checkpoint())
}

// release closes the files.
func (l *Log) release() error { return errors.Join(l.writer.Close(), l.lock.Close()) }
