package feed

import "sync"

// A keeper writes checkpoints to the store. It writes all changed checkpoints together, after a
// page or after a few.
type keeper struct {
	every int // how many pages may be done without being recorded

	writing sync.Mutex // held while records are written

	mu        sync.Mutex
	unwritten int                 // the number of pages that are done but not recorded
	changed   map[*checkpoint]int // how many of these pages each changed checkpoint has
	inFlight  map[uint64]*ticket  // by the hash of the page
	failed    map[uint64]int      // the tries of the pages that have failed in this run, by hash

	skipped hashSet // pages that are left for a later run although they have not failed
}

// mostFailed is how many failed pages are remembered.
const mostFailed = 1 << 20

func (k *keeper) init(every int) {
	k.every = every
	k.changed = make(map[*checkpoint]int)
	k.inFlight = make(map[uint64]*ticket)
	k.failed = make(map[uint64]int)
	k.skipped.most = mostSeen
}

// claim records that the page of a ticket, which is at m in the file of c, may be handed on. drop
// or settle must follow. If the page is not new, claim returns false and records nothing.
func (k *keeper) claim(t *ticket, c *checkpoint, m mark, isNew func(hash uint64) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !isNew(t.hash) {
		return false
	}
	k.inFlight[t.hash] = t
	t.listed = append(t.listed, place{c, m})
	c.hand(m, false)
	return true
}

// join records that a page that was handed on earlier is also at m in the file of c. It is done in
// that file only when it is done in the others.
func (k *keeper) join(hash uint64, c *checkpoint, m mark) {
	if c == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.inFlight[hash]; t != nil {
		if !t.has(c, m) {
			t.listed = append(t.listed, place{c, m})
			c.hand(m, true)
		}
		return
	}
	tries, failed := k.failed[hash]
	if failed || k.skipped.has(hash) {
		c.leave(m, tries)
	} else {
		c.pass(m)
	}
}

// skip records that the page at m in the file of c, which was not claimed, is for a later run.
func (k *keeper) skip(hash uint64, c *checkpoint, m mark) {
	k.skipped.add(hash)
	c.leave(m, 0)
}

// remember records that a page has failed in this run. The caller must hold k.mu.
func (k *keeper) remember(hash uint64, tries int) {
	if len(k.failed) < mostFailed {
		k.failed[hash] = tries
	}
}

// settle records the result of the page of a ticket, and writes the changed checkpoints if there
// are enough. The page keeps its slot while it waits for the write. settle reports whether the page
// is given up because it has failed too often.
func (k *keeper) settle(t *ticket, r Result) (givenUp bool) {
	k.mu.Lock()
	givenUp = k.end(t, r)
	k.noteUnwritten(t)
	k.mu.Unlock()
	k.flush(k.every)
	k.saveIdle(t)
	return givenUp
}

// correct records that the page of a ticket that has failed is done after all.
func (k *keeper) correct(t *ticket) {
	k.mu.Lock()
	delete(k.failed, t.hash)
	for _, p := range t.listed {
		p.checkpoint.pass(p.mark)
	}
	k.noteUnwritten(t)
	k.mu.Unlock()
	k.flush(k.every)
	k.saveIdle(t)
}

// noteUnwritten counts the page of a ticket as not recorded. The caller must hold k.mu.
func (k *keeper) noteUnwritten(t *ticket) {
	k.unwritten++
	for i, p := range t.listed {
		k.changed[p.checkpoint] += 1 - min(i, 1) // a page counts only once
	}
}

// drop is like settle for a page that was not handed on. It does not trigger a write, because the
// next run can find out the same again at no cost.
func (k *keeper) drop(t *ticket, r Result) (givenUp bool) {
	k.mu.Lock()
	givenUp = k.end(t, r)
	k.mu.Unlock()
	k.saveIdle(t)
	return givenUp
}

// end records the result of the page of a ticket in each file that lists the page. The caller must
// hold k.mu. Nothing is added to t.listed afterwards.
func (k *keeper) end(t *ticket, r Result) (givenUp bool) {
	if k.inFlight[t.hash] == t {
		delete(k.inFlight, t.hash)
	}
	tries := 0
	for _, p := range t.listed {
		tries = max(tries, p.checkpoint.settle(p.mark, r))
	}
	givenUp = tries == mostTries
	switch {
	case r == Done || givenUp:
	case r == Skipped && tries == 0:
		k.skipped.add(t.hash)
	default:
		k.remember(t.hash, tries)
	}
	return givenUp
}

// saveIdle writes the checkpoints that were only waiting for the page of a ticket.
func (k *keeper) saveIdle(t *ticket) {
	for _, p := range t.listed {
		if p.checkpoint.idle() {
			k.save(p.checkpoint)
		}
	}
}

// flush writes the changed checkpoints if they have at least enough pages that are not recorded.
func (k *keeper) flush(enough int) {
	if !k.due(enough) {
		return
	}
	for c, err := range k.writeChanged(enough) {
		c.reportUnwritten(err)
	}
}

// writeChanged writes the changed checkpoints if they still have enough pages that are not
// recorded. It returns the errors.
func (k *keeper) writeChanged(enough int) map[*checkpoint]error {
	k.writing.Lock()
	defer k.writing.Unlock()
	if !k.due(enough) { // another goroutine has written them
		return nil
	}
	k.mu.Lock()
	changed := k.changed
	k.changed = make(map[*checkpoint]int)
	k.mu.Unlock()
	written := 0
	faults := make(map[*checkpoint]error)
	for c, n := range changed {
		err := c.write()
		if err != nil {
			faults[c] = err
		}
		written += n
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unwritten -= written
	return faults
}

func (k *keeper) due(enough int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unwritten >= enough
}

// save writes one checkpoint and logs an error.
func (k *keeper) save(c *checkpoint) {
	c.reportUnwritten(k.write(c))
}

// write writes one checkpoint.
func (k *keeper) write(c *checkpoint) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	n := k.changed[c]
	delete(k.changed, c)
	k.mu.Unlock()
	err := c.write()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unwritten -= n
	return err
}
