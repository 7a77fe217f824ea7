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

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

var (
	// errUnchanged means that the sitemap has not changed since all of its pages were done.
	errUnchanged = errors.New("sitemap has not changed")
	// errRepeated means that the sitemap was already read in this crawl, under another URL.
	errRepeated  = errors.New("sitemap was already read")
	errScheme    = errors.New("not an http or https URL")
	errRedirects = errors.New("more than five redirects")
)

// A statusError is the status of a response that is not a sitemap.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("sitemap answered with status %d", int(s))
}

const (
	maxRedirects = 5 // that are followed for one file
	maxRetries   = 2 // how often a request for one file is repeated after a failure
)

// A fetcher requests the sitemaps of one site. Its methods may be called from several goroutines at
// the same time.
type fetcher struct {
	*Feed
	crawl Crawl
	site  dialect.Authority
	spent spending
}

// open fetches the file of a job. It runs on its own goroutine. It reads the response to its end at
// once, so that no connection is held while the pages of the file wait for their turn.
func (f *fetcher) open(ctx context.Context, j job) (x *file) {
	x = &file{job: j}
	if !j.reread {
		x.keys = []string{j.key} // claimed by the caller
	}
	defer func() { x.panicked = recover() }()
	if f.Resume {
		x.checks = f.checkpoints(ctx, &j, j.scope.names, j.level != resume.Fresh)
	}
	x.err = f.fetch(ctx, x)
	return x
}

// checkpoints returns the checkpoints of the file of a job for names. If recall is true, they have
// the records of an earlier run. If the file was already read for a name in this run, that name has
// no checkpoint.
func (f *fetcher) checkpoints(ctx context.Context, j *job, names []string, recall bool) (cs resume.Checkpoints) {
	for _, name := range names {
		switch {
		case !j.reread && f.once.isDone(j.key, name):
		case recall:
			cs = append(cs, f.journal.Recall(ctx, j.key, name))
		default:
			cs = append(cs, f.journal.NewCheckpoint(j.key, name))
		}
	}
	return cs
}

// fetch follows the redirects of the URL of a file and reads the response. Each request waits for
// its turn at the host.
func (f *fetcher) fetch(ctx context.Context, x *file) error {
	u, err := url.Parse(x.loc)
	if err != nil {
		return redact.ParseError(err)
	}
	x.tries = maxRetries
	x.time = f.spent.timeForFile()
	by := x.by
	header := make(http.Header)
	if !x.reread {
		x.checks.SetConditions(header)
	}
	for redirects := 0; ; redirects++ {
		a, err := f.request(ctx, x, Request{URL: u, By: by, Site: f.site, Header: header})
		if err != nil {
			return err
		}
		if !a.isRedirect() {
			if redirects > 0 {
				// These validators belong to another URL than the one that the next run requests.
				a.header.Del("ETag")
				a.header.Del("Last-Modified")
			}
			return f.receive(ctx, x, u, a)
		}
		target, err := u.Parse(a.header.Get("Location"))
		if err != nil {
			return err
		}
		if redirects == maxRedirects {
			return errRedirects
		}
		if err := f.claimTarget(x, target); err != nil {
			return err
		}
		by = u
		u = target
		header = make(http.Header) // the conditions belong to the first URL
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
func (f *fetcher) mayTryAgain(ctx context.Context, x *file) bool {
	if x.tries == 0 || x.time <= 0 || ctx.Err() != nil || f.spent.over() != nil {
		return false
	}
	x.tries--
	f.spent.spend(func(s *spending) { s.cost.Failures++ })
	f.Log.Debug("sitemap request failed, trying again", "sitemap", x.name(), "count", maxRetries-x.tries)
	return true
}

// request makes a request for a file, and repeats it if it has failed for a temporary reason.
func (f *fetcher) request(ctx context.Context, x *file, r Request) (answer, error) {
	for {
		a, err := f.requestOnce(ctx, x, r)
		if !a.mayPass(err) || !f.mayTryAgain(ctx, x) {
			return a, err
		}
		if a.body != nil {
			a.body.Close()
		}
	}
}

// requestOnce makes one request for a file. It reads the body of the response if that may be a
// sitemap.
func (f *fetcher) requestOnce(ctx context.Context, x *file, r Request) (a answer, err error) {
	r.Header = r.Header.Clone()
	r.Timeout = max(min(x.time, f.spent.timeForFile()), 1)
	resp, began, err := f.get(ctx, r)
	a.sent = !began.IsZero()
	if a.sent {
		defer func() {
			took := time.Since(began)
			x.time -= took
			f.spent.spend(func(s *spending) { s.cost.Time += took })
		}()
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status = resp.StatusCode
	a.header = resp.Header
	if a.status == http.StatusOK {
		err = f.download(&a, resp.Body)
	}
	return a, err
}

// get makes one exchange unless the budget is spent.
func (f *fetcher) get(ctx context.Context, r Request) (*http.Response, time.Time, error) {
	if r.URL.Scheme != "http" && r.URL.Scheme != "https" || r.URL.Host == "" {
		return nil, time.Time{}, errScheme
	}
	if limit := f.spent.over(); limit != nil {
		return nil, time.Time{}, limit
	}
	return f.crawl.Get(ctx, r)
}

// download reads the body of a response.
func (f *fetcher) download(a *answer, body io.Reader) (err error) {
	raw := &io.LimitedReader{R: body, N: f.limits.Raw}
	a.coding = a.header.Get("Content-Encoding")
	if strings.EqualFold(a.coding, "gzip") {
		body = &unzipped{raw: raw}
		a.coding = ""
	}
	a.body, err = keep(io.LimitReader(body, min(f.limits.Raw, f.spent.bytesLeft())+1))
	a.large = raw.N <= 0
	f.spent.spend(func(s *spending) { s.cost.Bytes += a.body.size })
	return err
}

// claimTarget claims the target of a redirect.
func (f *fetcher) claimTarget(x *file, u *url.URL) error {
	key := keyOf(u)
	if slices.Contains(x.keys, key) || x.reread {
		return nil
	}
	if !f.once.claim(&x.job, u.String(), key) {
		return errRepeated
	}
	x.keys = append(x.keys, key)
	return nil
}

// receive takes the final response for a file, which came from u, and updates the checkpoints.
func (f *fetcher) receive(ctx context.Context, x *file, u *url.URL, a answer) error {
	u.User = nil // the URL may be logged
	x.base = u
	if x.root == "" && f.Resume {
		f.addTargetCheckpoints(ctx, x)
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
		EndsEarly: sync.OnceValue(func() error { return f.endsEarly(x) }),
	})
	if err == nil && unchanged && !x.reread {
		err = errUnchanged
	}
	if err != nil {
		return errors.Join(err, x.body.Close())
	}
	return nil
}

// addTargetCheckpoints adds the checkpoints for the host that the redirects of a root have led to,
// because the root may also list the pages of that host.
func (f *fetcher) addTargetCheckpoints(ctx context.Context, x *file) {
	s := newScope(x.scope.kind)
	s.addURL(x.base.String())
	for _, name := range s.names {
		if !slices.Contains(x.scope.names, name) {
			x.checks = append(x.checks, f.checkpoints(ctx, &x.job, []string{name}, true)...)
		}
	}
}

// endsEarly returns the error that keeps a fetched file from being read to its end, if a later
// request may get a complete file. Otherwise it returns nil.
func (f *fetcher) endsEarly(x *file) error {
	if x.body.err != io.EOF {
		return x.body.err
	}
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = f.Limits
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
