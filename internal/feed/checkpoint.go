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

// A checkpoint knows which pages of a sitemap file are done, so that the next run neither skips nor
// repeats a page. It covers the pages that a scope includes under one name. If the checkpoint of a
// page is nil, all methods that deal with pages do nothing, and nothing is recorded.
type checkpoint struct {
	feed *Feed
	key  string
	name string

	mu       sync.Mutex
	record   record // without Next, Left and Done
	next     mark   // the pages before it need not be examined again, unless they are in left or inFlight
	left     runs   // the pages for a later run
	inFlight map[int]int
	over     bool   // no more pages of the file are handed on in this run
	whole    bool   // over is set because all pages were handed on
	changed  bool   // the record has changed since it was last written
	sample   sample // of the pages that were read in this run

	dropped bool // set by the walk: some pages could not be kept until they could be handed on
}

// newCheckpoint returns an empty checkpoint of the file of a job for a name.
func (f *Feed) newCheckpoint(j *job, name string) *checkpoint {
	return &checkpoint{
		feed: f, key: "sitemap " + f.Scope.String() + " " + name + " " + j.key, name: name,
		record:   record{Since: unix(f.Since), Newest: f.NewestFirst},
		inFlight: make(map[int]int),
	}
}

// recall returns the checkpoint of the file of a job for a name, with the record of an earlier run.
func (f *Feed) recall(ctx context.Context, j *job, name string) *checkpoint {
	c := f.newCheckpoint(j, name)
	val, err := f.Store.Get(ctx, c.key)
	if err == nil && val != nil {
		err = c.record.decode(val)
	}
	since := unix(f.Since)
	if err != nil && ctx.Err() == nil {
		f.Log.Warn("sitemap record cannot be used, reading the file from its beginning", "record", c.key, "error", err)
	}
	if err != nil || c.record.Since > since || !c.record.Done && c.record.Newest != f.NewestFirst {
		c.record = record{}
	}
	c.next = c.record.Next
	c.left = c.record.Left
	c.record.Since = since
	c.record.Newest = f.NewestFirst
	return c
}

// unix returns t in Unix seconds, or 0 if t is zero.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// level returns the level at which the file is read.
func (c *checkpoint) level() level {
	switch {
	case c.record.Version == 0:
		return fresh
	case c.record.Whole || c.record.Index:
		return settled
	}
	return begun
}

// spares reports whether the file need not be requested. That is so if the file is done, its index
// gives the same lastmod as when the file was read, and the file was read at least a day after that
// lastmod. A file that was read earlier may have changed again on the same date.
func (c *checkpoint) spares(listed time.Time) bool {
	const day = 24 * 60 * 60
	if !c.record.Done || listed.IsZero() || c.record.Listed != unix(listed) || c.record.Read < unix(listed)+day {
		return false
	}
	if c.record.Read > time.Now().Unix() {
		return false // the clock was wrong when the file was read, so the day of the read is unknown
	}
	return true
}

// ask makes the request for the file conditional.
func (c *checkpoint) ask(h http.Header) {
	if c.record.ETag != "" {
		h.Set("If-None-Match", c.record.ETag)
	}
	if c.record.LastModified != "" {
		h.Set("If-Modified-Since", c.record.LastModified)
	}
}

// opened records the response for a file. It reports whether the file is done and has not changed.
// A file that has changed starts over, unless the record is about a transfer of the same file that
// was cut off: then the file continues where that transfer ended. With NewestFirst it cannot
// continue, because the pages after that place may be newer. A file that ends early does not count
// as changed, and opened returns an error for it.
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

// again reports whether pages of the file are fetched again even if other files say that they are
// done.
func (c *checkpoint) again() bool { return c != nil && c.record.Again }

func validator(h http.Header, name string) string {
	if v := h.Get(name); len(v) <= longValidator {
		return v
	}
	return ""
}

// confirm records that a file that is done has still not changed.
func (c *checkpoint) confirm(listed time.Time) {
	now := time.Now().Unix()
	if c.record.Listed == unix(listed) && now >= c.record.Read && now-c.record.Read < 24*60*60 {
		return
	}
	c.mu.Lock()
	c.record.Listed = unix(listed)
	c.record.Read = now
	c.whole = true
	c.changed = true
	c.mu.Unlock()
	c.feed.keeper.save(c)
}

// names records that the file names other files, which makes it an index.
func (c *checkpoint) names() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Index = true
}

// passed reports whether an earlier run is done with the page at m.
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

// pass records that the page at m needs no visit.
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

// hand records that the page at m is handed on. settle must follow. Pages are handed on in the
// order of their marks. The exception is a page that is only noted because another file lists it,
// when the newest pages come first: such pages come in the order of a file.
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

// settle records the result of a page that was handed on, and returns how often the page has
// failed.
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

// leave records that the page at m, which was not handed on, is for a later run. tries is how often
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

// move records that the pages up to and including m need not be examined again, except for those in
// left. With NewestFirst it does nothing, because pages may be noted out of order; then only hand
// knows that place. The caller must hold c.mu.
func (c *checkpoint) move(m mark) {
	if !c.record.Newest && c.next.before(m.next()) {
		c.next = m.next()
	}
}

// finish records that no more pages of the file are handed on in this run. whole says that this is
// because all pages were.
func (c *checkpoint) finish(whole bool, listed, read time.Time) {
	c.mu.Lock()
	c.sample.cut()
	c.over = true
	c.whole = whole
	c.changed = true
	c.record.Listed, c.record.Read = unix(listed), read.Unix()
	if whole && c.record.Newest {
		c.next = lastMark // pages that were joined to others have not moved it
	}
	idle := len(c.inFlight) == 0
	c.mu.Unlock()
	if idle || !whole {
		c.feed.keeper.save(c)
	}
}

// drop records that a page of the file could not be kept until it could be handed on. Only the
// goroutine of the walk may call it.
func (c *checkpoint) drop() {
	if c != nil {
		c.dropped = true
	}
}

// idle reports whether the checkpoint will not change again in this run.
func (c *checkpoint) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over && len(c.inFlight) == 0
}

// write writes the record if it has changed since the last write. It does so even if the crawl has
// just been cancelled.
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

// snapshot returns the record to be written now, or nil if it has not changed. Pages in flight
// count as not done.
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
	r.Whole = c.whole || c.record.Whole // when it is true, only the pages that are left can change
	r.Done = c.whole && len(left) == 0 && !r.Index
	r.Again = r.Again && !r.Done
	if r.Done && len(c.sample) > 0 {
		r.Sample = c.sample.encode()
		c.sample = nil
	}
	r.Next = c.next
	r.Left = left
	if len(left) > mostRuns {
		r.Whole = false
		r.Next = mark{Pos: left[mostRuns].Pos}
		r.Left = left[:mostRuns]
		if r.Newest {
			// The pages that came before that place are unknown.
			r.Next = mark{}
			r.Left = nil
		}
	}
	return &r
}
