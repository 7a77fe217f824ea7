package collyrobots

import (
	"sync/atomic"

	"github.com/gocolly/colly/v2"
)

// A visit is what Collector.Visit wants to know of its page. It travels in the request's context,
// which the page's own children share: only the first request that comes with it holds it.
type visit struct {
	page   atomic.Pointer[colly.Request]
	denied error // why the page was not sent; nil: it was, or Colly says why not
}

// ctxVisit is the key of a *visit in a request's context.
const ctxVisit = "collyrobots.visit"

// context returns the context of a request that is to hold v.
func (v *visit) context() *colly.Context {
	ctx := colly.NewContext()
	ctx.Put(ctxVisit, v)
	return ctx
}

// claimVisit gives the visit in r's context to r, if there is one and r is the first to come.
func claimVisit(r *colly.Request) {
	if v, ok := r.Ctx.GetAny(ctxVisit).(*visit); ok {
		v.page.CompareAndSwap(nil, r)
	}
}

// tellVisit tells the visit that r holds, if there is one, why r is not sent.
func tellVisit(r *colly.Request, err error) {
	if v, ok := r.Ctx.GetAny(ctxVisit).(*visit); ok && v.page.Load() == r {
		v.denied = err
	}
}
