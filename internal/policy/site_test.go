package policy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/internal/policy"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	agent  = "ExampleBot/1.0 (+https://example.com/bot)"
	closed = "User-agent: *\nDisallow: /x\n"
)

// site answers requests for robots.txt by its current answer, which a test may change.
type site struct {
	mu       sync.Mutex
	answer   func(*http.Request) (*http.Response, error)
	requests []*http.Request
}

func (s *site) do(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, req)
	answer := s.answer
	s.mu.Unlock()
	resp, err := answer(req)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

func (s *site) says(answer func(*http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *site) last() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

// reply returns an answer with this status, body and header; the header is given as names and
// values.
func reply(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body))}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Add(header[i], header[i+1])
		}
		return resp, nil
	}
}

var errReset = errors.New("connection reset by peer")

func refuse(*http.Request) (*http.Response, error) { return nil, errReset }

// hang returns when the request is canceled.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// cut returns an answer whose body is truncated.
func cut(status int, text string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(text), errorReader{io.ErrUnexpectedEOF})
		return &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(body)}, nil
	}
}

type errorReader struct{ err error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.err }

// redirects returns an answer that redirects n times with status, and then answers as then does.
// The last redirect leads to the URL to, if it is not empty.
func redirects(n, status int, to string, then func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	followed := 0
	return func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/robots.txt" {
			followed = 0
		}
		if followed == n {
			followed = 0
			return then(req)
		}
		followed++
		next := fmt.Sprintf("/redirect%d", followed)
		if followed == n && to != "" {
			next = to
		}
		return reply(status, "", "Location", next)(req)
	}
}

// crawler is a cache under test in front of one site.
type crawler struct {
	*policy.Cache
	site *site
	page dialect.Authority
}

func newCrawler(t *testing.T, o policy.Options, answer func(*http.Request) (*http.Response, error)) *crawler {
	t.Helper()
	if o.Tokens == nil {
		o.Tokens = []string{"ExampleBot"}
	}
	c := &crawler{Cache: policy.New(o), site: &site{answer: answer}, page: authority("https://example.com/page")}
	t.Cleanup(c.Close)
	return c
}

func under(d dialect.Dialect) policy.Options { return policy.Options{Dialect: d} }

func (c *crawler) get(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := c.ask(context.Background(), c.page)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return p
}

func (c *crawler) ask(ctx context.Context, a dialect.Authority) (*policy.Policy, error) {
	return c.Get(ctx, a, policy.Fetch{Do: c.site.do, UserAgent: agent})
}

// allows reports whether p allows a crawler to request target.
func allows(p *policy.Policy, target string) bool {
	switch p.RobotsStatus {
	case policy.NoRobots:
		return true
	case policy.Rules:
		return p.Group().Decide(target).Allowed
	default:
		return false
	}
}

// authority returns the authority of the page at raw, or the zero value if it has none.
func authority(raw string) dialect.Authority {
	a, _ := dialect.AuthorityOf(parse(raw))
	return a
}

func parse(raw string) *url.URL {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u
}
