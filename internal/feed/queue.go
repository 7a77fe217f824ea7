package feed

import (
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed/resume"
)

// A queue holds the files of a walk from the time when they are named until they are read.
type queue struct {
	named     [resume.NumLevels][]job
	fetching  []job   // files that are being requested or were received, in the order of the requests
	atHand    []*file // files that were received
	held      []*file // files that wait until all files that are reread have been read
	rereading int     // the number of files that are reread and have not been picked
	arrived   chan *file
	atOnce    int // the largest number of files in fetching
}

const (
	fetchedAtOnce = 4 // the usual value of atOnce; Pages uses 1
	// late is how long the walk waits for a file. After that it requests the next file, and reads
	// that one first if it arrives first.
	late = time.Second
)

func newQueue() queue {
	return queue{arrived: make(chan *file, fetchedAtOnce), atOnce: fetchedAtOnce}
}

// push adds a file.
func (q *queue) push(j job) { q.named[j.level] = append(q.named[j.level], j) }

// reread adds a file that was skipped, to learn which pages it lists. Until it is read, the files
// that arrive are held.
func (q *queue) reread(j job) {
	j.level = resume.Settled
	j.reread = true
	q.push(j)
	q.rereading++
}

// clear removes the files that have not been requested.
func (q *queue) clear() { q.named = [resume.NumLevels][]job{} }

// next returns the file to request next, if there is one. A file is requested only when all files
// of the levels before its own have been read.
func (q *queue) next() (j job, ok bool) {
	if len(q.fetching) >= q.atOnce || q.isPrompt() {
		return job{}, false
	}
	for level, named := range q.named {
		if len(named) > 0 {
			q.named[level] = named[1:]
			return named[0], true
		}
		if q.isReading(resume.Level(level)) {
			break
		}
	}
	return job{}, false
}

// isReading reports whether files of a level have been requested and are not read yet.
func (q *queue) isReading(level resume.Level) bool {
	return slices.ContainsFunc(q.fetching, func(j job) bool { return j.level == level }) ||
		slices.ContainsFunc(q.held, func(x *file) bool { return x.level == level })
}

// fetch records that a file is being requested. The file will arrive.
func (q *queue) fetch(j job) { q.fetching = append(q.fetching, j) }

// isFetching reports whether files are being requested or were received.
func (q *queue) isFetching() bool { return len(q.fetching) > 0 }

// isPrompt reports whether a requested file has not arrived and is not late yet.
func (q *queue) isPrompt() bool {
	return slices.ContainsFunc(q.fetching, func(j job) bool { return q.find(j) < 0 && patience(j) > 0 })
}

// patience returns the time until a file is late.
func patience(j job) time.Duration { return late - time.Since(j.asked) }

// find returns the index of a file in atHand, or -1.
func (q *queue) find(j job) int {
	return slices.IndexFunc(q.atHand, func(x *file) bool { return x.key == j.key })
}

// pick returns a file that was received. It takes the one that was requested first, but does not
// wait for files that are late. If there is none, it waits until that may have changed or the next
// file may be requested, and returns nil.
func (q *queue) pick() *file {
	for i, j := range q.fetching {
		if at := q.find(j); at >= 0 {
			return q.remove(i, at)
		}
		if rest := patience(j); rest > 0 {
			q.await(time.After(rest))
			return nil
		}
	}
	q.await(time.After(late))
	return nil
}

// remove removes a file that was received and returns it.
func (q *queue) remove(fetching, atHand int) *file {
	x := q.atHand[atHand]
	q.atHand = slices.Delete(q.atHand, atHand, atHand+1)
	q.fetching = slices.Delete(q.fetching, fetching, fetching+1)
	if x.reread {
		q.rereading--
	}
	return x
}

// await waits until a file arrives or the timeout passes.
func (q *queue) await(timeout <-chan time.Time) {
	select {
	case x := <-q.arrived:
		q.atHand = append(q.atHand, x)
	case <-timeout:
	}
}

// hold reports whether a file has to wait for files that are read again. If so, it keeps the file.
func (q *queue) hold(x *file) bool {
	if q.rereading == 0 || x.reread {
		return false
	}
	q.held = append(q.held, x)
	return true
}

// unhold returns a file that was held, or nil. It is called when no file is being requested.
func (q *queue) unhold() *file {
	if len(q.held) == 0 {
		return nil
	}
	x := q.held[0]
	q.held = q.held[1:]
	return x
}

// rest returns all files that were requested and not picked. It is called when the walk has ended.
func (q *queue) rest() []*file {
	for range len(q.fetching) - len(q.atHand) {
		q.atHand = append(q.atHand, <-q.arrived)
	}
	return append(q.atHand, q.held...)
}
