package policy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestRequestHeaders checks that each request is a GET with the user agent of the page and no other
// header except one that asks for gzip.
func TestRequestHeaders(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), redirects(2, 302, "http://user:pw@other.example/r#f", reply(200, closed)))
	c.page = authority("https://user:pw@EXAMPLE.com:443/a/b?c#d")
	p := c.get(t)
	var urls []string
	for _, req := range c.site.requests {
		urls = append(urls, req.Method+" "+req.URL.String())
		want := http.Header{"User-Agent": {agent}, "Accept-Encoding": {"gzip"}}
		if !maps.EqualFunc(req.Header, want, slices.Equal) || req.Body != nil {
			t.Errorf("%v: got header %v, want %v and no body", req.URL, req.Header, want)
		}
	}
	want := []string{"GET https://example.com/robots.txt", "GET https://example.com/redirect1", "GET http://other.example/r"}
	if !slices.Equal(urls, want) {
		t.Errorf("got requests %q, want %q", urls, want)
	}
	if p.Authority.String() != "https://example.com" || p.RobotsURL() != "https://example.com/robots.txt" || allows(p, "/x") {
		t.Errorf("%+v", p)
	}
	// The file from the other authority does not apply to that authority.
	c.site.says(reply(404, ""))
	if p, err := c.ask(context.Background(), authority("http://other.example/x")); err != nil || !allows(p, "/x") {
		t.Errorf("the other authority: got %+v, %v, want everything allowed", p, err)
	}
}

// TestCredentialsStayAtTheHost checks that no request after a redirect to another host has
// credentials, also if a second redirect stays at that host or leads back.
func TestCredentialsStayAtTheHost(t *testing.T) {
	for _, targets := range [][]string{
		{"/2", "http://b.example/1", "/2"},
		{"http://b.example/1", "http://b.example/2", "/3"},
		{"http://b.example/1", "https://example.com/2", "/3"},
		{"http://example.com/1", "/2", "https://example.com/3"}, // less secure, and back
	} {
		var answers []func(*http.Request) (*http.Response, error)
		for _, to := range targets {
			answers = append(answers, reply(302, "", "Location", to))
		}
		c := newCrawler(t, under(dialect.Temoto()), inTurn(append(answers, reply(404, ""))...))
		secret := http.Header{"Cookie": {"secret"}, "Proxy-Authorization": {"secret"}}
		how := policy.Fetch{
			Do:        c.site.do,
			UserAgent: agent,
			Header:    http.Header{"Proxy-Authorization": {"secret"}},
			AsPage:    func(*url.URL) http.Header { return secret },
		}
		if _, err := c.Get(t.Context(), c.page, how); err != nil {
			t.Fatal(err)
		}
		left := false
		for _, req := range c.site.requests {
			left = left || req.URL.Host != "example.com" || req.URL.Scheme != "https"
			sent := req.Header.Get("Cookie") != "" && req.Header.Get("Proxy-Authorization") != ""
			none := req.Header.Get("Cookie") == "" && req.Header.Get("Proxy-Authorization") == ""
			if left && !none || !left && !sent {
				t.Errorf("%q: %v has the header %v; the host was left: %t", targets, req.URL, req.Header, left)
			}
		}
	}
}

// TestURLsWithoutRobots checks that Get returns an error for URLs that have no robots.txt.
func TestURLsWithoutRobots(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed))
	for _, raw := range []string{"mailto:a@b.example", "file:///etc/passwd", "/x", "http:///x", "gopher://h/"} {
		if p, err := c.ask(context.Background(), authority(raw)); err == nil {
			t.Errorf("%s: got %s, want an error", raw, p.RobotsURL())
		}
		c.Answered(authority(raw))
	}
	if p, err := c.ask(context.Background(), dialect.Authority{Scheme: "gopher", Host: "h.example"}); err == nil {
		t.Errorf("gopher: got %s, want an error", p.RobotsURL())
	}
	if p, err := c.ask(context.Background(), authority("ftp://h.example/x")); err != nil || allows(p, "/x") {
		t.Errorf("ftp: got %v, %v, want rules", p, err)
	}
	if c.site.asked() != 1 {
		t.Errorf("%d requests, want 1", c.site.asked())
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// TestBody checks how much of a body is read, and which bodies count as no response.
func TestBody(t *testing.T) {
	big := "User-agent: *\nDisallow: /x\n" + strings.Repeat("#\n", dialect.SizeLimit) + "Disallow: /y\n"
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		state  string
	}{
		{"a rule after 500 KiB is not read", reply(200, big), "follow"},
		{"gzip", reply(200, zipped(closed), "Content-Encoding", "gzip"), "follow"},
		{"X-GZip", reply(200, zipped(closed), "Content-Encoding", " X-GZip "), "follow"},
		{"identity", reply(200, closed, "Content-Encoding", "identity"), "follow"},
		{"a gzip bomb is read to 500 KiB", reply(200, zipped(big+strings.Repeat("\n", 8<<20)), "Content-Encoding", "gzip"), "follow"},
		{"utf-8 is no coding", reply(200, closed, "Content-Encoding", "utf-8"), "follow"},
		{"none is no coding", reply(200, closed, "Content-Encoding", "none"), "follow"},
		{"a charset and words are no codings", reply(200, closed, "Content-Encoding", "ISO-8859-1, text/plain,, 8bit"), "follow"},
		{"gzip among mistakes", reply(200, zipped(closed), "Content-Encoding", "UTF-8, identity, gzip"), "follow"},
		{"gzip in a separate header line", reply(200, zipped(closed), "Content-Encoding", "utf-8", "Content-Encoding", "gzip"), "follow"},
		{"gzip twice", reply(200, zipped(zipped(closed)), "Content-Encoding", "gzip, gzip"), "disallow_all"},
		{"gzip without an end", reply(200, zipped(closed)[:30], "Content-Encoding", "gzip"), "disallow_all"},
		{"plain text labelled as gzip", reply(200, closed, "Content-Encoding", "gzip"), "disallow_all"},
		{"an unknown coding", reply(200, closed, "Content-Encoding", "br"), "disallow_all"},
		{"a cut body", cut(200, closed), "disallow_all"},
		{"an empty body", reply(200, ""), "allow_all"},
		{"HTML", reply(200, "<html>\n"+closed+"</html>", "Content-Type", "text/html"), "follow"},
		{"a byte order mark", reply(200, "\ufeff"+closed), "follow"},
		{"the body of a 404 is not read", reply(404, zipped(closed), "Content-Encoding", "br"), "allow_all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newCrawler(t, under(dialect.RFC9309()), test.answer).get(t)
			if got := state(p, "/x"); got != test.state {
				t.Errorf("got %s, want %s: %v", got, test.state, p.Err())
			}
		})
	}
}

// TestCodingError checks that the error names a coding that cannot be decoded, and that the request
// is not repeated.
func TestCodingError(t *testing.T) {
	sound := zipped(closed)
	damaged := sound[:len(sound)-6] + "??" + sound[len(sound)-4:] // its checksum
	for _, test := range []struct {
		header, body string
		want         policy.CodingError
	}{
		{"br", closed, policy.CodingError{Coding: "br"}},
		{"Zstd", closed, policy.CodingError{Coding: "zstd"}},
		{"deflate, utf-8, gzip", closed, policy.CodingError{Coding: "deflate, gzip"}},
		{"compress", closed, policy.CodingError{Coding: "compress"}},
		{"gzip", closed, policy.CodingError{Coding: "gzip", Err: gzip.ErrHeader}},
		{"gzip", damaged, policy.CodingError{Coding: "gzip", Err: gzip.ErrChecksum}},
	} {
		c := newCrawler(t, under(dialect.RFC9309()), reply(200, test.body, "Content-Encoding", test.header))
		p := c.get(t)
		var got *policy.CodingError
		if !errors.As(p.Err(), &got) || *got != test.want || !strings.Contains(p.Err().Error(), test.want.Coding) {
			t.Errorf("%s: got %v, want %+v", test.header, p.Err(), test.want)
		}
		if c.site.asked() != 1 {
			t.Errorf("%s: %d requests, want 1", test.header, c.site.asked())
		}
	}
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, zipped(closed)[:30], "Content-Encoding", "gzip"))
	if p := c.get(t); !errors.Is(p.Err(), io.ErrUnexpectedEOF) || c.site.asked() != 3 {
		t.Errorf("a truncated body: got %v after %d requests, want an unexpected EOF after 3", p.Err(), c.site.asked())
	}
}

// TestTemotoReadsLongFiles checks that the dialect reads much longer files than the others. Colly's
// built-in check reads files of any size.
func TestTemotoReadsLongFiles(t *testing.T) {
	const limit = 4 << 20
	rules := func(size int, last string) string { // last begins after size bytes
		head := "User-agent: *\nDisallow: /x\n"
		return head + strings.Repeat("#", size-len(head)-1) + "\n" + last
	}
	for _, test := range []struct {
		name   string
		size   int
		closed bool // whether temoto denies /y; the others allow it
	}{
		{"853 KB", 853_000, true},
		{"one byte too long for the others", dialect.SizeLimit - len("Disallow: /y") + 1, true},
		{"exactly as long as the limit", limit - len("Disallow: /y\n"), true},
		{"a rule cut by the limit", limit - len("Disallow: /"), false},
		{"a rule beyond the limit", limit, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Temoto()} {
				p := newCrawler(t, under(d), reply(200, rules(test.size, "Disallow: /y\n"))).get(t)
				want := !(test.closed && d == dialect.Temoto())
				if allows(p, "/x") || allows(p, "/y") != want || !allows(p, "/z") {
					t.Errorf("%v: /x %t, /y %t, /z %t (%v), want /y %t", d, allows(p, "/x"), allows(p, "/y"), allows(p, "/z"), p.Err(), want)
				}
			}
		})
	}
	read := 0
	p := newCrawler(t, under(dialect.Temoto()), func(req *http.Request) (*http.Response, error) {
		resp, err := reply(200, "")(req)
		resp.Body = io.NopCloser(&endless{prefix: []byte(closed), block: []byte(strings.Repeat("#", 5000) + "\n"), total: &read})
		return resp, err
	}).get(t)
	if allows(p, "/x") || read > limit+1<<20 {
		t.Errorf("an endless file: got %v (%v) after %d bytes", p.RobotsStatus, p.Err(), read)
	}
}

// TestEndlessBody checks that an endless body, compressed or not, is read only up to the limit.
func TestEndlessBody(t *testing.T) {
	for _, header := range [][]string{nil, {"Content-Encoding", "gzip"}} {
		read := 0
		newCrawler(t, under(dialect.RFC9309()), func(req *http.Request) (*http.Response, error) {
			body := &endless{total: &read}
			if header != nil {
				// A header, followed by empty stored blocks for ever: input without output.
				body.prefix = []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
				body.block = []byte("\x00\x00\x00\xff\xff")
			} else {
				body.block = []byte("Disallow: /x\n")
			}
			resp, err := reply(200, "", header...)(req)
			resp.Body = io.NopCloser(body)
			return resp, err
		}).get(t)
		if read == 0 || read > 4*dialect.SizeLimit {
			t.Errorf("%d bytes read, want at most %d", read, 4*dialect.SizeLimit)
		}
	}
}

type endless struct {
	prefix, block []byte
	read          int
	total         *int // of all requests
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if e.read < len(e.prefix) {
			p[n] = e.prefix[e.read]
		} else {
			p[n] = e.block[(e.read-len(e.prefix))%len(e.block)]
		}
		n++
		e.read++
		*e.total++
	}
	return n, nil
}

// drip is an endless body that sends one byte per second. It ends with its request.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = '#'
		return 1, nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

// TestTimeLimit checks that all responses of a fetch together have FetchLimit, and that the time in
// Wait does not count.
func TestTimeLimit(t *testing.T) {
	slow := func(req *http.Request) (*http.Response, error) {
		resp, err := reply(200, "")(req)
		resp.Body = io.NopCloser(drip{req.Context()})
		return resp, err
	}
	waiting := func(answer func(*http.Request) (*http.Response, error), d time.Duration) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			err := policy.Wait(req.Context(), func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if err != nil {
				return nil, err
			}
			return answer(req)
		}
	}
	lasting := func(d time.Duration, answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			select {
			case <-time.After(d):
				return answer(req)
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
	}
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		took   time.Duration
		want   policy.RobotsStatus
	}{
		{"no answer", hang, policy.FetchLimit, policy.Unreachable},
		{"a body byte by byte", slow, policy.FetchLimit, policy.Unreachable},
		{"just in time", lasting(policy.FetchLimit-1, reply(200, closed)), policy.FetchLimit - 1, policy.Rules},
		{"an hour in Wait", waiting(reply(200, closed), time.Hour), time.Hour, policy.Rules},
		{"an hour in Wait, then no answer", waiting(hang, time.Hour), time.Hour + policy.FetchLimit, policy.Unreachable},
		{"redirects share the limit", lasting(20*time.Second, redirects(2, 302, "", reply(200, closed))), policy.FetchLimit, policy.Unreachable},
		{"an hour in Wait before each redirect", waiting(lasting(9*time.Second, redirects(2, 302, "", reply(200, closed))), time.Hour), 3*time.Hour + 27*time.Second, policy.Rules},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), test.answer)
				start := time.Now()
				p := c.get(t)
				if took := time.Since(start); took != test.took || p.RobotsStatus != test.want {
					t.Errorf("got %v (%v) after %v, want %v after %v", p.RobotsStatus, p.Err(), took, test.want, test.took)
				}
				if timeout := errors.Is(p.Err(), context.DeadlineExceeded); timeout != (test.want == policy.Unreachable) {
					t.Errorf("got error %v, is a timeout: %t", p.Err(), timeout)
				}
			})
		})
	}
}

// refused returns the error of net/http for a port on which no server listens.
func refused(req *http.Request) (*http.Response, error) {
	err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: err}
}

// inTurn returns the answers one after the other, and then the last one for all further requests.
func inTurn(answers ...func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		return answer(req)
	}
}

// TestTries checks that a request without a response is repeated twice, also after a redirect, and
// that a request with a response is not repeated.
func TestTries(t *testing.T) {
	const robots, next = "/robots.txt", "/next"
	timeout := func(*http.Request) (*http.Response, error) { return nil, os.ErrDeadlineExceeded } // of the Doer itself
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		want   policy.RobotsStatus
		paths  []string
	}{
		{"a dead proxy", inTurn(refused, reply(200, closed)), policy.Rules, []string{robots, robots}},
		{"two dead proxies", inTurn(refused, timeout, reply(200, closed)), policy.Rules, []string{robots, robots, robots}},
		{"three dead proxies", inTurn(refused, refused, refused, reply(200, closed)), policy.Unreachable, []string{robots, robots, robots}},
		{"a cut body", inTurn(cut(200, closed), reply(200, closed)), policy.Rules, []string{robots, robots}},
		{"neither a response nor an error", inTurn(func(*http.Request) (*http.Response, error) { return nil, nil }, reply(404, "")),
			policy.NoRobots, []string{robots, robots}},
		{"no response after a redirect", inTurn(reply(301, "", "Location", next), refused, reply(200, closed)), policy.Rules, []string{robots, next, next}},
		{"no response before and after a redirect", inTurn(refused, reply(301, "", "Location", next), refused, refused, reply(200, closed)), policy.Unreachable,
			[]string{robots, robots, next, next}},
		{"a redirect at the second try", inTurn(refused, reply(301, "", "Location", next), reply(404, "")), policy.NoRobots, []string{robots, robots, next}},
		{"a 503", inTurn(reply(503, ""), reply(200, closed)), policy.Unreachable, []string{robots}},
		{"a redirect without Location", inTurn(reply(302, ""), reply(200, closed)), policy.Unreachable, []string{robots}},
		{"a panic", inTurn(func(*http.Request) (*http.Response, error) { panic("ouch") }, reply(200, closed)), policy.Unreachable, []string{robots}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), test.answer)
			p := c.get(t)
			var paths []string
			for _, req := range c.site.requests {
				paths = append(paths, req.URL.Path)
			}
			if p.RobotsStatus != test.want || !slices.Equal(paths, test.paths) {
				t.Errorf("got %v (%v) after %q, want %v after %q", p.RobotsStatus, p.Err(), paths, test.want, test.paths)
			}
			if p.RobotsStatus == policy.Rules && (p.Err() != nil || p.Failing()) {
				t.Errorf("the file was read, but got error %v", p.Err())
			}
		})
	}
}

// TestForbiddenRequest checks that a request that a Doer refuses to send is not repeated, and that
// a redirect to a forbidden URL counts as one that must not be followed.
func TestForbiddenRequest(t *testing.T) {
	forbidden := func(req *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("%s is private: %w", req.URL.Host, policy.ErrForbidden)
	}
	for _, test := range []struct {
		name   string
		answer func() func(*http.Request) (*http.Response, error)
		asked  int
		want   map[dialect.Dialect]policy.RobotsStatus
	}{
		{"the host itself", func() func(*http.Request) (*http.Response, error) { return forbidden }, 1, map[dialect.Dialect]policy.RobotsStatus{
			dialect.RFC9309(): policy.Unreachable, dialect.CocCoc(): policy.SiteDown}},
		{"the target of a redirect", func() func(*http.Request) (*http.Response, error) {
			return inTurn(reply(301, "", "Location", "http://10.0.0.1/"), forbidden)
		}, 2, map[dialect.Dialect]policy.RobotsStatus{
			dialect.RFC9309(): policy.Unreachable, dialect.CocCoc(): policy.NoRobots}},
	} {
		for d, want := range test.want {
			c := newCrawler(t, under(d), test.answer())
			if p := c.get(t); p.RobotsStatus != want || !errors.Is(p.Err(), policy.ErrForbidden) || c.site.asked() != test.asked {
				t.Errorf("%s, %v: got %v (%v) after %d requests, want %v after %d", test.name, d, p.RobotsStatus, p.Err(), c.site.asked(), want, test.asked)
			}
		}
	}
}

// TestForbiddenPolicyIsNotKept checks that the cache does not keep the policy of a refused request,
// and still keeps an earlier copy.
func TestForbiddenPolicyIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := func(*http.Request) (*http.Response, error) { return nil, policy.ErrForbidden }
		c := newCrawler(t, under(dialect.RFC9309()), forbidden)
		if p := c.get(t); !p.Forbidden() || p.RobotsStatus != policy.Unreachable {
			t.Errorf("got %v, %v, want a forbidden policy", p.RobotsStatus, p.Err())
		}
		c.site.says(reply(200, closed))
		if p := c.get(t); p.Forbidden() || p.RobotsStatus != policy.Rules || allows(p, "/x") {
			t.Errorf("the next caller got %v, %v, want rules", p.RobotsStatus, p.Err())
		}
		time.Sleep(25 * time.Hour)
		c.site.says(forbidden)
		if p := c.get(t); !p.Forbidden() {
			t.Errorf("after a day got %v, %v, want a forbidden policy", p.RobotsStatus, p.Err())
		}
		c.site.says(refuse)
		if p := c.get(t); p.Forbidden() || p.RobotsStatus != policy.Unreachable || c.site.asked() != 6 {
			t.Errorf("at the end got %v, %v after %d requests, want unreachable after 6", p.RobotsStatus, p.Err(), c.site.asked())
		}
	})
}

// TestEachTryWaits checks that each try may wait as the first does, and that all tries share the
// time limit.
func TestEachTryWaits(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error) // of each try, after its wait
		limit  time.Duration
		took   time.Duration
		tries  int
	}{
		{"at once", refused, 0, 3 * time.Minute, 3},
		{"ten seconds each", after(10*time.Second, refused), 0, 3*time.Minute + 30*time.Second, 3},
		{"the second try exceeds the limit", after(20*time.Second, refused), 0, 2*time.Minute + policy.FetchLimit, 2},
		{"the first try exceeds the limit", hang, 0, time.Minute + policy.FetchLimit, 1},
		{"the first try exceeds the limit of the client", hang, 300 * time.Millisecond, time.Minute + 300*time.Millisecond, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.CocCoc()), nil)
				tries := 0
				start := time.Now()
				p, err := c.Get(context.Background(), c.page, policy.Fetch{Limit: test.limit, Do: func(req *http.Request) (*http.Response, error) {
					tries++
					err := policy.Wait(req.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil })
					if err != nil {
						return nil, err
					}
					return test.answer(req)
				}})
				if err != nil || p.RobotsStatus != policy.SiteDown {
					t.Fatalf("got %+v, %v, want site_down", p, err)
				}
				if took := time.Since(start); took != test.took || tries != test.tries {
					t.Errorf("%d tries in %v, want %d in %v", tries, took, test.tries, test.took)
				}
				if got := time.Until(p.Expires()); got != 10*time.Minute {
					t.Errorf("Coc Coc fetches again after %v, want 10m", got)
				}
			})
		})
	}
}

// TestNoTryWithoutCallers checks that a fetch makes no further try after its last caller has given
// up.
func TestNoTryWithoutCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), hang)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.ask(ctx, c.page); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a deadline error", err)
		}
		synctest.Wait()
		if c.site.asked() != 1 {
			t.Errorf("%d requests, want 1", c.site.asked())
		}
	})
}

// TestCauseOfNoResponse checks that errors.As finds the cause in a NoResponseError.
func TestCauseOfNoResponse(t *testing.T) {
	p := newCrawler(t, under(dialect.RFC9309()), refused).get(t)
	var none *policy.NoResponseError
	var urlErr *url.Error
	var opErr *net.OpError
	if err := p.Err(); !errors.As(err, &none) || !errors.As(err, &urlErr) || !errors.As(err, &opErr) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %#v, want one with a *url.Error, a *net.OpError and ECONNREFUSED", err)
	}
	p = newCrawler(t, under(dialect.RFC9309()), cut(200, closed)).get(t)
	if !errors.Is(p.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("got %#v, want an unexpected EOF", p.Err())
	}
}

// TestLimitOfFetch checks that the Limit of a Fetch counts if it is shorter than FetchLimit, and
// that the time in Wait does not count.
func TestLimitOfFetch(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		300 * time.Millisecond: 300 * time.Millisecond, time.Hour: policy.FetchLimit, 0: policy.FetchLimit, -1: policy.FetchLimit,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), nil)
			start := time.Now()
			p, err := c.Get(context.Background(), c.page, policy.Fetch{Limit: limit, Do: func(req *http.Request) (*http.Response, error) {
				err := policy.Wait(req.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil })
				if err != nil {
					return nil, err
				}
				return hang(req)
			}})
			if err != nil || p.RobotsStatus != policy.Unreachable || !errors.Is(p.Err(), context.DeadlineExceeded) {
				t.Errorf("limit %v: got %+v, %v, want a timeout", limit, p, err)
			}
			if took := time.Since(start); took != time.Minute+want {
				t.Errorf("limit %v: ended after %v, want %v", limit, took, time.Minute+want)
			}
			if !strings.Contains(p.Err().Error(), want.String()) {
				t.Errorf("limit %v: got error %v, want one that names %v", limit, p.Err(), want)
			}
		})
	}
}

// FuzzAnswer checks that each response leads to a policy, which has an error unless the file was
// read, and which expires within a day.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "max-age=60", "5", "3", "", closed)
	f.Add(301, "no-store, max-age=\"7\"", "-1", "Wed, 21 Oct 2015 07:28:00 GMT", "/elsewhere", "")
	f.Add(503, "max-age=99999999999999999999", "99999999999", "99999999999999", "http://[", "\xff\xfe\x00")
	f.Add(429, ",,=,max-age", "1e9", "1.5", "//other.example", "User-agent")
	f.Fuzz(func(t *testing.T, status int, cacheControl, age, retryAfter, location, body string) {
		for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.CocCoc()} {
			before := time.Now()
			c := newCrawler(t, under(d), reply(status, body,
				"Cache-Control", cacheControl, "Age", age, "Retry-After", retryAfter, "Location", location))
			p := c.get(t)
			c.Close()
			if p.Group() == nil || c.site.asked() > 6 {
				t.Fatalf("got %+v after %d requests", p, c.site.asked())
			}
			if p.RobotsStatus != policy.Rules && p.Err() == nil && status/100 != 4 && !(d == dialect.CocCoc() && status/100 == 2) {
				t.Fatalf("got %v without an error", p.RobotsStatus)
			}
			if !p.Expires().After(before) || p.Expires().After(time.Now().Add(24*time.Hour)) {
				t.Fatalf("expires %v after the fetch", p.Expires().Sub(before))
			}
		}
	})
}
