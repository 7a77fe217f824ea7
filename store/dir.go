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

// OpenDir returns a Store that keeps each record in its own file below path, in 256 folders. It
// creates path if it does not exist, and returns an error if it cannot write there. When Update
// returns, the record has reached the disk. After a crash at any time, either the old record or the
// new one is there. The name of a file is the hash of its key, so a key may contain any bytes.
//
// If a file was read back differently from how it was written, OpenDir renames it to a name that
// ends in ".damaged", or in ".damaged-" and random letters if the first name cannot be used. It
// reports the file once, as a [*CorruptError]; the next call finds no record. A file that is longer
// than the longest record is handled in the same way. So is anything that is not a regular file,
// such as a link or a pipe; OpenDir does not open it. A record that a later version of this package
// has written is left unchanged: Get and Update of its key return a [*VersionError]. The file of an
// expired record is removed when its key is next used. OpenDir also removes temporary files that
// are more than an hour old, because only a process that was killed leaves them.
//
// Only the owner can read or write the files (mode 0600; new folders have mode 0700). If one of the
// 256 folders is a link, OpenDir does not follow it: Get and Update of the keys in it return an
// error.
//
// Only one process may use a folder at a time. If two processes update the same key at once, one of
// the updates may be lost; no other harm is done.
func OpenDir(path string) (Store, error) {
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

// tryWrite checks that files can be created in a folder. It creates one and removes it.
func tryWrite(folder string) error {
	f, err := os.CreateTemp(folder, "test-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// failed adds the prefix of this package to an error of the file system. It returns nil if err is
// nil.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %w", err)
}

type dir struct {
	path   string
	use    sync.RWMutex // held for reading by Get and Update, for writing by Close
	closed bool
	locks  [256]sync.Mutex // one for each folder
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
		return fmt.Errorf("store: a value has %d bytes, which exceeds the limit of %d", len(value), MaxRecord)
	}
	return f.write(record{value: value, ends: ending(time.Now(), ttl)})
}

func (d *dir) Close() error {
	d.use.Lock()
	defer d.use.Unlock()
	d.closed = true
	return nil
}

// enter returns the file of key and locks its folder until done is called.
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

// checkFolder returns an error if path exists and is not a folder. It does not follow a link, which
// may point to a folder of another program.
func checkFolder(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder (mode %v)", path, info.Mode())
	}
	return nil
}

// A file is the location of the record of one key.
type file struct {
	key    string
	folder string
	name   string // in the folder
}

func (f file) path() string { return filepath.Join(f.folder, f.name) }

// read returns the value, or nil if there is no record or it has expired.
func (f file) read(now time.Time) ([]byte, error) {
	most := recordLength(f.key, MaxRecord)
	raw, err := readRegular(f.path(), most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var irregular irregularError
	if errors.As(err, &irregular) {
		return nil, f.setAside(err)
	}
	if err != nil {
		return nil, failed(err)
	}
	if version := versionOf(raw); version != "" {
		return nil, &VersionError{Path: f.path(), Version: version}
	}
	if len(raw) > most {
		return nil, f.setAside(fmt.Errorf("file is longer than %d bytes, the longest possible record", most))
	}
	key, r, err := decode(raw)
	if err == nil && key != f.key {
		err = errors.New("file contains the record of another key")
	}
	if err != nil {
		return nil, f.setAside(err)
	}
	if !r.alive(now) {
		return nil, f.remove()
	}
	return r.value, nil
}

// An irregularError reports that a path is not a regular file but, for example, a link, a pipe, a
// device or a folder.
type irregularError fs.FileMode

func (e irregularError) Error() string {
	return "not a regular file (mode " + fs.FileMode(e).String() + ")"
}

// readRegular reads a regular file. It reads at most one byte more than most, so that the caller
// can recognize a file that is too long. It opens only regular files: a link may point to any file,
// and reading a pipe may block forever.
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
	if !info.Mode().IsRegular() { // the file was replaced after the first check
		return nil, irregularError(info.Mode())
	}
	raw := make([]byte, min(info.Size(), int64(most)+1))
	n, err := io.ReadFull(f, raw)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // the file was truncated after Stat
		err = nil
	}
	return raw[:n], err
}

// write replaces the record. It writes a temporary file, syncs it, renames it, and then syncs the
// folder.
func (f file) write(r record) error {
	if err := f.makeFolder(); err != nil {
		return failed(err)
	}
	if err := f.replace(encode(f.key, r)); err != nil {
		return failed(err)
	}
	return failed(syncFolder(f.folder))
}

// temporary is a part of the name of a temporary file. Before it is the name of the record, and
// after it are random digits. os.CreateTemp never opens an existing file.
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
	err = errors.Join(err, t.Close())
	if err == nil {
		err = os.Rename(t.Name(), f.path())
	}
	if err != nil {
		os.Remove(t.Name())
	}
	return err
}

// writeTime is an upper limit for the time that a process takes to write a record.
const writeTime = time.Hour

// sweep removes the temporary files in a folder that are so old that no process can still be
// writing them. It ignores errors, because a temporary file that is left does no harm.
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

// removeOld removes a temporary file that is older than writeTime.
func removeOld(path string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > writeTime {
		os.Remove(path)
	}
}

// isTemporary reports whether name is a name that replace, or an earlier version of this package,
// gives to a temporary file.
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

// setAside renames the damaged file, so that the user can examine it, and returns the error to
// report. It replaces the file that was set aside earlier for the same key. If that name is in use
// by a folder, which a file cannot replace, setAside adds random letters to the name.
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

// syncFolder makes a rename or a removal in a folder durable on systems that support this.
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
