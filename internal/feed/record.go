package feed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
)

// A record is what the store keeps of a sitemap file, as JSON. It says which pages of the file, by
// number, need not be looked at again: all before Next, except for those in Left.
//
// Left has the pages that were in flight or have failed, and those that were denied, dropped or
// refused. Consecutive pages take two bytes together, so the record of a site that denies everything
// is small. The worst case, in which every second page is left, has 25,000 runs and 50 KB for a file of
// 50,000 pages. Only a longer file can have more than mostRuns runs. Then Next stays at the first run
// that does not fit, and the next run fetches the pages that follow again.
type record struct {
	Version      int
	ETag         string `json:",omitempty"` // validators of the answer
	LastModified string `json:",omitempty"`
	Sum          []byte // SHA-256 of the body as it came
	Size         int64  `json:",omitempty"` // bytes of that body, if the transfer was cut off; otherwise 0
	Index        bool   `json:",omitempty"` // it names other files, and is always read
	Whole        bool   `json:",omitempty"` // all of its pages were dealt with, but for those in Left
	Done         bool   `json:",omitempty"` // and there are none in Left
	Again        bool   `json:",omitempty"` // the file has changed, and is not Done since: what other files say of its pages does not count
	Sample       []byte `json:",omitempty"` // of its pages, if it is done
	Newest       bool   `json:",omitempty"` // pages are handed on by age, not by number
	Next         mark
	Left         runs  `json:",omitempty"`
	Listed       int64 `json:",omitempty"` // unix seconds: the file's lastmod in the index that names it
	Read         int64 `json:",omitempty"` // unix seconds: when it was read
	Since        int64 `json:",omitempty"` // unix seconds: older entries were left out
}

const (
	recordVersion = 3
	recordTime    = 90 * 24 * time.Hour // how long a file is remembered after it was last read
	longValidator = 512                 // bytes of a validator that is not kept
	mostRuns      = 1 << 15             // that a record keeps
	mostTries     = 3                   // of a page that fails
)

var errRecord = errors.New("feed: not a record of this version")

// decode reads a record. The one of an earlier version is none.
func (r *record) decode(b []byte) error {
	if err := json.Unmarshal(b, r); err != nil {
		return err
	}
	if r.Version != recordVersion || !r.Next.valid() || len(r.Left) > mostRuns || !areRuns(r.Left) {
		return errRecord
	}
	return nil
}

// A mark is a place in the order in which the pages of a file are handed on: by number, or the
// newest first and then by number. Age is 0 in the first order. Nothing comes before the zero mark.
type mark struct {
	Age int64 `json:",omitempty"`
	Pos int
}

// lastMark comes after all pages.
var lastMark = mark{math.MaxInt64, math.MaxInt}

func (m mark) valid() bool { return m.Age >= 0 && m.Pos >= 0 }

// before reports whether m comes before o.
func (m mark) before(o mark) bool { return m.Age < o.Age || m.Age == o.Age && m.Pos < o.Pos }

// next is the mark that follows m.
func (m mark) next() mark { return mark{m.Age, m.Pos + 1} }

// A run is pages that follow each other in a file and have failed equally often.
type run struct {
	Pos, Len int
	Tries    int
}

// runs are sorted, without overlaps.
type runs []run

// areRuns reports whether r is what runs are.
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

// UnmarshalJSON reads what MarshalJSON has written. The caller checks the result with areRuns.
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

// find returns where pos is, or the first run behind it.
func (r runs) find(pos int) (i int, found bool) {
	i, _ = slices.BinarySearchFunc(r, pos, func(x run, pos int) int { return x.Pos + x.Len - 1 - pos })
	return i, i < len(r) && r[i].Pos <= pos
}

// add puts a page in that is not there.
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
		*r = slices.Insert(*r, i, run{pos, 1, tries})
	}
}

// remove takes a page out, if it is there, and returns how often it has failed.
func (r *runs) remove(pos int) (tries int, found bool) {
	i, found := r.find(pos)
	if !found {
		return 0, false
	}
	x := (*r)[i]
	var parts []run
	if x.Pos < pos {
		parts = append(parts, run{x.Pos, pos - x.Pos, x.Tries})
	}
	if end := x.Pos + x.Len; pos+1 < end {
		parts = append(parts, run{pos + 1, end - pos - 1, x.Tries})
	}
	*r = slices.Replace(*r, i, i+1, parts...)
	return x.Tries, true
}
