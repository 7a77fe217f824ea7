package feed

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"
)

// checkpoints are those of one file, one for each name that it is read for, so that it is the same
// who names the file: a root may speak for several hosts, and the pages of each are in the scope of
// other roots too. None: nothing is written down.
type checkpoints []*checkpoint

// newCheckpoints returns the checkpoints of a job's file for names, with what an earlier run has
// written down if it has, but for those names for which the file was read in this run already.
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

// all reports whether f does, of each.
func (cs checkpoints) all(f func(*checkpoint) bool) bool {
	return len(cs) > 0 && !slices.ContainsFunc(cs, func(c *checkpoint) bool { return !f(c) })
}

// level returns that of the file.
func (cs checkpoints) level() level {
	l := fresh
	for _, c := range cs {
		l = min(l, c.level())
	}
	return l
}

// spares reports whether the file need not be asked for.
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

// ask makes the request for a file that is done a conditional one.
func (cs checkpoints) ask(h http.Header) {
	if cs.all(func(c *checkpoint) bool { return c.record.Done && bytes.Equal(c.record.Sum, cs[0].record.Sum) }) {
		cs[0].ask(h)
	}
}

// opened notes an answer. It reports whether the file is done and has not changed.
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

// again reports whether pages of the file are fetched again, whatever other files say of them.
func (cs checkpoints) again() bool { return slices.ContainsFunc(cs, (*checkpoint).again) }

// names notes that the file names others.
func (cs checkpoints) names() {
	for _, c := range cs {
		c.names()
	}
}

// pass notes that the entry at m is none of a page that is wanted. It reports whether an earlier run
// came that far.
func (cs checkpoints) pass(m mark) (before bool) {
	if cs.all(func(c *checkpoint) bool { return c.passed(m) }) {
		return true
	}
	for _, c := range cs {
		c.pass(m)
	}
	return false
}

// finish notes that nothing more of the file is handed on in this run, and whether that is since all
// of it was.
func (cs checkpoints) finish(whole bool, listed, read time.Time) {
	for _, c := range cs {
		c.finish(whole && !c.dropped, listed, read)
	}
}
