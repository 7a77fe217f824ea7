// Package resume remembers which pages of a crawl are done, so that the next run does not skip a
// page and does not fetch one again. It knows nothing about how files and pages are fetched.
//
// Each run has one [Journal], which knows the pages of that run by the hashes of their URLs. Each
// page that is being fetched has a [Ticket]. Each sitemap file that is read has a [Checkpoint],
// which knows the pages of that file by their [Mark]. If several files list a page, its Ticket has
// several places ([Place]), and the page becomes done in all of these files at the same time.
//
// A record is the part of a Checkpoint that is stored. It has a mark. The pages of the file before
// the mark need not be examined again, except those that the record lists as not done. These were
// in flight when the record was written, have failed, or were left for a later run.
//
// A Journal writes the records after every few pages. After a crash, the next run therefore fetches
// again the pages that were in flight, and fewer than [Options.Most] pages that were done.
package resume

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed/hashset"
	"github.com/collyrobots/collyrobots/store"
)

// Options are the settings of a Journal.
type Options struct {
	Store store.Store // may be nil if there are no Checkpoints
	Log   *slog.Logger
	Scope string    // a part of the keys of the records; runs with different scopes share no records
	Since time.Time // older entries are passed; a run with an earlier time cannot use the records

	// NewestFirst says that pages are handed on by age, so that their marks have an age. A run
	// without NewestFirst cannot use the record of a file that is not done, and the other way
	// round.
	NewestFirst bool

	// Least and Most say when the results of pages are recorded. If Least results are not recorded,
	// they are written, unless writing would then take more than a tenth of the time. If Most
	// results are not recorded, they are written in any case. 1 <= Least <= Most.
	Least, Most int
}

// A Journal remembers the pages of one run, and writes the checkpoints of its files to the store.
// Its methods may be called from any goroutine.
type Journal struct {
	options Options

	began   int64        // when the run began, in Unix seconds
	pages   *hashset.Set // claimed pages, and those of earlier
	earlier earlier
	skipped *hashset.Set // pages that are left for a later run although they have not failed
	limited atomic.Bool  // it was logged that there are too many pages

	writing sync.Mutex // held while records are written

	// mu protects the fields below it.
	mu        sync.Mutex
	unwritten int                 // the number of pages that are done but not recorded
	changed   map[*Checkpoint]int // how many of these pages each changed checkpoint has
	inFlight  map[uint64]*Ticket  // by the hash of the page
	failed    map[uint64]int      // the tries of the pages that have failed in this run, by hash
	rest      time.Time           // before this time, writing would take more than a tenth of the time
}

const (
	mostPages  = 25 << 20 // pages that are remembered; they take some 350 MB
	mostFailed = 1 << 20  // failed pages that are remembered
)

// NewJournal returns the Journal of a run.
func NewJournal(o Options) *Journal {
	pages := hashset.New(mostPages)
	return &Journal{
		options:  o,
		began:    time.Now().Unix(),
		pages:    pages,
		earlier:  earlier{pages: pages},
		skipped:  hashset.New(mostPages),
		changed:  make(map[*Checkpoint]int),
		inFlight: make(map[uint64]*Ticket),
		failed:   make(map[uint64]int),
	}
}

// A Result says how a page ended.
type Result uint8

const (
	Done       Result = iota // later runs do not fetch it again
	Failed                   // later runs try it again, a limited number of times
	Skipped                  // it was not fetched, for a reason that may not apply in a later run
	Unfinished               // the run ended before the page did
)

// A Ticket is a page that was claimed and whose result is not known yet.
type Ticket struct {
	journal *Journal
	hash    uint64
	places  []Place // guarded by journal.mu
}

// IsKnown reports whether this run has claimed or skipped a page, or an earlier run has fetched it.
// If again is true, earlier runs do not count.
func (j *Journal) IsKnown(hash uint64, again bool) bool {
	return !j.isNew(hash, again) || j.skipped.Has(hash)
}

// isNew reports whether this run has not claimed a page and no earlier run has fetched it. If again
// is true, earlier runs do not count.
func (j *Journal) isNew(hash uint64, again bool) bool {
	return !j.pages.Has(hash) && (again || !j.earlier.has(hash))
}

// NoteDone records that an earlier run has fetched the page at a place, unless this run has already
// claimed it.
func (j *Journal) NoteDone(hash uint64, at Place) {
	if j.pages.Has(hash) || at.Checkpoint == nil {
		return
	}
	j.earlier.add(hash, at.Checkpoint.fetched())
	j.warnIfFull()
}

// IsOutdated reports whether an earlier run has fetched a page that may have changed since. lastmod
// is when the page has changed; it may be zero.
func (j *Journal) IsOutdated(hash uint64, lastmod time.Time) bool {
	if lastmod.IsZero() {
		return false
	}
	after, ok := j.earlier.fetched(hash)
	return ok && lastmod.Unix() > after
}

// Claim records that a page will be handed on. If this run has claimed it before, or an earlier run
// has fetched it, Claim records nothing and returns false. If again is true, earlier runs do not
// count. at is where the page was found. If at has a Checkpoint, Claim returns a Ticket, which must
// be settled or dropped. Otherwise the Ticket is nil.
//
// Until the page has a result, no file that lists it is done. This matters because the page may
// wait for a long time while another file that lists it is read.
func (j *Journal) Claim(hash uint64, again bool, at Place) (t *Ticket, isNew bool) {
	if at.Checkpoint == nil {
		isNew = j.add(hash, again)
	} else {
		t = j.issue(hash, again, at)
		isNew = t != nil
	}
	j.warnIfFull()
	return t, isNew
}

// issue returns a Ticket, or nil if the page is not new.
func (j *Journal) issue(hash uint64, again bool, at Place) *Ticket {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.add(hash, again) {
		return nil
	}
	t := &Ticket{journal: j, hash: hash, places: []Place{at}}
	j.inFlight[hash] = t
	at.Checkpoint.hand(at.Mark, false)
	return t
}

// add adds a page to those that this run has claimed. It returns false if the page is not new.
func (j *Journal) add(hash uint64, again bool) bool {
	return j.isNew(hash, again) && j.pages.Add(hash)
}

// warnIfFull logs once that there are too many pages to remember. The caller must hold no lock,
// because the user's slog.Handler may call the Plugin.
func (j *Journal) warnIfFull() {
	if j.pages.IsFull() && j.limited.CompareAndSwap(false, true) {
		j.options.Log.Warn("too many pages to remember, later ones may be fetched more than once", "count", j.pages.Limit())
	}
}

// Join records another place of a page that could not be claimed. The page is done in that file
// only when it is done in the others.
func (j *Journal) Join(hash uint64, at Place) {
	if at.Checkpoint == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.inFlight[hash]; t != nil {
		t.join(at)
		return
	}
	tries, failed := j.failed[hash]
	if failed || j.skipped.Has(hash) {
		at.Checkpoint.leave(at.Mark, tries)
		return
	}
	if after, ok := j.earlier.fetched(hash); ok && !j.pages.Has(hash) {
		at.Checkpoint.fetchedEarlier(after)
	}
	at.Checkpoint.pass(at.Mark)
}

// join records another place of the page. The caller must hold the mutex of the Journal.
func (t *Ticket) join(at Place) {
	if slices.Contains(t.places, at) {
		return
	}
	t.places = append(t.places, at)
	at.Checkpoint.hand(at.Mark, true)
}

// Skip records that a page that was not claimed is left for a later run.
func (j *Journal) Skip(hash uint64, at Place) {
	j.skipped.Add(hash)
	at.Leave()
}

// Settle records the result of the page, and writes the changed checkpoints if enough pages have
// not been recorded. It reports whether the page is given up because it has failed too often.
func (t *Ticket) Settle(r Result) (givenUp bool) {
	j := t.journal
	j.mu.Lock()
	givenUp = t.end(r)
	t.noteUnwritten()
	j.mu.Unlock()
	j.flush(j.isDue)
	t.saveIdle()
	return givenUp
}

// Drop is like Settle for a page that was not handed on. It does not count as a page to be
// recorded, because the next run can find out the same again at no cost.
func (t *Ticket) Drop(r Result) {
	t.journal.mu.Lock()
	t.end(r)
	t.journal.mu.Unlock()
	t.saveIdle()
}

// Correct records that the page is done after all. It was settled with another result.
func (t *Ticket) Correct() {
	j := t.journal
	j.mu.Lock()
	delete(j.failed, t.hash)
	for _, p := range t.places {
		p.Checkpoint.pass(p.Mark)
	}
	t.noteUnwritten()
	j.mu.Unlock()
	j.flush(j.isDue)
	t.saveIdle()
}

// end records the result of the page in each file that lists the page. The caller must hold the
// mutex of the Journal. Nothing is added to t.places afterwards.
func (t *Ticket) end(r Result) (givenUp bool) {
	j := t.journal
	if j.inFlight[t.hash] == t {
		delete(j.inFlight, t.hash)
	}
	tries := 0
	for _, p := range t.places {
		tries = max(tries, p.Checkpoint.settle(p.Mark, r))
	}
	givenUp = tries == mostTries
	switch {
	case r == Done || givenUp:
	case r == Skipped && tries == 0:
		j.skipped.Add(t.hash)
	case len(j.failed) < mostFailed:
		j.failed[t.hash] = tries
	}
	return givenUp
}

// noteUnwritten counts the page as not recorded. The caller must hold the mutex of the Journal.
func (t *Ticket) noteUnwritten() {
	j := t.journal
	j.unwritten++
	count := 1
	for _, p := range t.places {
		j.changed[p.Checkpoint] += count
		count = 0 // a page counts only once
	}
}

// saveIdle writes the checkpoints that were only waiting for this page.
func (t *Ticket) saveIdle() {
	for _, p := range t.places {
		if p.Checkpoint.isIdle() {
			t.journal.save(p.Checkpoint)
		}
	}
}

// Flush records the results of pages since the last write.
func (j *Journal) Flush() { j.flush(j.isBehind) }

// flush writes the changed checkpoints if isDue returns true.
func (j *Journal) flush(isDue func() bool) {
	if !isDue() {
		return
	}
	for c, err := range j.writeChanged(isDue) {
		c.reportUnwritten(err)
	}
}

// isBehind reports whether some results are not recorded.
func (j *Journal) isBehind() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unwritten > 0
}

// isDue reports whether the results that are not recorded should be written now, by Options.Least
// and Options.Most.
func (j *Journal) isDue() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unwritten >= j.options.Most || j.unwritten >= j.options.Least && !time.Now().Before(j.rest)
}

// writeChanged writes the changed checkpoints if isDue still returns true. It returns the errors.
func (j *Journal) writeChanged(isDue func() bool) map[*Checkpoint]error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if !isDue() { // another goroutine has written them
		return nil
	}
	began := time.Now()
	j.mu.Lock()
	changed := j.changed
	j.changed = make(map[*Checkpoint]int)
	j.mu.Unlock()
	written := 0
	faults := make(map[*Checkpoint]error)
	for c, n := range changed {
		err := c.write()
		if err != nil {
			faults[c] = err
		}
		written += n
	}
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unwritten -= written
	j.rest = now.Add(9 * now.Sub(began))
	return faults
}

// save writes one checkpoint and logs an error.
func (j *Journal) save(c *Checkpoint) { c.reportUnwritten(j.write(c)) }

// write writes one checkpoint.
func (j *Journal) write(c *Checkpoint) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	n := j.changed[c]
	delete(j.changed, c)
	j.mu.Unlock()
	err := c.write()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unwritten -= n
	return err
}
