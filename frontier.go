package collyrobots

import (
	"context"
	"time"
)

// A URLStore keeps the pages of a crawl until they are done, so that a page that waits for its host
// needs no goroutine, and a later run can continue the crawl. Package
// github.com/collyrobots/collyrobots/frontier has a URLStore on disk. Pass it to the option
// Frontier.
//
// A page waits from Add until it is handed out by Next, Take or Again. It is out until End. A page
// that was out when the process ended waits again in the next run.
//
// All methods may be called from any goroutine. A method that returns an error has had no effect.
type URLStore interface {
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
	// are postponed do not count as out.
	Next(ctx context.Context) (*Page, error)

	// End says how an attempt to fetch p has ended. It has no effect if p is not out.
	End(p *Page, result PageResult) error

	// Pace says that a request to a host has had its response. The next one may start at next. If
	// alone is true, the next page of the host is not handed out while an earlier one has had no
	// response.
	Pace(host string, next time.Time, alone bool)

	// Stats returns the counts so far.
	Stats() FrontierStats

	// Waiting returns the number of pages of a host that wait.
	Waiting(host string) int
}

// A Page is a page in a URLStore.
type Page struct {
	// URL is the URL to request.
	URL string
	// Host is the host of URL, as in HostStats. If it is empty, Add sets it.
	Host string
	// Key is what identifies the page among those of its Collector. If it is empty, it is the URL in
	// normal form.
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
	// Attempts is the number of attempts that have failed. The URLStore sets it.
	Attempts int
	// ID identifies the page in the URLStore, which sets it.
	ID uint64
}

// A PageResult says how an attempt to fetch a page has ended.
type PageResult int

// The results of an attempt.
const (
	PageReturned  PageResult = iota // the page was not fetched, and waits again
	PageDone                        // its callbacks have run
	PageDenied                      // it must not be fetched
	PageFailed                      // it waits for another attempt, unless it has failed three times
	PagePostponed                   // it may never end, and stays out; the next run hands it out again
)

// CtxWaited is the key of a value in the colly.Context of a request whose page has waited in the
// URLStore of the option Frontier: the URL of the page. The callbacks of OnRequest were called for
// the page before, with a request that was aborted. Requests that the callbacks of the page make
// with Request.Visit share its Context, so compare the value with the URL of the request.
const CtxWaited = "collyrobots.waited"

// Frontier records each page in f before it waits for its host, so that a later run can continue
// the crawl, and so that a page that waits needs no goroutine. The spider stays as it is.
//
// Every GET of an asynchronous collector is recorded when the plugin's OnRequest callback sees it.
// A page that f knows already is aborted. A page whose turn has come goes on at once. Any other
// page is aborted with Request.Abort and submitted again when its turn comes, with its depth, its
// headers and those values of its Context that come back from JSON with the same type. A page that
// goes on may also be aborted and submitted again if many pages are under way and its host may not
// start for more than 200 ms.
//
// So the OnRequest callbacks are called again each time that a page has waited. In a call before
// the page waits, Request.IsAbort returns true for callbacks that were registered after Attach. In
// a call after it has waited, the value of CtxWaited is the URL of the page. A callback that
// acquires something in OnRequest must therefore check IsAbort, and be registered after Attach.
//
// Visit waits for a moment while about a thousand other visits have not reached the plugin's
// OnRequest callback, so that a loop of Visit does not start a goroutine for each of its pages.
//
// A page is done when the last of its callbacks has returned, and when all pages that it has
// visited are recorded. It is also done if a callback has aborted it, or if the response has a
// status such as 404. After other errors it is tried again later. If the process is killed, the
// pages that were under way are fetched again by the next run, and no page is lost.
//
// Collector.Wait waits until no page waits. It returns earlier if the collector's Context ends, or
// if the plugin is closed. The other pages then stay in f. To continue, a later run attaches its
// collectors in the same order and visits the same first page. In that run, Visit returns colly's
// AlreadyVisitedError for a page that was submitted again before.
//
// Requests with other methods or with a body, requests of collectors that are not asynchronous,
// targets of redirects, and the requests of http.Clients are not recorded. If AllowURLRevisit is set, a kill
// may lose the links of the pages that were under way. If f fails, for example because the disk is
// full, pages go on as without Frontier, and one that then fails is not tried again. Colly's
// MaxRequests counts a page that has waited three times.
//
// Close the plugin before f.
func Frontier(f URLStore) Option {
	return option("Frontier", func(c *config) { c.frontier = f }, faultIf(f == nil, "Frontier", "the URLStore is nil"))
}

// FrontierStats has the counts of the pages in a URLStore, of all runs.
type FrontierStats struct {
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
