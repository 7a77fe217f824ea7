package collyrobots

import (
	"bytes"
	"net/http"
	"net/url"
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
	"github.com/collyrobots/collyrobots/report"
)

// Revalidate requests pages conditionally, so that a site need not send an unchanged page again. It
// needs the option Store or Frontier, which keeps the ETag and the Last-Modified of each page for 90
// days. The default is to request every page in full.
//
// If the site answers 304, the page is unchanged: Visit returns nil, Revalidation.OnUnchanged is
// called, and no other callback is called. The links on an unchanged page are therefore not found
// again. A request with the header "Cache-Control: no-cache" is never conditional.
//
// If the Store fails, pages are requested in full. See docs/revalidate.md.
func Revalidate(r Revalidation) HostOption {
	return HostOption{hostOption("Revalidate", func(s *judge.HostSettings) {
		s.Revalidate = true
		s.SkipFresh = r.SkipFresh
		s.Listener = r.OnUnchanged
	}).with(r)}
}

// A Revalidation says what Revalidate does with pages that have not changed. With the zero value,
// each page is requested, and Stats counts those that have not changed.
type Revalidation struct {
	// SkipFresh leaves out the requests for fresh pages. A page is fresh until the time passes that
	// the site has set with max-age in Cache-Control, or with Expires (RFC 9111, section 4.2, for a
	// private cache). A fresh page is treated like one that was answered with 304.
	SkipFresh bool

	// OnUnchanged is called for each page that has not changed. It may be nil. It is called on the
	// goroutine of the request, which holds no slot of a LimitRule, so it may visit other pages.
	// r.URL is the URL after redirects. To request the whole page, call r.Retry.
	OnUnchanged func(r *colly.Request)
}

// String returns the fields that are set, without the function.
func (r Revalidation) String() string {
	switch {
	case r.SkipFresh && r.OnUnchanged != nil:
		return "Revalidation{SkipFresh: true, OnUnchanged: ...}"
	case r.SkipFresh:
		return "Revalidation{SkipFresh: true}"
	case r.OnUnchanged != nil:
		return "Revalidation{OnUnchanged: ...}"
	}
	return "Revalidation{}"
}

// revalidates reports whether pages of any host may be requested conditionally. A dry run changes no
// request.
func (c *config) revalidates() bool {
	return !c.dryRun && c.store != nil && c.IsForAny(func(s *judge.HostSettings) bool { return s.Revalidate })
}

// revalidateHooks are the hooks of one collector for the option Revalidate. Those that
// are called without the option do nothing if revalidateHooks is nil.
type revalidateHooks struct {
	h       *hooks
	records *revalidate.Collector
}

// addRevalidation makes the pages of the collector conditional, which is being attached. It does
// nothing without the option.
func (h *hooks) addRevalidation() {
	if h.revalidation == nil {
		return
	}
	h.handle.Guard(isMarkedUnchanged)
	h.revalidating = &revalidateHooks{h: h, records: h.revalidation.Add()}
}

// recordsFor returns the records for the page of r, or nil if r must not be made conditional.
func (rh *revalidateHooks) recordsFor(r *colly.Request) *revalidate.Collector {
	if rh == nil || !rh.hasRecord(r) || rh.h.retries.IsMarked(r, track.Answered) {
		return nil
	}
	return rh.records
}

// hasRecord reports whether there may be a record of the page of r. With CacheDir there are no
// records: a cached page is not requested, and any other page is needed in full.
func (rh *revalidateHooks) hasRecord(r *colly.Request) bool {
	return r.Method == http.MethodGet && !hasBody(r) && rh.h.c.CacheDir == "" && weburl.IsWeb(r.URL) && (*r.Headers)["Host"] == nil
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
func (rh *revalidateHooks) isUnchanged(r *colly.Response) bool {
	return rh != nil && isMarkedUnchanged(r)
}

// noXMLFile at the end of a path keeps Colly from parsing the response as XML.
const noXMLFile = "\x00"

// hideFromXML changes the URL of an unchanged page so that its path does not end with ".xml".
// Otherwise Colly would parse the empty response as XML and report an error. The first callback of
// the plugin calls hideFromXML, and the last one calls undoHideFromXML. No callback of the user is
// called between them.
func hideFromXML(u *url.URL) { u.Path += noXMLFile }

func undoHideFromXML(u *url.URL) { u.Path = strings.TrimSuffix(u.Path, noXMLFile) }

// tellUnchanged reports a page that has not changed. status is 0 if it was not requested.
func (rh *revalidateHooks) tellUnchanged(r *colly.Request, status int) {
	host := rh.h.judge.Wire.Hosts.At(time.Now(), hostname.Of(r.URL))
	host.Count(report.HostCounts{Unchanged: 1})
	rh.h.judge.Report.TellUnchanged(host, r.URL, status, reporter.IDs{Collector: rh.h.c.ID, Request: r.ID})
	rh.h.retries.Mark(r, track.Answered)
	f, _ := rh.h.judge.Settings.Of(hostname.Of(r.URL)).Listener.(func(*colly.Request))
	if f != nil {
		f(r)
	}
}

// skipFresh ends the page of r, which is fresh. Colly calls no other hook for an aborted request.
func (rh *revalidateHooks) skipFresh(q *gate.Request, r *colly.Request) {
	q.Close()
	r.Abort()
	rh.h.revalidation.Fresh.Add(1)
	page := rh.h.fedPageOf(r)
	rh.tellUnchanged(r, 0)
	rh.h.finish(r, http.StatusNotModified, outcome{})
	page.Settle()
}

// keeper returns a function that records the page of a response. It must be called when the page is
// done: after the last callback or, with the option Frontier, when its links are recorded.
func (rh *revalidateHooks) keeper(r *colly.Response) func() {
	if rh == nil || rh.h.retired() || rh.h.closed.Load() || r.StatusCode != http.StatusOK || r.Headers == nil || !rh.hasRecord(r.Request) {
		return func() {}
	}
	settings := rh.h.judge.Settings.Of(hostname.Of(r.Request.URL))
	if !settings.Revalidate || rh.h.c.MaxBodySize > 0 && len(r.Body) >= rh.h.c.MaxBodySize {
		return func() {}
	}
	rh.h.retries.Mark(r.Request, track.Answered)
	u := *r.Request.URL
	key := rh.records.Key(&u)
	record, err := revalidate.New(&u, *r.Request.Headers, *r.Headers, time.Now())
	if err != nil {
		rh.h.revalidation.Unusable.Add(1)
	}
	if record != nil && !settings.SkipFresh {
		record = record.WithoutFreshness()
	}
	if record == nil {
		return func() { rh.records.Forget(key) }
	}
	if mark := (*r.Headers)[revalidate.UnchangedMark]; mark != nil {
		old, err := revalidate.Decode([]byte(mark[0]))
		if err == nil && !record.Outdates(old) {
			return func() {}
		}
	}
	return func() { rh.records.Remember(key, record) }
}
