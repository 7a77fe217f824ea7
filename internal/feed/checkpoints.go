package feed

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"
)

// checkpoints are the checkpoints of one file, one for each name for which the file is read. There
// can be several names because a root may speak for several hosts. Each name has its own checkpoint
// because the pages of each host are also in the scope of other roots. If there are none, nothing
// is recorded.
type checkpoints []*checkpoint

// newCheckpoints returns the checkpoints of the file of a job for names. If written is true, they
// have the records of an earlier run. Names for which the file was already read in this run have no
// checkpoint.
func (w *walk) newCheckpoints(ctx context.Context, j *job, names []string, written bool) (cs checkpoints) {
	for _, name := range names {
		switch {
		case !j.reread && w.once.isDone(j.key, name):
		case written:
			cs = append(cs, w.recall(ctx, j, name))
		default:
			cs = append(cs, w.newCheckpoint(j, name))
		}
	}
	return cs
}

// of returns the checkpoint for a name, or nil.
func (cs checkpoints) of(name string) *checkpoint {
	for _, c := range cs {
		if c.name == name {
			return c
		}
	}
	return nil
}

// all reports whether f is true for each checkpoint. It is false if there are none.
func (cs checkpoints) all(f func(*checkpoint) bool) bool {
	return len(cs) > 0 && !slices.ContainsFunc(cs, func(c *checkpoint) bool { return !f(c) })
}

// level returns the level at which the file is read.
func (cs checkpoints) level() level {
	l := fresh
	for _, c := range cs {
		l = min(l, c.level())
	}
	return l
}

// spares reports whether the file need not be requested.
func (cs checkpoints) spares(listed time.Time) bool {
	if !cs.all(func(c *checkpoint) bool { return c.spares(listed) }) {
		return false
	}
	for _, c := range cs {
		if time.Since(time.Unix(c.record.Read, 0)) > recordTime/3 {
			c.confirm(listed)
		}
	}
	return true
}

// ask makes the request conditional if the file is done.
func (cs checkpoints) ask(h http.Header) {
	if cs.all(func(c *checkpoint) bool { return c.record.Done && bytes.Equal(c.record.Sum, cs[0].record.Sum) }) {
		cs[0].ask(h)
	}
}

// opened records the response for a file. It reports whether the file is done and has not changed.
func (cs checkpoints) opened(x *file, a answer, endsEarly func() error) (unchanged bool, err error) {
	unchanged = len(cs) > 0
	for _, c := range cs {
		same, err := c.opened(x, a, endsEarly)
		if err != nil {
			return false, err
		}
		unchanged = unchanged && same
	}
	return unchanged, nil
}

// again reports whether pages of the file are fetched again even if other files say that they are
// done.
func (cs checkpoints) again() bool { return slices.ContainsFunc(cs, (*checkpoint).again) }

// names records that the file names other files.
func (cs checkpoints) names() {
	for _, c := range cs {
		c.names()
	}
}

// pass records that the entry at m is not a page that is wanted. It reports whether an earlier run
// has already passed it.
func (cs checkpoints) pass(m mark) (before bool) {
	if cs.all(func(c *checkpoint) bool { return c.passed(m) }) {
		return true
	}
	for _, c := range cs {
		c.pass(m)
	}
	return false
}

// finish records that no more pages of the file are handed on in this run. whole says that this is
// because all pages were.
func (cs checkpoints) finish(whole bool, listed, read time.Time) {
	for _, c := range cs {
		c.finish(whole && !c.dropped, listed, read)
	}
}
