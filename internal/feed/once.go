package feed

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots/internal/feed/hashset"
)

// once ensures that each file is read only once, even if several files or sites name it. The
// exception is a file that is named again by a root with other hosts. It is read again, because
// then more of its pages are in scope.
type once struct {
	seed maphash.Seed
	done *hashset.Set // finished readings: a key with one name of a scope

	// mu protects reading.
	mu      sync.Mutex
	reading map[string]*reading // by key
}

// A reading is a file that is being read.
type reading struct {
	loc      string
	scope    *scope
	deferred []job // other jobs that name the file; they may be needed, depending on how this reading ends
}

// mostReadings is how many readings are remembered.
const mostReadings = 1 << 24

// These constants say how a reading ends. failed also replaces the name of the scope in the hash of
// a file that could not be opened.
const (
	opened    = "opened"
	failed    = "failed"
	abandoned = "abandoned"
)

func newOnce() *once {
	return &once{
		seed:    maphash.MakeSeed(),
		done:    hashset.New(mostReadings),
		reading: make(map[string]*reading),
	}
}

// claim reports whether the file at loc, with the key key, must be read for j. If so, the caller
// must call release later.
func (o *once) claim(j *job, loc, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.covers(key, j.scope) || o.done.Has(o.hash(loc, failed)) {
		return false
	}
	r := o.reading[key]
	if r == nil {
		o.reading[key] = &reading{loc: loc, scope: j.scope}
		return true
	}
	if r.loc != loc || r.scope != j.scope {
		again := *j
		again.loc = loc
		r.deferred = append(r.deferred, again)
	}
	return false
}

// release ends the reading of a file. A file that was opened is not read again, neither under http
// nor under https. Of a file that failed, only this URL is not requested again. A file that was
// abandoned can be claimed again. release returns the jobs that must be claimed again, because the
// outcome is now known.
func (o *once) release(key, how string) []job {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.reading[key]
	delete(o.reading, key)
	switch how {
	case opened:
		for _, name := range r.scope.names {
			o.done.Add(o.hash(key, name))
		}
	case failed:
		o.done.Add(o.hash(r.loc, failed))
	}
	return r.deferred
}

// covers reports whether the file was already read for all names of a scope.
func (o *once) covers(key string, s *scope) bool {
	return !slices.ContainsFunc(s.names, func(name string) bool { return !o.isDone(key, name) })
}

// isDone reports whether the file was already read for a name.
func (o *once) isDone(key, name string) bool { return o.done.Has(o.hash(key, name)) }

func (o *once) hash(key, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	h.WriteString(name)
	h.WriteByte(' ')
	h.WriteString(key)
	return h.Sum64()
}
