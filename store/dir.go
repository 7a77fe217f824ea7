package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Dir returns a Store that keeps each record in a file of its own under path, in 256 folders. It
// makes path if it is not there. When Update returns, the record has reached the disk; a crash at
// any moment leaves the old record or the new one. Files are named by the hash of their key, so
// keys may be anything.
//
// A file that cannot be read back as it was written is renamed to end in ".damaged" and reported
// once, as a [*CorruptError]; the next call finds no record. So is what is no file at all, such as
// a link or a pipe; it is not opened. A record of another version of this package stays as it is:
// Get and Update of its key return a [*VersionError]. The file of an expired record is removed when
// its key is next asked for, and Dir removes what a killed process left half-written.
//
// Files are for their owner only (0600, new folders 0700).
//
// Use it from one process at a time: of two that update the same key at once, one update may be
// lost, though nothing else.
func Dir(path string) (Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	d := &dir{path: path}
	for i := range len(d.locks) {
		sweep(filepath.Join(path, hex.EncodeToString([]byte{byte(i)})))
	}
	return d, nil
}

type dir struct {
	path   string
	use    sync.RWMutex // held for reading by each call, for writing by Close
	closed bool
	locks  [256]sync.Mutex // of the folders
}

func (d *dir) Get(ctx context.Context, key string) ([]byte, error) {
	f, done, err := d.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	return f.read(time.Now())
}

func (d *dir) Update(ctx context.Context, key string, ttl time.Duration, update func([]byte) ([]byte, error)) error {
	f, done, err := d.enter(ctx, key)
	if err != nil {
		return err
	}
	defer done()
	old, err := f.read(time.Now())
	if err != nil {
		return err
	}
	value, err := update(old)
	if err != nil {
		return err
	}
	if value == nil {
		return f.remove()
	}
	return f.write(record{value, ending(time.Now(), ttl)})
}

func (d *dir) Close() error {
	d.use.Lock()
	defer d.use.Unlock()
	d.closed = true
	return nil
}

// enter returns the file of key, which is the caller's alone until done.
func (d *dir) enter(ctx context.Context, key string) (f file, done func(), err error) {
	d.use.RLock()
	if d.closed {
		err = ErrClosed
	} else {
		err = ctx.Err()
	}
	if err != nil {
		d.use.RUnlock()
		return file{}, nil, err
	}
	sum := sha256.Sum256([]byte(key))
	lock := &d.locks[sum[0]]
	lock.Lock()
	name := hex.EncodeToString(sum[:])
	done = func() {
		lock.Unlock()
		d.use.RUnlock()
	}
	return file{key, filepath.Join(d.path, name[:2]), name[2:]}, done, nil
}

// file is where the record of one key is.
type file struct{ key, folder, name string }

func (f file) path() string { return filepath.Join(f.folder, f.name) }

// read returns the living value, nil when there is none.
func (f file) read(now time.Time) ([]byte, error) {
	raw, err := readRegular(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if irregular := (irregularError)(0); errors.As(err, &irregular) {
		return nil, f.setAside(err)
	}
	if err != nil {
		return nil, err
	}
	if version := versionOf(raw); version != "" {
		return nil, &VersionError{Path: f.path(), Version: version}
	}
	key, r, err := decode(raw)
	if err == nil && key != f.key {
		err = errors.New("the record of another key")
	}
	if err != nil {
		return nil, f.setAside(err)
	}
	if !r.alive(now) {
		return nil, f.remove()
	}
	return r.value, nil
}

// An irregularError says that something is no regular file, but a link, a pipe, a device or a
// folder.
type irregularError fs.FileMode

func (e irregularError) Error() string {
	return "not a regular file, but of mode " + fs.FileMode(e).String()
}

// readRegular reads a file, and nothing else: a link may lead anywhere, a pipe never end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregularError(info.Mode())
	}
	f, err := openRecord(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // it was replaced since
		err = irregularError(info.Mode())
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// write replaces the record: a temporary file is filled, synced and renamed, then the folder is
// synced.
func (f file) write(r record) error {
	if err := f.makeFolder(); err != nil {
		return err
	}
	content := encode(f.key, r)
	err := f.replace(content)
	if errors.Is(err, fs.ErrNotExist) {
		err = f.replace(content) // another process has opened the store, and swept
	}
	if err != nil {
		return err
	}
	return syncFolder(f.folder)
}

// temporary is what the name of a temporary file has after that of the record. What follows is
// random, and such a file is only made where nothing is.
const temporary = ".new"

func (f file) replace(content []byte) error {
	t, err := os.CreateTemp(f.folder, f.name+temporary+"-*")
	if err != nil {
		return err
	}
	_, err = t.Write(content)
	if err == nil {
		err = t.Sync()
	}
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), f.path())
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}

// sweep removes the temporary files in a folder. What cannot be removed does no harm.
func sweep(folder string) {
	f, err := os.Open(folder)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if !isTemporary(name) {
				continue
			}
			path := filepath.Join(folder, name)
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				os.Remove(path)
			}
		}
		if err != nil {
			return
		}
	}
}

// isTemporary reports whether a file has a name that replace gives, or that earlier versions gave.
func isTemporary(name string) bool {
	record, random, ok := strings.Cut(name, temporary)
	if !ok || len(record) != 2*(sha256.Size-1) || strings.Trim(record, "0123456789abcdef") != "" {
		return false
	}
	digits, ok := strings.CutPrefix(random, "-")
	return random == "" || ok && strings.Trim(digits, "0123456789") == ""
}

func (f file) makeFolder() error {
	err := os.Mkdir(f.folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.folder))
}

func (f file) remove() error {
	err := os.Remove(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(f.folder)
}

// setAside keeps the damaged bytes for whoever wants to look at them, and returns what to tell.
func (f file) setAside(why error) error {
	aside := f.path() + ".damaged"
	if err := os.Rename(f.path(), aside); err != nil {
		return &CorruptError{Path: f.path(), Err: errors.Join(why, err)}
	}
	return &CorruptError{Path: f.path(), Aside: aside, Err: why}
}

// syncFolder makes a rename or a removal durable, where a system can do that for a folder.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
