package backend_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// This file lists everything that the plugin expects of Colly and that Colly does not promise: the
// unexported fields of a collector, and behavior. If a version of Colly differs, a test fails with
// one sentence. docs/reference/colly.md has the versions that were tested.

// collyFields are the unexported fields that the plugin reads or writes, and what it needs them for.
var collyFields = []struct{ of, name, typeName, use string }{
	{"Collector", "backend", "*colly.httpBackend", "it contains the client"},
	{"httpBackend", "Client", "*http.Client", "Install puts a Seam into it"},
	{"Collector", "store", "storage.Storage", "Frontier and EnforceNofollow wrap it"},
	{"Collector", "debugger", "debug.Debugger", "it gets the events of the plugin"},
	{"Collector", "requestCallbacks", "[]colly.RequestCallback", "Frontier has the first one, and AfterOnRequest wraps the last one"},
	{"Collector", "responseCallbacks", "[]colly.ResponseCallback", "EnforceNofollow has the first one, and Revalidate wraps all"},
	{"Collector", "responseHeadersCallbacks", "[]colly.ResponseHeadersCallback", "Revalidate wraps all"},
	{"Collector", "errorCallbacks", "[]colly.ErrorCallback", "the plugin has the first one, and Fail calls all"},
	{"Collector", "scrapedCallbacks", "[]colly.ScrapedCallback", "Revalidate and Frontier have the last one"},
	{"Collector", "wg", "*sync.WaitGroup", "Hold makes Wait wait for sitemaps"},
	{"Collector", "lock", "*sync.RWMutex", "it guards the callbacks"},
}

func TestCollyFields(t *testing.T) {
	collector := reflect.TypeFor[colly.Collector]()
	for _, f := range collyFields {
		in := collector
		if f.of == "httpBackend" {
			field, ok := collector.FieldByName("backend")
			if !ok || field.Type.Kind() != reflect.Pointer || field.Type.Elem().Kind() != reflect.Struct {
				continue // the row of the field backend has failed
			}
			in = field.Type.Elem()
		}
		got := "is missing"
		if field, ok := in.FieldByName(f.name); ok {
			got = "has the type " + field.Type.String()
		}
		if got != "has the type "+f.typeName {
			t.Errorf("Colly has changed: the field %s of %s %s, but the plugin expects %s: %s", f.name, f.of, got, f.typeName, f.use)
		}
	}
}

// collyBehavior is what the plugin expects Colly to do. use names the part that expects it.
var collyBehavior = []struct {
	says, use string
	holds     func(r *run) bool
}{
	{"a URL is marked as visited before OnRequest, and the callbacks have their order", "internal/arrivals and hooks.go", func(r *run) bool {
		r.Visit("http://a.test/1")
		return r.calls() == "asked, visited, request, headers, sent, response headers, response, html, scraped"
	}},
	{"OnRequest is called without a slot of a LimitRule, and OnRequestHeaders with one", "hooks.go", func(r *run) bool {
		r.Async = true
		r.Limit(&colly.LimitRule{DomainGlob: "*"})
		r.pause = time.Second
		r.Visit("http://a.test/1")
		r.Visit("http://a.test/2")
		time.Sleep(time.Minute)
		synctest.Wait()
		return slices.Equal(r.at["request"], []time.Duration{0, 0}) && slices.Equal(r.at["headers"], []time.Duration{0, time.Second})
	}},
	{"all callbacks of a page get the same *colly.Request", "internal/track", func(r *run) bool {
		r.Visit("http://a.test/1")
		return len(r.requests) == 5 && len(slices.Compact(r.requests)) == 1
	}},
	{"the transport gets the *url.URL of OnRequest", "internal/handoff", func(r *run) bool {
		var of *url.URL
		r.OnRequest(func(req *colly.Request) { of = req.URL })
		r.Visit("http://a.test/1")
		return len(r.sent) == 1 && r.sent[0].URL == of
	}},
	{"a request has the Context of its collector, and Clone copies it", "internal/backend/mark.go", func(r *run) bool {
		type key struct{}
		r.Context = context.WithValue(r.Context, key{}, "mark")
		r.Visit("http://a.test/1")
		r.Clone().Visit("http://a.test/2")
		return len(r.sent) == 2 && r.sent[0].Context().Value(key{}) == "mark" && r.sent[1].Context().Value(key{}) == "mark"
	}},
	{"a clone has the transport of its parent", "internal/backend/install.go", func(r *run) bool {
		r.Clone().Visit("http://a.test/1")
		return len(r.sent) == 1
	}},
	{"an abort in OnRequest causes neither an error nor OnError, and the other OnRequest callbacks are called", "frontierhooks.go", func(r *run) bool {
		r.OnRequest((*colly.Request).Abort)
		later := false
		r.OnRequest(func(*colly.Request) { later = true })
		return r.Visit("http://a.test/1") == nil && later && r.calls() == "asked, visited, request"
	}},
	{"an abort in OnRequestHeaders causes ErrAbortedBeforeRequest in OnError and Visit", "outcome.go", func(r *run) bool {
		r.OnRequestHeaders((*colly.Request).Abort)
		return r.Visit("http://a.test/1") == colly.ErrAbortedBeforeRequest && r.failure == colly.ErrAbortedBeforeRequest
	}},
	{"OnError and Visit get the error of the transport inside a *url.Error", "outcome.go", func(r *run) bool {
		err := r.Visit("http://a.test/fail")
		_, ok := err.(*url.Error)
		return ok && errors.Is(err, errWire) && r.failure == err
	}},
	{"a failed request causes an event of the type error with the members status and url", "internal/backend/early.go", func(r *run) bool {
		r.SetDebugger(collyDebugger{r})
		r.Visit("http://a.test/fail")
		e := r.events[len(r.events)-1]
		_, hasStatus := e.Values["status"]
		return e.Type == "error" && len(e.Values) == 2 && hasStatus && e.Values["url"] == "http://a.test/fail"
	}},
	{"Request.Retry passes the header map and the Ctx on, and Colly does not refuse it as visited", "internal/track/retries.go", func(r *run) bool {
		var of []*colly.Request
		r.OnRequest(func(req *colly.Request) { of = append(of, req) })
		r.Visit("http://a.test/1")
		err := of[0].Retry()
		return err == nil && of[1].Ctx == of[0].Ctx && reflect.ValueOf(*of[1].Headers).Pointer() == reflect.ValueOf(*of[0].Headers).Pointer()
	}},
	{"Request.Visit passes the Ctx on", "internal/nofollow", func(r *run) bool {
		var of []*colly.Context
		r.OnRequest(func(req *colly.Request) { of = append(of, req.Ctx) })
		r.OnHTML("a", func(e *colly.HTMLElement) { e.Request.Visit("/2") })
		r.Visit("http://a.test/1")
		r.Visit("http://a.test/3")
		return len(of) == 3 && of[0] == of[1] && of[0] != of[2]
	}},
	{"HasVisited and Visit ask the storage for one number, and a body is added to it as in FNV-1a", "internal/arrivals/hash.go", func(r *run) bool {
		r.HasVisited("http://a.test/1")
		r.Visit("http://a.test/1")
		r.PostRaw("http://a.test/1", []byte("x"))
		return r.hashes[0] == r.hashes[1] && r.hashes[2] == (r.hashes[0]^'x')*1099511628211
	}},
	{"the target of a redirect is marked as visited before it is requested, and a visited one is refused", "hooks.go and internal/backend/seam.go", func(r *run) bool {
		r.Visit("http://a.test/redirect")
		order := r.calls()
		err := r.Visit("http://a.test/redirect?2")
		visited := (*colly.AlreadyVisitedError)(nil)
		return strings.HasPrefix(order, "asked, visited, request, headers, sent, asked, visited, sent,") && errors.As(err, &visited)
	}},
	{"the redirect check returns ErrUseLastResponse after ten redirects", "internal/backend/seam.go", func(r *run) bool {
		r.AllowURLRevisit = true
		err := r.Visit("http://a.test/loop")
		return len(r.sent) == 10 && err != nil && err.Error() == http.StatusText(http.StatusFound)
	}},
	{"SetProxyFunc replaces a foreign transport by an http.Transport with Proxy and DisableKeepAlives", "internal/backend/proxy.go", func(r *run) bool {
		r.SetProxyFunc(func(*http.Request) (*url.URL, error) { return nil, nil })
		set, ok := r.handle.Client().Transport.(*http.Transport)
		return ok && set.Proxy != nil && set.DisableKeepAlives && set.DialContext == nil && set.TLSClientConfig == nil
	}},
	{"the other setters change the client in the backend", "internal/backend/seam.go", func(r *run) bool {
		client := r.handle.Client()
		r.SetRequestTimeout(time.Hour)
		r.DisableCookies()
		client.CheckRedirect = nil
		r.SetRedirectHandler(func(*http.Request, []*http.Request) error { return nil })
		return r.handle.Client() == client && client.Timeout == time.Hour && client.Jar == nil && client.CheckRedirect != nil
	}},
	{"Init keeps the callbacks and replaces the backend", "internal/backend/handle.go", func(r *run) bool {
		before := r.handle.Client()
		r.Init()
		return r.handle.Client() != before && r.handle.Moved() && r.handle.RequestCallbacks() == 1
	}},
	{"a callback may replace a later one in the slice for the same request", "internal/backend/early.go and guard.go", func(r *run) bool {
		after := 0
		r.OnRequest(func(*colly.Request) { r.handle.IsFollowed() })
		r.handle.AfterOnRequest(2, func(*colly.Request) { after++ })
		r.OnRequest(func(*colly.Request) {})
		r.Visit("http://a.test/1")
		return after == 1
	}},
	{"Wait waits for OnScraped, and for the pages that a callback has visited", "sitemaps.go", func(r *run) bool {
		r.Async = true
		r.OnScraped(func(resp *colly.Response) {
			time.Sleep(time.Second)
			resp.Request.Visit("/2")
		})
		r.Visit("http://a.test/1")
		r.Wait()
		return len(r.sent) == 2 && time.Since(r.start) == 2*time.Second
	}},
	{"CacheDir has a file with the SHA-1 of the URL as its name, whose page causes no OnRequestHeaders, unless the request has no-cache", "cachedir.go", func(r *run) bool {
		r.AllowURLRevisit = true
		r.CacheDir = r.t.TempDir()
		r.Visit("http://a.test/1")
		r.Visit("http://a.test/1")
		r.Request("GET", "http://a.test/1", nil, nil, http.Header{"Cache-Control": {"no-cache"}})
		sum := sha1.Sum([]byte("http://a.test/1"))
		name := hex.EncodeToString(sum[:])
		_, err := os.Stat(filepath.Join(r.CacheDir, name[:2], name))
		return err == nil && len(r.sent) == 2 && len(r.at["headers"]) == 2
	}},
	{"OnXML sees a page whose path ends with .xml only if it still does after OnResponse", "revalidate.go", func(r *run) bool {
		r.OnXML("//a", func(*colly.XMLElement) { r.note("xml") })
		r.Visit("http://a.test/1.xml")
		r.OnResponse(func(resp *colly.Response) { resp.Request.URL.Path += "\x00" })
		r.Visit("http://a.test/2.xml")
		return len(r.at["xml"]) == 1
	}},
	{"String begins with the number of requests", "plugin.go", func(r *run) bool {
		r.Visit("http://a.test/1")
		return strings.HasPrefix(r.String(), "Requests made: 1 ")
	}},
	{"Request.Marshal writes an object with URL, Method, Body, Headers and ID", "urlqueue.go", func(r *run) bool {
		r.Visit("http://a.test/1")
		encoded, err := r.requests[0].Marshal()
		var o map[string]any
		err = errors.Join(err, json.Unmarshal(encoded, &o))
		_, hasBody := o["Body"]
		return err == nil && o["URL"] == "http://a.test/1" && o["Method"] == "GET" && o["ID"] == 1.0 &&
			o["Headers"] != nil && hasBody
	}},
}

func TestCollyBehavior(t *testing.T) {
	_, err := backend.Open(colly.NewCollector())
	if err != nil {
		t.Fatal(err) // TestCollyFields says more
	}
	for _, b := range collyBehavior {
		t.Run(b.use, inBubble(func(t *testing.T) {
			if !b.holds(newRun(t)) {
				t.Errorf("Colly has changed: it is not true any more that %s (needed by %s)", b.says, b.use)
			}
			time.Sleep(time.Minute) // goroutines end that Wait should have waited for
		}))
	}
}

// A run is a collector, and a record of what Colly calls. It is the transport of the collector.
type run struct {
	*colly.Collector
	t      *testing.T
	handle *backend.Handle
	start  time.Time
	pause  time.Duration // of each request on the wire

	mu       sync.Mutex // guards the fields below it
	order    []string
	at       map[string][]time.Duration // when each callback was called
	requests []*colly.Request           // of the callbacks, in order
	sent     []*http.Request
	hashes   []uint64 // that the storage was asked for
	events   []*debug.Event
	failure  error // that OnError got last
}

var errWire = errors.New("the wire is cut")

func newRun(t *testing.T) *run {
	r := &run{t: t, Collector: colly.NewCollector(colly.IgnoreRobotsTxt()), start: time.Now(), at: make(map[string][]time.Duration)}
	r.handle = open(t, r.Collector)
	r.SetStorage(&collyStorage{run: r})
	r.WithTransport(r)
	request := func(name string) func(*colly.Request) {
		return func(req *colly.Request) {
			r.note(name)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.requests = append(r.requests, req)
		}
	}
	response := func(name string) func(*colly.Response) {
		return func(resp *colly.Response) { request(name)(resp.Request) }
	}
	r.OnRequest(request("request"))
	r.OnRequestHeaders(request("headers"))
	r.OnResponseHeaders(response("response headers"))
	r.OnResponse(response("response"))
	r.OnHTML("a", func(*colly.HTMLElement) { r.note("html") })
	r.OnScraped(response("scraped"))
	r.OnError(func(_ *colly.Response, err error) { r.failure = err })
	return r
}

// note records a call.
func (r *run) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.order = append(r.order, name)
	r.at[name] = append(r.at[name], time.Since(r.start))
}

func (r *run) calls() string { return strings.Join(r.order, ", ") }

// RoundTrip implements http.RoundTripper.
func (r *run) RoundTrip(req *http.Request) (*http.Response, error) {
	r.note("sent")
	r.mu.Lock()
	r.sent = append(r.sent, req)
	r.mu.Unlock()
	time.Sleep(r.pause)
	resp := &http.Response{
		StatusCode: http.StatusOK,
		Request:    req,
		Header:     http.Header{"Content-Type": {"text/html"}},
		Body:       io.NopCloser(strings.NewReader(`<a href="/2">2</a>`)),
	}
	switch req.URL.Path {
	case "/1.xml", "/2.xml":
		resp.Header.Set("Content-Type", "text/plain")
	case "/fail":
		return nil, errWire
	case "/redirect":
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", "/end")
	case "/loop":
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", "/loop")
	}
	return resp, nil
}

// A collyStorage records what the storage of a collector is asked for.
type collyStorage struct {
	storage.InMemoryStorage
	run *run
}

func (s *collyStorage) IsVisited(hash uint64) (bool, error) {
	s.run.note("asked")
	s.run.hashes = append(s.run.hashes, hash)
	return s.InMemoryStorage.IsVisited(hash)
}

func (s *collyStorage) Visited(hash uint64) error {
	s.run.note("visited")
	return s.InMemoryStorage.Visited(hash)
}

// A collyDebugger records the events of a debugger.
type collyDebugger struct{ *run }

func (collyDebugger) Init() error { return nil }

func (d collyDebugger) Event(e *debug.Event) { d.events = append(d.events, e) }
