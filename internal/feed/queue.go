package feed

import (
	"net/url"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A job is a file to be read.
type job struct {
	loc    string
	site   dialect.Authority // whose sitemap it is
	by     *url.URL          // of the index that names it; nil: robots.txt does
	scope  *scope
	root   string    // URL of the file that robots.txt names, after redirects; "": it is that
	depth  int64     // indexes above it
	listed time.Time // its lastmod in the index
	asked  time.Time // when the walk began to fetch it
	key    string
	level  level
	reread bool     // for its pages to be known, though nothing is new
	guess  []string // nobody has named it; where to look next if it is not there
}

// child returns the job of a file that x names.
func (x *file) child(e *sitemap.Entry) job {
	return job{loc: e.Loc, site: x.site, by: x.base, scope: x.scope, root: x.root, depth: x.depth + 1, listed: e.LastMod}
}

// wellKnownPaths are where sitemaps are that robots.txt does not name.
var wellKnownPaths = []string{"/sitemap.xml", "/sitemap_index.xml"}

// wellKnown returns the job of finding one of them.
func wellKnown(site dialect.Authority, s *scope) job {
	j := job{site: site, scope: s}
	for _, path := range wellKnownPaths {
		j.guess = append(j.guess, site.String()+path)
	}
	j.loc = j.guess[0]
	return j
}

// A level is how early a file is read that is to be read. What an earlier run has dealt with comes
// first, since it says which pages are done.
type level int

const (
	settled level = iota // nothing of the file is new, but pages may be left
	begun                // the rest of it is
	fresh                // all of it is, as far as is known
	numLevels
)

// A queue is the files of a walk, from when they are named until they are read.
type queue struct {
	named     [numLevels][]job
	fetching  []job // that are asked for or at hand, in the order in which they were
	atHand    []*file
	held      []*file // until other files have been read that share pages with one of them:
	rereading int     // as many
	arrived   chan *file
	atOnce    int // files that are asked for, or at hand, at the same time: fetchedAtOnce or fewer
}

const (
	fetchedAtOnce = 4           // atOnce, but for those who pull
	late          = time.Second // after which the next file is asked for, and read if it is there first
)

func newQueue() queue { return queue{arrived: make(chan *file, fetchedAtOnce), atOnce: fetchedAtOnce} }

// push adds a file.
func (q *queue) push(j job) { q.named[j.level] = append(q.named[j.level], j) }

// reread adds a file that was left out, so that it is known which pages it lists. Others are held
// meanwhile.
func (q *queue) reread(j job) {
	j.level, j.reread = settled, true
	q.push(j)
	q.rereading++
}

// clear forgets the files that are not asked for.
func (q *queue) clear() { q.named = [numLevels][]job{} }

// next returns the file that is to be asked for next, if one is: of the first level, and only once
// all of the levels before it have been read.
func (q *queue) next() (j job, ok bool) {
	if len(q.fetching) >= q.atOnce || q.isPrompt() {
		return job{}, false
	}
	for l := range q.named {
		if named := q.named[l]; len(named) > 0 {
			q.named[l] = named[1:]
			return named[0], true
		}
		if slices.ContainsFunc(q.fetching, func(j job) bool { return j.level == level(l) }) ||
			slices.ContainsFunc(q.held, func(x *file) bool { return x.level == level(l) }) {
			break
		}
	}
	return job{}, false
}

// fetch notes that a file is asked for. It will arrive.
func (q *queue) fetch(j job) { q.fetching = append(q.fetching, j) }

// isFetching reports whether files are asked for or at hand.
func (q *queue) isFetching() bool { return len(q.fetching) > 0 }

// isPrompt reports whether a file was asked for that has not arrived and may soon.
func (q *queue) isPrompt() bool {
	return slices.ContainsFunc(q.fetching, func(j job) bool { return q.find(j) < 0 && patience(j) > 0 })
}

// patience returns how long it takes until a file is late.
func patience(j job) time.Duration { return late - time.Since(j.asked) }

// find returns where a file is among those at hand, or -1.
func (q *queue) find(j job) int {
	return slices.IndexFunc(q.atHand, func(x *file) bool { return x.key == j.key })
}

// pick returns a file that is at hand: the one that was asked for first, without those that are
// late. If there is none, it waits until that may have changed, or the next file may be asked for.
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

// remove returns a file that is at hand.
func (q *queue) remove(fetching, atHand int) *file {
	x := q.atHand[atHand]
	q.atHand = slices.Delete(q.atHand, atHand, atHand+1)
	q.fetching = slices.Delete(q.fetching, fetching, fetching+1)
	if x.reread {
		q.rereading--
	}
	return x
}

// await waits for a file to arrive, or for the time.
func (q *queue) await(timeout <-chan time.Time) {
	select {
	case x := <-q.arrived:
		q.atHand = append(q.atHand, x)
	case <-timeout:
	}
}

// hold reports whether a file has to wait for others to be read again, and keeps it then.
func (q *queue) hold(x *file) bool {
	if q.rereading == 0 || x.reread {
		return false
	}
	q.held = append(q.held, x)
	return true
}

// unhold returns a file that was held, or nil. Nothing is being fetched.
func (q *queue) unhold() *file {
	if len(q.held) == 0 {
		return nil
	}
	x := q.held[0]
	q.held = q.held[1:]
	return x
}

// rest returns all files that have been asked for and not been picked, when nothing asks for them
// any more.
func (q *queue) rest() []*file {
	for range len(q.fetching) - len(q.atHand) {
		q.atHand = append(q.atHand, <-q.arrived)
	}
	return append(q.atHand, q.held...)
}
