package collyrobots

import (
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// CtxWaited is the key of a value in the colly.Context of a request whose page has waited in the
// urlstore.Store of the option Frontier: the URL of the page. The callbacks of OnRequest were called for
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
func Frontier(f urlstore.Store) Option {
	return option("Frontier", func(c *config) { c.frontier = f }, faultIf(f == nil, "Frontier", "the urlstore.Store is nil"))
}
