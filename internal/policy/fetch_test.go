package policy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestRequest: one plain GET at the root, with the page's user agent and nothing else, at every hop.
func TestRequest(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), redirects(2, 302, "http://user:pw@other.example/r#f", reply(200, closed)))
	c.page = parse("https://user:pw@EXAMPLE.com:443/a/b?c#d")
	p := c.get(t)
	var urls []string
	for _, req := range c.site.requests {
		urls = append(urls, req.Method+" "+req.URL.String())
		if len(req.Header) != 1 || req.Header.Get("User-Agent") != agent || req.Body != nil {
			t.Errorf("%v: %v", req.URL, req.Header)
		}
	}
	want := []string{"GET https://example.com/robots.txt", "GET https://example.com/hopp", "GET http://other.example/r"}
	if !slices.Equal(urls, want) {
		t.Errorf("requests %q, want %q", urls, want)
	}
	if p.Authority != "https://example.com" || p.RobotsURL != "https://example.com/robots.txt" || allows(p, "/x") {
		t.Errorf("%+v", p)
	}
	// What the other authority served does not govern it.
	c.site.says(reply(404, ""))
	if p, err := c.Get(context.Background(), parse("http://other.example/x"), agent, c.site.do); err != nil || !allows(p, "/x") {
		t.Errorf("the other authority: %+v, %v", p, err)
	}
}

func TestUngoverned(t *testing.T) {
	c := newCrawler(t, under(dialect.RFC9309()), reply(200, closed))
	for _, raw := range []string{"mailto:a@b.example", "file:///etc/passwd", "/x", "http:///x", "gopher://h/"} {
		if p, err := c.Get(context.Background(), parse(raw), agent, c.site.do); err == nil {
			t.Errorf("%s is governed by %s", raw, p.RobotsURL)
		}
		c.Answered(parse(raw))
	}
	if p, err := c.Get(context.Background(), parse("ftp://h.example/x"), agent, c.site.do); err != nil || allows(p, "/x") {
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
		{"gzip without an end", reply(200, zipped(closed)[:30], "Content-Encoding", "gzip"), "disallow_all"},
		{"gzip that is none", reply(200, closed, "Content-Encoding", "gzip"), "disallow_all"},
		{"an unknown coding", reply(200, closed, "Content-Encoding", "br"), "disallow_all"},
		{"a cut body", cut(closed), "disallow_all"},
		{"an empty body", reply(200, ""), "allow_all"},
		{"HTML", reply(200, "<html>\n"+closed+"</html>", "Content-Type", "text/html"), "follow"},
		{"a byte order mark", reply(200, "\ufeff"+closed), "follow"},
		{"no body is read of a 404", reply(404, zipped(closed), "Content-Encoding", "br"), "allow_all"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newCrawler(t, under(dialect.RFC9309()), test.answer).get(t)
			if got := state(p, "/x"); got != test.state {
				t.Errorf("%s, want %s: %v", got, test.state, p.Err)
			}
		})
	}
}

// TestEndlessBody: an endless body is read to the limit and no further, compressed or not.
func TestEndlessBody(t *testing.T) {
	for _, header := range [][]string{nil, {"Content-Encoding", "gzip"}} {
		body := &endless{}
		if header != nil {
			// A header, then stored blocks of no octets for ever: input without output.
			body.prefix = []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
			body.block = []byte("\x00\x00\x00\xff\xff")
		} else {
			body.block = []byte("Disallow: /x\n")
		}
		newCrawler(t, under(dialect.RFC9309()), func(req *http.Request) (*http.Response, error) {
			resp, err := reply(200, "", header...)(req)
			resp.Body = io.NopCloser(body)
			return resp, err
		}).get(t)
		if body.read > 4*dialect.SizeLimit {
			t.Errorf("%d octets read", body.read)
		}
	}
}

type endless struct {
	prefix, block []byte
	read          int
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

// TestTimeLimit: a slow server has FetchLimit for all of its answers, and the time in Wait is not counted.
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
		want   policy.Meaning
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
				if took := time.Since(start); took != test.took || p.Meaning != test.want {
					t.Errorf("%v (%v) after %v, want %v after %v", p.Meaning, p.Err, took, test.want, test.took)
				}
				if timeout := errors.Is(p.Err, context.DeadlineExceeded); timeout != (test.want == policy.Unreachable) {
					t.Errorf("the reason is %v", p.Err)
				}
			})
		})
	}
}

// FuzzAnswer: whatever a server sends, there is a policy, it has a reason unless it was read, and it expires later than
// it was made but no later than a day.
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
			if p.Group == nil || c.site.asked() > 6 {
				t.Fatalf("%+v after %d requests", p, c.site.asked())
			}
			if p.Meaning != policy.Rules && p.Err == nil && status/100 != 4 && !(d == dialect.CocCoc() && status/100 == 2) {
				t.Fatalf("%v without a reason", p.Meaning)
			}
			if !p.Expires.After(before) || p.Expires.After(time.Now().Add(24*time.Hour)) {
				t.Fatalf("expires %v after the fetch", p.Expires.Sub(before))
			}
		}
	})
}
