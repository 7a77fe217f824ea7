package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Dir returns a Store that keeps each record in a file of its own under path, in 256 folders. It
// makes path if it is not there. When Update returns, the record has reached the disk; a crash at
// any moment leaves the old record or the new one. Files are named by the hash of their key, so keys
// may be anything.
//
// A file that cannot be read back as it was written is renamed to end in ".damaged" and reported
// once, as a [*CorruptError]; the next call finds no record. The file of an expired record is removed
// when its key is next asked for.
//
// Use it from one process at a time: of two that update the same key at once, one update may be
// lost, though nothing else.
func Dir(path string) (Store, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &dir{path: path}, nil
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
	raw, err := os.ReadFile(f.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
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

// write replaces the record: a temporary file is filled, synced and renamed, then the folder is synced.
func (f file) write(r record) error {
	if err := f.makeFolder(); err != nil {
		return err
	}
	temporary := f.path() + ".new"
	if err := writeSynced(temporary, encode(f.key, r)); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, f.path()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncFolder(f.folder)
}

func (f file) makeFolder() error {
	err := os.Mkdir(f.folder, 0o755)
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

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
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
