package resume

import (
	"bytes"
	"net/http"
	"slices"
	"time"
)

// Checkpoints are the Checkpoints of one file, one for each name that the file is read for. There
// can be several names because a sitemap may list the pages of several hosts. Each name has its own
// Checkpoint because the next run may read the file for another site, and then only for some of the
// names. If there are no Checkpoints, nothing is recorded.
type Checkpoints []*Checkpoint

// Of returns the Checkpoint for a name, or nil.
func (cs Checkpoints) Of(name string) *Checkpoint {
	for _, c := range cs {
		if c.name == name {
			return c
		}
	}
	return nil
}

// all reports whether f is true for each Checkpoint. It is false if there are none.
func (cs Checkpoints) all(f func(*Checkpoint) bool) bool {
	return len(cs) > 0 && !slices.ContainsFunc(cs, func(c *Checkpoint) bool { return !f(c) })
}

// Level returns the level of the file, which is the lowest level of its Checkpoints.
func (cs Checkpoints) Level() Level {
	level := Fresh
	for _, c := range cs {
		level = min(level, c.level())
	}
	return level
}

// Spares reports whether the file need not be requested. That is so if the file is done and has the
// same lastmod in its index as when it was read. listed is that lastmod.
func (cs Checkpoints) Spares(listed time.Time) bool {
	if !cs.all(func(c *Checkpoint) bool { return c.spares(listed) }) {
		return false
	}
	for _, c := range cs {
		if time.Since(time.Unix(c.record.Read, 0)) > recordTime/3 {
			c.confirm(listed) // so that the store does not forget the record
		}
	}
	return true
}

// SetConditions makes the request for the file conditional if the file is done.
func (cs Checkpoints) SetConditions(h http.Header) {
	if cs.all(func(c *Checkpoint) bool { return c.record.Done && bytes.Equal(c.record.Sum, cs[0].record.Sum) }) {
		cs[0].setConditions(h)
	}
}

// Opened records the response for the file. It reports whether the file is done and has not
// changed. If the file ends early and an earlier run has read it, Opened returns the error of
// Response.EndsEarly, and the record does not change.
func (cs Checkpoints) Opened(resp *Response) (unchanged bool, err error) {
	unchanged = len(cs) > 0
	for _, c := range cs {
		same, err := c.opened(resp)
		if err != nil {
			return false, err
		}
		unchanged = unchanged && same
	}
	return unchanged, nil
}

// Confirm records that a file that is done has still not changed. listed is its lastmod in the
// index.
func (cs Checkpoints) Confirm(listed time.Time) {
	for _, c := range cs {
		c.confirm(listed)
	}
}

// Again reports whether pages of the file are fetched again even if other files say that they are
// done.
func (cs Checkpoints) Again() bool { return slices.ContainsFunc(cs, (*Checkpoint).Again) }

// SetIndex records that the file names other files.
func (cs Checkpoints) SetIndex() {
	for _, c := range cs {
		c.setIndex()
	}
}

// Pass records that the entry at m is not a page that is wanted. It reports whether an earlier run
// has already passed it.
func (cs Checkpoints) Pass(m Mark) (before bool) {
	if cs.all(func(c *Checkpoint) bool { return c.passed(m) }) {
		return true
	}
	for _, c := range cs {
		c.pass(m)
	}
	return false
}

// Finish records that no more pages of the file are handed on in this run. whole says that this is
// because all pages were. listed is the lastmod of the file in the index, and read is when it was
// requested.
func (cs Checkpoints) Finish(whole bool, listed, read time.Time) {
	for _, c := range cs {
		c.finish(whole, listed, read)
	}
}
