package feed

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A file is a sitemap that was requested.
type file struct {
	job
	body       *spool // nil if err is not nil
	base       *url.URL
	coding     string // the Content-Encoding of the response, if it was not removed
	checks     resume.Checkpoints
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
)

// A statusError is the status of a response that is not a sitemap.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("collyrobots: sitemap answered with status %d", int(s))
}

const (
	maxRedirects = 5 // that are followed for one file
	maxRetries   = 2 // how often a request for one file is repeated after a failure
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
		x.checks = w.checkpoints(ctx, &j, j.scope.names, j.level != resume.Fresh)
	}
	x.err = w.fetch(ctx, x)
	return x
}

// checkpoints returns the checkpoints of the file of a job for names. If recall is true, they have
// the records of an earlier run. Names for which the file was already read in this run have no
// checkpoint.
func (w *walk) checkpoints(ctx context.Context, j *job, names []string, recall bool) (cs resume.Checkpoints) {
	for _, name := range names {
		switch {
		case !j.reread && w.once.isDone(j.key, name):
		case recall:
			cs = append(cs, w.journal.Recall(ctx, j.key, name))
		default:
			cs = append(cs, w.journal.New(j.key, name))
		}
	}
	return cs
}

// fetch follows the redirects of the URL of a file and reads the response. Each request waits for
// its turn at the host.
func (w *walk) fetch(ctx context.Context, x *file) error {
	u, err := url.Parse(x.loc)
	if err != nil {
		return redact.ParseError(err)
	}
	x.tries = maxRetries
	x.time = w.spent.timeForFile()
	by := x.by
	for redirects := 0; ; redirects++ {
		a, err := w.request(ctx, x, by, u, redirects == 0 && !x.reread)
		if err != nil {
			return err
		}
		if !a.isRedirect() {
			if redirects > 0 {
				// These validators belong to another URL than the one that the next run requests.
				a.header.Del("ETag")
				a.header.Del("Last-Modified")
			}
			return w.receive(ctx, x, u, a)
		}
		target, err := u.Parse(a.header.Get("Location"))
		if err != nil {
			return err
		}
		if redirects == maxRedirects {
			return errRedirects
		}
		if err := w.claimTarget(x, target); err != nil {
			return err
		}
		by = u
		u = target
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
	w.Log.Debug("sitemap request failed, trying again", "sitemap", x.name(), "count", maxRetries-x.tries)
	return true
}

// request requests u, and repeats the request if it has failed for a temporary reason. by is the
// URL that leads to u.
func (w *walk) request(ctx context.Context, x *file, by, u *url.URL, conditional bool) (answer, error) {
	for {
		a, err := w.requestOnce(ctx, x, by, u, conditional)
		if !a.mayPass(err) || !w.mayTryAgain(ctx, x) {
			return a, err
		}
		a.body.Close()
	}
}

// requestOnce makes one request for a file. It reads the body of the response if that may be a
// sitemap.
func (w *walk) requestOnce(ctx context.Context, x *file, by, u *url.URL, conditional bool) (a answer, err error) {
	header := make(http.Header)
	if conditional {
		x.checks.SetConditions(header)
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
	a.status = resp.StatusCode
	a.header = resp.Header
	if a.status == http.StatusOK {
		err = w.download(&a, resp.Body)
	}
	return a, err
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
	return w.crawl.Get(ctx, w.site, by, u, header, max(min(left, w.spent.timeForFile()), 1))
}

// download reads the body of a response.
func (w *walk) download(a *answer, body io.Reader) (err error) {
	raw := &io.LimitedReader{R: body, N: w.limits.Raw}
	a.coding = a.header.Get("Content-Encoding")
	if strings.EqualFold(a.coding, "gzip") {
		body = &unzipped{raw: raw}
		a.coding = ""
	}
	a.body, err = keep(io.LimitReader(body, min(w.limits.Raw, w.spent.bytesLeft())+1))
	a.large = raw.N <= 0
	w.spent.spend(func(s *spending) { s.cost.Bytes += a.body.size })
	return err
}

// claimTarget claims the target of a redirect.
func (w *walk) claimTarget(x *file, u *url.URL) error {
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

// receive takes the final response for a file, which came from u, and updates the checkpoints.
func (w *walk) receive(ctx context.Context, x *file, u *url.URL, a answer) error {
	u.User = nil // the URL may be logged
	x.base = u
	if x.root == "" && w.Resume {
		w.addTargetCheckpoints(ctx, x)
	}
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
	unchanged, err := x.checks.Opened(&resume.Response{
		Header:    a.header,
		Size:      x.body.size,
		Cut:       x.body.err != io.EOF,
		Sum:       x.body.sum(x.body.size),
		SumOf:     x.body.sum,
		EndsEarly: sync.OnceValue(func() error { return w.endsEarly(x) }),
	})
	if err == nil && unchanged && !x.reread {
		err = errUnchanged
	}
	if err != nil {
		return errors.Join(err, x.body.Close())
	}
	return nil
}

// addTargetCheckpoints adds the checkpoints for the host to which the redirects of a root have led,
// because the root also speaks for that host.
func (w *walk) addTargetCheckpoints(ctx context.Context, x *file) {
	s := newScope(x.scope.kind)
	s.addURL(x.base.String())
	for _, name := range s.names {
		if !slices.Contains(x.scope.names, name) {
			x.checks = append(x.checks, w.checkpoints(ctx, &x.job, []string{name}, true)...)
		}
	}
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
		var fault *sitemap.Error
		if !errors.As(err, &fault) || fault.Severity != sitemap.SeverityFile {
			continue
		}
		var limit *sitemap.LimitError
		if errors.As(err, &limit) {
			return nil
		}
		return err
	}
	return nil
}
