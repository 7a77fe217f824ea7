package fed

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"
)

// Key is the key of a Page, or of its name, in the Context of a request.
const Key = "collyrobots.page"

// Pages finds the Page in the Context of a request. colly/queue serializes its requests, so their
// Context contains the name of the page. The zero value is ready for use. All methods may be called
// from any goroutine.
type Pages struct {
	inUse  atomic.Bool // pages may be fed; if false, no Context is searched
	byName sync.Map    // *Page by name
}

// Use makes Claim and Of search the Contexts of requests.
func (ps *Pages) Use() { ps.inUse.Store(true) }

// Name gives p a name until its result is known. The name is unique, even among other processes.
func (ps *Pages) Name(p *Page) string {
	ps.Use()
	p.name = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	p.names = ps
	ps.byName.Store(p.name, p)
	return p.name
}

// Claim gives the page in the Context of r to r, unless another request has claimed it. It returns
// the page that r has claimed, or nil.
func (ps *Pages) Claim(r *colly.Request) *Page {
	p := ps.in(r.Ctx)
	if p == nil || !p.Claim(r) {
		return nil
	}
	return p
}

// Of returns the page in the Context of r if r has claimed it, and nil otherwise.
func (ps *Pages) Of(r *colly.Request) *Page {
	p := ps.in(r.Ctx)
	if p == nil || p.Owner() != r {
		return nil
	}
	return p
}

// in returns the page in a Context, or nil.
func (ps *Pages) in(ctx *colly.Context) *Page {
	if !ps.inUse.Load() {
		return nil
	}
	switch p := ctx.GetAny(Key).(type) {
	case *Page:
		return p
	case string:
		if p, ok := ps.byName.Load(p); ok {
			return p.(*Page)
		}
	}
	return nil
}
