package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// A file is a sitemap that was asked for.
type file struct {
	job
	body       *spool // nil if err is not
	base       *url.URL
	coding     string // of the answer, that nothing has removed
	checks     checkpoints
	renewed    bool     // it was done, and has changed
	broken     bool     // something of it could not be read
	unreadable bool     // it is no sitemap
	entries    int      // that were read
	err        error    // why there is no file, or what cost the rest of it
	keys       []string // under which it is claimed
	panicked   any      // what Get panicked with
}

// name returns the URL of a file as it may stand in a log.
func (x *file) name() string {
	if x.base != nil {
		return x.base.String()
	}
	if u, err := url.Parse(x.loc); err == nil {
		return u.Redacted()
	}
	return "a URL that cannot be read"
}

var (
	errUnchanged = errors.New("collyrobots: sitemap has not changed")   // since it was fed to its end
	errRepeated  = errors.New("collyrobots: sitemap was read already")  // in this crawl, under another name
	errScheme    = errors.New("collyrobots: not an http or https URL")  // of a sitemap
	errRedirects = errors.New("collyrobots: more than five redirects")  // from a sitemap
	errNoPlace   = errors.New("collyrobots: no place for a large file") // on the disk
)

// A statusError is an answer that is no sitemap.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("collyrobots: sitemap answered with status %d", int(s))
}

const (
	maxHops       = 5         // redirects that are followed
	spoolInMemory = 128 << 10 // octets of a sitemap that are kept in memory: most fit
)

// open fetches the file of a job, on a goroutine of its own. What comes is read to its end at once,
// so that no connection is held while its pages wait for their turn.
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

// fetch follows the redirects of a file's URL and reads what is there.
func (w *walk) fetch(ctx context.Context, x *file) error {
	u, err := url.Parse(x.loc)
	if err != nil {
		return redact.ParseError(err)
	}
	for hops, by := 0, x.by; ; hops++ {
		header := make(http.Header)
		if hops == 0 && !x.reread {
			x.checks.ask(header)
		}
		resp, began, err := w.get(ctx, by, u, header)
		if err != nil {
			return err
		}
		next, redirected := resp.Header.Get("Location"), resp.StatusCode >= 300 && resp.StatusCode < 400
		if !redirected || next == "" {
			if hops > 0 {
				resp.Header.Del("ETag") // of another URL than the one that will be asked
				resp.Header.Del("Last-Modified")
			}
			u.User = nil // it may stand in a log
			x.base = u
			if x.root == "" && w.Resume {
				w.recallHop(ctx, x)
			}
			err := w.receive(x, resp)
			w.spent.spend(func(s *spending) { s.cost.Time += time.Since(began) })
			return err
		}
		resp.Body.Close()
		by = u
		if u, err = u.Parse(next); err != nil {
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

// recallHop adds the checkpoint for what the redirects of a root have led to, for which it speaks too.
func (w *walk) recallHop(ctx context.Context, x *file) {
	s := newScope(x.scope.kind)
	s.addURL(x.base.String())
	for _, name := range s.names {
		if !slices.Contains(x.scope.names, name) {
			x.checks = append(x.checks, w.newCheckpoints(ctx, &x.job, []string{name}, true)...)
		}
	}
}

// claimHop claims what a redirect leads to.
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

// get makes one exchange, unless the budget is spent.
func (w *walk) get(ctx context.Context, by, u *url.URL, header http.Header) (*http.Response, time.Time, error) {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, time.Time{}, errScheme
	}
	if limit := w.spent.over(); limit != nil {
		return nil, time.Time{}, limit
	}
	resp, began, err := w.crawl.Get(ctx, w.site, by, u, header, w.spent.patience())
	if err == nil {
		return resp, began, nil
	}
	if !began.IsZero() {
		w.spent.spend(func(s *spending) { s.cost.Time += time.Since(began) })
	}
	return nil, began, err
}

// receive reads what a server answered, and tells the checkpoint.
func (w *walk) receive(x *file, resp *http.Response) error {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified {
		return errUnchanged
	}
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	var body io.Reader = resp.Body
	x.coding = resp.Header.Get("Content-Encoding")
	if strings.EqualFold(x.coding, "gzip") {
		body = &unzipped{raw: io.LimitReader(resp.Body, w.limits.Raw)}
		x.coding = ""
	}
	body = io.LimitReader(body, min(w.limits.Raw, w.spent.octets())+1)
	var sum hash.Hash
	if len(x.checks) > 0 {
		sum = sha256.New()
		body = io.TeeReader(body, sum)
	}
	s, n, err := keep(body)
	w.spent.spend(func(s *spending) { s.cost.Octets += n })
	if err != nil {
		return err
	}
	x.body = s
	if len(x.checks) == 0 {
		return nil
	}
	var unchanged bool
	unchanged, x.renewed = x.checks.opened(resp.Header, sum.Sum(nil))
	if unchanged && !x.reread {
		return errors.Join(errUnchanged, s.Close())
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

// A spool is a sitemap that is at hand: in memory, or in a temporary file.
type spool struct {
	head   []byte
	file   *os.File // what follows head; nil: nothing
	remove bool     // the file, which cannot be removed while it is open
	err    error    // io.EOF, or why receiving it failed half-way
}

// keep reads r to its end, or to its failure. n is how much came.
func keep(r io.Reader) (s *spool, n int64, err error) {
	head := new(bytes.Buffer)
	n, err = io.CopyN(head, r, spoolInMemory)
	s = &spool{head: head.Bytes(), err: err}
	if err != nil {
		return s, n, nil
	}
	if s.file, err = os.CreateTemp("", "collyrobots-sitemap-*"); err != nil {
		return nil, n, errors.Join(errNoPlace, err)
	}
	s.remove = os.Remove(s.file.Name()) != nil
	rest, err := io.Copy(s.file, r)
	if s.err = err; err == nil {
		s.err = io.EOF
	}
	return s, n + rest, nil
}

// open returns a reader of the sitemap from its beginning. Reading ends as receiving it did.
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

// failure is a reader that fails.
type failure struct{ err error }

func (f failure) Read([]byte) (int, error) { return 0, f.err }
