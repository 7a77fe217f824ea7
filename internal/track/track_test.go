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
			var d Denials
			r := request("/")
			for range 3 {
				d.Add(r, rule)
				r = retry(r)
			}
			next := test.next(r)
			if got := d.Add(next, test.why); got != test.want {
				t.Errorf("the row has length %d, want %d", got, test.want)
			}
			runtime.KeepAlive(r)
			runtime.KeepAlive(next)
		})
	}
}

func TestRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Denials
		r := request("/")
		if row := d.Retried(r); row.Count != 0 {
			t.Errorf("got %+v for the first request", row)
		}
		for i := range MaxDenials {
			if row := d.Retried(r); row.Count != i || row.Exhausted() {
				t.Errorf("got %+v, want %d denials", row, i)
			}
			d.Add(r, Denial{Later: true})
			r = retry(r)
		}
		if row := d.Retried(r); !row.Exhausted() || !row.Later {
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
			var d Denials
			r := request("/")
			d.Add(r, test.why)
			time.Sleep(test.wait)
			if got := d.Add(retry(r), test.why); got != test.want {
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
		var d Denials
		r := request("/")
		for range 2 * MaxDenials {
			d.Add(r, Denial{})
			r = retry(r)
			runtime.GC()
			d.Retried(r)
			time.Sleep(time.Minute)
		}
		if row := d.Retried(r); row.Count != 2*MaxDenials {
			t.Errorf("the row has length %d, want %d", row.Count, 2*MaxDenials)
		}
		d.Add(r, Denial{})
		r = retry(r)
		runtime.GC()
		time.Sleep(handover + 1)
		if row := d.Retried(r); row.Count != 0 {
			t.Errorf("got %+v, want no row", row)
		}
	})
}

// Rows of requests that are gone are dropped.
func TestDenialsAreBounded(t *testing.T) {
	var d Denials
	for i := range 100_000 {
		d.Add(request("/"), Denial{})
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	if n := len(d.rows); n > 5000 {
		t.Errorf("%d rows are kept", n)
	}
}

func TestHookReturnsTheDenialOnce(t *testing.T) {
	rs := NewRequests(nil, nil)
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
	rs := NewRequests(nil, nil)
	r := request("/")
	denied := errors.New("denied")
	rs.Deny(r, denied)
	rs.Close()
	if err := rs.Hook(r); err != denied {
		t.Errorf("got %v, want the error of Deny", err)
	}
}

// A request that Colly forgets without a hook is not remembered.
func TestRequestsThatAreGone(t *testing.T) {
	rs := NewRequests(nil, nil)
	for range 100 {
		rs.Deny(request("/"), errors.New("denied"))
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
	for name, test := range map[string]struct {
		run                    func(rs *Requests, r *colly.Request)
		held, missed, released int
	}{
		"no hook comes": {
			run:  func(rs *Requests, r *colly.Request) { rs.Watch(r); rs.Expect(r); time.Sleep(hookLimit) },
			held: 1, missed: 1, released: 1,
		},
		"the hook comes in time": {
			run: func(rs *Requests, r *colly.Request) {
				rs.Watch(r)
				rs.Expect(r)
				time.Sleep(hookLimit - 1)
				rs.Hook(r)
				time.Sleep(hookLimit)
			},
			held: 1, released: 1,
		},
		"the hook comes before the end of the exchange": {
			run: func(rs *Requests, r *colly.Request) { rs.Watch(r); rs.Hook(r); rs.Expect(r); time.Sleep(hookLimit) },
		},
		"the request is not watched": {
			run: func(rs *Requests, r *colly.Request) { rs.Expect(r); time.Sleep(hookLimit) },
		},
		"Close": {
			run:  func(rs *Requests, r *colly.Request) { rs.Watch(r); rs.Expect(r); rs.Close(); time.Sleep(hookLimit) },
			held: 1, released: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var held, missed, released int
				hold := func() func() { held++; return func() { released++ } }
				rs := NewRequests(hold, func() { missed++ })
				r := request("/")
				test.run(rs, r)
				synctest.Wait()
				if held != test.held || missed != test.missed || released != test.released {
					t.Errorf("held %d times, missed %d, released %d; want %d, %d, %d",
						held, missed, released, test.held, test.missed, test.released)
				}
				runtime.KeepAlive(r)
			})
		})
	}
}
