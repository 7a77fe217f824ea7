package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { tooltest.MainOf(m, "../..", "serve") }

// A rig has a service in a bubble, and the sites that it serves turns for.
type rig struct {
	t     *testing.T
	s     *service
	web   *robotstest.Web
	began time.Time
}

// inBubble runs a test with a service in a bubble of testing/synctest. settings may be zero.
func inBubble(t *testing.T, sites robotstest.Sites, s settings, test func(*rig), more ...collyrobots.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, sites)
		if s.maxTurns == 0 {
			s.maxTurns = 100
		}
		if s.expire == 0 {
			s.expire = time.Minute
		}
		var log bytes.Buffer
		service, err := newService(s, append(more,
			collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}),
			collyrobots.PrivateNetworks(collyrobots.DenyAll),
			collyrobots.StopAfterRefusals(3),
			collyrobots.Logger(slog.New(warnings{slog.NewTextHandler(&log, nil)})))...)
		if err != nil {
			t.Fatal(err)
		}
		test(&rig{t: t, s: service, web: web, began: time.Now()})
		service.close()
		if strings.Contains(log.String(), "ProductToken") {
			t.Errorf("the log names an option that no user of the command can set:\n%s", log.String())
		}
	})
}

// A reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   string
	at     time.Duration // since the beginning of the test
}

// decode decodes the body of a reply with an expected status.
func (r reply) decode(t *testing.T, status int, to any) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	err := json.Unmarshal([]byte(r.body), to)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.body)
	}
}

// do makes a request. It fails the test if openapi.json does not have the status of the response.
func (r *rig) do(ctx context.Context, method, target, body string) reply {
	r.t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	req.Host = "127.0.0.1:8094"
	r.s.ServeHTTP(w, req)
	wantDocumented(r.t, method, req.URL.Path, w.Code)
	return reply{status: w.Code, header: w.Header(), body: w.Body.String(), at: time.Since(r.began)}
}

func (r *rig) get(target string) reply {
	r.t.Helper()
	return r.do(r.t.Context(), http.MethodGet, target, "")
}

func (r *rig) post(target, body string) reply {
	r.t.Helper()
	return r.do(r.t.Context(), http.MethodPost, target, body)
}

// ask asks for a turn for a URL.
func (r *rig) ask(url string) reply {
	r.t.Helper()
	return r.post("/v1/turns", fmt.Sprintf(`{"url": %q, "agent": "ExampleBot/1.0"}`, url))
}

// take asks for a turn, which must be granted, and returns it.
func (r *rig) take(url string) grant {
	r.t.Helper()
	var g grant
	r.ask(url).decode(r.t, http.StatusCreated, &g)
	return g
}

// answer answers a turn.
func (r *rig) answer(g grant, body string) {
	r.t.Helper()
	got := r.post("/v1/turns/"+g.Turn, body)
	if got.status != http.StatusNoContent && got.status != http.StatusOK {
		r.t.Errorf("status %d: %s", got.status, got.body)
	}
}

// at fails the test if another time has passed since its beginning.
func (r *rig) at(want time.Duration) {
	r.t.Helper()
	if got := time.Since(r.began); got != want {
		r.t.Errorf("at %v, want %v", got, want)
	}
}

// slow is a site with a delay of ten seconds.
func slow() robotstest.Sites {
	return robotstest.Sites{"slow.test": {"/robots.txt": "User-agent: *\nDisallow: /private\nCrawl-delay: 10\n"}}
}

// TestTurns checks the time of each turn, and what a turn and a denial contain.
func TestTurns(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		first := r.take("http://slow.test/1")
		r.at(10 * time.Second) // robots.txt was requested at 0
		d := first.Decision
		if !d.Allowed || d.Reason != report.ReasonNoRule || d.Delay != 10*time.Second || d.Token != "ExampleBot" || d.URL != "http://slow.test/1" {
			t.Errorf("%+v", d)
		}
		if want := time.Now().Add(time.Minute); !first.Expires.Equal(want) {
			t.Errorf("expires %v, want %v", first.Expires, want)
		}
		time.Sleep(3 * time.Second)
		r.answer(first, `{"status": 200, "headers": {"Content-Type": "text/html"}}`)
		second := r.take("http://slow.test/2")
		r.at(23 * time.Second) // the delay counts from the answer
		r.answer(second, `{"error": "timeout"}`)

		var denied problem
		r.ask("http://slow.test/private").decode(t, http.StatusForbidden, &denied)
		if d := denied.Decision; d == nil || d.Allowed || d.Rule.Line != 2 || !strings.Contains(denied.Error, `"Disallow: /private", line 2`) {
			t.Errorf("%+v", denied)
		}
		r.at(23 * time.Second)
		var stats report.Stats
		r.get("/v1/stats").decode(t, http.StatusOK, &stats)
		if h := stats.Hosts; len(h) != 1 || h[0].Host != "slow.test" || h[0].Requests != 3 || h[0].Denied != 1 || h[0].Delay != 10*time.Second {
			t.Errorf("%+v", h)
		}
	})
}

// TestAnswers checks that answers change the pace of a host for all crawlers.
func TestAnswers(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"status": 200}`: 10 * time.Second,
		`{"status": 429, "headers": {"retry-after": "120"}}`:                  2 * time.Minute,
		`{"status": 503, "headers": {"Retry-After": ["90"]}, "error": "cut"}`: 90 * time.Second,
		`{"error": "not_sent"}`: 10 * time.Second,
	} {
		inBubble(t, slow(), settings{}, func(r *rig) {
			r.answer(r.take("http://slow.test/1"), body)
			r.answer(r.take("http://slow.test/2"), `{"status": 200}`)
			r.at(10*time.Second + want)
		})
	}
}

// TestPurpose checks that a turn and a check with a purpose are denied where the owner disallows it, in
// robots.txt or in the TDMRep file, and that others are not.
func TestPurpose(t *testing.T) {
	sites := robotstest.Sites{
		"press.test": {"/robots.txt": "User-agent: *\nContent-Usage: /news/ train-ai=n\nContent-Usage: search=y\n"},
		"tdm.test":   {"/.well-known/tdmrep.json": `[{"location": "/news/", "tdm-reservation": 1}]`},
	}
	inBubble(t, sites, settings{}, func(r *rig) {
		for _, test := range []struct {
			url, purpose string // purpose is JSON; "" if there is none
			denied       string // what the error says; "" if the turn is granted
		}{
			{"http://press.test/news/1", "", ""},
			{"http://press.test/news/1", `"search"`, ""},
			{"http://press.test/news/1", `["search", "train-ai"]`, "its owner disallows this use: train-ai in robots.txt, line 2"},
			{"http://press.test/", `["train-ai"]`, ""},
			{"http://tdm.test/news/1", `[]`, ""},
			{"http://tdm.test/news/1", `"ai-use"`, "ai-use in tdmrep.json"},
			{"http://tdm.test/", `"ai-use"`, ""},
		} {
			body := fmt.Sprintf(`{"url": %q, "agent": "ExampleBot/1.0"}`, test.url)
			if test.purpose != "" {
				body = fmt.Sprintf(`{"url": %q, "agent": "ExampleBot/1.0", "purpose": %s}`, test.url, test.purpose)
			}
			got := r.post("/v1/turns", body)
			var d report.Decision
			names := strings.NewReplacer(`"`, "", "[", "", "]", "", " ", "").Replace(test.purpose)
			r.get("/v1/check?agent=ExampleBot&url="+test.url+"&purpose="+names).decode(t, http.StatusOK, &d)
			if d.Allowed != (test.denied == "") {
				t.Errorf("check %s %s: %+v", test.url, test.purpose, d)
			}
			if test.denied == "" {
				var g grant
				got.decode(t, http.StatusCreated, &g)
				r.answer(g, `{"status": 200}`)
				continue
			}
			var denied problem
			got.decode(t, http.StatusForbidden, &denied)
			if denied.Decision == nil || denied.Decision.Reason != report.ReasonUsage || !strings.Contains(denied.Error, test.denied) {
				t.Errorf("%s %s: %+v", test.url, test.purpose, denied)
			}
		}
		stats := r.s.robots.Stats()
		if stats.Totals.Denied != 2 || stats.Usage == nil || stats.Usage.Search.Allowed != 1 || stats.Usage.TrainAI.Disallowed != 1 {
			t.Errorf("%+v, usage %+v", stats.Totals, stats.Usage)
		}
	}, collyrobots.TDMRep(true))
}

// TestPageSays checks what the response to an answer says about the page.
func TestPageSays(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nContent-Usage: train-ai=n\n"}}
	for answer, want := range map[string]string{
		`{"status": 200}`:    "",
		`{"error": "reset"}`: "",
		`{"status": 200, "headers": {"Content-Type": "text/html"}}`: `{"usage":{"preferences":{"train-ai":{"preference":"disallowed","source":"robots.txt","line":2,"hash":"HASH"}}}}`,
		`{"status": 200, "headers": {"x-robots-tag": ["noindex", "otherbot: nofollow", "examplebot: max-snippet: 20"], "content-usage": "search=y"}, "error": "cut"}`: `{"robots_tags":[{"name":"noindex","source":"x-robots-tag"},{"name":"max-snippet","value":"20","bot":"examplebot","source":"x-robots-tag"}],` +
			`"usage":{"preferences":{"search":{"preference":"allowed","source":"Content-Usage"},"train-ai":{"preference":"disallowed","source":"robots.txt","line":2,"hash":"HASH"}}}}`,
	} {
		inBubble(t, sites, settings{}, func(r *rig) {
			g := r.take("http://a.test/1")
			got := r.post("/v1/turns/"+g.Turn, answer)
			want := strings.ReplaceAll(want, "HASH", g.Decision.Hash)
			if strings.TrimSpace(got.body) != want || (got.status == http.StatusOK) != (want != "") {
				t.Errorf("%s: status %d, %s\nwant %s", answer, got.status, got.body, want)
			}
		})
	}
}

// TestRefusals checks that -stop-after-refusals counts statuses and connections that were reset.
func TestRefusals(t *testing.T) {
	for _, body := range []string{`{"status": 403}`, `{"error": "reset"}`} {
		inBubble(t, slow(), settings{}, func(r *rig) {
			for range 3 {
				r.answer(r.take("http://slow.test/1"), body)
			}
			var denied problem
			r.ask("http://slow.test/1").decode(t, http.StatusForbidden, &denied)
			if denied.Decision.Reason != report.ReasonRefused || denied.Decision.NextTry.IsZero() {
				t.Errorf("%s: %+v", body, denied.Decision)
			}
		})
	}
}

// TestUnanswered checks that a turn that the crawler does not answer expires, and delays its host
// no longer.
func TestUnanswered(t *testing.T) {
	inBubble(t, slow(), settings{expire: 20 * time.Second}, func(r *rig) {
		lost := r.take("http://slow.test/1")
		r.answer(r.take("http://slow.test/2"), `{"status": 200}`)
		r.at(40 * time.Second) // 10 s, 20 s until the turn expires, and the delay
		if got := r.post("/v1/turns/"+lost.Turn, `{"status": 200}`); got.status != http.StatusNotFound {
			t.Errorf("an expired turn: %+v", got)
		}
	})
}

// TestWait checks a request whose turn does not come in time. It takes no place from others.
func TestWait(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		first := r.take("http://slow.test/1")
		got := r.post("/v1/turns", `{"url": "http://slow.test/2", "agent": "ExampleBot", "wait": 2.5}`)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "10" || got.at != 12500*time.Millisecond {
			t.Errorf("%+v", got)
		}
		r.answer(first, `{"status": 200}`)
		r.answer(r.take("http://slow.test/3"), `{"status": 200}`)
		r.at(22500 * time.Millisecond)
	})
}

// A pipe is a listener in memory.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	close(p.closed)
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

func (p *pipe) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// TestLongWait checks that a connection may wait for longer than the server waits for a request.
func TestLongWait(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		l := &pipe{conns: make(chan net.Conn), closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(r.t.Context())
		var serving sync.WaitGroup
		serving.Go(func() { r.s.serve(ctx, l, nil, slog.New(slog.DiscardHandler)) })
		synctest.Wait() // the service is set up, so the test may also call it directly
		first := r.take("http://slow.test/1")
		time.AfterFunc(50*time.Second, func() { r.answer(first, `{"status": 200}`) })
		transport := &http.Transport{DialContext: l.dial}
		client := &http.Client{Transport: transport}
		resp, err := client.Post("http://robots/v1/turns", "application/json", strings.NewReader(`{"url": "http://slow.test/2", "agent": "ExampleBot"}`))
		if err != nil {
			r.t.Fatal(err)
		}
		discard(resp)
		if resp.StatusCode != http.StatusCreated {
			r.t.Errorf("status %s", resp.Status)
		}
		r.at(70 * time.Second)
		transport.CloseIdleConnections()
		cancel()
		serving.Wait()
	})
}

// TestClientLeaves checks that there are no more turns than -max-turns allows, and that clients that go
// away while they wait leave their places to others.
func TestClientLeaves(t *testing.T) {
	inBubble(t, slow(), settings{maxTurns: 51}, func(r *rig) {
		first := r.take("http://slow.test/1")
		ctx, cancel := context.WithCancel(r.t.Context())
		var leaving sync.WaitGroup
		for range 50 {
			leaving.Go(func() {
				r.do(ctx, http.MethodPost, "/v1/turns", `{"url": "http://slow.test/2", "agent": "ExampleBot"}`)
			})
		}
		synctest.Wait()
		if n := len(r.s.turns.places); n != 51 {
			t.Errorf("%d places are taken, want 51", n)
		}
		got := r.ask("http://slow.test/2")
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "51 turns are open or waited for") {
			t.Errorf("one more: %+v", got)
		}
		cancel()
		leaving.Wait()
		if n := len(r.s.turns.places); n != 1 {
			t.Errorf("%d places are taken, want 1", n)
		}
		r.answer(first, `{"status": 200}`)
		r.answer(r.take("http://slow.test/3"), `{"status": 200}`)
		r.at(20 * time.Second)
	})
}

// TestAgents checks that each crawler gets the rules for its own name.
func TestAgents(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: BadBot\nDisallow: /\n"}}
	inBubble(t, sites, settings{}, func(r *rig) {
		for agent, want := range map[string]bool{"BadBot/2": false, "GoodBot (+https://example.com/)": true} {
			var d report.Decision
			r.get("/v1/check?url=http://a.test/&agent="+strings.ReplaceAll(agent, " ", "%20")).decode(t, http.StatusOK, &d)
			if d.Allowed != want {
				t.Errorf("check %s: %+v", agent, d)
			}
			got := r.post("/v1/turns", fmt.Sprintf(`{"url": "http://a.test/", "agent": %q}`, agent))
			if (got.status == http.StatusCreated) != want {
				t.Errorf("turn %s: %+v", agent, got)
			}
		}
	})
}

// TestSitemap checks the lines of a sitemap, with a file that cannot be read.
func TestSitemap(t *testing.T) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: ExampleBot\nDisallow: /no\nSitemap: /map.xml\nSitemap: /gone.xml\n",
		"/map.xml":    robotstest.Sitemap("2026-11-01 http://a.test/new", "2019-01-01 http://a.test/old", "http://a.test/no"),
	}}
	inBubble(t, sites, settings{}, func(r *rig) {
		got := r.get("/v1/sitemap?site=http://a.test/&agent=ExampleBot&since=2026-01-01")
		lines := strings.Split(strings.TrimSpace(got.body), "\n")
		if len(lines) != 2 || lines[0] != `{"loc":"http://a.test/new","lastmod":"2026-11-01T00:00:00Z","sitemap":"http://a.test/map.xml"}` ||
			!strings.Contains(lines[1], `{"error":`) || !strings.Contains(lines[1], "gone.xml") {
			t.Errorf("%+v\n%s", got, got.body)
		}
	})
}

// TestEvents checks that a client gets the events of all crawlers, until it leaves.
func TestEvents(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		ctx, cancel := context.WithCancel(r.t.Context())
		var got reply
		var listener sync.WaitGroup
		listener.Go(func() { got = r.do(ctx, http.MethodGet, "/v1/events", "") })
		synctest.Wait()
		r.answer(r.take("http://slow.test/1"), `{"status": 200}`)
		r.ask("http://slow.test/private")
		time.Sleep(time.Second)
		cancel()
		listener.Wait()
		var kinds []string
		for line := range strings.Lines(got.body) {
			e := new(report.Event)
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			kinds = append(kinds, string(e.Kind))
		}
		slices.Sort(kinds) // the order of answered and robots varies
		if want := []string{"answered", "answered", "denied", "robots", "started", "started", "waiting"}; !slices.Equal(kinds, want) {
			t.Errorf("%q, want %q", kinds, want)
		}
	})
}

// TestPage checks that the live page is served.
func TestPage(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/robots/", nil)
		req.Host = "localhost:8094"
		r.s.ServeHTTP(w, req)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "collyrobots serve") {
			t.Errorf("status %d: %.300s", w.Code, w.Body)
		}
	})
}

// TestPrivate checks that hosts with private addresses get no requests, whether the URL has the
// address or a name.
func TestPrivate(t *testing.T) {
	sites := robotstest.Sites{"10.0.0.1": {}, "localhost": {}, "[::1]": {}, "moved.test": {"/robots.txt": robotstest.Redirect("http://10.0.0.1/robots.txt")}}
	inBubble(t, sites, settings{}, func(r *rig) {
		for _, host := range []string{"10.0.0.1", "localhost", "[::1]"} {
			got := r.ask("http://" + host + "/")
			if got.status != http.StatusForbidden || !strings.Contains(got.body, "has a private address") || !strings.Contains(got.body, "-allow-private") {
				t.Errorf("%s: %+v", host, got)
			}
			var d report.Decision
			r.get("/v1/check?agent=ExampleBot&url=http://"+host+"/").decode(t, http.StatusOK, &d)
			if d.Allowed || !strings.Contains(fmt.Sprint(d.Err), "private address") {
				t.Errorf("%s: %+v", host, d)
			}
		}
		if got := r.ask("http://moved.test/"); got.status != http.StatusForbidden || !strings.Contains(got.body, "10.0.0.1") {
			t.Errorf("a redirect: %+v", got)
		}
		for host := range sites {
			if log := r.web.Log(host); len(log) > 0 && host != "moved.test" {
				t.Errorf("%s was requested:\n%s", host, log)
			}
		}
	})
}

// TestStop checks that a service that stops ends the waits, and accepts the answers of open turns.
func TestStop(t *testing.T) {
	for _, answered := range []bool{true, false} {
		inBubble(t, slow(), settings{}, func(r *rig) {
			first := r.take("http://slow.test/1")
			var waiting, closing sync.WaitGroup
			waiting.Go(func() {
				got := r.ask("http://slow.test/2")
				if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, "the service is stopping") {
					t.Errorf("%+v", got)
				}
			})
			synctest.Wait()
			closing.Go(r.s.close)
			waiting.Wait()
			if got := r.ask("http://slow.test/3"); got.status != http.StatusServiceUnavailable {
				t.Errorf("%+v", got)
			}
			time.Sleep(3 * time.Second)
			if answered {
				r.answer(first, `{"status": 200}`)
			}
			closing.Wait()
			want := 13 * time.Second
			if !answered {
				want = 20 * time.Second
			}
			r.at(want)
			if stats := r.s.robots.Stats(); !stats.Closed || stats.Totals.Requests != 2 {
				t.Errorf("%+v", stats.Totals)
			}
		})
	}
}

// openAPIDocument is openapi.json, as far as the tests read it.
type openAPIDocument struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
		Responses  map[string]any
	}
	Components struct {
		Schemas map[string]struct{ Properties map[string]any }
	}
}

// document returns openapi.json.
var document = sync.OnceValues(func() (*openAPIDocument, error) {
	doc := new(openAPIDocument)
	return doc, json.Unmarshal(openAPI, doc)
})

// pathOf returns the path of openapi.json that a path belongs to.
func pathOf(path string) string {
	if id, ok := strings.CutPrefix(path, "/v1/turns/"); ok && id != "" {
		return "/v1/turns/{id}"
	}
	return path
}

// wantDocumented fails the test if openapi.json does not have the status of a response.
func wantDocumented(t *testing.T, method, path string, status int) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	operation, ok := doc.Paths[pathOf(path)][strings.ToLower(method)]
	if ok && operation.Responses[fmt.Sprint(status)] == nil {
		t.Errorf("openapi.json does not have the status %d of %s %s", status, method, path)
	}
}

// TestOpenAPI compares openapi.json with the endpoints, and with the JSON of the values that they
// read and write.
func TestOpenAPI(t *testing.T) {
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, operations := range doc.Paths {
		for method := range operations {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	for _, e := range new(service).endpoints() {
		served = append(served, e.method+" "+e.path)
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("openapi.json has %q\nthe service has %q", described, served)
	}
	for name, schema := range doc.Components.Schemas {
		names := jsonNames(t, name)
		for property := range schema.Properties {
			if !names[property] {
				t.Errorf("%s has no %s, which openapi.json has", name, property)
			}
			delete(names, property)
		}
		for property := range names {
			t.Errorf("openapi.json has no %s of %s", property, name)
		}
	}
	inBubble(t, slow(), settings{}, func(r *rig) {
		if got := r.get("/v1/openapi.json"); got.body != string(openAPI) {
			t.Errorf("%+v", got)
		}
	})
}

// discard reads a response to its end.
func discard(resp *http.Response) {
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
