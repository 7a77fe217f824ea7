package resume

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Checkpoint knows which pages of a sitemap file are done. It covers the pages of one name, which
// stands for a host or for several hosts that the scope of the crawl does not distinguish.
type Checkpoint struct {
	journal *Journal
	key     string // of the record in the store
	name    string

	// mu protects the fields below it.
	mu       sync.Mutex
	record   record // without Next, Left and Done
	next     Mark   // the pages before it need not be examined again, unless they are in left or inFlight
	left     runs   // the pages for a later run
	inFlight map[int]int
	over     bool // no more pages of the file are handed on in this run
	whole    bool // over is set because all pages were handed on
	changed  bool // the record has changed since it was last written

	// The walk that reads the file owns these fields until it calls Finish.
	sample  sample // of the pages that were read in this run
	dropped bool   // some pages could not be kept until they could be handed on
}

// A Place is the place of a page in a file. Nothing is recorded about a page if the Checkpoint is
// nil.
type Place struct {
	Checkpoint *Checkpoint
	Mark       Mark
}

// Passed reports whether an earlier run is done with the page.
func (p Place) Passed() bool { return p.Checkpoint != nil && p.Checkpoint.passed(p.Mark) }

// Leave records that the page, which was not handed on, is for a later run.
func (p Place) Leave() {
	if p.Checkpoint != nil {
		p.Checkpoint.leave(p.Mark, 0)
	}
}

// Drop records that the page could not be kept until it could be handed on. The file is then not
// done in this run. Only the goroutine that reads the file may call Drop.
func (p Place) Drop() {
	if p.Checkpoint != nil {
		p.Checkpoint.dropped = true
	}
}

// NewCheckpoint returns an empty Checkpoint of a file for a name.
func (j *Journal) NewCheckpoint(file, name string) *Checkpoint {
	return &Checkpoint{
		journal:  j,
		key:      "sitemap " + j.options.Scope + " " + name + " " + file,
		name:     name,
		record:   record{Since: unix(j.options.Since), Newest: j.options.NewestFirst},
		inFlight: make(map[int]int),
	}
}

// Recall returns the Checkpoint of a file for a name, with the record of an earlier run if there is
// one that this run can use.
func (j *Journal) Recall(ctx context.Context, file, name string) *Checkpoint {
	c := j.NewCheckpoint(file, name)
	var r record
	val, err := j.options.Store.Get(ctx, c.key)
	if err == nil && val != nil {
		err = r.decode(val)
	}
	if err != nil && ctx.Err() == nil {
		j.options.Log.Warn("sitemap record cannot be used, reading the file from its beginning", "record", c.key, "error", err)
	}
	if err != nil || r.Since > c.record.Since || !r.Done && r.Newest != j.options.NewestFirst {
		return c
	}
	c.next = r.Next
	c.left = r.Left
	r.Since = c.record.Since
	r.Newest = c.record.Newest
	c.record = r
	return c
}

// unix returns t in Unix seconds, or 0 if t is zero.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// A Level says how much of a file earlier runs have dealt with. Files with a lower level have to be
// read first, because they tell which pages are done.
type Level int

const (
	Settled   Level = iota // all pages of the file were dealt with, but some may be left for this run
	Begun                  // the rest of the file is new
	Fresh                  // all of the file is new, as far as is known
	NumLevels = iota
)

// level returns the level of the file for this name.
func (c *Checkpoint) level() Level {
	switch {
	case c.record.Version == 0:
		return Fresh
	case c.record.Whole || c.record.Index:
		return Settled
	}
	return Begun
}

const day = 24 * 60 * 60 // in seconds

// spares reports whether the file need not be requested. That is so if the file is done, its index
// gives the same lastmod as when the file was read, and the file was read at least a day after that
// lastmod. A file that was read earlier may have changed again on the same date.
func (c *Checkpoint) spares(listed time.Time) bool {
	if !c.record.Done || listed.IsZero() || c.record.Listed != unix(listed) || c.record.Read < unix(listed)+day {
		return false
	}
	// If the read is in the future, the clock was wrong, and the day of the read is unknown.
	return c.record.Read <= time.Now().Unix()
}

// setConditions makes the request for the file conditional.
func (c *Checkpoint) setConditions(h http.Header) {
	if c.record.ETag != "" {
		h.Set("If-None-Match", c.record.ETag)
	}
	if c.record.LastModified != "" {
		h.Set("If-Modified-Since", c.record.LastModified)
	}
}

// A Response is the response for a file.
type Response struct {
	Header http.Header
	Size   int64  // the number of bytes that were received
	Cut    bool   // the transfer was cut off
	Sum    []byte // the SHA-256 checksum of the bytes that were received

	// SumOf returns the SHA-256 checksum of the first n bytes.
	SumOf func(n int64) []byte

	// EndsEarly returns an error if the file is not complete and a later request may get the
	// complete one.
	EndsEarly func() error
}

// beginsWith reports whether more than n bytes were received and sum is the checksum of the first n
// bytes.
func (r *Response) beginsWith(n int64, sum []byte) bool {
	return r.Size > n && bytes.Equal(r.SumOf(n), sum)
}

// opened records the response for a file. It reports whether the file is done and has not changed.
// A file that has changed starts over, unless the record belongs to a transfer of the same file
// that was cut off. Then the file continues where that transfer ended. With NewestFirst it cannot
// continue, because the pages after that place may be newer. A file that ends early does not count
// as changed, and opened returns an error for it.
func (c *Checkpoint) opened(resp *Response) (unchanged bool, err error) {
	known := c.record.Version != 0
	same := bytes.Equal(resp.Sum, c.record.Sum)
	unchanged = c.record.Done && same
	wasCut := c.record.Size > 0
	longer := wasCut && resp.beginsWith(c.record.Size, c.record.Sum)
	if !same && !(longer && !c.record.Newest) {
		if known && !(wasCut && c.record.Newest) {
			if err := resp.EndsEarly(); err != nil {
				return false, err
			}
		}
		c.startOver(known && !longer)
	}
	if c.record.Version == 0 {
		c.record.Began = c.journal.began
	}
	c.record.Version = recordVersion
	c.record.Sum = resp.Sum
	c.record.Size = 0
	if resp.Cut {
		c.record.Size = resp.Size
	}
	c.record.ETag = validator(resp.Header, "ETag")
	c.record.LastModified = validator(resp.Header, "Last-Modified")
	return unchanged, nil
}

// startOver forgets what earlier runs have done. again is recorded as Again.
func (c *Checkpoint) startOver(again bool) {
	c.next = Mark{}
	c.left = nil
	c.record = record{Since: c.record.Since, Newest: c.record.Newest, Again: again}
}

// Again reports whether the file has changed since an earlier run. Then its pages are fetched again
// even if other files say that they are done.
func (c *Checkpoint) Again() bool { return c.record.Again }

// validator returns a validator of a response, or "" if it is too long to be kept.
func validator(h http.Header, name string) string {
	if v := h.Get(name); len(v) <= longValidator {
		return v
	}
	return ""
}

// confirm records that a file that is done has still not changed.
func (c *Checkpoint) confirm(listed time.Time) {
	now := time.Now().Unix()
	if c.record.Listed == unix(listed) && now >= c.record.Read && now-c.record.Read < day {
		return
	}
	c.mu.Lock()
	c.record.Listed = unix(listed)
	c.record.Read = now
	c.whole = true
	c.changed = true
	c.mu.Unlock()
	c.journal.save(c)
}

// setIndex records that the file names other files.
func (c *Checkpoint) setIndex() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Index = true
}

// Sample adds the URL of a page to the sample of the file. Only the goroutine that reads the file
// may call it.
func (c *Checkpoint) Sample(loc string) { c.sample.add(loc) }

// passed reports whether an earlier run is done with the page at m.
func (c *Checkpoint) passed(m Mark) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.before(c.next) {
		return false
	}
	_, found := c.left.find(m.Pos)
	return !found
}

// pass records that the page at m needs no visit.
func (c *Checkpoint) pass(m Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	c.left.remove(m.Pos)
	c.move(m)
}

// hand records that the page at m is handed on. settle must follow. Pages are handed on in the
// order of their marks, with one exception: with NewestFirst, a page that is only joined, because
// another file lists it, comes in the order of a file.
func (c *Checkpoint) hand(m Mark, joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	tries, _ := c.left.remove(m.Pos)
	c.inFlight[m.Pos] = tries
	if c.next.before(m.next()) && !(joined && c.record.Newest) {
		c.next = m.next()
	}
}

// settle records the result of a page that was handed on, and returns how often the page has
// failed.
func (c *Checkpoint) settle(m Mark, r Result) (tries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	tries = c.inFlight[m.Pos]
	delete(c.inFlight, m.Pos)
	if r == Failed {
		tries++
	}
	if r != Done && tries < mostTries {
		c.left.add(m.Pos, tries)
	}
	return tries
}

// leave records that the page at m, which was not handed on, is for a later run. tries is how often
// it has failed in other files.
func (c *Checkpoint) leave(m Mark, tries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	before, _ := c.left.remove(m.Pos)
	c.left.add(m.Pos, max(before, tries))
	c.move(m)
}

// move records that the pages up to and including m need not be examined again, except for those in
// left. With NewestFirst it does nothing, because pages may be noted out of order; then only hand
// knows that place. The caller must hold c.mu.
func (c *Checkpoint) move(m Mark) {
	if !c.record.Newest && c.next.before(m.next()) {
		c.next = m.next()
	}
}

// finish records that no more pages of the file are handed on in this run. whole says that this is
// because all pages were.
func (c *Checkpoint) finish(whole bool, listed, read time.Time) {
	c.mu.Lock()
	whole = whole && !c.dropped
	c.sample.cut()
	c.over = true
	c.whole = whole
	c.changed = true
	c.record.Listed = unix(listed)
	c.record.Read = read.Unix()
	if whole && c.record.Newest {
		c.next = lastMark // pages that were joined to others have not moved it
	}
	idle := len(c.inFlight) == 0
	c.mu.Unlock()
	if idle || !whole {
		c.journal.save(c)
	}
}

// isIdle reports whether the checkpoint will not change again in this run.
func (c *Checkpoint) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && len(c.inFlight) == 0
}

// write writes the record if it has changed since the last write. It does so even if the run has
// just been canceled.
func (c *Checkpoint) write() error {
	r := c.snapshot()
	if r == nil {
		return nil
	}
	val, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.journal.options.Store.Update(context.Background(), c.key, recordTime, func([]byte) ([]byte, error) { return val, nil })
}

// reportUnwritten logs the error of write. The caller must hold no lock, because the user's
// slog.Handler may call the Plugin.
func (c *Checkpoint) reportUnwritten(err error) {
	if err != nil {
		c.journal.options.Log.Warn("sitemap record cannot be written", "record", c.key, "error", err)
	}
}

// snapshot returns the record to be written now, or nil if it has not changed. Pages in flight
// count as not done.
func (c *Checkpoint) snapshot() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	c.changed = false
	left := slices.Clone(c.left[:min(len(c.left), mostRuns+1)])
	for _, pos := range slices.Sorted(maps.Keys(c.inFlight)) {
		left.add(pos, c.inFlight[pos])
	}
	r := c.record
	r.Whole = c.whole || c.record.Whole // when it is true, only the pages that are left can change
	r.Done = c.whole && len(left) == 0 && !r.Index
	r.Again = r.Again && !r.Done
	if r.Done && len(c.sample) > 0 {
		r.Sample = c.sample.encode()
		c.sample = nil
	}
	r.Next = c.next
	r.Left = left
	r.fit()
	return &r
}
