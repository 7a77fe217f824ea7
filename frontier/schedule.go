package frontier

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// The methods of this file decide which page is next. f.mu must be held.

// handed is the result of Next.
type handed struct {
	page *urlstore.Page
	err  error
}

// serve hands out pages to the calls of Next as long as there are pages whose turn has come, and
// arranges to be called again at the turn of the next page.
func (f *Frontier) serve() {
	now := f.now()
	for len(f.waiters) > 0 {
		got := handed{page: f.pick(now)}
		if got.page == nil && f.total.waiting > f.postponed {
			f.arm(now)
			return
		}
		if got.page == nil {
			got.err = io.EOF
		}
		f.waiters[0] <- got
		f.waiters[0] = nil
		f.waiters = f.waiters[1:]
	}
	f.timer.Stop()
}

// leave ends a call of Next.
func (f *Frontier) leave(w chan handed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.waiters, w); i >= 0 {
		f.waiters = slices.Delete(f.waiters, i, i+1)
	}
}

// arm sets the timer to the turn of the next page. If there is none before a page ends, it stops
// the timer.
func (f *Frontier) arm(now instant) {
	at, ok := f.pauses.first()
	if len(f.line) > 0 && f.pagesOut() < f.window {
		if due := f.line[0].due(); !ok || due < at {
			at = due
			ok = true
		}
	}
	if !ok {
		f.timer.Stop()
		return
	}
	f.timer.Reset(time.Duration(max(at-now, 0)))
}

// tick is called by the timer.
func (f *Frontier) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.serve()
	}
}

// pick hands out the next page, or returns nil if no page may be handed out now.
func (f *Frontier) pick(now instant) *urlstore.Page {
	for {
		h := f.first(now)
		if h == nil {
			return nil
		}
		f.refill(h)
		if len(h.ahead) == 0 {
			f.arrange(h)
			continue
		}
		w := h.ahead[0]
		h.remove(w.at)
		p, err := f.page(h, w.at)
		if err != nil {
			f.lose(h, w.at, err)
			continue
		}
		f.handOut(h, w, hashOf(p))
		return p
	}
}

// first returns the host whose page is next, or nil if no page may be handed out now.
func (f *Frontier) first(now instant) *host {
	f.resume(now)
	if f.pagesOut() >= f.window || len(f.line) == 0 || f.line[0].due() > now {
		return nil
	}
	f.flushEnds()
	return f.line[0]
}

// pagesOut returns the number of pages that are out.
func (f *Frontier) pagesOut() int { return len(f.out) - f.postponed }

// flushEnds makes sure that the pages that are out and those whose end would be lost by a kill are
// fewer than Window. This is not possible while the disk is full.
func (f *Frontier) flushEnds() {
	if uint64(f.pagesOut())+f.ended-f.flushed < uint64(f.window) {
		return
	}
	if f.disk.flush() == nil {
		f.flushed = f.ended
	}
}

// handOut hands out a page that is no longer among those ahead.
func (f *Frontier) handOut(h *host, w waitingPage, hash pageHash) {
	f.out[w.at.id] = &outPage{host: h, at: w.at, hash: hash, found: w.found, attempts: 1}
	h.out++
	f.turn(h)
}

// turn puts a host behind all others whose pages may be handed out now.
func (f *Frontier) turn(h *host) {
	f.turns++
	h.turn = f.turns
	h.since = f.now()
	f.arrange(h)
}

// enqueue adds a page that waits.
func (f *Frontier) enqueue(h *host, w waitingPage) {
	waited := h.waits()
	h.insert(w)
	if waited {
		return
	}
	f.turn(h)
}

// arrange puts a host in the line, at its place, or takes it out.
func (f *Frontier) arrange(h *host) {
	inLine := h.index >= 0
	switch wanted := h.waits() && !h.blocked(f.mostOut()); {
	case inLine && wanted:
		heap.Fix(&f.line, h.index)
	case inLine:
		heap.Remove(&f.line, h.index)
	case wanted:
		heap.Push(&f.line, h)
	}
}

// mostOut returns the number of pages of one host that may be out.
func (f *Frontier) mostOut() int { return max(f.window/8, 1) }

// refill reads the next positions of a host if none are in memory.
func (f *Frontier) refill(h *host) {
	if len(h.ahead) > 0 || !h.more {
		return
	}
	for h.more && len(h.ahead) == 0 {
		if err := f.readAhead(h); err != nil {
			f.skipDamage(h, err)
		}
	}
	if !h.more {
		f.reconcile(h)
	}
}

// readAhead reads positions of a host until there are enough, and then clears more if there are no
// others.
func (f *Frontier) readAhead(h *host) error {
	s, err := f.disk.scan(pagesOf(queueKey, h.name), append(pageKey(queueKey, h.name, h.edge), 0))
	if err != nil {
		return err
	}
	for s.next() {
		if len(h.ahead) == mostAhead {
			return s.Close()
		}
		_, at, ok := splitPageKey(s.Key())
		if !ok || f.out[at.id] != nil || f.pauses.has(at.id) {
			continue
		}
		value, err := s.ValueAndErr()
		if err != nil {
			return errors.Join(err, s.Close())
		}
		h.ahead = append(h.ahead, waitingPage{at: at, found: f.instant(foundOf(value))})
		h.edge = at
	}
	if err := errors.Join(s.Error(), s.Close()); err != nil {
		return err
	}
	h.more = false
	return nil
}

// skipDamage moves the edge of a host behind records that cannot be read, or clears more if there
// are no others. It tries positions at growing distances until the record after one can be read.
func (f *Frontier) skipDamage(h *host, why error) {
	f.log.Error("pages of a host are lost, their records cannot be read", "host", h.name, "error", f.fault(cause(why)))
	h.more = false
	for step := uint64(1); step != 0; step <<= 1 {
		from := position{order: h.edge.order, id: h.edge.id + step}
		if from.id < h.edge.id {
			from = position{order: h.edge.order + 1} // the next order
		}
		if f.readable(h, from) {
			h.edge = from
			h.more = true
			return
		}
		if from.id == 0 {
			return
		}
	}
}

// readable reports whether the first record of a host after a position can be read.
func (f *Frontier) readable(h *host, after position) bool {
	s, err := f.disk.scan(pagesOf(queueKey, h.name), append(pageKey(queueKey, h.name, after), 0))
	if err != nil {
		return false
	}
	s.next()
	return errors.Join(s.Error(), s.Close()) == nil
}

// reconcile corrects the count of the pages of a host that wait, when all of them are in memory.
// The count is wrong only if records were damaged.
func (f *Frontier) reconcile(h *host) {
	waiting := h.out + h.postponed + h.pausing + len(h.ahead)
	lost := h.recorded.waiting - waiting
	if lost == 0 {
		return
	}
	f.log.Error("count of the pages of a host was wrong", "host", h.name, "count", lost)
	h.recorded.waiting = waiting
	f.total.waiting -= lost
	c := f.disk.change()
	c.set(append([]byte{hostKey}, h.name...), h.recorded.encode())
	if err := f.applyLater(c); err != nil {
		f.log.Error("count of the pages of a host could not be recorded", "host", h.name, "error", err)
	}
}

// page reads a page.
func (f *Frontier) page(h *host, at position) (*urlstore.Page, error) {
	value, err := f.disk.get(pageKey(queueKey, h.name, at))
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, fmt.Errorf("%w: the page is missing", ErrDamaged)
	}
	return decodePage(value, h.name, at)
}

// pauses are the pages that have failed and wait before their next attempt.
type pauses struct {
	byTime pauseHeap
	byID   map[uint64]*pause
}

// A pause is the pause of one page.
type pause struct {
	host  *host
	page  waitingPage
	until instant
	index int // in the heap
}

func (p *pauses) has(id uint64) bool { return p.byID[id] != nil }

// first returns when the first pause ends, if there is one.
func (p *pauses) first() (instant, bool) {
	if len(p.byTime) == 0 {
		return 0, false
	}
	return p.byTime[0].until, true
}

func (p *pauses) add(x *pause) {
	x.host.pausing++
	p.byID[x.page.at.id] = x
	heap.Push(&p.byTime, x)
}

// remove removes the pause of a page, if it has one.
func (p *pauses) remove(id uint64) {
	if x := p.byID[id]; x != nil {
		x.host.pausing--
		delete(p.byID, id)
		heap.Remove(&p.byTime, x.index)
	}
}

// resume lets the pages wait whose pause is over.
func (f *Frontier) resume(now instant) {
	for {
		until, ok := f.pauses.first()
		if !ok || until > now {
			return
		}
		x := f.pauses.byTime[0]
		f.pauses.remove(x.page.at.id)
		f.enqueue(x.host, x.page)
	}
}

// A pauseHeap has the pause that ends first at its beginning.
type pauseHeap []*pause

func (l pauseHeap) Len() int { return len(l) }

func (l pauseHeap) Less(i, j int) bool {
	a, b := l[i], l[j]
	return a.until < b.until || a.until == b.until && a.page.at.before(b.page.at)
}

func (l pauseHeap) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index = i
	l[j].index = j
}

func (l *pauseHeap) Push(x any) {
	p := x.(*pause)
	p.index = len(*l)
	*l = append(*l, p)
}

func (l *pauseHeap) Pop() any {
	old := *l
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return p
}
