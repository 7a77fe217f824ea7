package frontier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The file versionFile in the folder says what the folder is and which version has written it.
const (
	versionFile   = "collyrobots-frontier"
	versionPrefix = "collyrobots frontier "
	version       = 1
)

// prepareFolder creates the folder if necessary and checks that it is the folder of a Frontier. It
// returns the path without links.
func prepareFolder(dir string, log *slog.Logger) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", cause(err)
	}
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(path, versionFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", cause(err)
	}
	if len(text) > 0 { // otherwise a process may have been killed before it wrote the file
		return path, checkVersion(string(text))
	}
	if err := checkEmpty(path, log); err != nil {
		return "", err
	}
	line := versionPrefix + strconv.Itoa(version) + "\n"
	if err := os.WriteFile(filepath.Join(path, versionFile), []byte(line), 0o600); err != nil {
		return "", cause(err)
	}
	return path, nil
}

// checkVersion checks the text of the file versionFile.
func checkVersion(text string) error {
	number, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), versionPrefix)
	n, err := strconv.Atoi(number)
	switch {
	case !ok, err != nil, n < 1:
		return fmt.Errorf("%w: the file %s does not name a version; if this is the folder of a frontier, remove the file %[2]s, and Open writes it again",
			ErrDamaged, versionFile)
	case n > version:
		return fmt.Errorf("%w: version %d, this one is %d; if no later version was used, remove the file %s, and Open writes it again",
			ErrVersion, n, version, versionFile)
	}
	return nil
}

// checkEmpty checks that a folder whose file versionFile is missing or empty contains no files of other
// programs.
func checkEmpty(path string, log *slog.Logger) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return cause(err)
	}
	other := ""
	for _, entry := range entries {
		switch {
		case entry.Name() == versionFile:
		case entry.Name() == pagesFolder && entry.IsDir():
			log.Warn("the file that names the version was missing or empty and is written again", "error", versionFile)
			return nil
		default:
			other = entry.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("%w: it contains %s", ErrDamaged, other)
	}
	return nil
}

// open opens the Frontier in a folder that was prepared.
func open(path string, s settings, system fileSystem) (f *Frontier, err error) {
	logs := newLogQueue(s.log.Handler())
	s.log = slog.New(logs)
	defer func() {
		if err != nil {
			logs.wait()
		}
	}()
	d, err := openDisk(path, system, s.log)
	if err != nil {
		return nil, cause(err)
	}
	f = &Frontier{
		settings: s,
		logs:     logs,
		dir:      path,
		path:     path,
		epoch:    time.Now(),
		disk:     d,
		hosts:    make(map[string]*host),
		sweep:    minSweep,
		out:      make(map[uint64]*outPage),
		pauses:   pauses{byID: make(map[uint64]*pause)},
	}
	f.timer = time.AfterFunc(time.Hour, f.tick)
	f.timer.Stop()
	err = f.load()
	if err == nil {
		err = d.record()
	}
	if isDamage(err) {
		err = openError(err)
	}
	if err != nil {
		return nil, errors.Join(cause(err), d.abandon())
	}
	return f, nil
}

// load reads the facts and the hosts.
func (f *Frontier) load() error {
	value, err := f.disk.get(idsFact)
	if err != nil {
		return err
	}
	first := uint64(1) // an ID is never zero
	if len(value) == 8 {
		first = max(first, binary.BigEndian.Uint64(value))
	}
	f.ids = ids{next: first, reserved: first}
	old, err := f.disk.get(budgetFact)
	if err != nil {
		return err
	}
	limited, err := f.loadHosts()
	if err != nil {
		f.log.Error("counts of hosts cannot be read, the hosts are counted again", "error", f.fault(cause(err)))
		if err := f.countHosts(); err != nil {
			return err
		}
	}
	if bytes.Equal(old, f.budget.encode()) {
		return nil
	}
	return f.readmit(limited)
}

// loadHosts reads the counts of all hosts, and adds the hosts with waiting pages to those in
// memory. It returns the names of the hosts that have pages which a budget leaves out.
func (f *Frontier) loadHosts() (limited []string, err error) {
	s, err := f.disk.scan([]byte{hostKey}, []byte{hostKey})
	if err != nil {
		return nil, err
	}
	for s.next() {
		r, err := decodeHost(s.Value())
		if err != nil {
			return limited, errors.Join(err, s.Close())
		}
		name := string(s.Key()[1:])
		f.total = f.total.plus(r.counts)
		if r.leftOut > 0 {
			limited = append(limited, name)
		}
		if r.waiting > 0 {
			f.turn(f.remember(name, r))
		}
	}
	return limited, errors.Join(s.Error(), s.Close())
}

// countHosts finds the hosts that have waiting pages from the keys of these pages, and counts the
// pages. The other counts of the hosts whose records cannot be read are lost.
func (f *Frontier) countHosts() error {
	from := []byte{queueKey}
	for {
		name, err := f.hostAfter(from)
		if err != nil || name == "" {
			return err
		}
		from = after(pagesOf(queueKey, name))
		if f.hosts[name] != nil {
			continue
		}
		r, err := f.recount(name)
		if err != nil {
			return err
		}
		f.total = f.total.plus(r.counts)
		f.turn(f.remember(name, r))
	}
}

// hostAfter returns the host of the first page that waits whose key is not before from, or "" if
// there is none.
func (f *Frontier) hostAfter(from []byte) (string, error) {
	s, err := f.disk.scan([]byte{queueKey}, from)
	if err != nil {
		return "", err
	}
	name := ""
	if s.next() {
		name, _, _ = splitPageKey(s.Key())
	}
	return name, errors.Join(s.Error(), s.Close())
}

// recount counts the pages of a host that wait, as far as they can be read.
func (f *Frontier) recount(name string) (hostRecord, error) {
	var r hostRecord
	prefix := pagesOf(queueKey, name)
	s, err := f.disk.scan(prefix, prefix)
	if err != nil {
		return r, err
	}
	for s.next() {
		if r.waiting == 0 {
			r.oldest = foundOf(s.Value())
		}
		r.waiting++
	}
	return r, s.Close()
}
