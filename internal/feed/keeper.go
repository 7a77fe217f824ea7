package feed

import "sync"

// A keeper writes checkpoints down: of a page or a few at once, all that have changed.
type keeper struct {
	every int // pages that may not be done without being written down

	writing sync.Mutex // held while records are written

	mu        sync.Mutex
	unwritten int                 // pages that are done, as far as no record says so
	changed   map[*checkpoint]int // of these, how many in which file
	inFlight  map[uint64]*ticket  // by the hash of the page
	failed    map[uint64]int      // pages by their hash: how often, if that was in this run too

	skipped hashSet // pages that are for a later run, though they have not failed
}

// mostFailed is how many failed pages are remembered.
const mostFailed = 1 << 20

func (k *keeper) init(every int) {
	k.every, k.changed = every, make(map[*checkpoint]int)
	k.inFlight, k.failed = make(map[uint64]*ticket), make(map[uint64]int)
	k.skipped.most = mostSeen
}

// claim notes that the page of a ticket, which is at m in the file of c, may be handed on, if it is
// new: drop or settle follows. What is not new joins what is known of it.
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

// join notes that a page that was handed on before is also at m in the file of c: there it is not
// done before it is elsewhere, either.
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

// skip notes that the page at m in the file of c, which was not claimed, is for a later run.
func (k *keeper) skip(hash uint64, c *checkpoint, m mark) {
	k.skipped.add(hash)
	c.leave(m, 0)
}

// remember notes that a page has failed in this run. k.mu is held.
func (k *keeper) remember(hash uint64, tries int) {
	if len(k.failed) < mostFailed {
		k.failed[hash] = tries
	}
}

// settle notes what became of the page of a ticket, and writes it down if it is time. While a page
// waits for that, it has its slot.
func (k *keeper) settle(t *ticket, r Result) (givenUp bool) {
	k.mu.Lock()
	givenUp = k.end(t, r)
	k.noteUnwritten(t)
	k.mu.Unlock()
	k.flush(k.every)
	k.saveIdle(t)
	return givenUp
}

// correct notes that the page of a ticket that has failed is done after all.
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

// noteUnwritten counts the page of a ticket as not written down. k.mu is held.
func (k *keeper) noteUnwritten(t *ticket) {
	k.unwritten++
	for i, p := range t.listed {
		k.changed[p.checkpoint] += 1 - min(i, 1) // a page counts once
	}
}

// drop is settle for a page that was not handed on: it costs nothing to find that out again.
func (k *keeper) drop(t *ticket, r Result) (givenUp bool) {
	k.mu.Lock()
	givenUp = k.end(t, r)
	k.mu.Unlock()
	k.saveIdle(t)
	return givenUp
}

// end notes what became of the page of a ticket. k.mu is held; nothing is added to what lists the
// page after that.
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

// saveIdle writes the checkpoints down that were waiting for the page of a ticket.
func (k *keeper) saveIdle(t *ticket) {
	for _, p := range t.listed {
		if p.checkpoint.idle() {
			k.save(p.checkpoint)
		}
	}
}

// flush writes down what has changed, if that is enough pages.
func (k *keeper) flush(enough int) {
	if !k.due(enough) {
		return
	}
	for c, err := range k.writeChanged(enough) {
		c.reportUnwritten(err)
	}
}

// writeChanged writes down what has changed, if that still is enough pages, and returns the errors.
func (k *keeper) writeChanged(enough int) map[*checkpoint]error {
	k.writing.Lock()
	defer k.writing.Unlock()
	if !k.due(enough) { // another goroutine has written it
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

// save writes one checkpoint down.
func (k *keeper) save(c *checkpoint) {
	c.reportUnwritten(k.write(c))
}

// write writes one checkpoint down.
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
