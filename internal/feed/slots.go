package feed

import (
	"context"
	"slices"
	"sync"
)

// Slots limit how many pages of one crawl are in flight. The zero value is ready for use. Their
// number is the Window of a Feed, so Slots must be used with only one Feed.
//
// Walks that run at the same time share the slots equally, so that a walk of a slow site cannot
// hold all of them.
type Slots struct {
	// mu protects the fields below it.
	mu      sync.Mutex
	most    int
	held    int
	shares  int // walks that hold a slot or wait for one
	waiting []*waiter
}

// A share is the part of the slots of its crawl that one walk holds.
type share struct {
	slots *Slots
	held  int
	waits bool
}

type waiter struct {
	share   *share
	granted chan struct{}
}

// enter waits for a slot or until ctx ends, and then returns the error of ctx. Only one goroutine
// may use a share to enter.
func (s *share) enter(ctx context.Context, most int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &waiter{share: s}
	s.slots.mu.Lock()
	s.slots.most = most
	s.change(func() { s.waits = true })
	s.slots.waiting = append(s.slots.waiting, w)
	s.slots.grant()
	if !s.waits {
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

// leave gives a slot back. It may be called from any goroutine.
func (s *share) leave() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.change(func() { s.held-- })
	s.slots.grant()
}

// change calls f, which changes s, and updates the counts of held slots and of shares. The caller
// must hold s.slots.mu.
func (s *share) change(f func()) {
	before := *s
	f()
	s.slots.held += s.held - before.held
	switch {
	case s.isUsed() && !before.isUsed():
		s.slots.shares++
	case !s.isUsed() && before.isUsed():
		s.slots.shares--
	}
}

// isUsed reports whether the walk holds a slot or waits for one.
func (s *share) isUsed() bool { return s.held > 0 || s.waits }

// grant gives free slots to the walks that wait, in the order of their arrival. It passes over
// walks that already hold their share. The caller must hold s.mu.
func (s *Slots) grant() {
	for i := 0; i < len(s.waiting) && s.held < s.most; {
		w := s.waiting[i]
		if w.share.held >= max(1, s.most/s.shares) {
			i++
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		w.share.change(func() {
			w.share.held++
			w.share.waits = false
		})
		if w.granted != nil {
			close(w.granted)
		}
	}
}
