package gate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/revalidate"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

const (
	closed    = "User-agent: *\nDisallow: /\n"
	twoSecond = "User-agent: *\nCrawl-delay: 2\nDisallow: /closed\n"
)

// answers returns a handler that gives these statuses in turn, and the last one again and again.
func answers(header http.Header, statuses ...int) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			out.Header()[name] = values
		}
		out.WriteHeader(statuses[0])
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
	}
}

// TestAdmit checks which pages of a collector and which requests of a client are sent, and when.
func TestAdmit(t *testing.T) {
	tests := []struct {
		name     string
		setup    setup
		sites    func() robotstest.Sites
		urls     []string
		want     []string
		requests []string
	}{
		{
			name:     "Crawl-delay and a denial",
			sites:    sites(robotstest.Site{"/robots.txt": twoSecond, "/1": "x", "/2": "x"}),
			urls:     []string{"http://a.test/1", "http://a.test/closed", "http://a.test/2"},
			want:     []string{"200", "denied: rule", "200"},
			requests: []string{"0s a.test/robots.txt", "2s a.test/1", "4s a.test/2"},
		},
		{
			name:     "a redirect to a denied page",
			sites:    sites(robotstest.Site{"/robots.txt": twoSecond, "/1": robotstest.Redirect("/closed")}),
			urls:     []string{"http://a.test/1"},
			want:     []string{"denied: rule"},
			requests: []string{"0s a.test/robots.txt", "2s a.test/1"},
		},
		{
			name: "a redirect to another site",
			sites: func() robotstest.Sites {
				return robotstest.Sites{
					"a.test": {"/robots.txt": twoSecond, "/1": robotstest.Redirect("http://b.test/2")},
					"b.test": {"/robots.txt": twoSecond, "/2": robotstest.Redirect("/3"), "/3": "x"},
				}
			},
			urls:     []string{"http://a.test/1"},
			want:     []string{"200"},
			requests: []string{"0s a.test/robots.txt", "2s a.test/1", "2s b.test/robots.txt", "4s b.test/2", "6s b.test/3"},
		},
		{
			name:     "robots.txt cannot be read",
			sites:    sites(robotstest.Site{"/robots.txt": 500, "/1": "x"}),
			urls:     []string{"http://a.test/1", "http://a.test/1"},
			want:     []string{"denied: unreachable", "denied: unreachable"},
			requests: []string{"0s a.test/robots.txt"},
		},
		{
			name:     "a dry run",
			setup:    setup{dryRun: true},
			sites:    sites(robotstest.Site{"/robots.txt": twoSecond, "/1": "x", "/closed": "x"}),
			urls:     []string{"http://a.test/1", "http://a.test/closed"},
			want:     []string{"200", "200"},
			requests: []string{"0s a.test/robots.txt", "0s a.test/1", "0s a.test/closed"},
		},
		{
			name:     "MaxPagesPerHost",
			setup:    setup{settings: judge.HostSettings{HostLimits: judge.HostLimits{MaxPagesPerHost: 2}}},
			sites:    sites(robotstest.Site{"/1": robotstest.Redirect("/2"), "/2": "x", "/3": 404}),
			urls:     []string{"http://a.test/1", "http://a.test/3", "http://a.test/2"},
			want:     []string{"200", "404", "denied: budget"},
			requests: []string{"0s a.test/robots.txt", "0s a.test/1", "0s a.test/2", "0s a.test/3"},
		},
		{
			name:     "StopAfterRefusals",
			setup:    setup{settings: judge.HostSettings{HostLimits: judge.HostLimits{StopAfterRefusals: 2}}},
			sites:    sites(robotstest.Site{"/1": 403, "/2": 200, "/3": answers(http.Header{"Cf-Mitigated": {"challenge"}}, 503)}),
			urls:     []string{"http://a.test/1", "http://a.test/2", "http://a.test/1", "http://a.test/3", "http://a.test/2"},
			want:     []string{"403", "200", "403", "503", "denied: refused"},
			requests: []string{"0s a.test/robots.txt", "0s a.test/1", "0s a.test/2", "0s a.test/1", "0s a.test/3"},
		},
		{
			name:  "RetryThrottled",
			setup: setup{settings: judge.HostSettings{HostLimits: judge.HostLimits{Retries: judge.ThrottledRetries(2)}}},
			sites: func() robotstest.Sites {
				return robotstest.Sites{"a.test": {
					"/1": answers(http.Header{"Retry-After": {"10"}}, 429, 503, 200),
					"/2": answers(http.Header{"Retry-After": {"600"}}, 429),
				}}
			},
			urls:     []string{"http://a.test/1", "http://a.test/2"},
			want:     []string{"200", "429"},
			requests: []string{"0s a.test/robots.txt", "0s a.test/1", "10s a.test/1", "20s a.test/1", "21s a.test/2"},
		},
		{
			name:     "no private addresses",
			setup:    setup{access: netguard.DenyAll},
			sites:    sites(nil),
			urls:     []string{"http://127.0.0.1/"},
			want:     []string{(&report.PrivateNetworkError{URL: "http://127.0.0.1/", Address: "127.0.0.1"}).Error()},
			requests: nil,
		},
		{
			name:     "a redirect to a private address",
			sites:    sites(robotstest.Site{"/1": robotstest.Redirect("http://127.0.0.1/")}),
			urls:     []string{"http://a.test/1"},
			want:     []string{(&report.PrivateNetworkError{URL: "http://127.0.0.1/", Address: "127.0.0.1", From: "a.test"}).Error()},
			requests: []string{"0s a.test/robots.txt", "0s a.test/1"},
		},
		{
			name:     "no robots.txt applies",
			sites:    sites(nil),
			urls:     []string{"data:text/plain,x"},
			want:     []string{`unsupported protocol scheme "data"`},
			requests: nil,
		},
	}
	for _, test := range tests {
		for name, request := range ways {
			if name == "page" && test.name == "no robots.txt applies" {
				continue // the hooks do not pass it to the gate
			}
			t.Run(test.name+"/"+name, func(t *testing.T) {
				inBubble(t, test.setup, test.sites(), func(w *world) {
					var got []string
					for _, u := range test.urls {
						got = append(got, request(w, u))
					}
					if !slices.Equal(got, test.want) {
						t.Errorf("got %q, want %q", got, test.want)
					}
					w.wantRequests(test.requests...)
				})
			})
		}
	}
}

// sites returns a function that returns a.test.
func sites(a robotstest.Site) func() robotstest.Sites {
	return func() robotstest.Sites { return robotstest.Sites{"a.test": a} }
}

// TestDenialIsCounted checks the counts, the mark and the event of a denial.
func TestDenialIsCounted(t *testing.T) {
	for name, request := range ways {
		inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": closed}}, func(w *world) {
			request(w, "http://a.test/")
			w.listener.Deliver()
			i := slices.IndexFunc(w.events, func(e *report.Event) bool { return e.Kind == report.EventDenied })
			if i < 0 || w.events[i].Decision == nil || w.events[i].URL != "http://a.test/" {
				t.Errorf("%s: events %+v", name, w.events)
			}
			if n := w.Statistics()[report.ReasonRule]; n != 1 || len(w.rejected) != 1 {
				t.Errorf("%s: %d denials, rejected %q", name, n, w.rejected)
			}
		})
		inBubble(t, setup{dryRun: true}, robotstest.Sites{"a.test": {"/robots.txt": closed}}, func(w *world) {
			request(w, "http://a.test/")
			if want := map[string]int{"client": 1}[name]; w.logged != want || w.rejected != nil {
				t.Errorf("%s: a dry run has logged %d denials, want %d", name, w.logged, want)
			}
		})
	}
}

// TestExpiry checks that a page which waits until its robots.txt has expired is judged by the new one.
func TestExpiry(t *testing.T) {
	const day = "User-agent: *\nCrawl-delay: 86400\n"
	for name, request := range ways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": day, "/1": "x"}}, func(w *world) {
				for i, want := range []string{"200", "denied: rule"} {
					if got := request(w, "http://a.test/1"); got != want {
						t.Errorf("page %d: %s, want %s", i, got, want)
					}
					w.web.Set("a.test", "/robots.txt", closed)
				}
			})
		})
	}
}

// TestChangedPages checks pages that a callback changes between both hooks, or on the way.
func TestChangedPages(t *testing.T) {
	file := "User-agent: *\nDisallow: /closed\n\nUser-agent: Other\nDisallow: /\n"
	tests := []struct {
		name   string
		url    string
		change func(u *url.URL, t *judge.Target)
		want   string
	}{
		{name: "unchanged", url: "http://a.test/1", want: "200"},
		{name: "to a denied URL", url: "http://a.test/1", change: func(u *url.URL, _ *judge.Target) { u.Path = "/closed" }, want: "denied: rule"},
		{name: "from a denied URL", url: "http://a.test/closed", change: func(u *url.URL, _ *judge.Target) { u.Path = "/1" }, want: "200"},
		{name: "to a denied name", url: "http://a.test/1", change: func(_ *url.URL, t *judge.Target) { t.UserAgent = "Other" }, want: "denied: rule"},
	}
	for _, test := range tests {
		inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": file, "/1": "x"}}, func(w *world) {
			u := mustParse(test.url)
			got := w.visit(u, Page{}, func(target *judge.Target) {
				if test.change != nil {
					test.change(u, target)
				}
			})
			if got != test.want {
				t.Errorf("%s: got %s, want %s", test.name, got, test.want)
			}
		})
	}
}

// TestChangedOnWire checks that a request whose URL or name differs on the wire is judged again.
func TestChangedOnWire(t *testing.T) {
	file := "User-agent: *\nDisallow: /closed\n\nUser-agent: Other\nDisallow: /\n"
	inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": file, "/1": "x"}}, func(w *world) {
		for change, want := range map[string]string{"": "200", "url": "denied: rule", "agent": "denied: rule"} {
			u := mustParse("http://a.test/1")
			q := w.NewRequest(u, Page{})
			header := http.Header{"User-Agent": {"Bot"}}
			q.Describe(judge.Target{URL: u, UserAgent: "Bot"}, exchange.SeamClient{Through: w.pages}, header)
			for _, m := range []Mode{InOnRequest, InOnRequestHeaders} {
				if err := w.Admit(w.t.Context(), q, m); err != nil {
					t.Fatal(err)
				}
			}
			q.Release()
			if !NewController(w.Gate).Knows(u) {
				t.Error("the controller does not know the page")
			}
			switch change {
			case "url":
				u.Path = "/closed"
			case "agent":
				header.Set("User-Agent", "Other")
			}
			req := (&http.Request{URL: u, Header: header}).WithContext(w.t.Context())
			resp, err := (&http.Client{Transport: w.pages}).Do(req)
			got := "200"
			if err != nil {
				got = reasonOf(err)
			} else {
				resp.Body.Close()
			}
			if got != want {
				t.Errorf("%q: got %s, want %s", change, got, want)
			}
		}
	})
}

// TestUnseen checks requests that no hook has seen, and requests of others.
func TestUnseen(t *testing.T) {
	inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": twoSecond, "/1": "x"}}, func(w *world) {
		unseen := &http.Client{Transport: w.pages}
		for u, want := range map[string]string{"http://a.test/1": "200", "http://a.test/closed": "denied: rule"} {
			if got := w.get(unseen, mustParse(u)); got != want {
				t.Errorf("%s: got %s, want %s", u, got, want)
			}
		}
		if w.unseen != 2 {
			t.Errorf("Unseen was called %d times, want twice", w.unseen)
		}
		w.wantLog("a request reached the transport that the plugin had not seen")
		ctl := NewController(w.Gate)
		for _, u := range []string{"http://a.test/robots.txt", "data:x", "http://a.test/1"} {
			ctl.Stray(&http.Request{URL: mustParse(u)})
		}
		w.wantLog("a request that the plugin does not govern was sent")
		ctl.Followed(&http.Request{URL: mustParse("http://a.test/1")})
		w.wantLog("the transport follows redirects by itself")
	})
}

// TestRedirectWait checks that a redirect of a collector does not wait for a host that is away for
// long, because it holds a slot of a LimitRule. That of a client waits.
func TestRedirectWait(t *testing.T) {
	for name, request := range ways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, robotstest.Sites{
				"a.test": {"/1": robotstest.Redirect("http://b.test/2")},
				"b.test": {"/2": "x", "/busy": answers(http.Header{"Retry-After": {"3600"}}, 429)},
			}, func(w *world) {
				request(w, "http://b.test/busy")
				want := "200"
				if name == "page" {
					want = ErrRedirectWait.Error()
				}
				if got := request(w, "http://a.test/1"); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// TestTurns checks requests that the program sends itself.
func TestTurns(t *testing.T) {
	tests := []struct {
		name     string
		reply    int // 0 if there is no response
		err      error
		requests int
		failed   int
		refusals int
		mark     bool
	}{
		{name: "a page", reply: 200, requests: 1},
		{name: "an error page", reply: 500, requests: 1, failed: 1},
		{name: "a refusal", reply: 403, requests: 1, failed: 1, refusals: 1},
		{name: "not sent", err: exchange.ErrNotSent},
		{name: "a refused connection", err: syscall.ECONNREFUSED, failed: 1},
		{name: "a reset connection", err: syscall.ECONNRESET, requests: 1, failed: 1, refusals: 1},
		{name: "a body that breaks", reply: 200, err: syscall.ECONNRESET, requests: 1, failed: 1},
		{name: "canceled", err: context.Canceled, requests: 1, failed: 1, mark: true},
	}
	for _, test := range tests {
		inBubble(t, setup{settings: judge.HostSettings{Reading: judge.Reading{RobotsTxt: []byte("User-agent: *\nDisallow: /closed\n")}}}, nil, func(w *world) {
			req := &http.Request{Method: http.MethodGet, URL: mustParse("http://a.test/1"), Header: http.Header{}}
			q, err := w.Acquire(w.t.Context(), req, exchange.SeamClient{})
			if err != nil {
				t.Fatal(err)
			}
			if test.reply != 0 {
				if log := q.Reply(test.reply, http.Header{}); log != nil {
					log()
				}
			}
			if log := q.Finish(test.err); log != nil {
				log()
			}
			s := w.Wire.Hosts.At(time.Now(), "a.test").Stats(time.Now())
			if s.Requests != test.requests || s.Failed != test.failed || s.Refusals != test.refusals || (s.Marks&reporter.LeftByCancel != 0) != test.mark {
				t.Errorf("%s: %d requests, %d failed, %d refusals, marks %b", test.name, s.Requests, s.Failed, s.Refusals, s.Marks)
			}
			req.URL.Path = "/closed"
			if _, err := w.Acquire(w.t.Context(), req, exchange.SeamClient{}); deniedBy(err) == nil {
				t.Errorf("a denied URL: %v", err)
			}
		})
	}
}

// TestProbes checks the probes of a host that refuses requests, and what is logged.
func TestProbes(t *testing.T) {
	site := robotstest.Site{"/1": answers(nil, 403, 403, 403, 200)}
	inBubble(t, setup{settings: judge.HostSettings{HostLimits: judge.HostLimits{StopAfterRefusals: 2}}}, robotstest.Sites{"a.test": site}, func(w *world) {
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{want: "403"},
			{want: "403"},
			{want: "denied: refused"},
			{wait: time.Hour, want: "403"},
			{wait: time.Hour, want: "denied: refused"},
			{wait: time.Hour, want: "200"},
			{want: "200"},
		} {
			time.Sleep(step.wait)
			if got := ways["page"](w, "http://a.test/1"); got != step.want {
				t.Errorf("at %v: got %s, want %s", time.Since(w.start), got, step.want)
			}
		}
		if s := w.Refusals("a.test"); s.InRow != 0 {
			t.Errorf("%d refusals after a success", s.InRow)
		}
	})
	inBubble(t, setup{}, robotstest.Sites{"a.test": {"/1": 403}}, func(w *world) {
		for range 12 {
			ways["client"](w, "http://a.test/1")
		}
		w.wantLog("host refuses requests\" host=a.test url=http://a.test/1 status=403 count=10 option=StopAfterRefusals")
	})
}

// TestResponses checks which responses are refusals, and which show that a host accepts requests.
func TestResponses(t *testing.T) {
	tests := []struct {
		status           int
		header           http.Header
		refusal, success bool
	}{
		{status: 200, success: true},
		{status: 304, success: true},
		{status: 404, success: true},
		{status: 302},
		{status: 500},
		{status: 429},
		{status: 401, refusal: true},
		{status: 403, refusal: true},
		{status: 451, refusal: true},
		{status: 202, header: http.Header{"X-Amzn-Waf-Action": {"challenge"}}, refusal: true, success: true},
		{status: 503, header: http.Header{"Cf-Mitigated": {"Challenge"}}, refusal: true},
		{status: 503, header: http.Header{"Cf-Mitigated": {"other"}}},
	}
	for _, test := range tests {
		resp := &http.Response{StatusCode: test.status, Header: test.header}
		if isRefusal(resp) != test.refusal || isSuccess(test.status) != test.success {
			t.Errorf("%d %v: refusal %v, success %v", test.status, test.header, isRefusal(resp), isSuccess(test.status))
		}
	}
}

// TestLastPlaces checks that pages which wait for a full host are denied at once when its budget is
// used up, and that a page which is not sent gives its place in the budget back.
func TestLastPlaces(t *testing.T) {
	settings := judge.HostSettings{HostLimits: judge.HostLimits{MaxPagesPerHost: 2}, Pace: pace.Rules{MinDelay: time.Minute}}
	inBubble(t, setup{settings: settings}, robotstest.Sites{"a.test": {"/1": "x", "/2": "x", "/3": "x"}}, func(w *world) {
		results := make(chan string)
		for _, path := range []string{"/1", "/2", "/3"} {
			go func() {
				got := ways["client"](w, "http://a.test"+path)
				results <- got + " at " + time.Since(w.start).String()
			}()
			time.Sleep(time.Second)
		}
		got := []string{<-results, <-results, <-results}
		slices.Sort(got)
		if want := []string{"200 at 1m0s", "200 at 2m0s", "denied: budget at 2m0s"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := w.PagesSent("a.test"); n != 2 {
			t.Errorf("%d pages are counted, want 2", n)
		}
	})
	inBubble(t, setup{settings: judge.HostSettings{HostLimits: judge.HostLimits{MaxPagesPerHost: 1}}}, robotstest.Sites{"a.test": {"/1": "x"}}, func(w *world) {
		broken := &http.Client{Transport: backend.NewSeam(failing{}, Clients{Controller: NewController(w.Gate)})}
		w.get(w.client, mustParse("http://b.test/"))
		if got := w.get(broken, mustParse("http://a.test/1")); got != "denied: unreachable" {
			t.Errorf("got %s", got)
		}
		if n := w.PagesSent("a.test"); n != 0 {
			t.Errorf("%d pages are counted, want none", n)
		}
	})
}

// TestMaxPages checks that MaxPages counts the pages of all hosts, each once: not robots.txt, not a redirect to
// another host, and not a page that was not sent.
func TestMaxPages(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": {"/1": robotstest.Redirect("http://b.test/1"), "/2": "x"},
		"b.test": {"/1": "x", "/2": "x", "/3": "x"},
	}
	inBubble(t, setup{maxPages: 3}, sites, func(w *world) {
		broken := &http.Client{Transport: backend.NewSeam(failing{}, Clients{Controller: NewController(w.Gate)})}
		w.get(broken, mustParse("http://b.test/3"))
		for _, step := range []struct{ url, want string }{
			{"http://a.test/1", "200"}, {"http://b.test/2", "200"}, {"http://a.test/2", "200"}, {"http://b.test/3", "denied: budget"},
		} {
			if got := ways["client"](w, step.url); got != step.want {
				t.Errorf("%s: %s, want %s", step.url, got, step.want)
			}
		}
	})
}

// failing is a transport that sends nothing.
type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }

// TestConditionalPages checks that a known page is requested conditionally, that the plugin's mark is
// in the response to it, and that a fresh page is not requested.
func TestConditionalPages(t *testing.T) {
	settings := judge.HostSettings{Revalidation: judge.Revalidation{Revalidate: true, SkipFresh: true}}
	page := func(out http.ResponseWriter, req *http.Request) {
		out.Header().Set("Cache-Control", "max-age=60")
		out.Header().Set("ETag", `"1"`)
		if req.Header.Get("If-None-Match") == `"1"` {
			out.WriteHeader(http.StatusNotModified)
		}
	}
	inBubble(t, setup{settings: settings}, robotstest.Sites{"a.test": {"/1": http.HandlerFunc(page)}}, func(w *world) {
		memory := store.NewMemory()
		defer memory.Close()
		records := revalidate.NewPages(memory, w.Report).Add()
		u := mustParse("http://a.test/1")
		ended := 0
		visit := func() string { return w.visit(u, Page{Store: records, OnEnd: func() { ended++ }}, nil) }
		if got := visit(); got != "200" || ended != 1 {
			t.Errorf("the first visit: %s, ended %d times", got, ended)
		}
		received := http.Header{"Etag": {`"1"`}, "Cache-Control": {"max-age=60"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
		record, err := revalidate.New(u, http.Header{"User-Agent": {"Bot"}}, received, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		records.Remember(records.Key(u), record)
		if got := visit(); got != ErrFresh.Error() {
			t.Errorf("a fresh page: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := visit(); got != "200" || ended != 2 {
			t.Errorf("an unchanged page: %s, ended %d times", got, ended)
		}
		log := w.web.Log("a.test")
		if last := log[len(log)-1]; last.Header.Get("If-None-Match") != `"1"` || len(log) != 3 {
			t.Errorf("%d requests, the last one with %v", len(log), last.Header)
		}
		if s := w.Wire.Hosts.At(time.Now(), "a.test").Stats(time.Now()); s.Pages != 1 || s.Failed != 0 {
			t.Errorf("%d pages, %d failed", s.Pages, s.Failed)
		}
	})
}

// TestReturns checks pages that go back to their store instead of waiting, and pages that are cached.
func TestReturns(t *testing.T) {
	settings := judge.HostSettings{Pace: pace.Rules{MinDelay: time.Hour}}
	inBubble(t, setup{settings: settings}, robotstest.Sites{"a.test": {"/1": "x"}}, func(w *world) {
		waits := 0
		p := Page{
			OnWait:  func() { waits++ },
			Returns: func(q *Request) bool { return q.BusyFor(time.Minute) },
		}
		if got := w.visit(mustParse("http://a.test/1"), p, nil); got != ErrReturned.Error() || waits != 0 {
			t.Errorf("got %s after %d waits", got, waits)
		}
		q := w.NewRequest(mustParse("http://a.test/1"), Page{Cached: func() bool { return true }})
		q.Describe(judge.Target{URL: q.URL(), UserAgent: "Bot"}, exchange.SeamClient{Through: w.pages}, nil)
		if err := w.Admit(w.t.Context(), q, InOnRequest); err != nil || time.Since(w.start) != 0 {
			t.Errorf("a cached page: %v after %v", err, time.Since(w.start))
		}
		q.Close()
		p.Returns = nil
		if got := w.visit(mustParse("http://a.test/1"), p, nil); got != "200" || waits != 1 {
			t.Errorf("got %s after %d waits", got, waits)
		}
	})
}

// TestEndOfContext checks that a page does not wait after the end of its context.
func TestEndOfContext(t *testing.T) {
	settings := judge.HostSettings{Pace: pace.Rules{MinDelay: time.Hour}}
	inBubble(t, setup{settings: settings}, robotstest.Sites{"a.test": {"/1": "x"}}, func(w *world) {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		for range 2 {
			req := (&http.Request{URL: mustParse("http://a.test/1")}).WithContext(ctx)
			if _, err := w.client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		w.wantRequests("0s a.test/robots.txt")
	})
}

// TestCarried checks a transport of the plugin inside another one: the inner request is sent in the
// turn of the outer one, and judged if its URL is another.
func TestCarried(t *testing.T) {
	for rewrite, want := range map[string]string{"/1": "200", "/2": "200", "/closed": "denied: rule"} {
		inBubble(t, setup{}, robotstest.Sites{"a.test": {"/robots.txt": twoSecond, "/1": "x", "/2": "x"}}, func(w *world) {
			ctl := Clients{Controller: NewController(w.Gate)}
			inner := &carrying{w: w, seam: backend.NewSeam(w.web.Transport(), ctl), path: rewrite}
			outer := &http.Client{Transport: backend.NewSeam(inner, ctl)}
			if got := w.get(outer, mustParse("http://a.test/1")); got != want {
				t.Errorf("%s: got %s, want %s", rewrite, got, want)
			}
			if want == "200" {
				w.wantRequests("0s a.test/robots.txt", "2s a.test"+rewrite)
			}
			if alone, err := w.AdmitWithin(inner.seam, &http.Request{URL: mustParse("http://a.test/1")}); alone || err != nil {
				t.Errorf("a request without a carrier: %v, %v", alone, err)
			}
		})
	}
}

// carrying is a transport that changes the path of requests and sends them with a Seam.
type carrying struct {
	w    *world
	seam *backend.Seam
	path string
}

func (c *carrying) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/robots.txt" {
		next := *req.URL
		next.Path = c.path
		req = req.Clone(req.Context())
		req.URL = &next
	}
	carried, err := c.w.AdmitWithin(c.seam, req)
	if err != nil {
		return nil, err
	}
	if !carried {
		return nil, errors.New("not carried")
	}
	return c.seam.Transport().RoundTrip(req)
}

// TestPlaceOfRedirect checks that a redirect gives its place back before its body is closed, because a
// redirect handler may request the same host, and that other responses do not.
func TestPlaceOfRedirect(t *testing.T) {
	settings := judge.HostSettings{Pace: pace.Rules{MinDelay: time.Second}}
	inBubble(t, setup{settings: settings}, robotstest.Sites{"a.test": {"/moved": robotstest.Redirect("/1"), "/1": "x"}}, func(w *world) {
		for path, busy := range map[string]bool{"/moved": false, "/1": true} {
			req := (&http.Request{URL: mustParse("http://a.test" + path), Header: http.Header{"User-Agent": {"Bot"}}}).WithContext(w.t.Context())
			resp, err := w.client.Transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Wire.Hosts.At(time.Now(), "a.test").Stats(time.Now()).Busy; got != busy {
				t.Errorf("%s: the host is busy: %t, want %t", path, got, busy)
			}
			resp.Body.Close()
		}
	})
}

// TestThrottledPageIsCounted checks that a page with status 429 counts as a page, because the spider gets it.
func TestThrottledPageIsCounted(t *testing.T) {
	inBubble(t, setup{}, robotstest.Sites{"a.test": {"/1": 429}}, func(w *world) {
		w.get(w.client, mustParse("http://a.test/1"))
		if n := w.Wire.Hosts.At(time.Now(), "a.test").Stats(time.Now()).Pages; n != 1 {
			t.Errorf("%d pages are counted, want 1", n)
		}
	})
}
