package frontier

import (
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
	if err == nil {
		return path, checkVersion(string(text))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", cause(err)
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
		return fmt.Errorf("%w: the file %s does not name a version", ErrDamaged, versionFile)
	case n > version:
		return fmt.Errorf("%w: version %d, this one is %d", ErrVersion, n, version)
	}
	return nil
}

// checkEmpty checks that a folder without the file versionFile contains no files of other programs.
func checkEmpty(path string, log *slog.Logger) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return cause(err)
	}
	for _, entry := range entries {
		if entry.Name() == "pages" && entry.IsDir() {
			log.Warn("the file that names the version was missing and is written again", "error", versionFile)
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: it contains %s", ErrDamaged, entries[0].Name())
	}
	return nil
}

// open opens the Frontier in a folder that was prepared.
func open(path string, s settings) (*Frontier, error) {
	d, err := openDisk(path, s.log, false)
	if err != nil {
		return nil, cause(err)
	}
	f := &Frontier{
		settings: s,
		dir:      path,
		epoch:    time.Now(),
		disk:     d,
		hosts:    make(map[string]*host),
		sweep:    minSweep,
		out:      make(map[uint64]*outPage),
		pauses:   pauses{byID: make(map[uint64]*pause)},
	}
	f.timer = time.AfterFunc(time.Hour, f.tick)
	f.timer.Stop()
	if err := f.load(); err != nil {
		return nil, errors.Join(cause(err), d.close())
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
	return f.loadHosts()
}

// loadHosts reads the counts of all hosts and keeps the hosts that have pages.
func (f *Frontier) loadHosts() error {
	s, err := f.disk.scan([]byte{hostKey}, []byte{hostKey})
	if err != nil {
		return err
	}
	for s.next() {
		r, err := decodeHost(s.Value())
		if err != nil {
			f.log.Error("record of a host is damaged", "host", string(s.Key()[1:]))
			continue
		}
		f.total = f.total.plus(r.counts)
		if r.waiting == 0 {
			continue
		}
		h := f.remember(string(s.Key()[1:]), r)
		f.turn(h)
	}
	return errors.Join(s.Error(), s.Close())
}
