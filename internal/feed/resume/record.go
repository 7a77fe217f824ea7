package resume

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// A record is the part of a Checkpoint that the store keeps, as JSON. It says which pages of the
// file need not be examined again: all pages before Next, except for those in Left.
//
// Left has the pages that were in flight or have failed, and those that were denied, dropped or
// refused. A run of consecutive pages takes about two bytes, so the record of a site that denies
// everything is small. In the worst case, every second page of a file is left: a file of 50,000
// pages then has 25,000 runs, which take 50 KB. A file with more pages may have more than mostRuns
// runs. The record then has the first mostRuns of them. Next is the first page of the run after
// these, and the next crawl examines the pages from there on again.
type record struct {
	Version      int
	ETag         string `json:",omitempty"` // validators of the response
	LastModified string `json:",omitempty"`
	Sum          []byte // SHA-256 of the body as it was received
	Size         int64  `json:",omitempty"` // bytes of that body if the transfer was cut off; otherwise 0
	Index        bool   `json:",omitempty"` // the file names other files, and is always read
	Whole        bool   `json:",omitempty"` // all pages of the file were dealt with, except for those in Left
	Done         bool   `json:",omitempty"` // all pages of the file were dealt with and Left is empty
	// Again is set when the file has changed, until it is Done. While it is set, what other files
	// say about its pages is ignored.
	Again  bool   `json:",omitempty"`
	Sample []byte `json:",omitempty"` // a sample of the pages, if the file is done
	Newest bool   `json:",omitempty"` // pages are handed on by age, not by number
	Next   Mark
	Left   runs  `json:",omitempty"`
	Listed int64 `json:",omitempty"` // the lastmod of the file in the index that names it, in Unix seconds
	Read   int64 `json:",omitempty"` // when the file was read, in Unix seconds
	Began  int64 `json:",omitempty"` // when the first run began that has fetched a page of the file as it is, in Unix seconds
	Since  int64 `json:",omitempty"` // older entries were left out; in Unix seconds
}

const (
	recordVersion = 3
	recordTime    = 90 * 24 * time.Hour // how long a file is remembered after it was last read
	longValidator = 512                 // a validator of more bytes is not kept
	mostRuns      = 1 << 15             // the largest number of runs of a record
	mostTries     = 3                   // how often a page that fails is tried
)

var errRecord = errors.New("not a record of this version")

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

// fit removes the runs that the record has no room for. The next crawl examines their pages again.
func (r *record) fit() {
	if len(r.Left) <= mostRuns {
		return
	}
	r.Whole = false
	r.Next = Mark{Pos: r.Left[mostRuns].Pos}
	r.Left = r.Left[:mostRuns]
	if r.Newest {
		// The pages that came before that place are unknown.
		r.Next = Mark{}
		r.Left = nil
	}
}

// A Mark is the position of a page of a file in the order of delivery. That order is by number, or,
// with NewestFirst, by age and then by number. Without NewestFirst, Age is 0. No page comes before
// the zero Mark.
type Mark struct {
	Age int64 `json:",omitempty"`
	Pos int
}

// lastMark comes after all pages.
var lastMark = Mark{Age: math.MaxInt64, Pos: math.MaxInt}

func (m Mark) valid() bool { return m.Age >= 0 && m.Pos >= 0 }

// before reports whether m comes before o.
func (m Mark) before(o Mark) bool { return m.Age < o.Age || m.Age == o.Age && m.Pos < o.Pos }

// next returns the Mark that follows m.
func (m Mark) next() Mark { return Mark{Age: m.Age, Pos: m.Pos + 1} }
