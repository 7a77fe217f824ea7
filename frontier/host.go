package frontier

import (
	"slices"
	"time"
)

// An instant is a time, as nanoseconds since Open.
type instant int64

// A host is the state of a host in memory: its counts, the positions of its next pages, and when
// they may be handed out.
type host struct {
	name     string
	recorded hostRecord

	// The pages that wait and whose turn is next, in order. All pages that wait at or before the
	// position edge are here or in the pauses of the Frontier. If more is false, there are no pages
	// after edge.
	ahead []waitingPage
	more  bool
	edge  position

	out       int     // the number of pages that are out
	answered  int     // how many of these have got their response
	pausing   int     // the number of pages that wait before another attempt
	postponed int     // the number of pages that wait for the next run
	cautious  bool    // only one page may be out, because the host has not answered yet
	alone     bool    // only one request may be in flight
	next      instant // when the next request may start
	since     instant // when the host was last put in line

	index int    // in the line, or -1
	turn  uint64 // among hosts in the line whose pages may be handed out at the same instant
}

// A waitingPage is a page that waits, without its record.
type waitingPage struct {
	at    position
	found instant
}

// mostAhead is the number of positions that a host keeps in memory at most.
const mostAhead = 16

// insert adds a page that waits. If it is after the edge, it is found later, when the pages before
// it are gone.
func (h *host) insert(p waitingPage) {
	if h.more && !p.at.before(h.edge) && p.at != h.edge {
		return
	}
	i, known := h.search(p.at)
	if known {
		return
	}
	h.ahead = slices.Insert(h.ahead, i, p)
	if len(h.ahead) > mostAhead {
		h.ahead = h.ahead[:mostAhead]
		h.edge = h.ahead[mostAhead-1].at
		h.more = true
	}
}

// remove removes a page from the pages that wait.
func (h *host) remove(at position) {
	if i, ok := h.search(at); ok {
		h.ahead = slices.Delete(h.ahead, i, i+1)
	}
}

func (h *host) search(at position) (int, bool) {
	return slices.BinarySearchFunc(h.ahead, at, func(p waitingPage, at position) int {
		switch {
		case p.at.before(at):
			return -1
		case p.at == at:
			return 0
		}
		return 1
	})
}

// waits reports whether a page of the host may wait, apart from those that pause.
func (h *host) waits() bool { return len(h.ahead) > 0 || h.more }

// blocked reports whether no further page may be handed out before another one has ended. most is
// the number of pages of one host that may be out.
func (h *host) blocked(most int) bool {
	switch {
	case h.out >= most:
		return true
	case h.cautious:
		return h.out > 0
	case h.alone:
		return h.out > h.answered
	}
	return false
}

// lead is how long before the start of its request a page is handed out.
const lead = instant(100 * time.Millisecond)

// due returns when the next page of the host may be handed out.
func (h *host) due() instant { return max(h.next-lead, h.since) }

// idle reports whether the host can be removed from memory. Its counts are on disk.
func (h *host) idle(now instant) bool {
	return h.recorded.waiting == 0 && h.out == 0 && h.next <= now
}

// A line is a heap of the hosts with pages that can be handed out, now or later. The first host is
// the one whose page is next.
type line []*host

func (l line) Len() int { return len(l) }

func (l line) Less(i, j int) bool {
	a, b := l[i].due(), l[j].due()
	return a < b || a == b && l[i].turn < l[j].turn
}

func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index = i
	l[j].index = j
}

func (l *line) Push(x any) {
	h := x.(*host)
	h.index = len(*l)
	*l = append(*l, h)
}

func (l *line) Pop() any {
	old := *l
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	h.index = -1
	return h
}
