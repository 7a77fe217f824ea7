package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// pages is the frontier of a crawl. A page that has failed is not requested again in this run: it
// waits for the next one.
type pages struct {
	*frontier.Frontier
	left int // the number of pages that the last run has left

	mu     sync.Mutex
	failed []*urlstore.Page // the pages that have failed in this run
}

// openPages opens the frontier in the folder of a cache. If resume is true and the last run has not
// fetched all of its pages, the frontier is continued. Otherwise it begins anew.
func openPages(cache string, resume bool, parallelism int, log *slog.Logger) (*pages, error) {
	dir := filepath.Join(cache, "frontier")
	f, err := frontier.Open(dir, options(parallelism, log)...)
	if err == nil {
		if left := f.Stats().Waiting; resume && left > 0 {
			return &pages{Frontier: f, left: left}, nil
		}
		err = f.Close()
	}
	if err != nil && (resume || !errors.Is(err, frontier.ErrDamaged)) {
		return nil, err
	}
	if err := discard(dir, os.RemoveAll); err != nil {
		return nil, err
	}
	f, err = frontier.Open(dir, options(parallelism, log)...)
	if err != nil {
		return nil, err
	}
	return &pages{Frontier: f}, nil
}

// discard removes the folder of a frontier. It renames the folder first: a process that is killed
// in the middle leaves no frontier with missing files, which could not be opened.
func discard(dir string, remove func(path string) error) error {
	old := dir + ".old"
	if err := remove(old); err != nil { // left by a process that was killed
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return remove(old)
}

// options returns the options of the frontier. An eighth of the pages that are handed out may be
// pages of the same host.
func options(parallelism int, log *slog.Logger) []frontier.Option {
	return []frontier.Option{frontier.Window(8 * parallelism), frontier.Logger(log)}
}

// End implements urlstore.Store.
func (p *pages) End(page *urlstore.Page, result urlstore.Result) error {
	if result == urlstore.Failed {
		p.mu.Lock()
		p.failed = append(p.failed, page)
		p.mu.Unlock()
		result = urlstore.Postponed
	}
	return p.Frontier.End(page, result)
}

// Close counts the failed attempts and closes the frontier. After the third one a page has failed
// for good.
func (p *pages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	for _, page := range p.failed {
		faults = append(faults, p.Frontier.End(page, urlstore.Failed))
	}
	p.failed = nil
	return errors.Join(append(faults, p.Frontier.Close())...)
}

// sitesKey is the key of the record with the hosts on which links are followed.
const sitesKey = "collyrobots crawl sites"

// readSites returns the hosts on which the last run has followed links.
func readSites(s store.Store) (sites map[string]bool, err error) {
	sites = make(map[string]bool)
	data, err := s.Get(context.Background(), sitesKey)
	if err == nil && data != nil {
		err = json.Unmarshal(data, &sites)
	}
	return sites, err
}

// writeSites keeps the hosts for the next run.
func writeSites(s store.Store, sites map[string]bool) error {
	data, err := json.Marshal(sites)
	if err != nil {
		return err
	}
	return s.Update(context.Background(), sitesKey, 0, func([]byte) ([]byte, error) { return data, nil })
}
