package frontier

import (
	"encoding/binary"
	"errors"
)

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
