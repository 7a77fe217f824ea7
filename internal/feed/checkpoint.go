package feed

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

// A checkpoint knows which pages of a sitemap file are done, of those that a scope has in under one
// name, so that the next run neither skips nor repeats one. All methods of a nil checkpoint that a
// page may have do nothing: nothing is written down.
type checkpoint struct {
	feed *Feed
	key  string
	name string

	mu       sync.Mutex
	record   record // but for Next, Left and Done
	next     mark   // what comes before it need not be looked at, unless it is
	left     runs   // for later, or
	inFlight map[int]int
	over     bool   // nothing more of the file is handed on in this run
	whole    bool   // since all of it was
	changed  bool   // since it was written
	sample   sample // of what was read in this run

	dropped bool // of the walk: not all pages were kept until they could be handed on
}

// newCheckpoint returns the checkpoint of a job's file for a name, which knows nothing yet.
func (f *Feed) newCheckpoint(j *job, name string) *checkpoint {
	return &checkpoint{
		feed: f, key: "sitemap " + f.Scope.String() + " " + name + " " + j.key, name: name,
		record:   record{Since: unix(f.Since), Newest: f.NewestFirst},
		inFlight: make(map[int]int),
	}
}

// recall returns the checkpoint of a job's file for a name with what an earlier run has written down.
func (f *Feed) recall(ctx context.Context, j *job, name string) *checkpoint {
	c := f.newCheckpoint(j, name)
	val, err := f.Store.Get(ctx, c.key)
	if err == nil && val != nil {
		err = c.record.decode(val)
	}
	since := unix(f.Since)
	if err != nil && ctx.Err() == nil {
		f.Log.Warn("sitemap record cannot be used: the file is fed from its beginning", "record", c.key, "error", err)
	}
	if err != nil || c.record.Since > since || !c.record.Done && c.record.Newest != f.NewestFirst {
		c.record = record{}
	}
	c.next, c.left = c.record.Next, c.record.Left
	c.record.Since, c.record.Newest = since, f.NewestFirst
	return c
}

// unix returns t in seconds, 0 if it is zero.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// level returns that of the file.
func (c *checkpoint) level() level {
	switch {
	case c.record.Version == 0:
		return fresh
	case c.record.Whole || c.record.Index:
		return settled
	}
	return begun
}

// spares reports whether the file need not be asked for: it is done, and its index says the same of
// it as when it was read. That was a day after it changed, or it may have changed again on the same
// date.
func (c *checkpoint) spares(listed time.Time) bool {
	const day = 24 * 60 * 60
	if !c.record.Done || listed.IsZero() || c.record.Listed != unix(listed) || c.record.Read < unix(listed)+day {
		return false
	}
	if c.record.Read > time.Now().Unix() {
		return false // by a clock that was wrong: who knows on which day
	}
	return true
}

// ask makes the request for the file a conditional one.
func (c *checkpoint) ask(h http.Header) {
	if c.record.ETag != "" {
		h.Set("If-None-Match", c.record.ETag)
	}
	if c.record.LastModified != "" {
		h.Set("If-Modified-Since", c.record.LastModified)
	}
}

// opened notes an answer. It reports whether the file is done and has not changed. A file that has
// changed starts over, unless the record is about a transfer of the same file that was cut off: then
// the file goes on where that ended. Where the newest pages come first it cannot, since the pages that
// follow may be newer. A file that ends early does not count as changed, and is an error.
func (c *checkpoint) opened(x *file, a answer, endsEarly func() error) (unchanged bool, err error) {
	unchanged = c.record.Done && bytes.Equal(x.sum, c.record.Sum)
	known := c.record.Version != 0
	cut := c.record.Size > 0
	longer := cut && x.body.beginsWith(c.record.Size, c.record.Sum)
	switch {
	case bytes.Equal(x.sum, c.record.Sum):
	case longer && !c.record.Newest:
	default:
		if known && !(cut && c.record.Newest) {
			if err := endsEarly(); err != nil {
				return false, err
			}
		}
		c.next, c.left = mark{}, nil
		c.record = record{Since: c.record.Since, Newest: c.record.Newest, Again: known && !longer}
	}
	c.record.Version, c.record.Sum = recordVersion, x.sum
	c.record.Size = x.body.cutSize()
	c.record.ETag, c.record.LastModified = validator(a.header, "ETag"), validator(a.header, "Last-Modified")
	return unchanged, nil
}

// again reports whether pages of the file are fetched again, whatever other files say of them.
func (c *checkpoint) again() bool { return c != nil && c.record.Again }

func validator(h http.Header, name string) string {
	if v := h.Get(name); len(v) <= longValidator {
		return v
	}
	return ""
}

// confirm notes that a file that is done has not changed until now.
func (c *checkpoint) confirm(listed time.Time) {
	now := time.Now().Unix()
	if c.record.Listed == unix(listed) && now >= c.record.Read && now-c.record.Read < 24*60*60 {
		return
	}
	c.mu.Lock()
	c.record.Listed, c.record.Read, c.whole, c.changed = unix(listed), now, true, true
	c.mu.Unlock()
	c.feed.keeper.save(c)
}

// names notes that the file names others, which makes it an index.
func (c *checkpoint) names() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Index = true
}

// passed reports whether the page at m was dealt with by an earlier run.
func (c *checkpoint) passed(m mark) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.before(c.next) {
		return false
	}
	_, found := c.left.find(m.Pos)
	return !found
}

// pass notes that the page at m needs no visit.
func (c *checkpoint) pass(m mark) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	c.left.remove(m.Pos)
	c.move(m)
}

// hand notes that the page at m is handed on. settle follows. Pages are handed on in the order of
// their marks, unless the newest come first and this one is only noted: all in the order of its
// file, or of another that lists it.
func (c *checkpoint) hand(m mark, noted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	tries, _ := c.left.remove(m.Pos)
	c.inFlight[m.Pos] = tries
	if c.next.before(m.next()) && !(noted && c.record.Newest) {
		c.next = m.next()
	}
}

// settle notes what became of a page that was handed on, and returns how often it has failed.
func (c *checkpoint) settle(m mark, r Result) (tries int) {
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

// leave notes that the page at m is for a later run, though it was not handed on. tries is how often
// it has failed in other files.
func (c *checkpoint) leave(m mark, tries int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
	before, _ := c.left.remove(m.Pos)
	c.left.add(m.Pos, max(before, tries))
	c.move(m)
}

// move notes that all pages before m, and the one at m, need not be looked at, except for those in
// left. Where the newest come first, pages may be noted out of order, so only hand knows that. c.mu is
// held.
func (c *checkpoint) move(m mark) {
	if !c.record.Newest && c.next.before(m.next()) {
		c.next = m.next()
	}
}

// finish notes that nothing more of the file is handed on in this run, and whether that is since
// all of it was.
func (c *checkpoint) finish(whole bool, listed, read time.Time) {
	c.mu.Lock()
	c.sample.cut()
	c.over = true
	c.whole = whole
	c.changed = true
	c.record.Listed, c.record.Read = unix(listed), read.Unix()
	if whole && c.record.Newest {
		c.next = lastMark // pages that joined others have not moved it
	}
	idle := len(c.inFlight) == 0
	c.mu.Unlock()
	if idle || !whole {
		c.feed.keeper.save(c)
	}
}

// drop notes that a page of the file was not kept until it could be handed on. It is for the walk's
// goroutine.
func (c *checkpoint) drop() {
	if c != nil {
		c.dropped = true
	}
}

// idle reports whether the checkpoint will not change any more in this run.
func (c *checkpoint) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && len(c.inFlight) == 0
}

// write writes the record if it has changed since it was written last, even if the crawl has just
// been cancelled.
func (c *checkpoint) write() error {
	r := c.snapshot()
	if r == nil {
		return nil
	}
	val, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.feed.Store.Update(context.Background(), c.key, recordTime, func([]byte) ([]byte, error) { return val, nil })
}

// reportUnwritten logs the error of write. The caller must hold no lock, because the user's
// slog.Handler may call the Plugin.
func (c *checkpoint) reportUnwritten(err error) {
	if err != nil {
		c.feed.Log.Warn("sitemap record cannot be written", "record", c.key, "error", err)
	}
}

// snapshot returns the record as it is to be written now: pages in flight are not done.
func (c *checkpoint) snapshot() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	c.changed = false
	r, left := c.record, slices.Clone(c.left[:min(len(c.left), mostRuns+1)])
	for _, pos := range slices.Sorted(maps.Keys(c.inFlight)) {
		left.add(pos, c.inFlight[pos])
	}
	r.Whole = c.whole || c.record.Whole // once it was, only what is left may change
	r.Done = c.whole && len(left) == 0 && !r.Index
	r.Again = r.Again && !r.Done
	if r.Done && len(c.sample) > 0 {
		r.Sample = c.sample.encode()
		c.sample = nil
	}
	r.Next, r.Left = c.next, left
	if len(left) > mostRuns {
		r.Whole = false
		if r.Next, r.Left = (mark{Pos: left[mostRuns].Pos}), left[:mostRuns]; r.Newest {
			r.Next, r.Left = mark{}, nil // there is no telling which pages came before
		}
	}
	return &r
}
