package robotstest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// verifyCases are crawls and the errors that Verify must report for them.
var verifyCases = []struct {
	name    string
	sites   robotstest.Sites
	dialect dialect.Dialect
	tokens  []string
	crawl   string // lines with a time and a URL; see crawlOf
	faults  string // lines with the beginnings of the expected errors
}{
	{
		name:  "all kept",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 2"}},
		crawl: "0s /robots.txt\n2s /\n4s /1\n6s http://b.test/\n6s /y",
	},
	{
		name:  "a denied page",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nAllow: /x/open\nDisallow: /x # no"}},
		crawl: "0s /robots.txt\n0s /x/open\n1s /x/1?y\n2s /",
		faults: `GET http://a.test/x/1?y at 1s: robots.txt disallows it for "ExampleBot" under rfc9309, line 3: Disallow: /x
`,
	},
	{
		name:  "a gap that is too short",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2"}},
		crawl: "0s /robots.txt\n1.999s /\n3.999s /1\n5s /2",
		faults: `GET http://a.test/ at 1.999s: 1.999s after /robots.txt, want 2s
GET http://a.test/2 at 5s: 1.001s after /1, want 2s`,
	},
	{
		name:   "the delay also applies to robots.txt",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2"}},
		crawl:  "0s /robots.txt\n2s /\n3s /robots.txt",
		faults: "GET http://a.test/robots.txt at 3s: 1s after /, want 2s",
	},
	{
		name:   "robots.txt not requested",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 2\nDisallow: /x"}},
		crawl:  "0s /\n1s /x\n3s /y",
		faults: "GET http://a.test/x at 1s: robots.txt disallows\nGET http://a.test/x at 1s: 1s after /, want 2s",
	},
	{
		name: "robots.txt not requested, served by a handler",
		sites: robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			fmt.Fprint(w, "User-agent: *\nDisallow: /x")
		}}, "b.test": {"/robots.txt": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}},
		crawl:  "0s /\n0s /x\n0s http://b.test/",
		faults: "GET http://a.test/x at 0s\nGET http://b.test/ at 0s: robots.txt could not be read",
	},
	{
		name:   "request before robots.txt was received",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 1"}},
		crawl:  "0s /x\n1s /robots.txt\n2s /",
		faults: "GET http://a.test/x at 0s",
	},
	{
		name: "one robots.txt for each scheme, one pace for both",
		sites: robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
			if r.TLS == nil {
				fmt.Fprint(w, "User-agent: *\nDisallow: /x\nCrawl-delay: 3")
			} else {
				fmt.Fprint(w, "User-agent: *\nDisallow: /y\nCrawl-delay: 1")
			}
		}}},
		crawl:  "0s /robots.txt\n1s https://a.test/robots.txt\n4s https://a.test/x\n6s https://a.test/y\n9s /y\n12s /x",
		faults: "GET https://a.test/robots.txt at 1s: 1s after\nGET https://a.test/y at 6s: robots.txt\nGET https://a.test/y at 6s: 2s after /x, want 3s\nGET http://a.test/x at 12s",
	},
	{
		name:  "another port is another host",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 10"}, "a.test:8080": {"/robots.txt": "User-agent: *\nDisallow: /x"}},
		crawl: "0s /robots.txt\n0s http://a.test:8080/robots.txt\n1s http://a.test:8080/\n1s http://a.test:8080/y\n10s /x",
	},
	{
		name:   "by the user agent of each request",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": "User-agent: ExampleBot\nDisallow: /x\nCrawl-delay: 2\n\nUser-agent: *\nDisallow: /y"}},
		crawl:  "0s /robots.txt\n2s /y\nagent Mozilla/5.0\n3s /x\n3s /y",
		faults: `GET http://a.test/y at 3s: robots.txt disallows it for "" under rfc9309, line 6`,
	},
	{
		name:   "by product tokens",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": "User-agent: ImageBot\nDisallow: /x\n\nUser-agent: ExampleBot\nDisallow: /"}},
		tokens: []string{"NewsBot", "ImageBot"},
		crawl:  "0s /robots.txt\n0s /y\n0s /x",
		faults: `GET http://a.test/x at 0s: robots.txt disallows it for "NewsBot"`,
	},
	{
		name:    "by a dialect",
		dialect: dialect.CocCoc(),
		sites:   robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 60"}},
		crawl:   "0s /robots.txt\n10s /\n20s /1\n21s /2",
		faults:  "GET http://a.test/2 at 21s: 1s after /1, want 10s",
	},
	{
		name:    "by the built-in check",
		dialect: dialect.Temoto(),
		sites:   robotstest.Sites{"a.test": {"/robots.txt": "User-agent: ExampleBot/1\nDisallow: /x\nUser-agent: *\nDisallow: /y"}},
		crawl:   "0s /robots.txt\n0s /y\n0s /x",
		faults:  `GET http://a.test/x at 0s: robots.txt disallows it for "ExampleBot/1.0 (+https://example.com/bot)" under temoto`,
	},
	{
		name:   "a robots.txt behind redirects",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": robotstest.Redirect("http://b.test/r?s"), "*": "all"}, "b.test": {"/robots.txt": "User-agent: *\nDisallow: /r", "/r?s": robotstest.Redirect("/t#u"), "/t": "User-agent: *\nDisallow: /x"}},
		crawl:  "0s http://b.test/robots.txt\n1s /robots.txt\n2s /x\n3s /t\n4s http://b.test/r?s",
		faults: "GET http://a.test/x at 2s\nGET http://b.test/r?s at 4s",
	},
	{
		name:  "redirects that lead nowhere",
		sites: robotstest.Sites{"a.test": {"/robots.txt": robotstest.Redirect("/robots.txt"), "*": "all"}, "b.test": {"/robots.txt": 302, "/": ""}},
		crawl: "0s /robots.txt\n0s /\n1s http://b.test/robots.txt\n1s http://b.test/",
	},
	{
		name:  "a robots.txt that changes",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 1"}},
		crawl: "0s /robots.txt\n1s /y\nset /robots.txt User-agent: *|Disallow: /y|Crawl-delay: 5\n2s /y\n3s /robots.txt\n8s /x\n9s /y\n14s /z",
		faults: `GET http://a.test/y at 9s: robots.txt disallows it for "ExampleBot" under rfc9309, line 2: Disallow: /y
GET http://a.test/y at 9s: 1s after /x, want 5s`,
	},
	{
		name:  "at the time of a change both versions are valid",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nDisallow: /z"}},
		crawl: "0s /robots.txt\nset /robots.txt User-agent: *|Disallow: /y|Disallow: /z|Crawl-delay: 1\n1s /robots.txt\n1s /y\n1s /x\n1s /z\n2s /x\n3s /y",
		faults: `GET http://a.test/z at 1s: robots.txt disallows it for "ExampleBot" under rfc9309, line 3
GET http://a.test/y at 3s`,
	},
	{
		name:  "missing",
		sites: robotstest.Sites{"a.test": {"/robots.txt": 404, "/": ""}},
		crawl: "0s /robots.txt\n0s /",
	},
	{
		name:  "unreachable after it was read",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x"}},
		crawl: "0s /robots.txt\nset /robots.txt 503\n1s /robots.txt\n2s /\n3s /x", faults: "GET http://a.test/x at 3s: robots.txt disallows",
	},
	{
		name:  "read after it was unreachable",
		sites: robotstest.Sites{"a.test": {"/robots.txt": 503}},
		crawl: "0s /robots.txt\nset /robots.txt User-agent: *|Disallow: /x\n1s /\n2s /robots.txt\n3s /\n4s /x",
		faults: `GET http://a.test/ at 1s: robots.txt could not be read, so rfc9309 disallows all of the host
GET http://a.test/x at 4s: robots.txt disallows`,
	},
	{
		name:   "unreachable for a month",
		sites:  robotstest.Sites{"a.test": {"/robots.txt": 503}},
		crawl:  "0s /robots.txt\n719h /robots.txt\n719h /\n720h /",
		faults: "GET http://a.test/ at 719h0m0s: robots.txt could not be read",
	},
	{
		name: "ended early", sites: robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "User-agent: *\nDisallow: /x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}}, "b.test": {"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "User-agent: *\nDisallow: /x")
		}}, "c.test": {"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}}},
		crawl:  "0s /robots.txt\n0s /\n0s http://b.test/robots.txt\n0s http://b.test/\n0s http://c.test/robots.txt\n0s http://c.test/",
		faults: "GET http://a.test/ at 0s: robots.txt could not\nGET http://b.test/ at 0s: robots.txt could not\nGET http://c.test/ at 0s: robots.txt could not",
	},
	{
		name: "compressed", sites: robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(robotstest.Gzip("User-agent: *\nDisallow: /x"))
		}}, "b.test": {"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(robotstest.Gzip("User-agent: *\nDisallow: /x")[:20])
		}}},
		crawl: "0s /robots.txt\n0s /\n0s /x\n0s http://b.test/robots.txt\n0s http://b.test/", faults: "GET http://a.test/x at 0s\nGET http://b.test/ at 0s: robots.txt could not",
	},
	{
		name:  "not modified",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x"}},
		crawl: "0s /robots.txt\nset /robots.txt 304\n1s /robots.txt\n2s /x", faults: "GET http://a.test/x at 2s",
	},
	{
		name:  "HEAD of robots.txt is not a fetch",
		sites: robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x"}},
		crawl: "0s /robots.txt\nset /robots.txt 404\nhead /robots.txt\n2s /x", faults: "GET http://a.test/x at 2s",
	},
}

func TestVerify(t *testing.T) {
	for _, tc := range verifyCases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := robotstest.New(t, tc.sites)
				crawlOf(t, web, tc.crawl)
				wantFaults(t, web, tc.faults, tc.dialect, tc.tokens...)
			})
		})
	}
}

// wantFaults compares the errors that Verify reports with the lines of want. Each line is the
// beginning of an error.
func wantFaults(t *testing.T, web *robotstest.Web, want string, d dialect.Dialect, tokens ...string) {
	t.Helper()
	var told failing
	robotstest.Verify(&told, web, d, tokens...)
	lines := strings.FieldsFunc(want, func(r rune) bool { return r == '\n' })
	for i := range max(len(lines), len(told.said)) {
		if i >= len(lines) || i >= len(told.said) || !strings.HasPrefix(told.said[i], lines[i]) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(told.said, "\n"), want)
		}
	}
}

// crawlOf makes the requests of a script at their times. A URL without a host belongs to a.test.
// "agent" sets the user agent. "set" changes an answer of a.test, where "|" stands for a newline.
// "head" sends a HEAD request at once.
func crawlOf(t *testing.T, web *robotstest.Web, script string) {
	t.Helper()
	agent, began := "ExampleBot/1.0 (+https://example.com/bot)", time.Now()
	client := http.Client{Transport: web.Transport()}
	for line := range strings.Lines(script) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		method := http.MethodGet
		switch verb {
		case "agent":
			agent = rest
			continue
		case "set":
			uri, answer, _ := strings.Cut(rest, " ")
			web.Set("a.test", uri, answerOf(answer))
			continue
		case "head":
			method = http.MethodHead
		default:
			at, err := time.ParseDuration(verb)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(at - time.Since(began))
		}
		if strings.HasPrefix(rest, "/") {
			rest = "http://a.test" + rest
		}
		r := request(t, rest)
		r.Method = method
		r.Header.Set("User-Agent", agent)
		if resp, err := client.Do(r); err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
}

func answerOf(word string) any {
	var status int
	if n, err := fmt.Sscan(word, &status); n == 1 && err == nil {
		return status
	}
	return strings.ReplaceAll(word, "|", "\n")
}

// This test checks the meaning of a robots.txt that could not be read under dialects that differ.
func TestVerifyStatuses(t *testing.T) {
	abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, tc := range []struct {
		name   string
		answer any
		open   string // the dialects under which a page may be requested
	}{
		{"200", "User-agent: *\nDisallow: /\n", ""},
		{"203", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(203)
			io.WriteString(w, "User-agent: *\nDisallow: /\n")
		}), "coccoc"},
		{"404", 404, "rfc9309 google coccoc temoto"},
		{"429", 429, "rfc9309 coccoc temoto"},
		{"503", 503, "coccoc temoto"},
		{"no answer", abort, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": tc.answer, "/": ""}})
				crawlOf(t, web, "0s /robots.txt\n1s /")
				for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc(), dialect.Temoto()} {
					var told failing
					robotstest.Verify(&told, web, d)
					if open := strings.Contains(tc.open, d.String()); open != (len(told.said) == 0) {
						t.Errorf("%v: %q", d, told.said)
					}
				}
			})
		})
	}
}

func TestVerifyFailsWithoutRequests(t *testing.T) {
	var told failing
	web := robotstest.New(t, robotstest.Sites{"a.test": nil})
	robotstest.Verify(&told, web, dialect.RFC9309())
	if len(told.said) != 1 || !strings.Contains(told.said[0], "received no requests") {
		t.Errorf("told %q", told.said)
	}
}

// Requests before Reset are not checked again, but a robots.txt from before Reset still applies.
func TestVerifyAfterReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 1"}})
		crawlOf(t, web, "0s /robots.txt\n1s /x")
		web.Reset()
		web.Set("a.test", "/robots.txt", "")
		crawlOf(t, web, "0s /y\n0.5s /z\n1.5s /x")
		wantFaults(t, web, "GET http://a.test/z at 500ms: 500ms after /y, want 1s\nGET http://a.test/x at 1.5s", dialect.RFC9309())
	})
}
