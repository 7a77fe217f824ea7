package frontier

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/collyrobots/collyrobots"
)

// A Summary says what a folder contains.
type Summary struct {
	collyrobots.FrontierStats
	Hosts []HostSummary // the hosts with pages that wait, by name
}

// A HostSummary has the counts of the pages of one host. They have the same meaning as in
// collyrobots.FrontierStats.
type HostSummary struct {
	Host       string
	Waiting    int
	Done       int
	Denied     int
	Failed     int
	OverBudget int
}

// Read returns what the frontier in a folder contains, without changing it. Pages that were out when
// a process ended are counted as waiting. Out, Duplicates, Unrecorded and Error are not set.
//
// An error is a [*FolderError]. While a process has the folder open, it wraps ErrInUse; use Stats in
// that process. If there is no such folder, it wraps fs.ErrNotExist.
func Read(dir string) (*Summary, error) {
	s, err := read(dir)
	if err != nil {
		return nil, &FolderError{Dir: dir, Err: cause(err)}
	}
	return s, nil
}

func read(dir string) (_ *Summary, err error) {
	text, err := os.ReadFile(filepath.Join(dir, versionFile))
	if err != nil {
		return nil, err
	}
	if err := checkVersion(string(text)); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	d, err := openDisk(path, system, slog.New(slog.DiscardHandler), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.closeReadOnly()) }()
	return summarize(d)
}

// summarize adds up the counts of the hosts.
func summarize(d *disk) (*Summary, error) {
	s, err := d.scan([]byte{hostKey}, []byte{hostKey})
	if err != nil {
		return nil, err
	}
	var total counts
	summary := &Summary{}
	for s.next() {
		r, err := decodeHost(s.Value())
		if err != nil {
			return nil, errors.Join(ErrDamaged, err, s.Close())
		}
		total = total.plus(r.counts)
		if r.waiting == 0 {
			continue
		}
		summary.Hosts = append(summary.Hosts, HostSummary{
			Host:       string(s.Key()[1:]),
			Waiting:    r.waiting,
			Done:       r.done,
			Denied:     r.denied,
			Failed:     r.failed,
			OverBudget: r.leftOut,
		})
		if summary.Oldest.IsZero() || r.oldest.Before(summary.Oldest) {
			summary.Oldest = r.oldest
		}
	}
	oldest := summary.Oldest
	summary.FrontierStats = total.stats()
	summary.FrontierStats.Hosts = len(summary.Hosts)
	summary.Oldest = oldest
	return summary, errors.Join(s.Error(), s.Close())
}
