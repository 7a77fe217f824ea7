package feed

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
)

// A record is what the store keeps of a sitemap file, as JSON. It says of each page, by its number
// in the file, whether it need not be looked at again: all before Next, but for those in Left.
type record struct {
	Version      int
	ETag         string `json:",omitempty"` // validators of the answer
	LastModified string `json:",omitempty"`
	Sum          []byte // SHA-256 of the body as it came
	Index        bool   `json:",omitempty"` // it names other files, and is always read
	Whole        bool   `json:",omitempty"` // all of its pages were dealt with, but for those in Left
	Done         bool   `json:",omitempty"` // and there are none in Left
	Sample       []byte `json:",omitempty"` // of its pages, if it is done
	Newest       bool   `json:",omitempty"` // pages are handed on by age, not by number
	Next         mark
	Left         []run `json:",omitempty"`
	Listed       int64 `json:",omitempty"` // unix seconds: the file's lastmod in the index that names it
	Read         int64 `json:",omitempty"` // unix seconds: when it was read
	Since        int64 `json:",omitempty"` // unix seconds: older entries were left out
}

const (
	recordVersion = 2
	recordTime    = 90 * 24 * time.Hour // how long a file is remembered after it was last read
	longValidator = 512                 // octets of a validator that is not kept
	mostRuns      = 1024                // that a record keeps
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
	Tries    int `json:",omitempty"`
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
