package resume

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/internal/feed/hashset"
)

// earlier remembers which pages earlier runs have fetched, and in which of them. A run is known by
// the time when it began. Most stores have records of few runs, so a page needs only one hash.
type earlier struct {
	pages *hashset.Set // shared with the pages of this run
	mu    sync.Mutex   // held for writing runs
	runs  atomic.Pointer[[]int64]
}

const (
	// doneBefore, multiplied by an odd number for each run, is combined with the hash of a page (by
	// XOR). If the result is in earlier.pages, that run has fetched the page.
	doneBefore = 0x9e3779b97f4a7c15

	mostEarlier = 256 // the largest number of runs that are distinguished
)

// keyOf returns the hash of a page that the run with an index has fetched.
func keyOf(hash uint64, run int) uint64 { return hash ^ doneBefore*uint64(2*run+1) }

// all returns when the earlier runs began, in Unix seconds.
func (e *earlier) all() []int64 {
	if runs := e.runs.Load(); runs != nil {
		return *runs
	}
	return nil
}

// add records that a run that began at some time has fetched a page.
func (e *earlier) add(hash uint64, began int64) {
	run := slices.Index(e.all(), began)
	if run < 0 {
		run = e.newRun(began)
	}
	e.pages.Add(keyOf(hash, run))
}

// newRun returns the index of a run. If there are too many, it is the index of one that began
// earlier. A page may then be fetched again although it has not changed.
func (e *earlier) newRun(began int64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	runs := slices.Clone(e.all())
	run := slices.Index(runs, began)
	if run >= 0 {
		return run
	}
	if len(runs) < mostEarlier {
		runs = append(runs, began)
		e.runs.Store(&runs)
		return len(runs) - 1
	}
	for i, other := range runs {
		if other < began && (run < 0 || other > runs[run]) {
			run = i
		}
	}
	if run < 0 {
		run = slices.Index(runs, slices.Min(runs))
		runs[run] = began
		e.runs.Store(&runs)
	}
	return run
}

// has reports whether an earlier run has fetched a page.
func (e *earlier) has(hash uint64) bool {
	for run := range e.all() {
		if e.pages.Has(keyOf(hash, run)) {
			return true
		}
	}
	return false
}

// fetched returns a time in Unix seconds before which a page was not fetched. ok is false if no
// earlier run has fetched it.
func (e *earlier) fetched(hash uint64) (after int64, ok bool) {
	for run, began := range e.all() {
		if e.pages.Has(keyOf(hash, run)) && (!ok || began > after) {
			after = began
			ok = true
		}
	}
	return after, ok
}

// fetched returns a time in Unix seconds before which no page of the file was fetched. The record
// of an earlier version does not have it, and has at best the time when the file was last read.
func (c *Checkpoint) fetched() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.record.Began != 0:
		return c.record.Began
	case c.record.Read != 0:
		return c.record.Read
	}
	return math.MaxInt64
}

// fetchedEarlier records that a page of the file may have been fetched at a time, by a run that has
// not read the file.
func (c *Checkpoint) fetchedEarlier(after int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Began = min(c.record.Began, after)
}
