package feed

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// TestTooManyFilesElsewhere refuses files like a crawl that has requested too many files from other
// sites. Only these files are lost, and they do not count as failures of the site.
func TestTooManyFilesElsewhere(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset("http://a.test/1")})
	w.get = func(_ context.Context, u *url.URL) error {
		if u.Host != "a.test" {
			return fmt.Errorf("%s: %w", u, ErrElsewhere)
		}
		return nil
	}
	w.start(Options{Budget: Budget{Failures: 10}})
	w.crawl(t.Context(), "http://a.test", append(numberedURLs("http://b.test/", 500), "http://a.test/map.xml")...)
	w.want(t, "the pages", w.visits(), "a.test/1")
	if n := strings.Count(w.log.String(), "\n"); n != 4 {
		t.Errorf("%d lines in the log, want three and a sum:\n%s", n, w.log.String())
	}
}

func TestBudgets(t *testing.T) {
	files := make(map[string]any)
	var children []string
	for i := range 50 {
		child := fmt.Sprintf("http://a.test/%d.xml", i)
		files[child] = urlset(fmt.Sprintf("http://a.test/%d", i))
		children = append(children, child)
	}
	files["http://a.test/index.xml"] = index(children...)
	files["http://a.test/gone.xml"] = index(numberedURLs("http://a.test/gone/", 100)...)
	octets := int64(len(files["http://a.test/index.xml"].(string))) + 10*int64(len(files["http://a.test/0.xml"].(string)))
	for _, test := range []struct {
		name    string
		options Options
		sitemap string
		most    int // files that are requested, except those under way
		limit   string
	}{
		{"files", Options{Limits: sitemap.Limits{Files: 10}}, "index.xml", 10, "Files 10"},
		{"URLs", Options{Limits: sitemap.Limits{URLs: 10}}, "index.xml", 11, "URLs 10"},
		{"bytes", Options{Budget: Budget{Bytes: octets}}, "index.xml", 11, "Bytes"},
		{"failures", Options{Budget: Budget{Failures: 10}}, "gone.xml", 12, "Failures 10"},
		{"children", Options{Limits: sitemap.Limits{Children: 10}}, "index.xml", 11, "Children 10"},
		{"depth", Options{Limits: sitemap.Limits{Depth: 1}}, "index.xml", 51, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(files).start(test.options)
			w.crawl(t.Context(), "http://a.test", "http://a.test/"+test.sitemap)
			if n := len(w.asked); n > test.most+fetchedAtOnce {
				t.Errorf("%d files were asked for, want %d", n, test.most)
			}
			if got := w.log.String(); !strings.Contains(got, "limit exceeded: "+test.limit) && test.limit != "" || test.limit == "" && got != "" {
				t.Errorf("log: %s", got)
			}
		})
	}
}

// A drip is a server that sends one byte per second.
type drip struct {
	ctx  context.Context
	left time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left <= 0 {
		return 0, context.DeadlineExceeded
	}
	d.left -= time.Second
	if err := sleep(d.ctx, time.Second); err != nil {
		return 0, err
	}
	p[0] = ' '
	return 1, nil
}

func (d *drip) Close() error { return nil }

func dripping(ctx context.Context, _ http.Header, timeout time.Duration, resp *http.Response) {
	resp.Body = &drip{ctx, timeout}
}

// TestSlowSitemaps checks that sitemaps that arrive very slowly take hours and not weeks, and do
// not delay another sitemap.
func TestSlowSitemaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]any{"http://a.test/map.xml": urlset("http://a.test/1")}
		sitemaps := numberedURLs("http://a.test/drip/", 3)
		for i := range 5000 {
			files[fmt.Sprint("http://a.test/drip/", i)] = dripping
		}
		w := newWorld(files).start(Options{})
		began := time.Now()
		met := time.Duration(0)
		w.visit = func(sitemap.Entry) Result { met = time.Since(began); return Done }
		w.crawl(t.Context(), "http://a.test", append(sitemaps, append([]string{"http://a.test/map.xml"}, numberedURLs("http://a.test/drip/", 5000)...)...)...)
		if met == 0 || met > 4*time.Second {
			t.Errorf("the page of a good sitemap was visited after %v", met)
		}
		if d := time.Since(began); d < 30*time.Minute || d > 70*time.Minute {
			t.Errorf("it took %v", d)
		}
		if !strings.Contains(w.log.String(), "limit exceeded: Time 4h0m0s") {
			t.Errorf("log: %s", w.log.String())
		}
	})
}

// TestWaitingIsNotCharged checks that the time when a file waits for its turn at the host is not
// charged to the budget. All files of a site with a crawl delay of an hour are read.
func TestWaitingIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := make(map[string]any)
		var maps []string
		for i := range 100 {
			loc := fmt.Sprintf("http://a.test/%d.xml", i)
			files[loc] = urlset(fmt.Sprintf("http://a.test/%d", i))
			maps = append(maps, loc)
		}
		w := newWorld(files)
		turn := make(chan struct{}, 1)
		w.get = func(ctx context.Context, _ *url.URL) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return sleep(ctx, time.Hour)
		}
		w.start(Options{})
		w.crawl(t.Context(), "http://a.test", maps...)
		if n := len(w.visited); n != 100 {
			t.Errorf("%d pages were visited", n)
		}
	})
}

// TestFaultsOfManyFilesAreSummed checks that files that robots.txt denies count as one kind of
// fault, although each error names another URL.
func TestFaultsOfManyFilesAreSummed(t *testing.T) {
	w := newWorld(nil)
	w.get = func(_ context.Context, u *url.URL) error { return fmt.Errorf("%s: disallowed by /maps", u) }
	w.start(Options{})
	w.crawl(t.Context(), "http://a.test", numberedURLs("http://a.test/maps/", 500)...)
	if n := strings.Count(w.log.String(), "\n"); n != 4 {
		t.Errorf("%d lines, want three and a sum:\n%s", n, w.log.String())
	}
}

// TestFaultsAreSummed checks that of equal faults the first three are logged, and then their total.
func TestFaultsAreSummed(t *testing.T) {
	var entries []string
	for i := range 10_000 {
		entries = append(entries, fmt.Sprintf("<url><loc>http://a.test/%d</loc><lastmod>x%[1]d</lastmod></url><url/>", i))
	}
	w := newWorld(map[string]any{"http://a.test/map.xml": "<urlset>" + strings.Join(entries, "") + "</urlset>"}).start(Options{})
	w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
	log := w.log.String()
	if n := strings.Count(log, "\n"); n != 8 {
		t.Errorf("%d lines, want 2 times 3 and 2 sums:\n%s", n, log)
	}
	if !strings.Contains(log, `error="invalid value" count=10000`) {
		t.Errorf("the sum is missing:\n%s", log)
	}
	if n := w.feed.Count(Fed); n != 10_000 {
		t.Errorf("%d pages were fed", n)
	}
}

// TestSumsAreInOrder checks that the totals of the kinds of faults are logged in the same order each
// time.
func TestSumsAreInOrder(t *testing.T) {
	var log bytes.Buffer
	sums := tally{log: slog.New(slog.NewTextHandler(&log, nil))}
	for range loggedFirst + 1 {
		for kind := range mostKinds {
			sums.warnKind(fmt.Sprintf("kind-%02d", kind), "fault")
		}
	}
	log.Reset()
	sums.sum()
	var got []string
	for line := range strings.Lines(log.String()) {
		_, kind, _ := strings.Cut(line, "error=")
		got = append(got, kind)
	}
	if len(got) != mostKinds || !slices.IsSorted(got) {
		t.Errorf("totals: %q", got)
	}
}
