package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// schemas are the types of the schemas in openapi.json.
var schemas = map[string]reflect.Type{
	"TurnRequest": reflect.TypeFor[turnRequest](),
	"Turn":        reflect.TypeFor[grant](),
	"Answer":      reflect.TypeFor[answer](),
	"Page":        reflect.TypeFor[said](),
	"Problem":     reflect.TypeFor[problem](),
	"Pause":       reflect.TypeFor[pauseRequest](),
	"Entry":       reflect.TypeFor[entry](),
	"Decision":    reflect.TypeFor[report.Decision](),
	"Event":       reflect.TypeFor[report.Event](),
	"Stats":       reflect.TypeFor[report.Stats](),
	"Host":        reflect.TypeFor[report.HostStats](),
}

// jsonNames returns the names that the JSON of a schema may have. A field of package report that is
// tagged "-" is a duration or an error, whose name is that of the field in snake case.
func jsonNames(t *testing.T, schema string) map[string]bool {
	t.Helper()
	of, ok := schemas[schema]
	if !ok {
		t.Fatalf("no type for the schema %s", schema)
	}
	names := make(map[string]bool)
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous: // its fields follow
		case name != "-":
			names[name] = true
		case field.Name == "Err":
			names["error"] = true
		case field.Type == reflect.TypeFor[time.Duration]():
			names[snake(field.Name)] = true
		}
	}
	return names
}

// snake returns a name such as CrawlDelay as crawl_delay.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// TestBadInput checks the status and the message of requests that are not valid. None of them takes a
// place.
func TestBadInput(t *testing.T) {
	long := strings.Repeat("a", maxBody)
	inBubble(t, slow(), settings{}, func(r *rig) {
		open := r.take("http://slow.test/1")
		for _, test := range []struct {
			method, target, body string
			status               int
			message              string
		}{
			{"POST", "/v1/turns", "", 400, "the body is not the expected JSON object: it is empty"},
			{"POST", "/v1/turns", "url=http://a.test/", 400, "invalid character 'u' looking for beginning of value"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b"`, 400, "unexpected EOF"},
			{"POST", "/v1/turns", `["http://a.test/"]`, 400, "the body has the wrong type, array"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b"} {}`, 400, "there is more after it"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b", "speed": 1}`, 400, `unknown field \"speed\"`},
			{"POST", "/v1/turns", `{"url": 7, "agent": "b"}`, 400, "url has the wrong type, number"},
			{"POST", "/v1/turns", `{"agent": "b"}`, 400, "url is missing"},
			{"POST", "/v1/turns", `{"url": "ftp://a.test/", "agent": "b"}`, 400, `url: \"ftp://a.test/\" is not a host or a URL of a web page`},
			{"POST", "/v1/turns", `{"url": "http:///x", "agent": "b"}`, 400, "url: "},
			{"POST", "/v1/turns", `{"url": "http://joe:secret@a.test:x/", "agent": "b"}`, 400, "http://xxxxx@a.test:x/"},
			{"POST", "/v1/turns", `{"url": "http://a.test/"}`, 400, "agent is missing"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b\r\nX: y"}`, 400, "agent has a control character"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "` + long[:1001] + `"}`, 400, "agent has more than 1000 bytes"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b", "purpose": "fun"}`, 400, "purpose fun: use search, ai-use or train-ai"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b", "wait": 0}`, 400, "wait is 0; it must be a number of seconds above 0"},
			{"POST", "/v1/turns", `{"url": "http://a.test/", "agent": "b", "wait": 1e300}`, 400, "wait is 1e+300"},
			{"POST", "/v1/turns", `{"url": "http://a.test/` + long + `", "agent": "b"}`, 413, "the body has more than 65536 bytes"},
			{"GET", "/v1/turns", "", 405, "{\"error\":\"the method is GET; /v1/turns needs POST\"}\n"},
			{"POST", "/v1/turns/unknown", `{"status": 200}`, 404, "no open turn has this ID"},
			{"POST", "/v1/turns/unknown", `{"status": 99}`, 400, "status is 99; it must have three digits"},
			{"POST", "/v1/turns/" + open.Turn, `{"status": 200}`, 204, ""},
			{"POST", "/v1/turns/" + open.Turn, `{"status": 200}`, 404, "it was answered before"},
			{"POST", "/v1/pause", `{}`, 400, "host is missing"},
			{"POST", "/v1/pause", `{"host": "http://a.test/"}`, 400, "is not the name of a host"},
			{"POST", "/v1/resume", `{"host": 7}`, 400, "host has the wrong type, number"},
			{"GET", "/v1/pause", "", 405, "/v1/pause needs POST"},
			{"GET", "/v1/check?url=http://a.test/", "", 400, "agent is missing"},
			{"GET", "/v1/check?agent=b&url=http://a.test&purpose=search,fun", "", 400, "purpose fun: use search, ai-use or train-ai"},
			{"GET", "/v1/check?agent=b&url=a.test", "", 400, "url: "},
			{"GET", "/v1/sitemap?agent=b&site=x", "", 400, "site: "},
			{"GET", "/v1/sitemap?agent=b&site=http://a.test&since=soon", "", 400, "since is neither a date"},
			{"GET", "/v1/nothing", "", 404, "{\"error\":\"there is no such path; /v1/openapi.json lists all of them\"}\n"},
		} {
			got := r.do(r.t.Context(), test.method, test.target, test.body)
			if got.status != test.status || !strings.Contains(got.body, test.message) || len(got.body) > 500 {
				t.Errorf("%s %s %.100s: status %d, %.300s\nwant %d, %s", test.method, test.target, test.body, got.status, got.body, test.status, test.message)
			}
		}
		if n := len(r.s.turns.places); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// TestBadAnswers checks that an answer with a fault ends its turn, so that its host does not wait until
// the turn expires.
func TestBadAnswers(t *testing.T) {
	long := strings.Repeat("a", maxBody)
	inBubble(t, slow(), settings{}, func(r *rig) {
		for _, test := range []struct {
			body    string
			status  int
			message string
		}{
			{`{}`, 400, "status is missing"},
			{`{"status": 99}`, 400, "status is 99; it must have three digits"},
			{`{"status": 1000}`, 400, "status is 1000; it must have three digits"},
			{`{"status": 200, "headers": {"a": 1}}`, 400, "the body is not the expected JSON object"},
			{`{"error": "` + long[:1001] + `"}`, 400, "error has more than 1000 bytes"},
			{`{"status": 200, "headers": {"a": "` + long + `"}}`, 413, "the body has more than"},
			{`{"status": 999}`, 204, ""},
			{`{"status": 103}`, 204, ""},
		} {
			open := r.take("http://slow.test/1")
			began := time.Since(r.began)
			got := r.post("/v1/turns/"+open.Turn, test.body)
			if got.status != test.status || !strings.Contains(got.body, test.message) || len(got.body) > 500 {
				t.Errorf("%.100s: status %d, %.300s\nwant %d, %s", test.body, got.status, got.body, test.status, test.message)
			}
			next := r.take("http://slow.test/2")
			if wait := time.Since(r.began) - began; wait != 10*time.Second {
				t.Errorf("%.100s: the next turn came after %v", test.body, wait)
			}
			r.answer(next, `{"status": 200}`)
		}
	})
}

// TestRedisAway checks that the answer to a request that has waited too long names Redis, if Redis does not
// answer.
func TestRedisAway(t *testing.T) {
	var away error
	inBubble(t, slow(), settings{ping: func(context.Context) error { return away }}, func(r *rig) {
		const body = `{"url": "http://slow.test/1", "agent": "b", "wait": 1}`
		r.take("http://slow.test/1")
		for cause, want := range map[error]string{
			nil:                       "the turn did not come within the time of wait",
			errors.New("i/o timeout"): "the turn did not come within the time of wait, because Redis does not answer: i/o timeout",
		} {
			away = cause
			got := r.post("/v1/turns", body)
			if got.status != 503 || got.body != "{\"error\":\""+want+"\"}\n" || got.header.Get("Retry-After") == "" {
				t.Errorf("status %d, %s, want %s", got.status, got.body, want)
			}
		}
	})
}

// TestGuard checks which requests of browsers and other machines are refused.
func TestGuard(t *testing.T) {
	for _, test := range []struct {
		name   string
		guard  guard
		target string
		header string // "Name: value"
		status int
	}{
		{"loopback", guard{local: true}, "http://127.0.0.1:8094/v1/stats", "", 0},
		{"a name below localhost", guard{local: true}, "http://robots.localhost:8094/v1/stats", "", 0},
		{"a name of a web site", guard{local: true}, "http://evil.test/v1/stats", "", 421},
		{"a socket", guard{}, "http://any/v1/stats", "", 0},
		{"a web site", guard{local: true}, "http://localhost/v1/turns", "Sec-Fetch-Site: cross-site", 403},
		{"an old browser", guard{local: true}, "http://localhost/v1/turns", "Origin: https://evil.test", 403},
		{"the live page", guard{local: true}, "http://localhost/v1/check", "Sec-Fetch-Site: same-origin", 0},
		{"no token", guard{token: "0123456789abcdef", local: true}, "http://robots.test/v1/stats", "", 401},
		{"a wrong token", guard{token: "0123456789abcdef", local: true}, "http://robots.test/v1/stats", "Authorization: Bearer 0123456789abcdeg", 401},
		{"a token", guard{token: "0123456789abcdef", local: true}, "http://robots.test/v1/stats", "Authorization: Bearer 0123456789abcdef", 0},
		{"a browser with the token", guard{token: "0123456789abcdef", local: true}, "http://robots.test/robots/", "Authorization: Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==", 0},
	} {
		req := httptest.NewRequest(http.MethodGet, test.target, nil)
		if name, value, ok := strings.Cut(test.header, ": "); ok {
			req.Header.Set(name, value)
		}
		if status, why := test.guard.refusal(req); status != test.status || (why == "") != (status == 0) {
			t.Errorf("%s: %d %s, want %d", test.name, status, why, test.status)
		}
	}
}

// TestArguments checks that each mistake on the command line is reported.
func TestArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`unexpected argument "now"`:                                        {"now"},
		`-max-turns 0 is not between 1 and 1000000`:                        {"-max-turns=0"},
		`-expire 2m0s is not between 1s and 1m0s`:                          {"-expire=2m"},
		`MinDelay: -1s is negative`:                                        {"-delay=-1s"},
		`StopAfterRefusals: -1 is negative`:                                {"-stop-after-refusals=-1"},
		`-cache cannot be used with -redis`:                                {"-cache=x", "-redis=redis://127.0.0.1"},
		`unknown name "bing"`:                                              {"-dialect=bing"},
		`-pace-by: use host, domain or address`:                            {"-pace-by=server"},
		`Jitter: 25 is not between 0 and 1`:                                {"-jitter=25"},
		`MaxRate: -1 is negative or not a number`:                          {"-max-rate=-1"},
		`-hours 22: want a window`:                                         {"-hours=22"},
		`CrawlHours: "25:00" is not a time of day`:                         {"-hours=25:00-26:00"},
		`-token-file: open /does/not/exist`:                                {"-token-file=/does/not/exist"},
		`has fewer than 16 characters`:                                     {"-token-file=" + file},
		`-listen: 0.0.0.0:0 is not a loopback address`:                     {"-listen=0.0.0.0:0"},
		`-listen: address x: missing port in address; use an address such`: {"-listen=x"},
		`exists and is not a socket`:                                       {"-listen=unix:" + file},
		`-cache: `:                                                         {"-cache=" + file + "/x"},
		`-audit: `:                                                         {"-audit=" + file + "/x"},
		`-redis: redis: invalid URL scheme`:                                {"-redis=http://127.0.0.1"},
		`-redis: redisstore: `:                                             {"-redis=redis://127.0.0.1:1"},
		`flag provided but not defined: -token`:                            {"-token=x"},
		`invalid value "soon" for flag -expire: parse error`:               {"-expire=soon"},
	} {
		var stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		status := Run(ctx, args, nil, nil, &stderr)
		cancel()
		if status != cli.Failed || !strings.HasPrefix(stderr.String(), "collyrobots serve: ") || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: status %d, %s\nwant %s", args, status, stderr.String(), want)
		}
	}
}

// start serves a new service until the test ends, and returns its address.
func start(t *testing.T, address string, s settings) string {
	t.Helper()
	service, err := newService(s)
	if err != nil {
		t.Fatal(err)
	}
	return startService(t, address, service)
}

// startService serves a service until the test ends, and returns its address.
func startService(t testing.TB, address string, service *service) string {
	t.Helper()
	l, err := listen(address, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.serve(ctx, l, nil, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestDisconnect checks that the service notices when a client that waits for a turn closes its
// connection.
func TestDisconnect(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 3600\n"}})
	service, err := newService(settings{maxTurns: 1, expire: time.Minute}, collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan bool, 1)
	defer service.robots.Listen(func(e *collyrobots.Event) {
		if e.Kind == report.EventWaiting {
			waiting <- true
		}
	})()
	conn, err := net.Dial("tcp", startService(t, ":0", service))
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"url": "http://a.test/", "agent": "ExampleBot/1.0"}`
	fmt.Fprintf(conn, "POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	<-waiting
	conn.Close()
	service.turns.places <- struct{}{} // blocks until the place is free
	service.turns.leave()
}

// TestSocket checks that the service listens on a socket, and replaces one that a killed service has
// left.
func TestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "serve") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "s")
	left, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	if _, err := listen("unix:"+name, false); err == nil || !strings.Contains(err.Error(), "another program listens on") {
		t.Errorf("a socket in use: %v", err)
	}
	left.Close()
	start(t, "unix:"+name, settings{maxTurns: 10, expire: time.Minute})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", name)
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://robots/v1/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer discard(resp)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %s", resp.Status)
	}
}
