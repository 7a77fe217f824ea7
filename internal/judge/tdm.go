package judge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// tdmFiles are the TDMRep files of the crawled sites. A file is requested when the first page of a
// site is judged, and when it has expired. The other pages of the site wait for it.
type tdmFiles struct {
	// mu protects the fields below it, and each tdmSite.
	mu    sync.Mutex
	sites map[dialect.Authority]*tdmSite
	size  int // the sum of the sizes of sites
}

// A tdmSite is the TDMRep file of a site. It is protected by tdmFiles.mu.
type tdmSite struct {
	tdmCopy
	reading chan struct{} // closed when the file was read; nil if it is not being read
}

// A tdmCopy is a TDMRep file as it was last read.
type tdmCopy struct {
	file    *usage.TDMFile // nil if the site declares nothing
	size    int            // of the file in bytes
	expires time.Time
}

const (
	tdmLife      = 24 * time.Hour   // how long a file is kept, or the fact that there is none
	tdmRetry     = time.Hour        // pause after a request without a useful response
	tdmPatience  = 30 * time.Second // the timeout of one request
	maxTDMFile   = 500 << 10        // bytes; a longer file declares nothing
	maxTDMSites  = 10_000           // sites whose files are kept
	maxTDMSizes  = 32 << 20         // bytes of all files that are kept
	tdmRedirects = 5                // the number of redirects that are followed
	tdmName      = "tdmrep.json"    // Source.Name
)

var errTDMUnread = errors.New("the TDMRep file was not read")

// findTDM sets the TDMRep file of the site of t in v, if the option TDMRep is set. If f allows it,
// findTDM requests a file that is not known or has expired.
func (j *Judge) findTDM(ctx context.Context, v *Verdict, t Target, f exchange.Fetcher) (err error) {
	a := v.Policy.Authority
	if !v.Settings.TDMRep || !weburl.IsWeb(t.URL) || policy.IsVirtual(a) {
		return nil
	}
	if !f.ReadsTDM {
		v.tdm = j.tdm.last(a)
		return nil
	}
	for {
		file, known, reading := j.tdm.claim(a, time.Now())
		if known {
			v.tdm = file
			return nil
		}
		v.waited = true
		if reading == nil {
			v.tdm, err = j.readClaimedTDM(ctx, a, t.UserAgent, f)
			return err
		}
		select {
		case <-reading:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// claim returns the file of a site if it is known and has not expired. Otherwise the caller must
// wait until reading is closed or, if reading is nil, read the file and call put.
func (fs *tdmFiles) claim(a dialect.Authority, now time.Time) (file *usage.TDMFile, known bool, reading <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.sites[a]
	switch {
	case s == nil:
		if fs.sites == nil {
			fs.sites = make(map[dialect.Authority]*tdmSite)
		}
		fs.sites[a] = &tdmSite{reading: make(chan struct{})}
		return nil, false, nil
	case s.reading != nil:
		return nil, false, s.reading
	case now.Before(s.expires):
		return s.file, true, nil
	}
	s.reading = make(chan struct{})
	return nil, false, nil
}

// last returns the file of a site as it was last read, or nil if it was not read.
func (fs *tdmFiles) last(a dialect.Authority) *usage.TDMFile {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if s := fs.sites[a]; s != nil {
		return s.file
	}
	return nil
}

// put stores c and wakes the callers that wait for it. If err is not nil, the file was not read,
// and the next caller of claim must read it.
func (fs *tdmFiles) put(a dialect.Authority, c tdmCopy, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.sites[a]
	close(s.reading)
	s.reading = nil
	if err != nil {
		return
	}
	fs.size += c.size - s.size
	s.tdmCopy = c
	for other, kept := range fs.sites {
		if len(fs.sites) <= maxTDMSites && fs.size <= maxTDMSizes {
			break
		}
		if kept.reading == nil && kept != s {
			fs.size -= kept.size
			delete(fs.sites, other)
		}
	}
}

// readClaimedTDM reads the TDMRep file of a site that the caller has claimed. It calls put also if a
// transport ends the goroutine, because other pages wait for the file.
func (j *Judge) readClaimedTDM(ctx context.Context, a dialect.Authority, userAgent string, f exchange.Fetcher) (*usage.TDMFile, error) {
	c, err := tdmCopy{}, errTDMUnread
	defer func() { j.tdm.put(a, c, err) }()
	c, err = j.readTDM(ctx, a, userAgent, f)
	return c.file, err
}

// readTDM requests the TDMRep file of a site. If there is no useful response, it returns the last
// copy. The error is the cause that ended ctx, or ErrClosed.
func (j *Judge) readTDM(ctx context.Context, a dialect.Authority, userAgent string, f exchange.Fetcher) (tdmCopy, error) {
	ctx, release := j.Policies.Until(policy.WithValues(ctx, ctx))
	defer release()
	u := &url.URL{Scheme: a.Scheme, Host: a.Host, Path: usage.TDMRepPath}
	body, err := j.requestTDM(ctx, u, userAgent, f)
	if err != nil && ctx.Err() != nil {
		return tdmCopy{}, context.Cause(ctx)
	}
	if errors.Is(err, report.ErrClosed) {
		return tdmCopy{}, report.ErrClosed
	}
	now := time.Now()
	denied := (*tdmDenial)(nil)
	absent := (*tdmError)(nil)
	switch {
	case err == nil:
		return tdmCopyOf(body, now, func(err error) { j.logNoTDM(u, err) }), nil
	case errors.As(err, &denied):
		return tdmCopy{expires: denied.until}, nil
	case errors.As(err, &absent) && absent.final:
		j.logNoTDM(u, err)
		return tdmCopy{expires: now.Add(tdmLife)}, nil
	}
	j.logNoTDM(u, err)
	return tdmCopy{file: j.tdm.last(a), expires: now.Add(tdmRetry)}, nil
}

func (j *Judge) logNoTDM(u *url.URL, err error) {
	j.Report.Log.Debug("no TDMRep file", "url", u.Redacted(), "error", err)
}

// tdmCopyOf returns the copy of a file that was read at now. If the file is malformed, tdmCopyOf
// calls malformed, and the copy declares nothing.
func tdmCopyOf(body []byte, now time.Time, malformed func(error)) tdmCopy {
	sum := sha256.Sum256(body)
	from := usage.Source{Name: tdmName, Hash: hex.EncodeToString(sum[:len(sum)/2])}
	file, err := usage.ParseTDMFile(body, from)
	if err != nil {
		malformed(err)
		return tdmCopy{expires: now.Add(tdmLife)}
	}
	return tdmCopy{file: file, size: len(body), expires: now.Add(tdmLife)}
}

// A tdmError says why a response has no TDMRep file.
type tdmError struct {
	reason string
	final  bool // the response shows that the site has no usable file
}

func (e *tdmError) Error() string { return e.reason }

// A tdmDenial is the error for a TDMRep file that a robots.txt denies.
type tdmDenial struct {
	until time.Time // when the robots.txt expires
}

func (*tdmDenial) Error() string { return "robots.txt denies the TDMRep file" }

// requestTDM requests the TDMRep file at u and follows its redirects. Each of them is judged by the
// robots.txt of its own site, which gets no header of the page if it is another one. A panic of the
// transport becomes an error, as for robots.txt.
func (j *Judge) requestTDM(ctx context.Context, u *url.URL, userAgent string, f exchange.Fetcher) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &policy.PanicError{Value: v}
		}
	}()
	from := exchange.Lead{Kind: report.RequestTDM, Origin: f.From, Client: f.Client, Page: f.Page}
	site := u.Host
	for redirects := 0; ; redirects++ {
		resp, err := j.getTDM(ctx, u, userAgent, from, f)
		if err != nil {
			return nil, err
		}
		location := resp.Header.Get("Location")
		if !exchange.IsRedirect(resp.StatusCode) || location == "" {
			return bodyOfTDM(resp)
		}
		discardTDM(resp)
		next, err := u.Parse(location)
		if err != nil || !weburl.IsWeb(next) || next.Host == "" || redirects == tdmRedirects {
			return nil, &tdmError{reason: "redirect that is not followed", final: true}
		}
		from.Host = hostname.Of(u)
		from.Payer = cmp.Or(from.Payer, site)
		next.User = nil
		if !policy.SameSite(u, next) {
			f.Header = nil // the credentials in it are not for another site, nor for the robots.txt there
		}
		u = next
	}
}

// getTDM requests u once and follows no redirect.
func (j *Judge) getTDM(ctx context.Context, u *url.URL, userAgent string, from exchange.Lead, f exchange.Fetcher) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if userAgent != "" {
		req.Header.Set("User-Agent", userAgent)
	}
	check := func(by exchange.Origin, turn time.Time) (Verdict, error) {
		f.From = by
		f.Turn = turn
		return j.judgeTDM(ctx, Target{URL: u, UserAgent: userAgent, IsFile: true}, f)
	}
	resp, _, err := j.SendOwn(req, tdmPatience, from, check)
	return resp, err
}

// judgeTDM returns the verdict about a request for a TDMRep file. The error is a *tdmDenial if
// robots.txt denies it.
func (j *Judge) judgeTDM(ctx context.Context, t Target, f exchange.Fetcher) (Verdict, error) {
	v, err := j.Verdict(ctx, time.Now(), t, f, nil)
	if err != nil {
		return v, err
	}
	switch {
	case v.Reason == report.ReasonRefused:
		return v, &tdmError{reason: "the host refuses requests"}
	case !v.Rule.Allowed:
		return v, &tdmDenial{until: v.Policy.Expires()}
	}
	return v, nil
}

// bodyOfTDM reads and closes the body of a response that is not a redirect. The error is a
// *tdmError or a read error.
func bodyOfTDM(resp *http.Response) ([]byte, error) {
	defer discardTDM(resp)
	if resp.StatusCode != http.StatusOK {
		temporary := resp.StatusCode >= 500 || exchange.Throttled(resp) || resp.StatusCode == http.StatusRequestTimeout
		return nil, &tdmError{reason: fmt.Sprintf("status %d", resp.StatusCode), final: !temporary}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTDMFile+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxTDMFile {
		return nil, &tdmError{reason: fmt.Sprintf("more than %d bytes", maxTDMFile), final: true}
	}
	return body, nil
}

// discardTDM closes the body of a response. It reads a short one to its end, so that the first page
// of the site can use the same connection.
func discardTDM(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, exchange.MaxRedirectBody)
	resp.Body.Close()
}
