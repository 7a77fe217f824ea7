// Package robotsfile keeps the robots.txt files that a program's plugins read, for what a Decision
// does not tell: the line that a delay stands in, or the one for which a dialect refuses the file.
package robotsfile

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
)

// Files is a transport that keeps the robots.txt files which come through it. Get one from New; it
// may be used by any number of goroutines.
type Files struct {
	next http.RoundTripper

	mu     sync.Mutex
	texts  map[string][]byte // by the URL of the robots.txt
	owners map[string]string // the URL of the robots.txt, by that which it was redirected to
}

// New returns a transport that sends its requests by another one.
func New(next http.RoundTripper) *Files {
	return &Files{next: next, texts: make(map[string][]byte), owners: make(map[string]string)}
}

// Text returns what was read last from a robots.txt with this URL, redirects followed: at most one
// octet more than [dialect.SizeLimit]. It is false for one that there is none of.
func (f *Files) Text(robotsURL string) (text []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok = f.texts[robotsURL]
	return text, ok
}

// RoundTrip implements http.RoundTripper.
func (f *Files) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.next.RoundTrip(r)
	owner := f.ownerOf(r.URL)
	if err != nil || owner == "" {
		return resp, err
	}
	switch to, _ := resp.Location(); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && to != nil:
		f.mu.Lock()
		f.owners[to.String()] = owner
		f.mu.Unlock()
	case resp.StatusCode >= 200 && resp.StatusCode < 300 && resp.Header.Get("Content-Encoding") == "":
		resp.Body = &body{ReadCloser: resp.Body, files: f, owner: owner}
	}
	return resp, nil
}

// ownerOf returns the URL of the robots.txt that is asked for at u, or "".
func (f *Files) ownerOf(u *url.URL) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if owner := f.owners[u.String()]; owner != "" {
		return owner
	}
	if robots, err := dialect.Locate(u); err == nil && u.Path == robots.Path && u.RawQuery == "" {
		return robots.String()
	}
	return ""
}

// A body keeps what is read of it.
type body struct {
	io.ReadCloser
	files *Files
	owner string
	text  bytes.Buffer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.text.Write(p[:min(n, dialect.SizeLimit+1-b.text.Len())])
	return n, err
}

func (b *body) Close() error {
	b.files.mu.Lock()
	b.files.texts[b.owner] = b.text.Bytes()
	b.files.mu.Unlock()
	return b.ReadCloser.Close()
}
