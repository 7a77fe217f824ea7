package collyrobots

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/gate"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/revalidate"
	"github.com/collyrobots/collyrobots/internal/track"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// Revalidate requests pages conditionally, so that a site need not send an unchanged page again.
// The Store keeps the ETag and the Last-Modified of each page for 90 days after the visit. At the
// next visit, usually in a later run, the plugin sends them as If-None-Match and If-Modified-Since
// (RFC 9110, section 13). Revalidate needs the option Store.
//
// If the site answers 304, the page is unchanged. Visit then returns nil. The function of
// OnUnchanged is called. The callbacks OnResponseHeaders, OnResponse, OnHTML, OnXML, OnScraped and
// OnError are not called. The links on an unchanged page are therefore not found again: a crawl
// that finds its pages through links ends at the first unchanged page. Use Revalidate for pages
// from a sitemap, a queue or a list. To get the links of a page in every run, exempt the page: a
// request with the header "Cache-Control: no-cache" is not conditional. A request to a host without
// the option is not conditional either; see ForHosts.
//
// A page is recorded when all callbacks for it have returned, if it is a complete response with
// status 200 to a GET. With the option Frontier, a page is recorded when the pages that its
// callbacks have visited are recorded. So a page that was in flight when the process was killed is
// requested in full in the next run. A response with Cache-Control: no-store is not recorded. The
// record of a redirected page belongs to the last URL, so redirects are followed again in each run.
// Each collector has its own records, because its callbacks may differ from those of other
// collectors. The records are numbered in the order of Attach: attach the collectors in the same
// order in each run, and give each spider its own Store.
//
// A request is not conditional if its method is not GET, if the program has set a condition, a
// Range or a Host header, if the collector has a CacheDir, if it repeats a page that is done
// (Request.Retry, also in OnUnchanged), or in a dry run. Requests of clones that are not attached
// and of http.Clients (Plugin.Transport) are not changed. A 304 to a request that the plugin has
// not made conditional is passed on. Callbacks do not see the headers that the plugin adds.
//
// A Last-Modified is sent only if the request has the same credentials as the earlier one and the
// same values of the headers in Vary. An ETag identifies the page, and needs no such check. A
// malformed or repeated validator, an ETag of more than 512 bytes, and a Last-Modified after the
// Date of the response are not kept.
//
// If the Store fails, pages are requested in full, and the Store is not used for a minute.
func Revalidate() Option {
	return hostOption("Revalidate", func(s *judge.HostSettings) {
		s.Revalidate = true
		s.SkipFresh = false
	})
}

// SkipFresh is like Revalidate. In addition, a page is not requested while it is fresh: until the
// time passes that the site has set with max-age in Cache-Control, or with Expires (RFC 9111,
// section 4.2, for a private cache). A fresh page is treated like one that was answered with 304.
// It is aborted in OnRequest, so Visit returns nil, and it counts toward Colly's MaxRequests. A page
// may be fresh although it has neither an ETag nor a Last-Modified.
//
// A response is not fresh if it has no Date, if it has neither max-age nor Expires, if it has
// Cache-Control: no-cache, or if its Vary names Cookie.
func SkipFresh() Option {
	return hostOption("SkipFresh", func(s *judge.HostSettings) {
		s.Revalidate = true
		s.SkipFresh = true
	})
}

// OnUnchanged sets a function that is called for each page that has not changed; see Revalidate. It
// is called on the goroutine of the request, which holds no slot of a LimitRule, so it may visit
// other pages. r.URL is the URL after redirects. To request the whole page, call r.Retry.
func OnUnchanged(f func(r *colly.Request)) Option {
	return option("OnUnchanged", func(c *config) { c.onUnchanged = f },
		faultIf(f == nil, "OnUnchanged", "the function is nil"))
}

// revalidates reports whether pages of any host are requested conditionally. A dry run changes no
// request.
func (c *config) revalidates() bool {
	return !c.dryRun && slices.ContainsFunc(c.All(), func(s *judge.HostSettings) bool { return s.Revalidate })
}

// addPages makes the pages of the collector conditional, which is being attached. It does nothing
// without the option.
func (h *hooks) addPages() error {
	if h.revalidation == nil {
		return nil
	}
	err := h.handle.Guard(isMarkedUnchanged)
	if err != nil {
		return fmt.Errorf("collyrobots: Attach: %w", err)
	}
	h.pages = h.revalidation.Add()
	return nil
}

// pageStoreOf returns the records for the page of r, or nil if r must not be made conditional.
func (h *hooks) pageStoreOf(r *colly.Request) *revalidate.Collector {
	if h.pages == nil || !h.hasRecord(r) || h.retries.IsMarked(r, track.Answered) {
		return nil
	}
	return h.pages
}

// hasRecord reports whether there may be a record of the page of r. With CacheDir there are no
// records: a cached page is not requested, and any other page is needed in full.
func (h *hooks) hasRecord(r *colly.Request) bool {
	return r.Method == http.MethodGet && !hasBody(r) && h.c.CacheDir == "" && weburl.IsWeb(r.URL) && (*r.Headers)["Host"] == nil
}

// hasBody reports whether r has a body. A request that was decoded, such as one of a queue or one
// that has waited in a urlstore.Store, has an empty one. The result is the same before and after the body
// was sent.
func hasBody(r *colly.Request) bool {
	switch body := r.Body.(type) {
	case nil:
		return false
	case interface{ Size() int64 }:
		return body.Size() != 0
	case *bytes.Buffer:
		return body.Cap() != 0
	}
	return r.Body != http.NoBody
}

// isMarkedUnchanged reports whether r is the response of an unchanged page.
func isMarkedUnchanged(r *colly.Response) bool {
	return r.Headers != nil && (*r.Headers)[revalidate.UnchangedMark] != nil
}

// isUnchanged reports whether r is the response of an unchanged page of the collector. Without the
// option Revalidate it looks at no header.
func (h *hooks) isUnchanged(r *colly.Response) bool { return h.pages != nil && isMarkedUnchanged(r) }

// noXMLFile at the end of a path keeps Colly from parsing the response as XML.
const noXMLFile = "\x00"

// hideFromXML changes the URL of an unchanged page so that its path does not end with ".xml".
// Otherwise Colly would parse the empty response as XML and report an error. The first callback of
// the plugin calls hideFromXML, and the last one calls undoHideFromXML. No callback of the user is
// called between them.
func hideFromXML(u *url.URL) { u.Path += noXMLFile }

func undoHideFromXML(u *url.URL) { u.Path = strings.TrimSuffix(u.Path, noXMLFile) }

// unchanged reports a page that has not changed. status is 0 if it was not requested.
func (h *hooks) unchanged(r *colly.Request, status int) {
	host := h.wire.Hosts.At(time.Now(), hostname.Of(r.URL))
	host.CountUnchanged()
	h.report.TellUnchanged(host, r.URL, status, reporter.IDs{Collector: h.c.ID, Request: r.ID})
	h.retries.Mark(r, track.Answered)
	if h.onUnchanged != nil {
		h.onUnchanged(r)
	}
}

// errFresh is the error of hooks.admit for a page that is not requested because it is fresh.
var errFresh = errors.New("collyrobots: the page is fresh")

// skipFresh ends the page of r, which is fresh. Colly calls no other hook for an aborted request.
func (h *hooks) skipFresh(q *gate.Request, r *colly.Request) {
	q.Close()
	r.Abort()
	h.revalidation.Fresh.Add(1)
	page := h.fedPageOf(r)
	h.unchanged(r, 0)
	h.finish(r, http.StatusNotModified, outcome{})
	page.settle()
}

// keeper returns a function that records the page of a response. It must be called when the page is
// done: after the last callback or, with the option Frontier, when its links are recorded.
func (h *hooks) keeper(r *colly.Response) func() {
	if h.pages == nil || h.retired() || h.closed.Load() || r.StatusCode != http.StatusOK || r.Headers == nil || !h.hasRecord(r.Request) {
		return func() {}
	}
	settings := h.settings.Of(hostname.Of(r.Request.URL))
	if !settings.Revalidate || h.c.MaxBodySize > 0 && len(r.Body) >= h.c.MaxBodySize {
		return func() {}
	}
	h.retries.Mark(r.Request, track.Answered)
	u := *r.Request.URL
	key := h.pages.Key(&u)
	record, err := revalidate.New(&u, *r.Request.Headers, *r.Headers, time.Now())
	if err != nil {
		h.revalidation.Unusable.Add(1)
	}
	if record != nil && !settings.SkipFresh {
		record = record.WithoutFreshness()
	}
	if record == nil {
		return func() { h.pages.Forget(key) }
	}
	if mark := (*r.Headers)[revalidate.UnchangedMark]; mark != nil {
		old, err := revalidate.Decode([]byte(mark[0]))
		if err == nil && !record.Outdates(old) {
			return func() {}
		}
	}
	return func() { h.pages.Remember(key, record) }
}
