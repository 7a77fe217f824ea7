package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// The methods of this file change the records. f.mu must be held.

// A budget limits the pages that are fetched. Zero means no limit.
type budget struct {
	host, total, depth int
}

// excludes reports whether a page with that depth is left out. host and total are the counts of its
// host and of all hosts.
func (b budget) excludes(depth int, host, total counts) bool {
	return b.depth > 0 && depth > b.depth ||
		b.host > 0 && host.accepted() >= b.host ||
		b.total > 0 && total.accepted() >= b.total
}

// ids are the IDs of pages. IDs are never used twice. They are reserved in blocks, so that the last
// one need not be recorded with each page.
type ids struct {
	next     uint64
	reserved uint64 // the first one that is not reserved
}

const idBlock = 1 << 16

// Names of facts.
var (
	idsFact    = []byte{factKey, 'i'}
	budgetFact = []byte{factKey, 'b'}
)

// seen returns the record of a page. A page whose record cannot be read is unknown.
func (f *Frontier) seen(hash pageHash) seenRecord {
	value, err := f.disk.get(hash.key())
	if err == nil {
		var r seenRecord
		r, err = decodeSeen(value)
		if err == nil {
			return r
		}
	}
	f.log.Error("record of a page cannot be read, the page counts as new", "error", f.fault(cause(err)))
	return seenRecord{}
}

// host returns the host with a name. It reads its counts if they are not in memory. If they cannot
// be read, the pages are counted again.
func (f *Frontier) host(name string) (*host, error) {
	if h := f.hosts[name]; h != nil {
		return h, nil
	}
	value, err := f.disk.get(append([]byte{hostKey}, name...))
	var r hostRecord
	if err == nil {
		r, err = decodeHost(value)
	}
	if err != nil {
		f.log.Error("counts of a host cannot be read, its pages are counted again", "host", name, "error", f.fault(cause(err)))
		r, err = f.recount(name)
	}
	if err != nil {
		return nil, f.fault(cause(err))
	}
	f.forgetIdle()
	return f.remember(name, r), nil
}

// remember adds a host to those in memory.
func (f *Frontier) remember(name string, r hostRecord) *host {
	h := &host{
		name:     strings.Clone(name),
		recorded: r,
		more:     r.waiting > 0,
		cautious: true,
		index:    -1,
	}
	f.hosts[h.name] = h
	return h
}

// forgetIdle removes idle hosts from memory if there may be many.
func (f *Frontier) forgetIdle() {
	if len(f.hosts) < f.sweep {
		return
	}
	now := f.now()
	for name, h := range f.hosts {
		if h.idle(now) {
			delete(f.hosts, name)
		}
	}
	f.sweep = max(minSweep, 2*len(f.hosts))
}

// minSweep is the number of hosts below which none is forgotten.
const minSweep = 1024

// A pageChange says how the record of a page changes.
type pageChange struct {
	at   position
	hash pageHash
	from seenRecord
	to   state // waiting or leftOut
}

// record records a page that waits or is left out from now on.
func (f *Frontier) record(h *host, p *urlstore.Page, pc pageChange) error {
	r := h.recorded
	if pc.to == waiting && r.waiting == 0 {
		r.oldest = p.Found
	}
	c := f.disk.change()
	kind := byte(queueKey)
	if pc.to == leftOut {
		kind = leftKey
	}
	if pc.from.state == leftOut {
		c.remove(pageKey(leftKey, h.name, pc.from.at))
	}
	reserved := f.ids.reserved
	if f.ids.next >= reserved {
		reserved = f.ids.next + idBlock
		c.set(idsFact, binary.BigEndian.AppendUint64(nil, reserved))
	}
	c.set(pageKey(kind, h.name, pc.at), encodePage(p))
	c.set(pc.hash.key(), seenRecord{state: pc.to, at: pc.at}.encode())
	r, total := f.move(c, h, r, pc.from.state, pc.to)
	if err := f.disk.apply(c); err != nil {
		f.unrecorded++
		f.problem = f.fault(cause(err))
		return f.problem
	}
	h.recorded = r
	f.total = total
	f.ids = ids{next: f.ids.next + 1, reserved: reserved}
	f.written()
	return nil
}

// move adds to a change that a page of h moves from one state to another. r is the record of the
// host with the old counts. move returns the new record and the new counts of all hosts.
func (f *Frontier) move(c change, h *host, r hostRecord, from, to state) (hostRecord, counts) {
	total := f.total
	if from != unknown {
		*r.of(from)--
		*total.of(from)--
	}
	*r.of(to)++
	*total.of(to)++
	c.set(append([]byte{hostKey}, h.name...), r.encode())
	return r, total
}

// applyLater makes a change that must not be lost. If the disk is full, it takes effect in memory,
// and is recorded when there is space again.
func (f *Frontier) applyLater(c change) error {
	recorded, err := f.disk.applyLater(c)
	if err != nil {
		return f.fault(cause(err))
	}
	if !recorded {
		f.problem = f.fault(cause(f.disk.space.state()))
	}
	f.written()
	return nil
}

// find returns the record of a page that is out, or nil if it is not out.
func (f *Frontier) find(p *urlstore.Page) (*outPage, error) {
	if p.ID != 0 {
		return f.out[p.ID], nil
	}
	known := *p
	if err := identify(&known); err != nil {
		return nil, err
	}
	seen := f.seen(hashOf(&known))
	if seen.state != waiting {
		return nil, nil
	}
	return f.out[seen.at.id], nil
}

// pauseAfter are the pauses after failed attempts. There is one attempt more than pauses.
var pauseAfter = []time.Duration{10 * time.Second, time.Minute}

// settle records how the last attempt of a page that is out has ended.
func (f *Frontier) settle(o *outPage, result urlstore.Result) error {
	switch result {
	case urlstore.Postponed:
		f.postpone(o)
		return nil
	case urlstore.Returned:
		f.release(o)
		f.enqueue(o.host, waitingPage{at: o.at, found: o.found})
		return nil
	case urlstore.Failed:
		return f.settleFailed(o)
	}
	to := done
	if result == urlstore.Denied {
		to = denied
	}
	if err := f.finish(o, to); err != nil {
		return err
	}
	o.host.cautious = false
	f.release(o)
	return nil
}

// postpone keeps a page from being handed out again in this run. The page waits for the next run.
func (f *Frontier) postpone(o *outPage) {
	if o.postponed {
		return
	}
	o.postponed = true
	f.postponed++
	o.host.postponed++
	f.leaveHost(o.host)
}

// settleFailed records that an attempt has failed.
func (f *Frontier) settleFailed(o *outPage) error {
	p, err := f.page(o.host, o.at)
	if err != nil {
		f.lose(o.host, o.at, err)
		f.release(o)
		return nil
	}
	attempt := p.Attempts
	p.Attempts++
	if attempt >= len(pauseAfter) {
		if err := f.finish(o, failed); err != nil {
			return err
		}
	} else {
		c := f.disk.change()
		c.set(pageKey(queueKey, o.host.name, o.at), encodePage(p))
		if err := f.applyLater(c); err != nil {
			return err
		}
		until := f.now() + instant(pauseAfter[attempt])
		f.pauses.add(&pause{host: o.host, page: waitingPage{at: o.at, found: o.found}, until: until})
	}
	o.host.cautious = true
	f.release(o)
	return nil
}

// finish records that a page is done, was denied, or has failed.
func (f *Frontier) finish(o *outPage, to state) error {
	c := f.disk.change()
	c.remove(pageKey(queueKey, o.host.name, o.at))
	c.set(o.hash.key(), seenRecord{state: to, ended: time.Now()}.encode())
	r := o.host.recorded
	if len(o.host.ahead) > 0 {
		r.oldest = f.time(o.host.ahead[0].found)
	}
	r, total := f.move(c, o.host, r, waiting, to)
	if err := f.applyLater(c); err != nil {
		return err
	}
	o.host.recorded = r
	f.total = total
	f.ended++
	return nil
}

// release takes back a page that was out or postponed.
func (f *Frontier) release(o *outPage) {
	delete(f.out, o.at.id)
	if !o.postponed {
		f.leaveHost(o.host)
		return
	}
	f.postponed--
	o.host.postponed--
	f.arrange(o.host)
}

// leaveHost records that one page less of a host is out.
func (f *Frontier) leaveHost(h *host) {
	h.out--
	h.answered = max(h.answered-1, 0)
	f.arrange(h)
}

// lose removes a page that cannot be read.
func (f *Frontier) lose(h *host, at position, why error) {
	f.log.Error("page is lost, its record cannot be read", "host", h.name, "record", at.id, "error", f.fault(cause(why)))
	c := f.disk.change()
	c.remove(pageKey(queueKey, h.name, at))
	r, total := f.move(c, h, h.recorded, waiting, failed)
	if err := f.applyLater(c); err != nil {
		f.log.Error("page that is lost could not be removed", "host", h.name, "error", err)
	}
	h.recorded = r
	f.total = total
	f.arrange(h)
}

// These intervals limit how long a change is only in the memory of the process, which is lost by a
// kill, and how long it is only in the memory of the operating system, which is lost by a power
// failure.
const (
	flushInterval = 10 * time.Millisecond
	syncInterval  = time.Second
)

// written is called after each change. It lets flush and background write the changes.
func (f *Frontier) written() {
	if !f.unflushed {
		f.unflushed = true
		time.AfterFunc(flushInterval, f.flush)
	}
	if !f.dirty {
		f.dirty = true
		time.AfterFunc(syncInterval, f.background)
	}
}

// flush writes all changes to the operating system.
func (f *Frontier) flush() {
	f.writing.RLock()
	defer f.writing.RUnlock()
	f.mu.Lock()
	f.unflushed = false
	ended := f.ended
	closed := f.closed
	f.mu.Unlock()
	if closed || f.disk.flush() != nil { // background reports the problem
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flushed = max(f.flushed, ended)
}

// background writes all changes to the disk. If the disk is full, it tries again later.
func (f *Frontier) background() {
	f.writing.RLock()
	defer f.writing.RUnlock()
	f.mu.Lock()
	f.dirty = false
	if f.closed {
		f.mu.Unlock()
		return
	}
	ended := f.ended
	err := f.disk.resume()
	f.mu.Unlock()
	if err == nil {
		err = f.disk.sync()
	}
	if err == nil {
		err = f.disk.record()
	}
	if time.Since(f.waitingWritten) >= waitingInterval {
		f.writeWaiting()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.flushed = max(f.flushed, ended)
		return
	}
	if f.problem == nil && f.disk.space.state() == nil {
		f.log.Warn("changes could not be written to the disk", "error", f.fault(cause(err)))
	}
	f.problem = f.fault(cause(err))
	if f.disk.space.failure() == nil && !f.closed {
		f.written()
	}
}

// oldest returns when the first of the waiting pages of a host was found.
func (f *Frontier) oldest(h *host) time.Time {
	if len(h.ahead) > 0 {
		return f.time(h.ahead[0].found)
	}
	return h.recorded.oldest
}

// instant returns t as an instant.
func (f *Frontier) instant(t time.Time) instant { return instant(t.Sub(f.epoch)) }

// time returns the time at an instant.
func (f *Frontier) time(at instant) time.Time { return f.epoch.Add(time.Duration(at)).Round(0) }

// stats returns the counts for urlstore.Stats. Its Waiting includes the pages that are out.
func (c counts) stats() urlstore.Stats {
	return urlstore.Stats{
		Waiting:    c.waiting,
		Done:       c.done,
		Denied:     c.denied,
		Failed:     c.failed,
		OverBudget: c.leftOut,
	}
}

// cause returns an error of the engine as one that wraps an error of this package, if it is known.
func cause(err error) error {
	for _, known := range []error{ErrInUse, ErrVersion, ErrDamaged, ErrReadOnly, ErrFull, ErrClosed} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case isDamage(err):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
