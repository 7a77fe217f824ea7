package backend

import (
	"net/http"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"
)

// This file ends a request before Colly takes a slot of a LimitRule for it.

// An early has what is needed to end requests early.
type early struct {
	own     int                   // the number of the OnRequest callback that calls IsFollowed
	after   colly.RequestCallback // the function of AfterOnRequest
	wrapped atomic.Int64          // the number of the OnRequest callback that was wrapped last; 0 if none was
}

// AfterOnRequest makes the collector call f after the last OnRequest callback of a request. own is the
// number of the OnRequest callback that calls IsFollowed, counted from 1. No request may be under
// way.
//
// f may miss a request if the program registers a callback while the request is under way.
func (h *Handle) AfterOnRequest(own int, f colly.RequestCallback) {
	h.early.own = own
	h.early.after = f
}

// IsFollowed is called first in each call of the OnRequest callback that AfterOnRequest has got the
// number of. It reports whether other callbacks follow. If not, the collector does not call the
// function of AfterOnRequest for this request.
func (h *Handle) IsFollowed() bool {
	n := len(*h.requestCallbacks)
	if n <= h.early.own {
		return false
	}
	if h.early.wrapped.Load() != int64(n) {
		h.wrapLastRequestCallback()
	}
	return true
}

// wrapLastRequestCallback makes the last OnRequest callback call the function of AfterOnRequest when
// it returns, as long as it is the last one. It changes the element of the slice in place, because
// Colly reads the slice without a lock. No other request reads the element at the same time: each of
// them calls IsFollowed first.
func (h *Handle) wrapLastRequestCallback() {
	lock := *h.lock
	lock.Lock()
	defer lock.Unlock()
	callbacks := *h.requestCallbacks
	n := int64(len(callbacks))
	if h.early.wrapped.Load() == n {
		return
	}
	last := callbacks[n-1]
	callbacks[n-1] = func(r *colly.Request) {
		last(r)
		if h.early.wrapped.Load() == n {
			h.early.after(r)
		}
	}
	h.early.wrapped.Store(n)
}

// Fail aborts a request in OnRequest and calls the debugger and the OnError callbacks of the
// collector with err, in the order and on the goroutine in which Colly would call them.
func (h *Handle) Fail(r *colly.Request, err error) {
	r.Abort()
	if d := h.Debugger(); d != nil {
		d.Event(&debug.Event{
			Type:        "error",
			RequestID:   r.ID,
			CollectorID: h.collector.ID,
			Values:      map[string]string{"url": r.URL.String(), "status": http.StatusText(0)},
		})
	}
	lock := *h.lock
	lock.RLock()
	callbacks := *h.errorCallbacks
	lock.RUnlock()
	resp := &colly.Response{Request: r, Ctx: r.Ctx}
	for _, f := range callbacks {
		f(resp, err)
	}
}
