package policy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestOverHTTP fetches over real connections, where net/http detects truncated bodies.
func TestOverHTTP(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  policy.RobotsStatus
	}{
		{"plain", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, closed) }, policy.Rules},
		{"gzip", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" || r.Header.Get("Cookie") != "" {
				t.Errorf("got header %v, want gzip and no cookie", r.Header)
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, closed)
			_ = z.Close()
		}, policy.Rules},
		{"fewer bytes than Content-Length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, closed)
		}, policy.Unreachable},
		{"a reset in a chunked body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, closed)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, policy.Unreachable},
		{"a server that does not speak HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n")
				_ = conn.Close()
			}
		}, policy.Unreachable},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				http.Redirect(w, r, "/r", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, closed)
		}, policy.Rules},
		{"five megabytes", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, closed+strings.Repeat("# comment\n", 500_000))
		}, policy.Rules},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.serve)
			defer server.Close()
			client := server.Client()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			c := policy.New(under(dialect.RFC9309()))
			defer c.Close()
			p, err := c.Get(context.Background(), authority(server.URL+"/x"), policy.Fetch{Do: client.Do, UserAgent: agent})
			if err != nil || p.RobotsStatus != test.want || allows(p, "/x") {
				t.Errorf("got %+v, %v, want %v", p, err, test.want)
			}
		})
	}
}

// TestEndlessGzip reads a gzip stream of empty members over HTTP. net/http must not decompress it,
// because it would read for ever without returning a byte.
func TestEndlessGzip(t *testing.T) {
	var member bytes.Buffer
	_ = gzip.NewWriter(&member).Close()
	members := bytes.Repeat(member.Bytes(), 1000)
	for _, test := range []struct {
		dialect dialect.Dialect
		limit   int64
	}{
		{dialect.RFC9309(), 2 * dialect.SizeLimit},
		{dialect.Google(), 2 * dialect.SizeLimit},
		{dialect.Temoto(), 8 << 20},
	} {
		t.Run(fmt.Sprint(test.dialect), func(t *testing.T) {
			received := new(countingBody)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				for sent := int64(0); sent < 16*test.limit; sent += int64(len(members)) {
					if _, err := w.Write(members); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			do := func(req *http.Request) (*http.Response, error) {
				resp, err := server.Client().Do(req)
				if err == nil {
					received.ReadCloser = resp.Body
					resp.Body = received
				}
				return resp, err
			}
			c := policy.New(under(test.dialect))
			defer c.Close()
			p, err := c.Get(t.Context(), authority(server.URL+"/x"), policy.Fetch{Do: do, UserAgent: agent})
			if err != nil {
				t.Fatal(err)
			}
			coding := (*policy.CodingError)(nil)
			if allows(p, "/x") || !errors.As(p.Err(), &coding) {
				t.Errorf("got %v, %v, want a CodingError", p.RobotsStatus, p.Err())
			}
			const buffer = 4 << 10
			if received.n == 0 || received.n > test.limit+buffer {
				t.Errorf("%d compressed bytes were read, want at most %d and a buffer", received.n, test.limit)
			}
		})
	}
}

// A countingBody counts the bytes that are read.
type countingBody struct {
	io.ReadCloser
	n int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}

// TestNoServer fetches from a port on which no server listens.
func TestNoServer(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c := policy.New(under(dialect.CocCoc()))
	defer c.Close()
	p, err := c.Get(context.Background(), authority(server.URL+"/x"), policy.Fetch{Do: server.Client().Do, UserAgent: agent})
	if err != nil || p.RobotsStatus != policy.SiteDown {
		t.Errorf("got %+v, %v, want site_down", p, err)
	}
}
