// Package robotsfile keeps the text of the robots.txt files that the plugins of a program read.
// Programs need it for facts that a Decision does not have: the line with the crawl delay, and the
// line that makes a dialect refuse the file.
package robotsfile

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/collyrobots/collyrobots/dialect"
)

// Files is a transport that keeps the robots.txt files in its responses. Get one from New. It may
// be used by several goroutines at once.
type Files struct {
	next http.RoundTripper

	mu     sync.Mutex
	texts  map[string][]byte // by the URL of the robots.txt
	owners map[string]string // the URL of the robots.txt, by the target of its redirect
}

// New returns a transport that sends its requests through next.
func New(next http.RoundTripper) *Files {
	return &Files{next: next, texts: make(map[string][]byte), owners: make(map[string]string)}
}

// Unwrap returns the transport that f sends its requests through.
func (f *Files) Unwrap() http.RoundTripper { return f.next }

// Text returns the text that was last read from the robots.txt with this URL, also if the text came
// after redirects. The text has at most one byte more than [dialect.SizeLimit]. If no text was
// read, ok is false.
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

// ownerOf returns the URL of the robots.txt that a request for u reads. It returns "" if the
// request does not read a robots.txt.
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

// A body keeps the text that is read from it.
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
