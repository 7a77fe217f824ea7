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

// TestRequest checks that each request is a GET with the page's user agent, and that it asks for
// gzip and nothing else.
func TestRequest(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), redirects(2, 302, "http://user:pw@other.example/r#f", reply(200, closed)))
	c.page = authority("https://user:pw@EXAMPLE.com:443/a/b?c#d")
	p := c.get(t)
	var urls []string
	for _, req := range c.site.requests {
		urls = append(urls, req.Method+" "+req.URL.String())
		want := http.Header{"User-Agent": {agent}, "Accept-Encoding": {"gzip"}}
		if !maps.EqualFunc(req.Header, want, slices.Equal) || req.Body != nil {
			t.Errorf("%v: %v", req.URL, req.Header)
		}
	}
	want := []string{"GET https://example.com/robots.txt", "GET https://example.com/hopp", "GET http://other.example/r"}
	if !slices.Equal(urls, want) {
		t.Errorf("requests %q, want %q", urls, want)
	}
	if p.Authority.String() != "https://example.com" || p.RobotsURL() != "https://example.com/robots.txt" || allows(p, "/x") {
		t.Errorf("%+v", p)
	}
	// What the other authority served does not govern it.
	c.site.says(reply(404, ""))
	if p, err := c.ask(context.Background(), authority("http://other.example/x")); err != nil || !allows(p, "/x") {
		t.Errorf("the other authority: %+v, %v", p, err)
	}
}

func TestUngoverned(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed))
	for _, raw := range []string{"mailto:a@b.example", "file:///etc/passwd", "/x", "http:///x", "gopher://h/"} {
		if p, err := c.ask(context.Background(), authority(raw)); err == nil {
			t.Errorf("%s is governed by %s", raw, p.RobotsURL())
		}
		c.Answered(authority(raw))
	}
	if p, err := c.ask(context.Background(), dialect.Authority{Scheme: "gopher", Host: "h.example"}); err == nil {
		t.Errorf("gopher is governed by %s", p.RobotsURL())
	}
	if p, err := c.ask(context.Background(), authority("ftp://h.example/x")); err != nil || allows(p, "/x") {
		t.Errorf("ftp: %v, %v", p, err)
	}
	if c.site.asked() != 1 {
		t.Errorf("%d requests", c.site.asked())
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// TestBody: what of a body counts, and which bodies are no answer.
func TestBody(t *testing.T) {
	big := "User-agent: *\nDisallow: /x\n" + strings.Repeat("#\n", dialect.SizeLimit) + "Disallow: /y\n"
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error)
		state  string
	}{
		{"what is past 500 KiB is not read", reply(200, big), "follow"},
		{"gzip", reply(200, zipped(closed), "Content-Encoding", "gzip"), "follow"},
		{"X-GZip", reply(200, zipped(closed), "Content-Encoding", " X-GZip "), "follow"},
		{"identity", reply(200, closed, "Content-Encoding", "identity"), "follow"},
		{"a gzip bomb is read to 500 KiB", reply(200, zipped(big+strings.Repeat("\n", 8<<20)), "Content-Encoding", "gzip"), "follow"},
		{"utf-8 is no coding", reply(200, closed, "Content-Encoding", "utf-8"), "follow"},
		{"none is no coding", reply(200, closed, "Content-Encoding", "none"), "follow"},
		{"a charset and words are no codings", reply(200, closed, "Content-Encoding", "ISO-8859-1, text/plain,, 8bit"), "follow"},
		{"gzip among mistakes", reply(200, zipped(closed), "Content-Encoding", "UTF-8, identity, gzip"), "follow"},
		{"gzip in a line of its own", reply(200, zipped(closed), "Content-Encoding", "utf-8", "Content-Encoding", "gzip"), "follow"},
		{"gzip twice", reply(200, zipped(zipped(closed)), "Content-Encoding", "gzip, gzip"), "disallow_all"},
		{"gzip without an end", reply(200, zipped(closed)[:30], "Content-Encoding", "gzip"), "disallow_all"},
		{"gzip that is none", reply(200, closed, "Content-Encoding", "gzip"), "disallow_all"},
		{"an unknown coding", reply(200, closed, "Content-Encoding", "br"), "disallow_all"},
		{"a cut body", cut(200, closed), "disallow_all"},
		{"an empty body", reply(200, ""), "allow_all"},
		{"HTML", reply(200, "<html>\n"+closed+"</html>", "Content-Type", "text/html"), "follow"},
		{"a byte order mark", reply(200, "\ufeff"+closed), "follow"},
		{"no body is read of a 404", reply(404, zipped(closed), "Content-Encoding", "br"), "allow_all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newCrawler(t, under(dialect.RFC9309()), test.answer).get(t)
			if got := state(p, "/x"); got != test.state {
				t.Errorf("%s, want %s: %v", got, test.state, p.Err())
			}
		})
	}
}

// TestCodingError: a coding that cannot be undone is named, and asking again would not help.
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
			t.Errorf("%s: %v, want %+v", test.header, p.Err(), test.want)
		}
		if c.site.asked() != 1 {
			t.Errorf("%s: %d requests", test.header, c.site.asked())
		}
	}
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, zipped(closed)[:30], "Content-Encoding", "gzip"))
	if p := c.get(t); !errors.Is(p.Err(), io.ErrUnexpectedEOF) || c.site.asked() != 3 {
		t.Errorf("a body that is cut: %v after %d requests", p.Err(), c.site.asked())
	}
}

// TestTemotoTakesWhatItGets: Colly's built-in check hands temoto what net/http hands over.
func TestTemotoTakesWhatItGets(t *testing.T) {
	for _, coding := range []string{"br", "gzip", "x-gzip", "utf-8", "none", ""} {
		p := newCrawler(t, under(dialect.Temoto()), reply(200, closed, "Content-Encoding", coding)).get(t)
		if got := state(p, "/x"); got != "follow" {
			t.Errorf("%s: %s, %v", coding, got, p.Err())
		}
	}
}

// TestTemotoReadsOn: Colly's built-in check reads a file of any size, and so does its stand-in, as
// far as memory allows.
func TestTemotoReadsOn(t *testing.T) {
	const limit = 4 << 20
	rules := func(size int, last string) string { // last begins size octets into the file
		head := "User-agent: *\nDisallow: /x\n"
		return head + strings.Repeat("#", size-len(head)-1) + "\n" + last
	}
	for _, test := range []struct {
		name   string
		size   int
		closed bool // for temoto; for the others /y is open
	}{
		{"853 KB", 853_000, true},
		{"one octet too many for the others", dialect.SizeLimit - len("Disallow: /y") + 1, true},
		{"as much as there is room for", limit - len("Disallow: /y\n"), true},
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
		t.Errorf("%v (%v) after %d octets", p.RobotsStatus, p.Err(), read)
	}
}

// TestEndlessBody: an endless body is read to the limit and no further, compressed or not.
func TestEndlessBody(t *testing.T) {
	for _, header := range [][]string{nil, {"Content-Encoding", "gzip"}} {
		read := 0
		newCrawler(t, under(dialect.RFC9309()), func(req *http.Request) (*http.Response, error) {
			body := &endless{total: &read}
			if header != nil {
				// A header, then stored blocks of no octets for ever: input without output.
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
			t.Errorf("%d octets read", read)
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

// drip is a body that sends one octet a second for ever, and ends with its request.
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

// TestTimeLimit: a slow server has FetchLimit for all of its answers, and the time in Wait is not
// counted.
func TestTimeLimit(t *testing.T) {
	slow := func(req *http.Request) (*http.Response, error) {
		resp, err := reply(200, "")(req)
		resp.Body = io.NopCloser(drip{req.Context()})
		return resp, err
	}
	turn := func(answer func(*http.Request) (*http.Response, error), d time.Duration) func(*http.Request) (*http.Response, error) {
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
		{"a body drop by drop", slow, policy.FetchLimit, policy.Unreachable},
		{"just in time", lasting(policy.FetchLimit-1, reply(200, closed)), policy.FetchLimit - 1, policy.Rules},
		{"an hour for the host's turn", turn(reply(200, closed), time.Hour), time.Hour, policy.Rules},
		{"a turn, then no answer", turn(hang, time.Hour), time.Hour + policy.FetchLimit, policy.Unreachable},
		{"hops share the limit", lasting(20*time.Second, redirects(2, 302, "", reply(200, closed))), policy.FetchLimit, policy.Unreachable},
		{"turns at each hop", turn(lasting(9*time.Second, redirects(2, 302, "", reply(200, closed))), time.Hour), 3*time.Hour + 27*time.Second, policy.Rules},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.RFC9309()), test.answer)
				start := time.Now()
				p := c.get(t)
				if took := time.Since(start); took != test.took || p.RobotsStatus != test.want {
					t.Errorf("%v (%v) after %v, want %v after %v", p.RobotsStatus, p.Err(), took, test.want, test.took)
				}
				if timeout := errors.Is(p.Err(), context.DeadlineExceeded); timeout != (test.want == policy.Unreachable) {
					t.Errorf("the reason is %v", p.Err())
				}
			})
		})
	}
}

// refused is what net/http says of a host where nobody listens.
func refused(req *http.Request) (*http.Response, error) {
	err := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: err}
}

// inTurn answers each request by the next of the answers, and from then on by the last.
func inTurn(answers ...func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		return answer(req)
	}
}

// TestTries: where there is no response two more tries are made, of the hop that has none, and only
// then the host is given up. Whatever is a response is taken at its word.
func TestTries(t *testing.T) {
	const robots, hop = "/robots.txt", "/hopp"
	timeout := func(*http.Request) (*http.Response, error) { return nil, os.ErrDeadlineExceeded } // of the Doer's own
	for _, test := range []struct {
		name    string
		answer  func(*http.Request) (*http.Response, error)
		meaning policy.RobotsStatus
		paths   []string
	}{
		{"a dead proxy", inTurn(refused, reply(200, closed)), policy.Rules, []string{robots, robots}},
		{"two dead proxies", inTurn(refused, timeout, reply(200, closed)), policy.Rules, []string{robots, robots, robots}},
		{"three dead proxies", inTurn(refused, refused, refused, reply(200, closed)), policy.Unreachable, []string{robots, robots, robots}},
		{"a cut body", inTurn(cut(200, closed), reply(200, closed)), policy.Rules, []string{robots, robots}},
		{"a response that is none", inTurn(func(*http.Request) (*http.Response, error) { return nil, nil }, reply(404, "")),
			policy.NoRobots, []string{robots, robots}},
		{"at a hop", inTurn(reply(301, "", "Location", hop), refused, reply(200, closed)), policy.Rules, []string{robots, hop, hop}},
		{"at each hop", inTurn(refused, reply(301, "", "Location", hop), refused, refused, reply(200, closed)), policy.Unreachable,
			[]string{robots, robots, hop, hop}},
		{"a redirect after all", inTurn(refused, reply(301, "", "Location", hop), reply(404, "")), policy.NoRobots, []string{robots, robots, hop}},
		{"a server in trouble", inTurn(reply(503, ""), reply(200, closed)), policy.Unreachable, []string{robots}},
		{"a redirect to nowhere", inTurn(reply(302, ""), reply(200, closed)), policy.Unreachable, []string{robots}},
		{"a panic", inTurn(func(*http.Request) (*http.Response, error) { panic("ouch") }, reply(200, closed)), policy.Unreachable, []string{robots}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCrawler(t, under(dialect.RFC9309()), test.answer)
			p := c.get(t)
			var paths []string
			for _, req := range c.site.requests {
				paths = append(paths, req.URL.Path)
			}
			if p.RobotsStatus != test.meaning || !slices.Equal(paths, test.paths) {
				t.Errorf("%v (%v) after %q, want %v after %q", p.RobotsStatus, p.Err(), paths, test.meaning, test.paths)
			}
			if p.RobotsStatus == policy.Rules && (p.Err() != nil || p.Failing()) {
				t.Errorf("read after all, but: %v", p.Err())
			}
		})
	}
}

// TestForbidden: what a Doer must not send is not tried again; a redirect to there is one that
// leads nowhere.
func TestForbidden(t *testing.T) {
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
		{"where a redirect leads", func() func(*http.Request) (*http.Response, error) {
			return inTurn(reply(301, "", "Location", "http://10.0.0.1/"), forbidden)
		}, 2, map[dialect.Dialect]policy.RobotsStatus{
			dialect.RFC9309(): policy.Unreachable, dialect.CocCoc(): policy.NoRobots}},
	} {
		for d, want := range test.want {
			c := newCrawler(t, under(d), test.answer())
			if p := c.get(t); p.RobotsStatus != want || !errors.Is(p.Err(), policy.ErrForbidden) || c.site.asked() != test.asked {
				t.Errorf("%s, %v: %v (%v) after %d requests, want %v after %d", test.name, d, p.RobotsStatus, p.Err(), c.site.asked(), want, test.asked)
			}
		}
	}
}

// TestForbiddenIsNotKept: that one caller may not ask says nothing to the next, and a copy outlives
// it.
func TestForbiddenIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := func(*http.Request) (*http.Response, error) { return nil, policy.ErrForbidden }
		c := newCrawler(t, under(dialect.RFC9309()), forbidden)
		if p := c.get(t); !p.Forbidden() || p.RobotsStatus != policy.Unreachable {
			t.Errorf("%v, %v", p.RobotsStatus, p.Err())
		}
		c.site.says(reply(200, closed))
		if p := c.get(t); p.Forbidden() || p.RobotsStatus != policy.Rules || allows(p, "/x") {
			t.Errorf("%v, %v", p.RobotsStatus, p.Err())
		}
		time.Sleep(25 * time.Hour)
		c.site.says(forbidden)
		if p := c.get(t); !p.Forbidden() {
			t.Errorf("%v, %v", p.RobotsStatus, p.Err())
		}
		c.site.says(refuse)
		if p := c.get(t); p.Forbidden() || p.RobotsStatus != policy.Unreachable || c.site.asked() != 6 {
			t.Errorf("%v, %v after %d requests", p.RobotsStatus, p.Err(), c.site.asked())
		}
	})
}

// TestTriesArePaced: each try waits for the host's turn as the first does, and the limit is one for
// all.
func TestTriesArePaced(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(*http.Request) (*http.Response, error) // of each try after its turn
		limit  time.Duration
		took   time.Duration
		tries  int
	}{
		{"at once", refused, 0, 3 * time.Minute, 3},
		{"ten seconds each", after(10*time.Second, refused), 0, 3*time.Minute + 30*time.Second, 3},
		{"the time is up at the second", after(20*time.Second, refused), 0, 2*time.Minute + policy.FetchLimit, 2},
		{"the time is up at the first", hang, 0, time.Minute + policy.FetchLimit, 1},
		{"the client's own time is up", hang, 300 * time.Millisecond, time.Minute + 300*time.Millisecond, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrawler(t, under(dialect.CocCoc()), nil)
				tries, start := 0, time.Now()
				p, err := c.Get(context.Background(), c.page, policy.Fetch{Limit: test.limit, Do: func(req *http.Request) (*http.Response, error) {
					tries++
					err := policy.Wait(req.Context(), func(context.Context) error { time.Sleep(time.Minute); return nil })
					if err != nil {
						return nil, err
					}
					return test.answer(req)
				}})
				if err != nil || p.RobotsStatus != policy.SiteDown {
					t.Fatalf("%+v, %v", p, err)
				}
				if took := time.Since(start); took != test.took || tries != test.tries {
					t.Errorf("%d tries in %v, want %d in %v", tries, took, test.tries, test.took)
				}
				if got := time.Until(p.Expires()); got != 10*time.Minute {
					t.Errorf("Coc Coc asks again after %v", got)
				}
			})
		})
	}
}

// TestNoTryForNobody: a caller who leaves during a try is no reason for another one.
func TestNoTryForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t, under(dialect.RFC9309()), hang)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.ask(ctx, c.page); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if c.site.asked() != 1 {
			t.Errorf("%d requests", c.site.asked())
		}
	})
}

// TestCauseOfNoResponse: why there was no response can be found by those who fail a page with it.
func TestCauseOfNoResponse(t *testing.T) {
	p := newCrawler(t, under(dialect.RFC9309()), refused).get(t)
	var none *policy.NoResponseError
	var urlErr *url.Error
	var opErr *net.OpError
	if err := p.Err(); !errors.As(err, &none) || !errors.As(err, &urlErr) || !errors.As(err, &opErr) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%#v", err)
	}
	p = newCrawler(t, under(dialect.RFC9309()), cut(200, closed)).get(t)
	if !errors.Is(p.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("%#v", p.Err())
	}
}

// TestCallersLimit: the caller's own limit counts where it is the shorter one, and Wait stops it as
// well.
func TestCallersLimit(t *testing.T) {
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
				t.Errorf("limit %v: %+v, %v", limit, p, err)
			}
			if took := time.Since(start); took != time.Minute+want {
				t.Errorf("limit %v: given up after %v", limit, took)
			}
			if !strings.Contains(p.Err().Error(), want.String()) {
				t.Errorf("limit %v: %v", limit, p.Err())
			}
		})
	}
}

// FuzzAnswer: whatever a server sends, there is a policy, it has a reason unless it was read, and
// it expires later than it was made but no later than a day.
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
			_ = c.Close()
			if p.Group() == nil || c.site.asked() > 6 {
				t.Fatalf("%+v after %d requests", p, c.site.asked())
			}
			if p.RobotsStatus != policy.Rules && p.Err() == nil && status/100 != 4 && !(d == dialect.CocCoc() && status/100 == 2) {
				t.Fatalf("%v without a reason", p.RobotsStatus)
			}
			if !p.Expires().After(before) || p.Expires().After(time.Now().Add(24*time.Hour)) {
				t.Fatalf("expires %v after the fetch", p.Expires().Sub(before))
			}
		}
	})
}
