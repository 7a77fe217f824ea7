package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// A versions is a site whose pages have validators. It evaluates conditions as RFC 9110, section
// 13.2.2, says, and records each request with its conditions and the status of the response.
type versions struct {
	mu    sync.Mutex
	pages map[string]http.Header // the headers of the responses
	log   []string
}

// version returns a header: "ETag: x" and so on, separated by "; ".
func version(fields string) http.Header {
	h := http.Header{"Content-Type": {"text/html"}}
	for field := range strings.SplitSeq(fields, "; ") {
		if name, value, ok := strings.Cut(field, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func (v *versions) set(path, fields string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pages[path] = version(fields)
}

// since returns the requests since the last call.
func (v *versions) since() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	log := strings.Join(v.log, ", ")
	v.log = nil
	return log
}

func (v *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.pages[r.URL.Path]
	for name, values := range h {
		w.Header()[name] = values
	}
	etag, modified := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
	line := r.Method + " " + r.URL.RequestURI()
	if etag != "" {
		line += " " + etag
	}
	if modified != "" {
		line += " since " + strings.TrimSuffix(modified, " 2001 00:00:00 GMT")
	}
	status := http.StatusOK
	switch {
	case h.Get("Location") != "":
		status = http.StatusFound
	case h.Get("Status") != "":
		fmt.Sscan(h.Get("Status"), &status)
	case etag != "":
		if strings.TrimPrefix(etag, "W/") == strings.TrimPrefix(h.Get("ETag"), "W/") {
			status = http.StatusNotModified
		}
	case modified != "" && modified == h.Get("Last-Modified"):
		status = http.StatusNotModified
	}
	v.log = append(v.log, fmt.Sprintf("%s = %d", line, status))
	w.WriteHeader(status)
	if status == http.StatusOK {
		fmt.Fprint(w, robotstest.Page("/linked"))
	}
}

// A visitor is a collector that records which of its callbacks are called.
type visitor struct {
	*kit.Crawl
	mu     sync.Mutex
	called []string
}

func (v *visitor) note(what string, u fmt.Stringer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	path := strings.TrimPrefix(u.String(), "http://a.test")
	v.called = append(v.called, what+" "+path)
}

// since returns the calls since the last call of since.
func (v *visitor) since() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	calls := strings.Join(v.called, ", ")
	v.called = nil
	return calls
}

// revalidating returns a collector with the option Revalidate.
func revalidating(t *testing.T, web *robotstest.Web, s store.Store, collector []colly.CollectorOption, opts ...collyrobots.Option) *visitor {
	t.Helper()
	return revalidatingAs(t, web, s, collector, collyrobots.Revalidation{}, opts...)
}

// skippingFresh is like revalidating, with SkipFresh.
func skippingFresh(t *testing.T, web *robotstest.Web, s store.Store, opts ...collyrobots.Option) *visitor {
	t.Helper()
	return revalidatingAs(t, web, s, nil, collyrobots.Revalidation{SkipFresh: true}, opts...)
}

// revalidatingAs returns a collector with callbacks that were registered before and after Attach.
// If r has no OnUnchanged, unchanged pages are noted.
func revalidatingAs(t *testing.T, web *robotstest.Web, s store.Store, collector []colly.CollectorOption, r collyrobots.Revalidation, opts ...collyrobots.Option) *visitor {
	t.Helper()
	v := new(visitor)
	if r.OnUnchanged == nil {
		r.OnUnchanged = func(r *colly.Request) { v.note("unchanged", r.URL) }
	}
	early := func(c *colly.Collector) {
		c.OnResponseHeaders(func(r *colly.Response) { v.note("headers", r.Request.URL) })
		c.OnScraped(func(r *colly.Response) { v.note("early", r.Request.URL) })
	}
	opts = append([]collyrobots.Option{collyrobots.Revalidate(r), collyrobots.Store(s)}, opts...)
	v.Crawl = kit.Start(t, web, append([]colly.CollectorOption{early}, collector...), opts...)
	v.OnResponse(func(r *colly.Response) { v.note("response", r.Request.URL) })
	v.OnError(func(r *colly.Response, err error) { v.note("error "+err.Error(), r.Request.URL) })
	v.OnHTML("html", func(e *colly.HTMLElement) { v.note("html", e.Request.URL) })
	v.OnXML("/*", func(e *colly.XMLElement) { v.note("xml", e.Request.URL) })
	v.OnScraped(func(r *colly.Response) { v.note("late", r.Request.URL) })
	return v
}

const (
	all  = "headers %s, response %[1]s, html %[1]s, xml %[1]s, early %[1]s, late %[1]s"
	may  = "Tue, 01 May 2001 00:00:00 GMT"
	june = "Fri, 01 Jun 2001 00:00:00 GMT"
)

func allCalls(path string) string { return fmt.Sprintf(all, path) }

// TestRevalidate visits a page in two runs with the same Store.
func TestRevalidate(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string // the headers of /
		second        string // the second request, if it is not "GET / = 200"
		unchanged     bool
	}{
		"an ETag":                        {before: `ETag: "1"`, second: `GET / "1" = 304`, unchanged: true},
		"an ETag that becomes weak":      {before: `ETag: "1"`, after: `ETag: W/"1"`, second: `GET / "1" = 304`, unchanged: true},
		"another ETag":                   {before: `ETag: "1"`, after: `ETag: "2"`, second: `GET / "1" = 200`},
		"the ETag has gone":              {before: `ETag: "1"`, after: `X: y`, second: `GET / "1" = 200`},
		"a date":                         {before: "Last-Modified: " + may, second: "GET / since Tue, 01 May = 304", unchanged: true},
		"another date":                   {before: "Last-Modified: " + may, after: "Last-Modified: " + june, second: "GET / since Tue, 01 May = 200"},
		"both":                           {before: `ETag: "1"; Last-Modified: ` + may, second: `GET / "1" since Tue, 01 May = 304`, unchanged: true},
		"both, the ETag has changed":     {before: `ETag: "1"; Last-Modified: ` + may, after: `ETag: "2"; Last-Modified: ` + may, second: `GET / "1" since Tue, 01 May = 200`},
		"no validator":                   {before: "X: y"},
		"no-store":                       {before: `ETag: "1"; Cache-Control: private, no-store`},
		"no-cache":                       {before: `ETag: "1"; Cache-Control: no-cache`, second: `GET / "1" = 304`, unchanged: true},
		"fresh":                          {before: `ETag: "1"; Cache-Control: max-age=3600`, second: `GET / "1" = 304`, unchanged: true},
		"a 404":                          {before: `ETag: "1"; Status: 404`, after: `ETag: "1"`},
		"a 203":                          {before: `ETag: "1"; Status: 203`, after: `ETag: "1"`},
		"two ETags":                      {before: `ETag: "1"; ETag: "2"; Last-Modified: ` + may, second: "GET / since Tue, 01 May = 304", unchanged: true},
		"a redirect":                     {before: "Location: /to", second: `GET / = 302, GET /to "to" = 304`, unchanged: true},
		"a page that becomes a redirect": {before: `ETag: "1"`, after: "Location: /to", second: `GET / "1" = 302, GET /to = 200`},
		"a 304 to a plain request":       {before: "X: y", after: "Status: 304"},
	} {
		t.Run(name, func(t *testing.T) {
			site := &versions{pages: map[string]http.Header{"/": version(test.before), "/to": version(`ETag: "to"`)}}
			web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
			records := store.NewMemory()
			v := revalidating(t, web, records, nil)
			first := v.Visit("http://a.test/")
			site.since()
			if test.after != "" {
				site.set("/", test.after)
			}

			v = revalidating(t, web, records, nil)
			err := v.Visit("http://a.test/")
			if want := strings.ReplaceAll(test.second, "GET / = 200", ""); want != "" {
				if got := site.since(); got != want {
					t.Errorf("requests %s, want %s", got, want)
				}
			} else if got := site.since(); strings.Contains(got, `"`) || strings.Contains(got, "since") {
				t.Errorf("requests %s, want one that is not conditional", got)
			}
			stats := v.Robots.Stats()
			calls := v.since()
			if !test.unchanged {
				if strings.Contains(calls, "unchanged") || stats.Totals.Unchanged != 0 {
					t.Errorf("calls %s, %d pages unchanged", calls, stats.Totals.Unchanged)
				}
				return
			}
			path := "/"
			if strings.Contains(test.second, "/to") {
				path = "/to"
			}
			if first != nil || err != nil || calls != "unchanged "+path {
				t.Errorf("first visit %v, second visit %v, calls %s", first, err, calls)
			}
			if stats.Totals.Unchanged != 1 || stats.Totals.Pages != 0 || stats.Revalidation.Conditional != 1 || (stats.Revalidation.Recorded != 0) != (name == "an ETag that becomes weak") {
				t.Errorf("stats %+v, %+v", stats.Totals, *stats.Revalidation)
			}
		})
	}
}

// TestUnaskedNotModified checks that a 304 is passed on as without the plugin if the plugin has not
// asked for it.
func TestUnaskedNotModified(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`), "/odd": version("Status: 304")}}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
	records := store.NewMemory()
	revalidating(t, web, records, nil).Visit("http://a.test/")
	v := revalidating(t, web, records, nil)
	if err := v.Visit("http://a.test/odd"); err == nil || v.since() != "headers /odd, error Not Modified /odd" {
		t.Errorf("a site that answers 304: %v", err)
	}
	for name, value := range map[string]string{"If-None-Match": `"1"`, "If-Modified-Since": may} {
		v.AllowURLRevisit = true
		site.set("/", `ETag: "1"; Last-Modified: `+may)
		err := v.Request(http.MethodGet, "http://a.test/", nil, nil, http.Header{name: {value}})
		if calls := v.since(); err == nil || calls != "headers /, error Not Modified /" {
			t.Errorf("%s of the program: %v, calls %s", name, err, calls)
		}
	}
	if got, want := site.since(), `GET / = 200, GET /odd = 304`; !strings.HasPrefix(got, want) || strings.Count(got, "304") != 3 {
		t.Errorf("requests %s", got)
	}
	if n := v.Robots.Stats().Totals.Unchanged; n != 0 {
		t.Errorf("%d pages unchanged", n)
	}
}

// TestNotConditional checks requests that are sent as the program has made them, although the page
// is known.
func TestNotConditional(t *testing.T) {
	for name, test := range map[string]struct {
		options []collyrobots.Option
		visit   func(v *visitor) error
		want    string
	}{
		"HEAD": {visit: func(v *visitor) error { return v.Head("http://a.test/") }, want: "HEAD / = 200"},
		"POST": {visit: func(v *visitor) error { return v.Post("http://a.test/", nil) }, want: "POST / = 200"},
		"a range": {
			visit: func(v *visitor) error {
				return v.Request(http.MethodGet, "http://a.test/", nil, nil, http.Header{"Range": {"bytes=0-1"}})
			},
			want: "GET / = 200",
		},
		"no-cache": {
			visit: func(v *visitor) error {
				v.OnRequest(func(r *colly.Request) { r.Headers.Set("Cache-Control", "no-cache") })
				return v.Visit("http://a.test/")
			},
			want: "GET / = 200",
		},
		"CacheDir": {
			visit: func(v *visitor) error {
				v.CacheDir = t.TempDir()
				v.AllowURLRevisit = true
				return errors.Join(v.visit(), v.visit())
			},
			want: "GET / = 200",
		},
		"a dry run":                   {options: []collyrobots.Option{collyrobots.DryRun(true)}, visit: (*visitor).visit, want: "GET / = 200"},
		"another host has the option": {options: []collyrobots.Option{collyrobots.ForHosts("a.test"), collyrobots.ForHosts("b.test", collyrobots.Revalidate(collyrobots.Revalidation{}))}, visit: (*visitor).visit, want: `GET / "1" = 304`},
		"a client": {
			visit: func(v *visitor) error {
				client := &http.Client{Transport: v.Robots.Transport(v.Transport)}
				resp, err := client.Get("http://a.test/")
				if err == nil {
					resp.Body.Close()
				}
				return err
			},
			want: "GET / = 200",
		},
		"a clone that is not attached": {
			visit: func(v *visitor) error { return v.Collector.Collector.Clone().Visit("http://a.test/") },
			want:  "GET / = 200",
		},
		"a clone that is attached": { // it has other callbacks, and has not seen the page
			visit: func(v *visitor) error { return v.Clone().Visit("http://a.test/") },
			want:  "GET / = 200",
		},
		"another query": {
			visit: func(v *visitor) error { return v.Visit("http://a.test/?x") },
			want:  "GET /?x = 200",
		},
		"a fragment": {
			visit: func(v *visitor) error { return v.Visit("http://a.test/#x") },
			want:  `GET / "1" = 304`,
		},
		"CheckHead": {
			visit: func(v *visitor) error {
				v.CheckHead = true
				return v.Visit("http://a.test/")
			},
			want: `HEAD / = 200, GET / "1" = 304`,
		},
		"ParseHTTPErrorResponse": {
			visit: func(v *visitor) error {
				v.ParseHTTPErrorResponse = true
				return v.Visit("http://a.test/")
			},
			want: `GET / "1" = 304`,
		},
		"a rewritten URL": {
			visit: func(v *visitor) error {
				v.OnRequest(func(r *colly.Request) { r.URL.Path = "/" })
				return v.Visit("http://a.test/other")
			},
			want: `GET / "1" = 304`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
			web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
			records := store.NewMemory()
			kit.Must(t, revalidating(t, web, records, nil).Visit("http://a.test/"))
			site.since()
			v := revalidating(t, web, records, nil, test.options...)
			v.Impolite = true
			kit.Must(t, test.visit(v))
			if got := site.since(); got != test.want {
				t.Errorf("requests %s, want %s", got, test.want)
			}
		})
	}
}

func (v *visitor) visit() error { return v.Visit("http://a.test/") }

// TestRetryIsNotConditional checks that Retry requests a page in full that is done, wherever the
// program calls it, and that the retry of a page that is not done may be conditional.
func TestRetryIsNotConditional(t *testing.T) {
	for _, async := range []bool{false, true} {
		for name, test := range map[string]struct {
			prepare func(v *visitor, after *func())
			want    string
		}{
			"OnUnchanged": {want: `GET / "1" = 304, GET / = 200`},
			"later": {
				prepare: func(v *visitor, after *func()) {
					v.OnRequest(func(r *colly.Request) {
						if *after == nil {
							*after = func() { r.Retry() }
						}
					})
				},
				want: `GET / "1" = 304, GET / = 200`,
			},
			"after a 200": {
				prepare: func(v *visitor, after *func()) {
					v.OnRequest(func(r *colly.Request) {
						if *after == nil {
							r.Headers.Set("Cache-Control", "no-cache")
							*after = func() { r.Headers.Del("Cache-Control"); r.Retry() }
						}
					})
				},
				want: `GET / = 200, GET / = 200`,
			},
		} {
			t.Run(fmt.Sprint(name, " async ", async), func(t *testing.T) {
				site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
				web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
				records := store.NewMemory()
				kit.Must(t, revalidating(t, web, records, nil).Visit("http://a.test/"))
				site.since()
				var revalidation collyrobots.Revalidation
				if test.prepare == nil {
					revalidation.OnUnchanged = func(r *colly.Request) { r.Retry() }
				}
				v := revalidatingAs(t, web, records, nil, revalidation)
				v.Async = async
				var after func()
				if test.prepare != nil {
					test.prepare(v, &after)
				}
				kit.Must(t, v.visit())
				v.Wait()
				if after != nil {
					after()
					v.Wait()
				}
				if got := site.since(); got != test.want {
					t.Errorf("requests %s, want %s", got, test.want)
				}
			})
		}
	}
}

// TestRevisitInOneRun checks that a monitor gets each version of a page once.
func TestRevisitInOneRun(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
	v := revalidating(t, web, store.NewMemory(), nil)
	v.AllowURLRevisit = true
	for i, want := range []string{
		allCalls("/"), "unchanged /", "unchanged /", allCalls("/"), "unchanged /", // version 2
		allCalls("/"),                // no validators
		allCalls("/"), "unchanged /", // version 2 again: the last visit has seen another page
	} {
		switch i {
		case 3:
			site.set("/", `ETag: "2"`)
		case 5:
			site.set("/", "")
		case 6:
			site.set("/", `ETag: "2"`)
		}
		kit.Must(t, v.visit())
		if got := v.since(); got != want {
			t.Errorf("visit %d: %s, want %s", i, got, want)
		}
	}
}

// TestVary checks that a date is sent only if the request selects the same representation, and an
// ETag in any case.
func TestVary(t *testing.T) {
	for name, test := range map[string]struct {
		header string // of the response
		url    string // of the second request, if it has credentials
		sent   http.Header
		want   string
	}{
		"the same header":        {header: "Vary: X-Lang; Last-Modified: " + may, sent: http.Header{"X-Lang": {"en"}}, want: "GET / since Tue, 01 May = 304"},
		"another header":         {header: "Vary: X-Lang; Last-Modified: " + may, sent: http.Header{"X-Lang": {"de"}}, want: "GET / = 200"},
		"another header, ETag":   {header: `Vary: x-other, X-LANG; ETag: "1"; Last-Modified: ` + may, sent: http.Header{"X-Lang": {"de"}}, want: `GET / "1" = 304`},
		"a header not in Vary":   {header: "Vary: Accept-Encoding; Last-Modified: " + may, sent: http.Header{"X-Lang": {"de"}}, want: "GET / since Tue, 01 May = 304"},
		"everything":             {header: "Vary: *; Last-Modified: " + may, sent: http.Header{"X-Lang": {"en"}}, want: "GET / = 200"},
		"other credentials":      {header: "Last-Modified: " + may, sent: http.Header{"Authorization": {"Basic eDp5"}}, want: "GET / = 200"},
		"credentials in the URL": {header: "Last-Modified: " + may, url: "http://x:y@a.test/", want: "GET / = 200"},
	} {
		t.Run(name, func(t *testing.T) {
			site := &versions{pages: map[string]http.Header{"/": version(test.header)}}
			web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
			records := store.NewMemory()
			v := revalidating(t, web, records, nil)
			kit.Must(t, v.Request(http.MethodGet, "http://a.test/", nil, nil, http.Header{"X-Lang": {"en"}}))
			site.since()
			if test.url == "" {
				test.url = "http://a.test/"
			}
			kit.Must(t, revalidating(t, web, records, nil).Request(http.MethodGet, test.url, nil, nil, test.sent))
			if got := site.since(); got != test.want {
				t.Errorf("requests %s, want %s", got, test.want)
			}
		})
	}
}

// TestVaryCookie checks that the cookies of the jar count as headers of the request, on the wire
// and in the record.
func TestVaryCookie(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version("Vary: Cookie; Last-Modified: " + may)}}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
	records := store.NewMemory()
	for i, want := range []string{"GET / = 200", "GET / since Tue, 01 May = 304", "GET / = 200"} {
		v := revalidating(t, web, records, nil)
		jar, err := cookiejar.New(nil)
		kit.Must(t, err)
		v.SetCookieJar(jar)
		kit.Must(t, v.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: []string{"1", "1", "2"}[i]}}))
		kit.Must(t, v.visit())
		if got := site.since(); got != want {
			t.Errorf("run %d: %s, want %s", i, got, want)
		}
	}
}

// TestSkipFresh checks when a page is not requested because of its freshness, with and without a
// validator.
func TestSkipFresh(t *testing.T) {
	for name, test := range map[string]struct {
		header string // Date and Expires are relative to the bubble's start
		age    time.Duration
		sent   http.Header
		want   string // "" if the page is not requested
	}{
		"max-age":                    {header: "Cache-Control: public, max-age=3600", age: 59 * time.Minute},
		"max-age in quotes":          {header: `Cache-Control: Max-Age="3600"`, age: 59 * time.Minute},
		"max-age has passed":         {header: "Cache-Control: max-age=3600", age: time.Hour, want: `GET / "1" = 304`},
		"Age":                        {header: "Cache-Control: max-age=3600; Age: 3000", age: 11 * time.Minute, want: `GET / "1" = 304`},
		"Age is small":               {header: "Cache-Control: max-age=3600; Age: 3000", age: 9 * time.Minute},
		"Age is garbage":             {header: "Cache-Control: max-age=3600; Age: -1", age: 59 * time.Minute},
		"Expires":                    {header: "Expires: Sat, 01 Jan 2000 01:00:00 GMT", age: 59 * time.Minute},
		"Expires has passed":         {header: "Expires: Sat, 01 Jan 2000 01:00:00 GMT", age: time.Hour, want: `GET / "1" = 304`},
		"Expires is garbage":         {header: "Expires: 0", want: `GET / "1" = 304`},
		"max-age comes first":        {header: "Cache-Control: max-age=60; Expires: Sat, 01 Jan 2000 01:00:00 GMT", age: 2 * time.Minute, want: `GET / "1" = 304`},
		"s-maxage":                   {header: "Cache-Control: s-maxage=3600", want: `GET / "1" = 304`},
		"s-maxage and max-age":       {header: "Cache-Control: s-maxage=0, max-age=60"},
		"two max-ages":               {header: "Cache-Control: max-age=60, max-age=3600", want: `GET / "1" = 304`},
		"max-age is garbage":         {header: "Cache-Control: max-age=1h", want: `GET / "1" = 304`},
		"max-age is huge":            {header: "Cache-Control: max-age=99999999999999999999", age: 89 * 24 * time.Hour},
		"no-cache":                   {header: "Cache-Control: no-cache, max-age=3600", want: `GET / "1" = 304`},
		"no-store":                   {header: "Cache-Control: no-store, max-age=3600", want: `GET / = 200`},
		"nothing":                    {header: "X: y", want: `GET / "1" = 304`},
		"an old Date":                {header: "Cache-Control: max-age=3600; Date: Fri, 31 Dec 1999 23:10:00 GMT", age: 11 * time.Minute, want: `GET / "1" = 304`},
		"a Date that is garbage":     {header: "Cache-Control: max-age=3600; Date: now", want: `GET / "1" = 304`},
		"Vary":                       {header: "Cache-Control: max-age=3600; Vary: X-Lang", sent: http.Header{"X-Lang": {"de"}}, want: `GET / "1" = 304`},
		"Vary, the same header":      {header: "Cache-Control: max-age=3600; Vary: X-Lang", sent: http.Header{"X-Lang": {"en"}}},
		"Vary: Cookie":               {header: "Cache-Control: max-age=3600; Vary: Cookie", sent: http.Header{"X-Lang": {"en"}}, want: `GET / "1" = 304`},
		"no-cache in the request":    {header: "Cache-Control: max-age=3600", sent: http.Header{"Cache-Control": {"no-cache"}}, want: `GET / = 200`},
		"a condition of the program": {header: "Cache-Control: max-age=3600", sent: http.Header{"If-Match": {`"1"`}}, want: `GET / = 200`},
	} {
		for _, validator := range []string{`ETag: "1"; `, ""} {
			t.Run(name+"/"+validator, func(t *testing.T) {
				want := test.want
				if validator == "" {
					want = strings.Replace(want, `"1" = 304`, "= 200", 1)
				}
				site := &versions{pages: map[string]http.Header{"/": version(validator + test.header)}}
				if !strings.Contains(test.header, "Date:") {
					site.pages["/"].Set("Date", "Sat, 01 Jan 2000 00:00:00 GMT")
				}
				kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}}, func(t *testing.T, web *robotstest.Web) {
					records := store.NewMemory()
					v := skippingFresh(t, web, records)
					kit.Must(t, v.Request(http.MethodGet, "http://a.test/", nil, nil, http.Header{"X-Lang": {"en"}}))
					site.since()
					time.Sleep(test.age)
					h := kit.Hear(report.EventUnchanged)
					v = skippingFresh(t, web, records, h.On())
					err := v.Request(http.MethodGet, "http://a.test/", nil, nil, test.sent)
					synctest.Wait()
					got := site.since()
					if got != want || err != nil {
						t.Errorf("requests %q, want %q; error %v", got, want, err)
					}
					calls := v.since()
					stats := v.Robots.Stats()
					v.Robots.Close()
					if want != "" {
						if stats.Revalidation.Fresh != 0 {
							t.Errorf("stats %+v", stats.Revalidation)
						}
						return
					}
					if e := h.Wait(); len(e) != 1 || e[0].URL != "http://a.test/" || e[0].Host != "a.test" || e[0].Status != 0 || e[0].Request == 0 {
						t.Errorf("events %+v", e)
					}
					if calls != "unchanged /" || stats.Revalidation.Fresh != 1 || stats.Totals.Unchanged != 1 || stats.Totals.Waiting != 0 {
						t.Errorf("calls %s, stats %+v", calls, stats.Revalidation)
					}
				})
			})
		}
	}
}

// TestConfirmedFreshness checks that a 304 makes a page fresh again, also one that repeats no
// header except the date.
func TestConfirmedFreshness(t *testing.T) {
	asked := 0
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/": func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, "page")
	}}}, func(t *testing.T, web *robotstest.Web) {
		v := skippingFresh(t, web, store.NewMemory())
		v.AllowURLRevisit = true
		for range 7 { // at 0, 30, 60, ... minutes
			kit.Must(t, v.visit())
			time.Sleep(30 * time.Minute)
		}
		if asked != 4 {
			t.Errorf("%d requests, want one in an hour", asked)
		}
	})
}

// TestOnUnchangedMayVisit checks that OnUnchanged may visit pages, also with parallel requests, and
// that callbacks which are registered late do not get unchanged pages either.
func TestOnUnchangedMayVisit(t *testing.T) {
	site := &versions{pages: map[string]http.Header{}}
	for i := range 20 {
		site.set(fmt.Sprint("/", i), fmt.Sprintf(`ETag: "%d"`, i))
	}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}})
	records := store.NewMemory()
	for run, want := range []string{"0 unchanged, 20 scraped, 0 from OnUnchanged", "20 unchanged, 0 scraped, 20 from OnUnchanged"} {
		v := revalidatingAs(t, web, records, kit.Async, collyrobots.Revalidation{
			OnUnchanged: func(r *colly.Request) { r.Visit(r.URL.Path + "/from") },
		})
		kit.Limited(t, v.Crawl, &colly.LimitRule{DomainGlob: "*", Parallelism: 4})
		v.Visit("http://a.test/robots.txt?first")
		v.Wait()
		site.since()
		var scraped atomic.Int32
		v.OnScraped(func(r *colly.Response) {
			if !strings.HasSuffix(r.Request.URL.Path, "/from") {
				scraped.Add(1)
			}
		})
		for i := range 20 {
			v.Visit(fmt.Sprint("http://a.test/", i))
		}
		v.Wait()
		log := site.since()
		got := fmt.Sprintf("%d unchanged, %d scraped, %d from OnUnchanged", strings.Count(log, "304"), scraped.Load(), strings.Count(log, "from"))
		if got != want {
			t.Errorf("run %d: %s, want %s", run, got, want)
		}
	}
}

// TestRevalidateWhenThrottled checks that a page is still conditional when it is sent again after a
// 429.
func TestRevalidateWhenThrottled(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
	busy := true
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy = !busy; !busy {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		site.ServeHTTP(w, r)
	})}}, func(t *testing.T, web *robotstest.Web) {
		records := store.NewMemory()
		for _, want := range []string{"GET / = 200", `GET / "1" = 304`} {
			v := revalidating(t, web, records, nil, collyrobots.RetryThrottled(1))
			kit.Must(t, v.visit())
			if got := site.since(); got != want {
				t.Errorf("requests %s, want %s", got, want)
			}
		}
	})
}

// A brokenStore fails, or does not return before its context ends, when it is asked for a page.
type brokenStore struct {
	store.Store
	hangs  bool
	broken bool
	asked  int
}

func (s *brokenStore) fail(ctx context.Context, key string) error {
	if !s.broken || !strings.HasPrefix(key, "page:") {
		return nil
	}
	s.asked++
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no such disk")
}

func (s *brokenStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := s.fail(ctx, key); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, key)
}

func (s *brokenStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	if err := s.fail(ctx, key); err != nil {
		return err
	}
	return s.Store.Update(ctx, key, ttl, f)
}

// TestRevalidateStoreFails checks that pages are requested in full while the Store fails, that only
// one page in a minute waits for it, and that it is used again afterwards.
func TestRevalidateStoreFails(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("hangs ", hangs), func(t *testing.T) {
			site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": site}}, func(t *testing.T, web *robotstest.Web) {
				s := &brokenStore{Store: store.NewMemory(), hangs: hangs}
				kit.Must(t, revalidating(t, web, s, nil).visit())
				site.since()
				s.broken = true
				v := revalidating(t, web, s, nil)
				v.AllowURLRevisit = true
				began := time.Now()
				for range 5 {
					kit.Must(t, v.visit())
				}
				limit := time.Duration(0)
				if hangs {
					limit = time.Second
				}
				if took := time.Since(began); took != limit || s.asked != 1 {
					t.Errorf("five pages took %v, %d calls of the store", took, s.asked)
				}
				time.Sleep(time.Minute)
				s.broken = false
				kit.Must(t, v.visit())
				if got, want := site.since(), strings.Repeat("GET / = 200, ", 5)+`GET / "1" = 304`; got != want {
					t.Errorf("requests %s", got)
				}
				if n := v.Robots.Stats().Revalidation.Failed; n != 1 || !strings.Contains(v.Logged.String(), "the Store has failed") {
					t.Errorf("%d failures, log %s", n, v.Logged)
				}
			})
		})
	}
}

// TestRevalidateNeedsStore checks the faults of the options.
func TestRevalidateNeedsStore(t *testing.T) {
	for _, o := range []collyrobots.Option{
		collyrobots.Revalidate(collyrobots.Revalidation{}),
		collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true}),
		collyrobots.ForHosts("*", collyrobots.Revalidate(collyrobots.Revalidation{})),
	} {
		_, err := collyrobots.New(o)
		var fault *collyrobots.OptionError
		if !errors.As(err, &fault) {
			t.Errorf("got %v, want an OptionError", err)
		}
	}
}

// A watchfulBody asks for the deadline of its request when it is closed.
type watchfulBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b watchfulBody) Close() error {
	b.ctx.Deadline()
	return b.ReadCloser.Close()
}

// TestBodyOfUnchangedPage checks that the body of a response with status 304 may use the context of
// its request when the plugin closes it.
func TestBodyOfUnchangedPage(t *testing.T) {
	site := &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/": site}})
	kept := store.NewMemory()
	for _, want := range []string{`GET / = 200`, `GET / "1" = 304`} {
		c := colly.NewCollector()
		c.WithTransport(kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := web.Transport().RoundTrip(req)
			if err == nil {
				resp.Body = watchfulBody{ReadCloser: resp.Body, ctx: req.Context()}
			}
			return resp, err
		}))
		robots, err := collyrobots.WithRobots(c, collyrobots.Store(kept), collyrobots.Revalidate(collyrobots.Revalidation{}))
		if err != nil {
			t.Fatal(err)
		}
		visited := make(chan error, 1)
		go func() { visited <- c.Visit("http://a.test/") }()
		select {
		case err = <-visited:
		case <-time.After(10 * time.Second):
			t.Fatal("Visit did not return")
		}
		if got := site.since(); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		robots.Close()
	}
}

// TestRevalidationOfHosts checks that the Revalidation inside ForHosts replaces the one before, with
// its function.
func TestRevalidationOfHosts(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "*": &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}},
		"b.test": {"/robots.txt": kit.NoDenys, "*": &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}},
		"c.test": {"/robots.txt": kit.NoDenys, "*": &versions{pages: map[string]http.Header{"/": version(`ETag: "1"`)}}},
	})
	var called []string
	note := func(which string) collyrobots.Revalidation {
		return collyrobots.Revalidation{OnUnchanged: func(r *colly.Request) { called = append(called, which+" "+r.URL.Host) }}
	}
	records := store.NewMemory()
	for range 2 {
		c := kit.Start(t, web, nil, collyrobots.Store(records), collyrobots.Revalidate(note("all")),
			collyrobots.ForHosts("b.test", collyrobots.Revalidate(note("b"))),
			collyrobots.ForHosts("c.test", collyrobots.Revalidate(collyrobots.Revalidation{})))
		for _, host := range []string{"a.test", "b.test", "c.test"} {
			kit.Must(t, c.Visit("http://"+host+"/"))
		}
	}
	if got, want := strings.Join(called, ", "), "all a.test, b b.test"; got != want {
		t.Errorf("called for %s, want %s", got, want)
	}
}
