package frontier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// LeftOut returns the pages that a budget leaves out, host by host. If a page cannot be read, the
// sequence ends with the error. Other methods may be called during the iteration.
func (f *Frontier) LeftOut() iter.Seq2[*urlstore.Page, error] {
	return func(yield func(*urlstore.Page, error) bool) {
		from := []byte{leftKey}
		for from != nil {
			pages, next, err := f.leftOutFrom(from)
			for _, p := range pages {
				if !yield(p, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			from = next
		}
	}
}

// mostLeftOut is how many of the pages left out are read at once.
const mostLeftOut = 100

// leftOutFrom returns some of the pages that are left out, beginning with the key from, and the key
// to continue with, or nil if there are no more.
func (f *Frontier) leftOutFrom(from []byte) (pages []*urlstore.Page, next []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.usable(); err != nil {
		return nil, nil, err
	}
	s, err := f.disk.scan([]byte{leftKey}, from)
	if err != nil {
		return nil, nil, f.fault(cause(err))
	}
	for s.next() {
		if len(pages) == mostLeftOut {
			return pages, bytes.Clone(s.Key()), s.Close()
		}
		host, at, _ := splitPageKey(s.Key())
		p, err := decodePage(s.Value(), host, at)
		if err != nil {
			return pages, nil, errors.Join(f.fault(cause(err)), s.Close())
		}
		pages = append(pages, p)
	}
	if err := errors.Join(s.Error(), s.Close()); err != nil {
		return pages, nil, f.fault(cause(err))
	}
	return pages, nil, nil
}

// full reports whether no page of a host can be accepted, whatever its depth.
func (b budget) full(host, total counts) bool {
	return b.host > 0 && host.accepted() >= b.host || b.total > 0 && total.accepted() >= b.total
}

// encode returns the value of budgetFact.
func (b budget) encode() []byte {
	var v []byte
	for _, n := range []int{b.host, b.total, b.depth} {
		v = binary.AppendUvarint(v, uint64(n))
	}
	return v
}

// readmit makes the pages wait that an earlier budget has left out, if the current budget includes
// them. names are the hosts that have pages which were left out.
func (f *Frontier) readmit(names []string) error {
	for _, name := range names {
		h, err := f.host(name)
		if err != nil {
			return err
		}
		if err := f.readmitHost(h); err != nil {
			return err
		}
	}
	c := f.disk.change()
	c.set(budgetFact, f.budget.encode())
	return f.disk.apply(c)
}

// readmitHost is readmit for the pages of one host. It does not record the budget.
func (f *Frontier) readmitHost(h *host) error {
	prefix := pagesOf(leftKey, h.name)
	s, err := f.disk.scan(prefix, prefix)
	if err != nil {
		return err
	}
	for s.next() && err == nil && !f.budget.full(h.recorded.counts, f.total) {
		_, at, ok := splitPageKey(s.Key())
		p, broken := decodePage(s.Value(), h.name, at)
		if !ok || broken != nil || f.budget.excludes(p.Depth, h.recorded.counts, f.total) {
			continue
		}
		err = f.record(h, p, pageChange{
			at:   at,
			hash: hashOf(p),
			from: seenRecord{state: leftOut, at: at},
			to:   waiting,
		})
		h.more = true
	}
	f.turn(h)
	return errors.Join(err, s.Error(), s.Close())
}
