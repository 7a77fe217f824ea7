package feed

import (
	"context"
	"slices"
	"sync"
)

// Slots bound how many pages of one crawl are in flight. The zero value is ready for use; how many
// there are is the Window of the Feed, so Slots belong to one Feed.
//
// Walks that run at the same time share them: one that feeds a slow site leaves to each other the
// part that it would have if all were equal.
type Slots struct {
	mu      sync.Mutex
	most    int
	held    int
	shares  int // that hold a slot or wait for one
	waiting []*waiter
}

// A share is what one walk holds of the slots of its crawl.
type share struct {
	slots *Slots
	held  int
	waits bool
}

type waiter struct {
	share   *share
	granted chan struct{}
}

// enter waits for a slot, or for the end of ctx, which is its error. A share is for one goroutine.
func (s *share) enter(ctx context.Context, most int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiter{share: s}
	s.slots.mu.Lock()
	s.slots.most = most
	s.change(func() { s.waits = true })
	s.slots.waiting = append(s.slots.waiting, w)
	if s.slots.grant(); !s.waits {
		s.slots.mu.Unlock()
		return nil
	}
	w.granted = make(chan struct{})
	s.slots.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	if s.waits {
		s.slots.waiting = slices.DeleteFunc(s.slots.waiting, func(x *waiter) bool { return x == w })
		s.change(func() { s.waits = false })
	} else {
		s.change(func() { s.held-- })
	}
	s.slots.grant()
	return ctx.Err()
}

// leave gives a slot back, from any goroutine.
func (s *share) leave() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.change(func() { s.held-- })
	s.slots.grant()
}

// change does f and keeps count of what is held and by how many. s.slots.mu is held.
func (s *share) change(f func()) {
	before, was := s.held, s.held > 0 || s.waits
	f()
	s.slots.held += s.held - before
	if is := s.held > 0 || s.waits; is && !was {
		s.slots.shares++
	} else if was && !is {
		s.slots.shares--
	}
}

// grant gives free slots to those who wait, in the order in which they came, as far as their parts
// allow. s.mu is held.
func (s *Slots) grant() {
	for i := 0; i < len(s.waiting) && s.held < s.most; {
		w := s.waiting[i]
		if w.share.held >= max(1, s.most/s.shares) {
			i++
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		w.share.change(func() { w.share.held, w.share.waits = w.share.held+1, false })
		if w.granted != nil {
			close(w.granted)
		}
	}
}
