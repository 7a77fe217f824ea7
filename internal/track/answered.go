package track

import (
	"sync"
	"weak"

	"github.com/gocolly/colly/v2"
)

// Answered remembers the requests whose pages are done, as long as the program keeps them, so that
// their retries are recognized. The zero value is empty. All methods may be called from any
// goroutine.
type Answered struct {
	// mu protects the fields below it.
	mu       sync.Mutex
	requests map[key]answeredRequest
	limit    int // when requests has this length, sweep is called
}

type answeredRequest struct {
	url  string
	last weak.Pointer[colly.Request]
}

func (r answeredRequest) collected() bool { return r.last.Value() == nil }

// Add records that the page of r is done.
func (a *Answered) Add(r *colly.Request) {
	k := keyOf(r)
	done := answeredRequest{url: r.URL.String(), last: weak.Make(r)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) >= a.limit {
		a.requests, a.limit = sweep(a.requests)
	}
	a.requests[k] = done
}

// Retries reports whether r is a retry of a request that was added. It is called in the first hook
// of each request. If the addresses of a request are in use again, it may return true for another
// request of the same URL.
func (a *Answered) Retries(r *colly.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		return false
	}
	done, ok := a.requests[keyOf(r)]
	return ok && done.url == r.URL.String()
}
