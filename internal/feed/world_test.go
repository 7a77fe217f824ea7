package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A world has sitemaps by URL and is a Crawl that serves them. The value of a URL is a body (string
// or []byte), a redirect ("-> URL"), a status (int), or a func that returns a response.
type world struct {
	files map[string]any
	async bool                                        // Visit runs pages on goroutines of their own
	visit func(e sitemap.Entry) Result                // runs a page; if nil, the page is done at once
	allow func(u *url.URL) (bool, Result)             // if nil, every page
	clean func(u *url.URL) *url.URL                   // if nil, no URL changes
	take  func(e sitemap.Entry) bool                  // if nil, every page
	after func(e sitemap.Entry)                       // called when the page is done
	get   func(ctx context.Context, u *url.URL) error // called before each exchange
	feed  *Feed
	slots Slots
	pages sync.WaitGroup
	log   lockedBuffer

	mu       sync.Mutex
	asked    []string // URLs of sitemaps, with a blank and the status if it is not 200
	visited  []string
	inFlight int
	most     int // the largest number of pages in flight
}

func newWorld(files map[string]any) *world { return &world{files: files} }

// start creates the feed.
func (w *world) start(o Options) *world {
	o.Log = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	w.feed = New(o)
	return w
}

// crawl offers a site and walks it, and waits for its pages.
func (w *world) crawl(ctx context.Context, site string, sitemaps ...string) {
	w.feed.Offer(authority(site), sitemaps)
	w.feed.Run(ctx, w)
	w.pages.Wait()
}

func authority(site string) dialect.Authority {
	u, err := url.Parse(site)
	if err != nil {
		panic(err)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		panic(err)
	}
	return a
}

func (w *world) Slots() *Slots {
	if w.async {
		return &w.slots
	}
	return nil
}

func (w *world) Allowed(_ context.Context, _ dialect.Authority, _ string, u *url.URL) (bool, Result) {
	if w.allow != nil {
		return w.allow(u)
	}
	return true, Done
}

func (w *world) Cleaned(u *url.URL) *url.URL {
	if w.clean != nil {
		return w.clean(u)
	}
	return u
}

func (w *world) Visit(_ dialect.Authority, e sitemap.Entry, done func(Result)) bool {
	if w.take != nil && !w.take(e) {
		return false
	}
	w.mu.Lock()
	w.inFlight++
	w.most = max(w.most, w.inFlight)
	w.mu.Unlock()
	run := func() {
		w.note(e)
		r := Done
		if w.visit != nil {
			r = w.visit(e)
		}
		w.mu.Lock()
		w.inFlight--
		w.mu.Unlock()
		done(r)
		if w.after != nil {
			w.after(e)
		}
	}
	if w.async {
		w.pages.Go(run)
	} else {
		run()
	}
	return true
}

func (w *world) note(e sitemap.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visited = append(w.visited, e.Loc)
}

func (w *world) Get(ctx context.Context, r Request) (*http.Response, time.Time, error) {
	if w.get != nil {
		if err := w.get(ctx, r.URL); err != nil {
			return nil, time.Time{}, err
		}
	}
	began := time.Now()
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f := w.files[r.URL.String()].(type) {
	case nil:
		resp.StatusCode = 404
	case int:
		resp.StatusCode = f
	case error:
		w.asked = append(w.asked, r.URL.String()+" failed")
		return nil, began, f
	case string:
		if to, ok := strings.CutPrefix(f, "-> "); ok {
			resp.StatusCode = 302
			resp.Header.Set("Location", to)
			break
		}
		resp.Body = body(f)
	case []byte:
		resp.Body = body(string(f))
	case func(context.Context, http.Header, time.Duration, *http.Response):
		f(ctx, r.Header, r.Timeout, resp)
	}
	asked := r.URL.String()
	if resp.StatusCode != 200 {
		asked += fmt.Sprint(" ", resp.StatusCode)
	}
	w.asked = append(w.asked, asked)
	return resp, began, nil
}

// visits returns the pages that were visited since the last call, sorted, without "http://".
func (w *world) visits() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.visited)
	s := strings.ReplaceAll(strings.Join(w.visited, " "), "http://", "")
	w.visited = nil
	return s
}

// asks returns the sitemaps that were requested since the last call, sorted.
func (w *world) asks() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.asked)
	s := strings.ReplaceAll(strings.Join(w.asked, " "), "http://", "")
	w.asked = nil
	return s
}

func (w *world) want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n%s, want\n%s", what, got, want)
	}
}

// wantCounts checks the outcomes. Outcomes that are not in want must be 0.
func (w *world) wantCounts(t *testing.T, want map[Outcome]int) {
	t.Helper()
	for o := Outcome(1); o < numOutcomes; o++ {
		if got := w.feed.Count(o); got != want[o] {
			t.Errorf("outcome %d was counted %d times, want %d", o, got, want[o])
		}
	}
}

// A lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// urlset returns a sitemap of locs. A loc like "2024-05-01 http://..." has a lastmod.
func urlset(locs ...string) string { return list("urlset", "url", locs) }

// index returns a sitemap index of such locs.
func index(locs ...string) string { return list("sitemapindex", "sitemap", locs) }

func list(root, element string, locs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, root)
	for _, loc := range locs {
		lastmod := ""
		if date, rest, ok := strings.Cut(loc, " "); ok {
			loc, lastmod = rest, "<lastmod>"+date+"</lastmod>"
		}
		fmt.Fprintf(&b, "<%s><loc>%s</loc>%s</%[1]s>", element, loc, lastmod)
	}
	return b.String() + "</" + root + ">"
}

// numberedURLs returns n URLs that begin with prefix.
func numberedURLs(prefix string, n int) []string {
	var locs []string
	for i := range n {
		locs = append(locs, fmt.Sprint(prefix, i))
	}
	return locs
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.Bytes()
}

var errReset = errors.New("connection reset")

func body(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
