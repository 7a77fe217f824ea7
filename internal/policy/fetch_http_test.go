package policy_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestOverHTTP: the same on a real wire, where net/http decompresses and notices what ends early.
func TestOverHTTP(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve http.HandlerFunc
		want  policy.Meaning
	}{
		{"plain", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, closed) }, policy.Rules},
		{"gzip", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" || r.Header.Get("Cookie") != "" {
				t.Errorf("header %v", r.Header)
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, closed)
			_ = z.Close()
		}, policy.Rules},
		{"fewer octets than announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, closed)
		}, policy.Unreachable},
		{"a reset in a chunked body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, closed)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, policy.Unreachable},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
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
			if err != nil || p.Meaning != test.want || allows(p, "/x") {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	server := httptest.NewServer(nil)
	server.Close()
	c := policy.New(under(dialect.CocCoc()))
	defer c.Close()
	p, err := c.Get(context.Background(), authority(server.URL+"/x"), policy.Fetch{Do: server.Client().Do, UserAgent: agent})
	if err != nil || p.Meaning != policy.SiteDown {
		t.Errorf("nobody listens: %+v, %v", p, err)
	}
}
