package feed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
)

// A record is what the store keeps about a sitemap file, as JSON. It says which pages of the file,
// by number, need not be examined again: all pages before Next, except for those in Left.
//
// Left has the pages that were in flight or have failed, and those that were denied, dropped or
// refused. Consecutive pages take two bytes together, so the record of a site that denies
// everything is small. The worst case, in which every second page is left, has 25,000 runs and 50
// KB for a file of 50,000 pages. Only a longer file can have more than mostRuns runs. Then Next
// stays at the first run that does not fit, and the next run fetches the pages that follow again.
type record struct {
	Version      int
	ETag         string `json:",omitempty"` // validators of the response
	LastModified string `json:",omitempty"`
	Sum          []byte // SHA-256 of the body as it came
	Size         int64  `json:",omitempty"` // bytes of that body, if the transfer was cut off; otherwise 0
	Index        bool   `json:",omitempty"` // the file names other files, and is always read
	Whole        bool   `json:",omitempty"` // all pages of the file were dealt with, except for those in Left
	Done         bool   `json:",omitempty"` // all pages of the file were dealt with and Left is empty
	// Again is set if the file has changed and is not Done since. Then what other files say about
	// its pages is ignored.
	Again  bool   `json:",omitempty"`
	Sample []byte `json:",omitempty"` // a sample of the pages, if the file is done
	Newest bool   `json:",omitempty"` // pages are handed on by age, not by number
	Next   mark
	Left   runs  `json:",omitempty"`
	Listed int64 `json:",omitempty"` // unix seconds: the file's lastmod in the index that names it
	Read   int64 `json:",omitempty"` // unix seconds: when it was read
	Since  int64 `json:",omitempty"` // unix seconds: older entries were left out
}

const (
	recordVersion = 3
	recordTime    = 90 * 24 * time.Hour // how long a file is remembered after it was last read
	longValidator = 512                 // bytes of a validator that is not kept
	mostRuns      = 1 << 15             // runs that a record keeps
	mostTries     = 3                   // tries of a page that fails
)

var errRecord = errors.New("feed: not a record of this version")

// decode reads a record. A record of an earlier version is an error.
func (r *record) decode(b []byte) error {
	if err := json.Unmarshal(b, r); err != nil {
		return err
	}
	if r.Version != recordVersion || !r.Next.valid() || len(r.Left) > mostRuns || !areRuns(r.Left) {
		return errRecord
	}
	return nil
}

// A mark is a place in the order in which the pages of a file are handed on. The order is by
// number, or, with NewestFirst, by age and then by number. Without NewestFirst, Age is 0. No place
// comes before the zero mark.
type mark struct {
	Age int64 `json:",omitempty"`
	Pos int
}

// lastMark comes after all pages.
var lastMark = mark{math.MaxInt64, math.MaxInt}

func (m mark) valid() bool { return m.Age >= 0 && m.Pos >= 0 }

// before reports whether m comes before o.
func (m mark) before(o mark) bool { return m.Age < o.Age || m.Age == o.Age && m.Pos < o.Pos }

// next returns the mark that follows m.
func (m mark) next() mark { return mark{m.Age, m.Pos + 1} }

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
		*r = slices.Insert(*r, i, run{pos, 1, tries})
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
		parts = append(parts, run{x.Pos, pos - x.Pos, x.Tries})
	}
	if end := x.Pos + x.Len; pos+1 < end {
		parts = append(parts, run{pos + 1, end - pos - 1, x.Tries})
	}
	*r = slices.Replace(*r, i, i+1, parts...)
	return x.Tries, true
}
