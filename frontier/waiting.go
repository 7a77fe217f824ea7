package frontier

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// waitingFile is the file in the folder that has the numbers of waiting pages, for other programs.
// Its format is part of the documentation of the package.
const waitingFile = "waiting.jsonl"

// waitingInterval is the minimum time between two writes of waitingFile, except by Open and Close.
const waitingInterval = time.Minute

// A waitingHead is the first line of waitingFile.
type waitingHead struct {
	Version int       `json:"version"`
	Written time.Time `json:"written"`
}

// A waitingHost is one of the other lines.
type waitingHost struct {
	Host    string `json:"host"`
	Waiting int    `json:"waiting"`
}

// writeWaiting writes waitingFile. Other programs see either the old file or the new one. f.mu must
// not be held.
func (f *Frontier) writeWaiting() {
	f.waitingWritten = time.Now()
	hosts := f.countWaiting()
	if err := replaceFile(filepath.Join(f.path, waitingFile), func(w io.Writer) error {
		return encodeWaiting(w, f.waitingWritten, hosts)
	}); err != nil && f.disk.space.state() == nil {
		f.log.Warn("numbers of waiting pages could not be written", "error", f.fault(cause(err)))
	}
}

// countWaiting returns the number of pages of each host that wait or are out.
func (f *Frontier) countWaiting() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := make(map[string]int, len(f.hosts))
	for name, h := range f.hosts {
		if name != "" && h.recorded.waiting > 0 {
			counts[name] = h.recorded.waiting
		}
	}
	return counts
}

func encodeWaiting(w io.Writer, now time.Time, hosts map[string]int) error {
	lines := json.NewEncoder(w)
	if err := lines.Encode(waitingHead{Version: 1, Written: now.UTC().Truncate(time.Second)}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if err := lines.Encode(waitingHost{Host: name, Waiting: hosts[name]}); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a file under another name, and renames it.
func replaceFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	return os.Rename(name+".new", name)
}
