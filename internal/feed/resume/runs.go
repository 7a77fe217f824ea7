package resume

import (
	"encoding/binary"
	"encoding/json"
	"slices"
)

// A run is a sequence of consecutive pages of a file that have failed equally often.
type run struct {
	Pos, Len int
	Tries    int
}

// runs is a sorted list of runs that do not overlap.
type runs []run

// areRuns reports whether r is valid: sorted, without overlaps, and with values in range.
func areRuns(r []run) bool {
	end := 0
	for _, x := range r {
		if x.Pos < end || x.Len < 1 || x.Pos+x.Len < x.Pos || x.Tries < 0 || x.Tries >= mostTries {
			return false
		}
		end = x.Pos + x.Len
	}
	return true
}

// MarshalJSON writes each run as two varints: how many pages lie between it and the one before, and
// its length and tries.
func (r runs) MarshalJSON() ([]byte, error) {
	var b []byte
	end := 0
	for _, x := range r {
		b = binary.AppendUvarint(b, uint64(x.Pos-end))
		b = binary.AppendUvarint(b, uint64(x.Len)*mostTries+uint64(x.Tries))
		end = x.Pos + x.Len
	}
	return json.Marshal(b)
}

// UnmarshalJSON reads the output of MarshalJSON. The caller checks the result with areRuns.
func (r *runs) UnmarshalJSON(text []byte) error {
	var b []byte
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	end := 0
	for len(b) > 0 {
		gap, n := binary.Uvarint(b)
		size, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 {
			return errRecord
		}
		x := run{Pos: end + int(gap), Len: int(size / mostTries), Tries: int(size % mostTries)}
		*r = append(*r, x)
		end = x.Pos + x.Len
		b = b[n+m:]
	}
	return nil
}

// find returns the index of the run with pos, or of the first run after it.
func (r runs) find(pos int) (i int, found bool) {
	i, _ = slices.BinarySearchFunc(r, pos, func(x run, pos int) int { return x.Pos + x.Len - 1 - pos })
	return i, i < len(r) && r[i].Pos <= pos
}

// add adds a page that is not in r.
func (r *runs) add(pos, tries int) {
	i, _ := r.find(pos)
	left := i > 0 && (*r)[i-1].Pos+(*r)[i-1].Len == pos && (*r)[i-1].Tries == tries
	right := i < len(*r) && (*r)[i].Pos == pos+1 && (*r)[i].Tries == tries
	switch {
	case left && right:
		(*r)[i-1].Len += 1 + (*r)[i].Len
		*r = slices.Delete(*r, i, i+1)
	case left:
		(*r)[i-1].Len++
	case right:
		(*r)[i].Pos--
		(*r)[i].Len++
	default:
		*r = slices.Insert(*r, i, run{Pos: pos, Len: 1, Tries: tries})
	}
}

// remove removes a page and returns how often it has failed. found reports whether the page was in
// r.
func (r *runs) remove(pos int) (tries int, found bool) {
	i, found := r.find(pos)
	if !found {
		return 0, false
	}
	x := (*r)[i]
	var parts []run
	if x.Pos < pos {
		parts = append(parts, run{Pos: x.Pos, Len: pos - x.Pos, Tries: x.Tries})
	}
	if end := x.Pos + x.Len; pos+1 < end {
		parts = append(parts, run{Pos: pos + 1, Len: end - pos - 1, Tries: x.Tries})
	}
	*r = slices.Replace(*r, i, i+1, parts...)
	return x.Tries, true
}
