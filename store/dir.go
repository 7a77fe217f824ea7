package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
// creates path if it does not exist, and returns an error if it cannot write there. When Update
// returns, the record has reached the disk; a crash at any moment leaves the old record or the new
// one. Files are named by the hash of their key, so keys may be anything.
//
// A file that cannot be read back as it was written is renamed to end in ".damaged", or in
// ".damaged-" and random letters if that name cannot be used, and reported once, as a
// [*CorruptError]; the next call finds no record. The same happens to a file that is longer than a
// record can be, and to anything that is not a file, such as a link or a pipe; it is not opened. A
// record of a later version of this package stays as it is: Get and Update of its key return a
// [*VersionError]. The file of an expired record is removed when its key is next used. Dir removes
// the temporary files that killed processes left more than an hour ago.
//
// Files are for their owner only (0600, new folders 0700). A link in place of one of the 256 folders
// is not followed: Get and Update of the keys in it return an error.
//
// Use it from one process at a time. If two processes update the same key at once, one of the
// updates may be lost, but nothing else.
func Dir(path string) (Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("store: cannot create %s: %w", path, err)
	}
	if err := tryWrite(path); err != nil {
		return nil, fmt.Errorf("store: %s is not writable: %w", path, err)
	}
	d := &dir{path: path}
	for i := range len(d.locks) {
		sweep(filepath.Join(path, hex.EncodeToString([]byte{byte(i)})))
	}
	return d, nil
}

// tryWrite creates a file in a folder and removes it.
func tryWrite(folder string) error {
	f, err := os.CreateTemp(folder, "test-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// failed returns an error of the file system as one of this package.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %w", err)
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
	if len(value) > MaxRecord {
		return fmt.Errorf("store: a value of %d bytes is longer than %d", len(value), MaxRecord)
	}
	return f.write(record{value: value, ends: ending(time.Now(), ttl)})
}

func (d *dir) Close() error {
	d.use.Lock()
	defer d.use.Unlock()
	d.closed = true
	return nil
}

// enter returns the file of key. No other call has it until done is called.
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
	done = func() {
		lock.Unlock()
		d.use.RUnlock()
	}
	name := hex.EncodeToString(sum[:])
	f = file{key: key, folder: filepath.Join(d.path, name[:2]), name: name[2:]}
	if err := checkFolder(f.folder); err != nil {
		done()
		return file{}, nil, failed(err)
	}
	return f, done, nil
}

// checkFolder returns an error if there is something other than a folder at path. A link may lead to
// a folder of another program.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder, its mode is %v", path, info.Mode())
	}
	return nil
}

// file is where the record of one key is.
type file struct{ key, folder, name string }

func (f file) path() string { return filepath.Join(f.folder, f.name) }

// read returns the value, or nil if there is no record or it has expired.
func (f file) read(now time.Time) ([]byte, error) {
	most := recordLength(f.key, MaxRecord)
	raw, err := readRegular(f.path(), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if irregular := (irregularError)(0); errors.As(err, &irregular) {
		return nil, f.setAside(err)
	}
	if err != nil {
		return nil, failed(err)
	}
	if version := versionOf(raw); version != "" {
		return nil, &VersionError{Path: f.path(), Version: version}
	}
	if len(raw) > most {
		return nil, f.setAside(fmt.Errorf("longer than %d bytes", most))
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

// An irregularError reports that something is not a regular file, but a link, a pipe, a device or a
// folder.
type irregularError fs.FileMode

func (e irregularError) Error() string {
	return "not a regular file, but of mode " + fs.FileMode(e).String()
}

// readRegular reads a file up to a length, and one byte more if it is longer. It reads nothing but a
// regular file: a link may lead anywhere, and a pipe may never end.
func readRegular(path string, most int) ([]byte, error) {
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
	info, err = f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // it was replaced since
		return nil, irregularError(info.Mode())
	}
	raw := make([]byte, min(info.Size(), int64(most)+1))
	n, err := io.ReadFull(f, raw)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // it was cut since
		err = nil
	}
	return raw[:n], err
}

// write replaces the record: a temporary file is filled, synced and renamed, then the folder is
// synced.
func (f file) write(r record) error {
	if err := f.makeFolder(); err != nil {
		return failed(err)
	}
	if err := f.replace(encode(f.key, r)); err != nil {
		return failed(err)
	}
	return failed(syncFolder(f.folder))
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

// writeTime is longer than any process takes to write a record.
const writeTime = time.Hour

// sweep removes the temporary files in a folder that are too old for a process to be writing them.
// What cannot be removed does no harm.
func sweep(folder string) {
	if checkFolder(folder) != nil {
		return
	}
	f, err := os.Open(folder)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if isTemporary(name) {
				removeOld(filepath.Join(folder, name))
			}
		}
		if err != nil {
			return
		}
	}
}

func removeOld(path string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > writeTime {
		os.Remove(path)
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
		return failed(err)
	}
	return failed(syncFolder(f.folder))
}

// setAside keeps the damaged bytes, for the user to look at, and returns the error to report. The
// damaged bytes of an earlier time are replaced, unless they are in a folder: no file can replace it.
func (f file) setAside(why error) error {
	aside := f.path() + ".damaged"
	err := os.Rename(f.path(), aside)
	if err != nil {
		aside += "-" + rand.Text()
		err = os.Rename(f.path(), aside)
	}
	if err != nil {
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
