package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A file is a sitemap that was requested.
type file struct {
	job
	body       *spool // nil if err is not nil
	sum        []byte // the checksum of body; set with Resume
	base       *url.URL
	coding     string // the Content-Encoding of the response, if it was not removed
	checks     checkpoints
	broken     bool          // a part of the file could not be read
	unreadable bool          // the file is not a sitemap
	entries    int           // the number of entries that were read
	err        error         // why there is no file, or why its rest is lost
	keys       []string      // the keys under which the file is claimed
	tries      int           // how many more requests may follow a failed one
	time       time.Duration // the time that is left for all requests
	panicked   any           // the value with which Get panicked
}

// name returns the URL of a file for a log, without a password.
func (x *file) name() string {
	if x.base != nil {
		return x.base.String()
	}
	if u, err := url.Parse(x.loc); err == nil {
		return u.Redacted()
	}
	return "an invalid URL"
}

var (
	// errUnchanged means that the sitemap has not changed since all of its pages were done.
	errUnchanged = errors.New("collyrobots: sitemap has not changed")
	// errRepeated means that the sitemap was already read in this crawl, under another URL.
	errRepeated  = errors.New("collyrobots: sitemap was already read")
	errScheme    = errors.New("collyrobots: not an http or https URL")
	errRedirects = errors.New("collyrobots: more than five redirects")
	// errNoPlace means that there is no temporary file for the part that memory does not keep.
	errNoPlace = errors.New("collyrobots: cannot create a temporary file for a large sitemap")
)

// A statusError is the status of a response that is not a sitemap.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("collyrobots: sitemap answered with status %d", int(s))
}

const (
	maxHops       = 5         // redirects that are followed for one file
	spoolInMemory = 128 << 10 // bytes of a sitemap that are kept in memory; most sitemaps are smaller
)

// open fetches the file of a job. It runs on its own goroutine. It reads the response to its end at
// once, so that no connection is held while the pages of the file wait for their turn.
func (w *walk) open(ctx context.Context, j job) (x *file) {
	x = &file{job: j}
	if !j.reread {
		x.keys = []string{j.key} // claimed by the walk
	}
	defer func() { x.panicked = recover() }()
	if w.Resume {
		x.checks = w.newCheckpoints(ctx, &j, j.scope.names, j.level < fresh)
	}
	x.err = w.fetch(ctx, x)
	return x
}

// moreTries is how often the request for a file is repeated after a failure.
const moreTries = 2

// fetch follows the redirects of the URL of a file and reads the response. It repeats a request
// that has failed for a temporary reason. Each request waits for its turn at the host.
func (w *walk) fetch(ctx context.Context, x *file) error {
	u, err := url.Parse(x.loc)
	if err != nil {
		return redact.ParseError(err)
	}
	x.tries, x.time = moreTries, w.spent.patience()
	for hops, by := 0, x.by; ; hops++ {
		a, err := w.ask(ctx, x, by, u, hops)
		for a.mayPass(err) && w.mayTryAgain(ctx, x) {
			a.body.Close()
			a, err = w.ask(ctx, x, by, u, hops)
		}
		if err != nil {
			return err
		}
		if !a.isRedirect() {
			if hops > 0 {
				a.header.Del("ETag") // these validators belong to another URL than the one that the next run requests
				a.header.Del("Last-Modified")
			}
			u.User = nil // the URL may be logged
			x.base = u
			if x.root == "" && w.Resume {
				w.recallHop(ctx, x)
			}
			return w.receive(x, a)
		}
		by = u
		if u, err = u.Parse(a.header.Get("Location")); err != nil {
			return err
		}
		if hops == maxHops {
			return errRedirects
		}
		if err := w.claimHop(x, u); err != nil {
			return err
		}
	}
}

// An answer is the response of a server to one request for a file.
type answer struct {
	sent   bool // the request was sent
	status int
	header http.Header
	coding string // the Content-Encoding of the body, if it was not removed
	body   *spool // nil unless status is 200
	large  bool   // the number of compressed bytes has reached the limit
}

func (a *answer) isRedirect() bool {
	return a.status >= 300 && a.status < 400 && a.header.Get("Location") != ""
}

// mayPass reports whether a second request may succeed where this one has failed: the connection or
// the transfer failed, or the status indicates a temporary problem.
func (a *answer) mayPass(err error) bool {
	switch {
	case err != nil:
		return a.sent && !errors.Is(err, errNoPlace)
	case a.body != nil:
		return a.body.err != io.EOF && !a.large && !errors.Is(a.body.err, gzip.ErrHeader)
	}
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayTryAgain reports whether a file may be requested again. If so, it charges the failed request
// to the site.
func (w *walk) mayTryAgain(ctx context.Context, x *file) bool {
	if x.tries == 0 || x.time <= 0 || ctx.Err() != nil || w.spent.over() != nil {
		return false
	}
	x.tries--
	w.spent.spend(func(s *spending) { s.cost.Failures++ })
	w.Log.Debug("sitemap request failed, trying again", "sitemap", x.name(), "count", moreTries-x.tries)
	return true
}

// ask makes one request for a file. It reads the body of the response if that may be a sitemap.
func (w *walk) ask(ctx context.Context, x *file, by, u *url.URL, hops int) (a answer, err error) {
	header := make(http.Header)
	if hops == 0 && !x.reread {
		x.checks.ask(header)
	}
	resp, began, err := w.get(ctx, by, u, header, x.time)
	a.sent = !began.IsZero()
	if a.sent {
		defer func() {
			took := time.Since(began)
			x.time -= took
			w.spent.spend(func(s *spending) { s.cost.Time += took })
		}()
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	if a.status != http.StatusOK {
		return a, nil
	}
	var body io.Reader = resp.Body
	raw := &io.LimitedReader{R: resp.Body, N: w.limits.Raw}
	a.coding = resp.Header.Get("Content-Encoding")
	if strings.EqualFold(a.coding, "gzip") {
		body = &unzipped{raw: raw}
		a.coding = ""
	}
	a.body, err = keep(io.LimitReader(body, min(w.limits.Raw, w.spent.octets())+1))
	a.large = raw.N <= 0
	w.spent.spend(func(s *spending) { s.cost.Bytes += a.body.size })
	return a, err
}

// recallHop adds the checkpoints for the host to which the redirects of a root have led, because
// the root also speaks for that host.
func (w *walk) recallHop(ctx context.Context, x *file) {
	s := newScope(x.scope.kind)
	s.addURL(x.base.String())
	for _, name := range s.names {
		if !slices.Contains(x.scope.names, name) {
			x.checks = append(x.checks, w.newCheckpoints(ctx, &x.job, []string{name}, true)...)
		}
	}
}

// claimHop claims the target of a redirect.
func (w *walk) claimHop(x *file, u *url.URL) error {
	key := keyOf(u)
	if slices.Contains(x.keys, key) || x.reread {
		return nil
	}
	if !w.once.claim(&x.job, u.String(), key) {
		return errRepeated
	}
	x.keys = append(x.keys, key)
	return nil
}

// get makes one exchange unless the budget is spent. The exchange may take the time that is left
// for the file.
func (w *walk) get(ctx context.Context, by, u *url.URL, header http.Header, left time.Duration) (*http.Response, time.Time, error) {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, time.Time{}, errScheme
	}
	if limit := w.spent.over(); limit != nil {
		return nil, time.Time{}, limit
	}
	return w.crawl.Get(ctx, w.site, by, u, header, max(min(left, w.spent.patience()), 1))
}

// receive takes the final response for a file and updates the checkpoints.
func (w *walk) receive(x *file, a answer) error {
	if a.status == http.StatusNotModified {
		return errUnchanged
	}
	if a.status != http.StatusOK {
		return statusError(a.status)
	}
	x.coding = a.coding
	x.body = a.body
	if len(x.checks) == 0 {
		return nil
	}
	x.sum = x.body.sum(x.body.size)
	unchanged, err := x.checks.opened(x, a, sync.OnceValue(func() error { return w.endsEarly(x) }))
	if err == nil && unchanged && !x.reread {
		err = errUnchanged
	}
	if err != nil {
		return errors.Join(err, x.body.Close())
	}
	return nil
}

// endsEarly returns the error that keeps a fetched file from being read to its end, if a later
// request may get a complete file. Otherwise it returns nil.
func (w *walk) endsEarly(x *file) error {
	if x.body.err != io.EOF {
		return x.body.err
	}
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = w.Limits
	for _, err := range r.All() {
		fault, limit := (*sitemap.Error)(nil), (*sitemap.LimitError)(nil)
		if errors.As(err, &fault) && fault.Severity == sitemap.SeverityFile {
			if errors.As(err, &limit) {
				return nil
			}
			return err
		}
	}
	return nil
}

// unzipped decompresses raw, as net/http would do if the request had not asked for gzip itself. Then
// the number of compressed bytes would have no limit.
type unzipped struct {
	raw  io.Reader
	gzip *gzip.Reader // nil before the first Read
}

// Read implements io.Reader.
func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.gzip == nil {
		if u.gzip, err = gzip.NewReader(u.raw); err != nil {
			u.gzip = nil
			return 0, err
		}
	}
	return u.gzip.Read(p)
}

// A spool holds a sitemap that was received, in memory or in a temporary file.
type spool struct {
	size   int64 // the number of bytes that were received
	head   []byte
	file   *os.File // holds the bytes after head; nil if there are none
	remove bool     // Close must remove the file, because it could not be removed while it is open
	err    error    // io.EOF, or the error that cut the transfer off
}

// keep reads r until it ends or fails. If err is not nil, s has only a size.
func keep(r io.Reader) (s *spool, err error) {
	head := new(bytes.Buffer)
	n, err := io.CopyN(head, r, spoolInMemory)
	s = &spool{size: n, head: head.Bytes(), err: err}
	if err != nil {
		return s, nil
	}
	s.file, err = os.CreateTemp("", "collyrobots-sitemap-*")
	if err != nil {
		return &spool{size: n}, errors.Join(errNoPlace, err)
	}
	s.remove = os.Remove(s.file.Name()) != nil
	rest, err := io.Copy(s.file, r)
	s.size += rest
	s.err = err
	if err == nil {
		s.err = io.EOF
	}
	return s, nil
}

// open returns a reader of the sitemap from its beginning. The reader ends with s.err.
func (s *spool) open() io.Reader {
	end := failure{s.err}
	if s.file == nil {
		return io.MultiReader(bytes.NewReader(s.head), end)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		end.err = err
	}
	return io.MultiReader(bytes.NewReader(s.head), s.file, end)
}

// sum returns the checksum of the first n bytes that were received.
func (s *spool) sum(n int64) []byte {
	h := sha256.New()
	io.CopyN(h, s.open(), n) // if the disk cannot be read, parsing the file fails as well
	return h.Sum(nil)
}

// beginsWith reports whether the file is longer than n bytes and sum is the checksum of its first n
// bytes.
func (s *spool) beginsWith(n int64, sum []byte) bool {
	return s.size > n && bytes.Equal(s.sum(n), sum)
}

// cutSize returns how many bytes were received if the transfer was cut off, and otherwise 0.
func (s *spool) cutSize() int64 {
	if s.err == io.EOF {
		return 0
	}
	return s.size
}

func (s *spool) Close() error {
	if s == nil || s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.remove {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

// A failure is a reader that always fails.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }
