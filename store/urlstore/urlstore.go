// Package urlstore has the contract between the option Frontier of package collyrobots and a store
// that keeps the pages of a crawl. Package github.com/collyrobots/collyrobots/frontier is such a
// store, on disk. Package urlstoretest tests whether a store keeps the contract.
package urlstore

import (
	"context"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

// A Store keeps the pages of a crawl until they are done, so that a page that waits for its host
// needs no goroutine, and a later run can continue the crawl. Pass it to the option Frontier.
//
// A page waits from Add until it is handed out by Next, Take or Again. It is out until End. A page
// that was out when the process ended waits again in the next run.
//
// All methods may be called from any goroutine. A method that returns an error has had no effect.
type Store interface {
	// Add records a page, which then waits, and sets its ID. It reports false if the page is known:
	// if a page with the same Collector and an equivalent URL waits, is out, or is done.
	Add(p *Page) (added bool, err error)

	// Take hands out p, which was just added, if Next would return it now.
	Take(p *Page) bool

	// Again hands out a page that the program requests once more, such as by colly's Request.Retry.
	// The page may be in any state, even done. If it is out, it stays out until End was called for
	// each attempt, and the last call decides.
	Again(p *Page) error

	// Next waits until the turn of a page has come, and hands it out. It returns io.EOF when no page
	// waits and no page is out. Pages that a budget excludes do not count as waiting, and pages that
	// are postponed do not count as out. If ctx ends, it returns the cause or the error of ctx.
	Next(ctx context.Context) (*Page, error)

	// End says how an attempt to fetch p has ended. It has no effect if p is not out.
	End(p *Page, result Result) error

	// Pace says that a request to a host has had its response. The next one may start at next. Its
	// page may be handed out less than a second earlier, because it waits again before it is sent. If
	// alone is true, the next page of the host is not handed out while an earlier one has had no
	// response.
	Pace(host string, next time.Time, alone bool)

	// Stats returns the counts so far.
	Stats() Stats

	// Waiting returns the number of pages of a host that wait.
	Waiting(host string) int

	// Records returns a store for what a later run has to know about the hosts of the pages: their
	// robots.txt files and their pace. It lasts as long as the pages. Its Close is not called. If it
	// is nil, a later run asks each host again without a delay.
	Records() store.Store
}

// A Page is a page in a Store.
type Page struct {
	// URL is the URL to request.
	URL string
	// Host is the host of URL, as in report.HostStats. If it is empty, Add sets it.
	Host string
	// Key is what identifies the page among those of its Collector. If it is empty, it is the URL in
	// normal form; see Normalize.
	Key string
	// Collector is the number of the collector that requests the page: 0 for the first one that was
	// attached, 1 for the second. It is 0 if there is no collector.
	Collector int
	// Depth is the number of links from the first page, which has the depth 1.
	Depth int
	// From is the host that led to the page, or "" if the program has requested it.
	From string
	// Request is the request in the encoding of colly's Request.Marshal. It may be nil.
	Request []byte
	// Found is the time of Add, which sets it.
	Found time.Time
	// Attempts is the number of attempts that have failed. The Store sets it.
	Attempts int
	// ID identifies the page in the Store, which sets it.
	ID uint64
}

// A Result says how an attempt to fetch a page has ended.
type Result int

// The results of an attempt.
const (
	Returned  Result = iota // the page was not fetched, and waits again
	Done                    // its callbacks have run
	Denied                  // it must not be fetched
	Failed                  // it waits for another attempt, unless it has failed three times
	Postponed               // it may never end, and stays out; the next run hands it out again
)

// Stats has the counts of the pages in a Store, of all runs.
type Stats struct {
	Waiting    int       `json:"waiting"`         // pages that wait
	Out        int       `json:"out"`             // pages that are handed out
	Done       int       `json:"done"`            // pages whose callbacks have run
	Denied     int       `json:"denied"`          // pages that must not be fetched
	Failed     int       `json:"failed"`          // pages that have failed three times
	OverBudget int       `json:"over_budget"`     // pages that a budget excludes; a later run with a larger one continues with them
	Duplicates int       `json:"duplicates"`      // pages that were known when they were added, in this run
	Hosts      int       `json:"hosts"`           // hosts with waiting pages
	Oldest     time.Time `json:"oldest,omitzero"` // when the page that waits longest was found
	Unrecorded int       `json:"unrecorded"`      // pages of this run that could not be recorded, for example because the disk is full
	Error      string    `json:"error,omitempty"` // why; empty if all pages were recorded
}
