package track

import (
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
)

// request returns a request of a collector for a path.
func request(path string) *colly.Request {
	return &colly.Request{
		URL:     &url.URL{Scheme: "http", Host: "a.test", Path: path},
		Headers: &http.Header{"User-Agent": {"ExampleBot/1.0"}},
		Ctx:     colly.NewContext(),
	}
}

// A page is what a caller of Requests knows about a request.
type page struct{ url string }

// retry returns what Colly's Request.Retry makes of a request.
func retry(r *colly.Request) *colly.Request {
	u := *r.URL
	headers := *r.Headers
	return &colly.Request{URL: &u, Headers: &headers, Ctx: r.Ctx}
}

func TestDenialsInARow(t *testing.T) {
	yesterday := time.Now().Add(-24 * time.Hour)
	rule := Denial{Version: yesterday}
	for name, test := range map[string]struct {
		next func(r *colly.Request) *colly.Request
		why  Denial
		want int
	}{
		"a retry":                     {next: retry, why: rule, want: 4},
		"another robots.txt":          {next: retry, why: Denial{Version: time.Now()}, want: 1},
		"another reason":              {next: retry, why: Denial{Version: yesterday, Later: true}, want: 1},
		"another page of the Context": {next: func(r *colly.Request) *colly.Request { s := request("/"); s.Ctx = r.Ctx; return s }, why: rule, want: 1},
		"the header map of another request": {
			next: func(r *colly.Request) *colly.Request { s := retry(r); s.Ctx = colly.NewContext(); return s }, why: rule, want: 1,
		},
		"another URL": {next: func(r *colly.Request) *colly.Request { s := retry(r); s.URL.Path = "/other"; return s }, why: rule, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var rs Retries
			r := request("/")
			for range 3 {
				rs.Deny(r, rule)
				r = retry(r)
			}
			next := test.next(r)
			if got := rs.Deny(next, test.why); got != test.want {
				t.Errorf("the row has length %d, want %d", got, test.want)
			}
			runtime.KeepAlive(r)
			runtime.KeepAlive(next)
		})
	}
}

// The calls of Refuse and those of Deny are rows of their own, and a Mark ends neither.
func TestRowsOfOneChain(t *testing.T) {
	var rs Retries
	r := request("/")
	rs.Refuse(r, Denial{})
	rs.Refuse(r, Denial{})
	if n := rs.Deny(r, Denial{Later: true}); n != 1 {
		t.Errorf("the row of Deny has length %d, want 1", n)
	}
	rs.Mark(r, Answered)
	if row := rs.Refused(retry(r)); row.Count != 2 || row.Later {
		t.Errorf("got %+v, want two calls of Refuse", row)
	}
	runtime.KeepAlive(r)
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rs Retries
		r := request("/")
		if row := rs.Refused(r); row.Count != 0 {
			t.Errorf("got %+v for the first request", row)
		}
		for i := range MaxDenials {
			if row := rs.Refused(r); row.Count != i || row.Exhausted() {
				t.Errorf("got %+v, want %d denials", row, i)
			}
			rs.Refuse(r, Denial{Later: true})
			r = retry(r)
		}
		if row := rs.Refused(r); !row.Exhausted() || !row.Later {
			t.Errorf("got %+v after %d denials", row, MaxDenials)
		}
	})
}

// A denial for a reason that may soon pass is in a row only if it follows the last one quickly.
func TestTimeBetweenDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			why  Denial
			wait time.Duration
			want int
		}{
			"permanent, an hour later": {wait: time.Hour, want: 2},
			"temporary, 5 s later":     {why: Denial{Temporary: true}, wait: 5 * time.Second, want: 2},
			"temporary, 6 s later":     {why: Denial{Temporary: true}, wait: 6 * time.Second, want: 1},
		} {
			var rs Retries
			r := request("/")
			rs.Deny(r, test.why)
			time.Sleep(test.wait)
			if got := rs.Deny(retry(r), test.why); got != test.want {
				t.Errorf("%s: the row has length %d, want %d", name, got, test.want)
			}
			runtime.KeepAlive(r)
		}
	})
}

// A row goes on if its last request is collected as garbage before the first hook of the retry, as
// it may happen with an asynchronous collector, however long the retry then takes. Without a retry
// it ends.
func TestRowsOutliveTheirLastRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rs Retries
		r := request("/")
		for range 2 * MaxDenials {
			rs.Refuse(r, Denial{})
			r = retry(r)
			runtime.GC()
			rs.Refused(r)
			time.Sleep(time.Minute)
		}
		if row := rs.Refused(r); row.Count != 2*MaxDenials {
			t.Errorf("the row has length %d, want %d", row.Count, 2*MaxDenials)
		}
		rs.Refuse(r, Denial{})
		r = retry(r)
		runtime.GC()
		time.Sleep(handover + 1)
		if row := rs.Refused(r); row.Count != 0 {
			t.Errorf("got %+v, want no row", row)
		}
		rs.Refuse(r, Denial{})
		if row := rs.Refused(r); row.Count != 1 {
			t.Errorf("got %+v, want a new row", row)
		}
	})
}

func TestMarks(t *testing.T) {
	var rs Retries
	r := request("/1")
	if rs.IsMarked(retry(r), Answered) {
		t.Error("a request without a mark has a marked retry")
	}
	rs.Mark(r, Answered)
	if !rs.IsMarked(retry(r), Answered) {
		t.Error("a retry is not recognized")
	}
	if rs.IsMarked(retry(r), Recorded) {
		t.Error("a retry has another mark")
	}
	rs.Mark(r, Recorded)
	if !rs.IsMarked(retry(r), Answered) || !rs.IsMarked(retry(r), Recorded) {
		t.Error("a retry does not have both marks")
	}
	child := request("/2")
	child.Ctx = r.Ctx
	other := retry(r)
	other.URL.Path = "/3"
	for name, r := range map[string]*colly.Request{"another request": request("/1"), "a link of the page": child, "another URL": other} {
		if rs.IsMarked(r, Answered) {
			t.Errorf("%s is taken for a retry", name)
		}
	}
	runtime.KeepAlive(r)
}

// A mark outlives its request for longer than a row, because a retry may be late.
func TestMarkOfALateRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rs Retries
		r := request("/")
		rs.Mark(r, Recorded)
		r = retry(r)
		runtime.GC()
		time.Sleep(time.Minute)
		rs.Refuse(r, Denial{})
		if !rs.IsMarked(r, Recorded) {
			t.Error("the retry has lost the mark")
		}
	})
}

// Requests that the program has dropped are forgotten.
func TestRetriesAreBounded(t *testing.T) {
	for name, add := range map[string]func(rs *Retries, r *colly.Request){
		"denials": func(rs *Retries, r *colly.Request) { rs.Deny(r, Denial{}) },
		"marks":   func(rs *Retries, r *colly.Request) { rs.Mark(r, Answered) },
	} {
		var rs Retries
		for i := range 50_000 {
			add(&rs, request("/"))
			if i%1000 == 0 {
				runtime.GC()
			}
		}
		if n := len(rs.chains); n > 5000 {
			t.Errorf("%d requests with %s are remembered", n, name)
		}
	}
}

func TestHookReturnsTheDenialOnce(t *testing.T) {
	rs := NewRequests[page]()
	r := request("/")
	if err := rs.Hook(r); err != nil {
		t.Errorf("got %v before Deny", err)
	}
	denied := errors.New("denied")
	rs.Deny(r, denied)
	if err := rs.Hook(retry(r)); err != nil {
		t.Errorf("got %v for another request", err)
	}
	if err := rs.Hook(r); err != denied {
		t.Errorf("got %v, want the error of Deny", err)
	}
	if err := rs.Hook(r); err != nil {
		t.Errorf("got %v the second time", err)
	}
	rs.Deny(r, denied)
	rs.Deny(r, nil)
	if err := rs.Hook(r); err != nil {
		t.Errorf("got %v for a request that is allowed after all", err)
	}
}

// Close leaves the denials of requests that are under way.
func TestHookAfterClose(t *testing.T) {
	rs := NewRequests[page]()
	r := request("/")
	denied := errors.New("denied")
	rs.Deny(r, denied)
	rs.Close()
	if err := rs.Hook(r); err != denied {
		t.Errorf("got %v, want the error of Deny", err)
	}
}

// Requests that Colly forgets without a hook are not remembered.
func TestRequestsThatAreGone(t *testing.T) {
	rs := NewRequests[page]()
	for range 100 {
		rs.Deny(request("/"), errors.New("denied"))
		r := request("/")
		rs.Set(r, new(page))
		rs.Weaken(r)
	}
	for range 10_000 {
		runtime.GC()
		if rs.count.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d requests are still remembered", rs.count.Load())
}

func TestExpect(t *testing.T) {
	type test struct {
		*Requests[page]
		r                      *colly.Request
		held, missed, released int
	}
	expect := func(t *test) {
		hold := func() func() { t.held++; return func() { t.released++ } }
		t.Expect(t.r, hold, func() { t.missed++ })
	}
	for name, want := range map[string]struct {
		run                    func(t *test)
		held, missed, released int
	}{
		"no hook comes": {
			run:  func(t *test) { t.Watch(t.r); expect(t); time.Sleep(hookLimit) },
			held: 1, missed: 1, released: 1,
		},
		"no hook comes for a page": {
			run:  func(t *test) { t.Set(t.r, new(page)); t.Watch(t.r); expect(t); time.Sleep(hookLimit) },
			held: 1, missed: 1, released: 1,
		},
		"the hook comes in time": {
			run: func(t *test) {
				t.Watch(t.r)
				expect(t)
				time.Sleep(hookLimit - 1)
				t.Hook(t.r)
				time.Sleep(hookLimit)
			},
			held: 1, released: 1,
		},
		"the hook comes before the end of the exchange": {
			run: func(t *test) { t.Watch(t.r); t.Hook(t.r); expect(t); time.Sleep(hookLimit) },
		},
		"the request is not watched": {
			run: func(t *test) { t.Set(t.r, new(page)); expect(t); time.Sleep(hookLimit) },
		},
		"Close": {
			run:  func(t *test) { t.Watch(t.r); expect(t); t.Close(); time.Sleep(hookLimit) },
			held: 1, released: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := &test{Requests: NewRequests[page](), r: request("/")}
				want.run(got)
				synctest.Wait()
				if got.held != want.held || got.missed != want.missed || got.released != want.released {
					t.Errorf("held %d times, missed %d, released %d; want %d, %d, %d",
						got.held, got.missed, got.released, want.held, want.missed, want.released)
				}
				runtime.KeepAlive(got.r)
			})
		})
	}
}

// A page stays until Unset, and the record of the next hook does not depend on it.
func TestPages(t *testing.T) {
	rs := NewRequests[page]()
	r := request("/")
	if rs.Get(r) != nil {
		t.Error("there is a page before Set")
	}
	p := &page{url: "/"}
	denied := errors.New("denied")
	rs.Set(r, p)
	rs.Deny(r, denied)
	if rs.Get(r) != p || rs.Get(retry(r)) != nil {
		t.Errorf("got %v and %v for another request, want only the page", rs.Get(r), rs.Get(retry(r)))
	}
	if err := rs.Hook(r); err != denied {
		t.Errorf("got %v, want the error of Deny", err)
	}
	if rs.Get(r) != p {
		t.Error("the hook has ended the page")
	}
	rs.Deny(r, denied)
	rs.Unset(r)
	if rs.Get(r) != nil {
		t.Error("there is a page after Unset")
	}
	if err := rs.Hook(r); err != denied {
		t.Errorf("got %v after Unset, want the error of Deny", err)
	}
	if n := rs.count.Load(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}
