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

// visits find the visit in a request's context, which costs as much as a look into a map: few
// programs use Collector.Visit.
type visits struct{ inUse atomic.Bool }

// begin returns a visit and the context of a request that is to hold it.
func (vs *visits) begin() (*visit, *colly.Context) {
	vs.inUse.Store(true)
	v, ctx := new(visit), colly.NewContext()
	ctx.Put(ctxVisit, v)
	return v, ctx
}

// in returns the visit in a context, or nil.
func (vs *visits) in(ctx *colly.Context) *visit {
	if !vs.inUse.Load() {
		return nil
	}
	v, _ := ctx.GetAny(ctxVisit).(*visit)
	return v
}

// claim gives the visit in r's context to r, if there is one and r is the first to come.
func (vs *visits) claim(r *colly.Request) {
	if v := vs.in(r.Ctx); v != nil {
		v.page.CompareAndSwap(nil, r)
	}
}

// tell tells the visit that r holds, if there is one, why r is not sent.
func (vs *visits) tell(r *colly.Request, err error) {
	if v := vs.in(r.Ctx); v != nil && v.page.Load() == r {
		v.denied = err
	}
}
