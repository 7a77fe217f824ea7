package feed

import (
	"hash/maphash"
	"slices"
	"sync"
)

// once sees to it that a file is read once, however often and by whomever it is named, unless
// another reading can let more pages in: those of a host that no reading before spoke for.
type once struct {
	seed maphash.Seed
	done hashSet // readings: of a key, for one name of a scope

	mu      sync.Mutex
	reading map[string]*reading // by key
}

// A reading is under way.
type reading struct {
	loc      string
	scope    *scope
	deferred []job // that name the file too, and may be needed depending on how this goes
}

// mostReadings bounds what is remembered.
const mostReadings = 1 << 24

// How a reading may end. failed is also what stands for the scope in what is remembered of files
// that could not be opened.
const (
	opened    = "opened"
	failed    = "failed"
	abandoned = "abandoned"
)

func (o *once) init() {
	o.seed = maphash.MakeSeed()
	o.done.most = mostReadings
	o.reading = make(map[string]*reading)
}

// claim reports whether the file at loc, which is known as key, is to be read for j. Whoever is
// told so calls release.
func (o *once) claim(j *job, loc, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.covers(key, j.scope) || o.done.has(o.hash(loc, failed)) {
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

// release ends the reading of a file. One that was opened will not be read again, under http and
// https alike; of one that failed only this URL will not be asked again; one that was abandoned
// half-way is as it was. It returns what is to be claimed again, now that this is known.
func (o *once) release(key, how string) []job {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.reading[key]
	delete(o.reading, key)
	switch how {
	case opened:
		for _, name := range r.scope.names {
			o.done.add(o.hash(key, name))
		}
	case failed:
		o.done.add(o.hash(r.loc, failed))
	}
	return r.deferred
}

// covers reports whether a reading for all names of a scope is done.
func (o *once) covers(key string, s *scope) bool {
	return !slices.ContainsFunc(s.names, func(name string) bool { return !o.isDone(key, name) })
}

// isDone reports whether a reading for a name is done.
func (o *once) isDone(key, name string) bool { return o.done.has(o.hash(key, name)) }

func (o *once) hash(key, name string) uint64 {
	var h maphash.Hash
	h.SetSeed(o.seed)
	h.WriteString(name)
	h.WriteByte(' ')
	h.WriteString(key)
	return h.Sum64()
}
