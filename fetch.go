package collyrobots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/sitemap"
)

// exchange makes one HTTP exchange on the plugin's own account (robots.txt, sitemaps): paced as everything that goes to the host,
// through the collector's proxy and TLS settings, without its cookies, and following no redirect. timeout is for the
// exchange alone, from its start to the end of the body, without the wait before it; 0: none.
func (p *Plugin) exchange(client *http.Client, req *http.Request, timeout time.Duration) (*http.Response, error) {
	host := p.pace.of(req.URL)
	turn := func(ctx context.Context) error { return host.send(ctx, nil, req.URL) }
	if err := policy.Wait(req.Context(), turn); err != nil {
		return nil, err
	}
	if p.config.client != nil {
		client = p.config.client
	}
	again := func() error {
		host.ended(req.URL)
		return policy.Wait(req.Context(), turn)
	}
	resp, err := backend.Exchange(client, req, timeout, again, func() { host.ended(req.URL) })
	if err == nil {
		p.answered(host, req.URL, resp)
	}
	return resp, err
}

// answered slows down where a host says that it is asked too much.
func (p *Plugin) answered(host *turnstile, u *url.URL, resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	if !host.complained(u, resp.Header) {
		return
	}
	s := host.statistics()
	why := slog.Duration("backOff", s.BackOff.Round(time.Millisecond))
	if !s.NotBefore.IsZero() {
		why = slog.Time("notBefore", s.NotBefore)
	}
	p.config.log.Warn("slowing down for a host that is busy", "url", u.String(), "status", resp.StatusCode, why)
}

// maxSitemapHops is how many redirects of a sitemap are followed.
const maxSitemapHops = 5

// open fetches a sitemap for sitemap.Walk. Each hop is judged and paced as a page is. The answer is read to its end at once, so
// that no connection is held while its entries wait for their turn. file, which may be nil, is told what came.
func (l *link) open(ctx context.Context, loc string, file *ledger, limits sitemap.Limits) (io.ReadCloser, string, error) {
	u, err := url.Parse(loc)
	for hops := 0; err == nil; hops++ {
		header := http.Header{"User-Agent": {l.userAgent()}}
		if hops == 0 {
			file.ask(header)
		}
		var resp *http.Response
		if resp, err = l.get(ctx, u, header, cmp.Or(limits.Time, 5*time.Minute)); err != nil {
			break
		}
		next, redirected := resp.Header.Get("Location"), resp.StatusCode >= 300 && resp.StatusCode < 400
		if !redirected || next == "" {
			if hops > 0 {
				resp.Header.Del("ETag") // of another URL than the one that will be asked
				resp.Header.Del("Last-Modified")
			}
			u.User = nil // it may stand in a log
			body, err := spool(resp, file, cmp.Or(limits.Raw, 50<<20))
			return body, u.String(), err
		}
		resp.Body.Close()
		if hops == maxSitemapHops {
			return nil, u.Redacted(), fmt.Errorf("collyrobots: more than %d redirects from sitemap %s", maxSitemapHops, loc)
		}
		u, err = u.Parse(next)
	}
	return nil, loc, err
}

// get makes one hop towards a sitemap.
func (l *link) get(ctx context.Context, u *url.URL, header http.Header, patience time.Duration) (*http.Response, error) {
	if !governed(u) {
		return nil, fmt.Errorf("collyrobots: sitemap %s is not an http or https URL", u.Redacted())
	}
	v, err := l.plugin.judge(ctx, u, l.userAgent(), l.do)
	if err == nil && !l.plugin.config.dryRun {
		err = v.refusal(u)
	}
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return l.plugin.exchange(l.client(), req, patience)
}

// spoolInMemory is how much of a sitemap is kept in memory: most fit.
const spoolInMemory = 256 << 10

// spool reads what a sitemap's server answered to its end, limit octets at the most, and gives it back from memory or from a file that Close
// removes. If reading fails half-way, what came before the failure is given back, and then the failure.
func spool(resp *http.Response, file *ledger, limit int64) (io.ReadCloser, error) {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified {
		return nil, errUnchanged
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("collyrobots: sitemap answered with status %d", resp.StatusCode)
	}
	var body io.Reader = io.LimitReader(resp.Body, limit+1)
	sum := file.sum()
	if sum != nil {
		body = io.TeeReader(body, sum)
	}
	s, err := keep(body)
	if err != nil {
		return nil, err
	}
	if err := file.opened(resp.Header, sum); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// keep reads r to its end, or to its failure, which it keeps too.
func keep(r io.Reader) (*spooled, error) {
	head := new(bytes.Buffer)
	if _, err := io.CopyN(head, r, spoolInMemory); err != nil {
		return &spooled{Reader: io.MultiReader(head, failure{err})}, nil
	}
	file, err := os.CreateTemp("", "collyrobots-sitemap-*")
	if err != nil {
		return nil, fmt.Errorf("collyrobots: sitemap too large for memory: %w", err)
	}
	s := &spooled{file: file}
	_, err = io.Copy(file, io.MultiReader(head, r))
	if _, seekErr := file.Seek(0, io.SeekStart); seekErr != nil {
		return nil, errors.Join(seekErr, s.Close())
	}
	if err == nil {
		err = io.EOF
	}
	s.Reader = io.MultiReader(file, failure{err})
	return s, nil
}

// spooled is a sitemap that is at hand.
type spooled struct {
	io.Reader
	file *os.File // temporary; nil: in memory
}

func (s *spooled) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// failure is a reader that fails.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }
