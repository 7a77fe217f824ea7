package audit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// mustOpen opens a log, which the test closes.
func mustOpen(t testing.TB, dir string, opts ...audit.Option) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustCollector returns a collector whose requests go to web.
func mustCollector(web *robotstest.Web) *colly.Collector {
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
	c.WithTransport(web.Transport())
	return c
}

// quiet drops what the plugin logs.
var quiet = collyrobots.Logger(slog.New(slog.DiscardHandler))

// crawl visits URLs with a log.
func crawl(t *testing.T, l *audit.Log, web *robotstest.Web, urls []string, opts ...collyrobots.Option) {
	t.Helper()
	c := mustCollector(web)
	robots, err := collyrobots.WithRobots(c, append(opts, quiet, collyrobots.OnEveryEvent(l.Event), collyrobots.OnDenied(func(*colly.Request, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range urls {
		c.Visit(u)
	}
	if err := robots.Close(); err != nil {
		t.Error(err)
	}
}

func TestLogOfCrawl(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	synctest.Test(t, func(t *testing.T) {
		const file = "User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n"
		web := robotstest.New(t, robotstest.Sites{"shop.test": {"/robots.txt": file, "/": "", "/a": robotstest.Redirect("/b"), "/b": ""}})
		l := mustOpen(t, dir)
		crawl(t, l, web, []string{"http://shop.test/", "http://shop.test/cart", "http://shop.test/a"})
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	})
	checkpoint := read(t, dir, "checkpoint")
	verifier, err := note.NewVerifier(strings.TrimSpace(read(t, dir, "key.pub")))
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open([]byte(checkpoint), note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(n.Text, "\n"); len(lines) != 4 || lines[1] != "14" {
		t.Errorf("the checkpoint is\n%s", n.Text)
	}
	bundle := read(t, dir, "tile/entries/000.p/14")
	for _, want := range []string{`"kind":"opened"`, `"kind":"started"`, `"rule":{"allow":false,"pattern":"/cart","line":2}`, `"kind":"closed"`} {
		if !strings.Contains(bundle, want) {
			t.Errorf("no entry contains %s", want)
		}
	}
	bodies, _ := filepath.Glob(filepath.Join(dir, "robots", "*"))
	if len(bodies) != 1 {
		t.Errorf("the log has the robots.txt files %q", bodies)
	}
	for _, name := range []string{"key", "checkpoint", "tile/entries/000.p/14", "tile/0/000.p/14", bodies[0][len(dir)+1:]} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOpenFaults(t *testing.T) {
	dir := t.TempDir()
	if _, err := audit.Open(dir, audit.Key("x"), audit.OnError(nil), audit.HashPaths([]byte("short")), audit.Option{}); err == nil || strings.Count(err.Error(), "audit: ") != 4 {
		t.Errorf("got the error %v, want four faults", err)
	}
	l := mustOpen(t, dir)
	if _, err := audit.Open(dir); !errors.Is(err, audit.ErrInUse) {
		t.Errorf("a second Open returned the error %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Error(err)
	}
	other, _, err := note.GenerateKey(nil, "example.com/log")
	if err == nil {
		_, err = audit.Open(dir, audit.Key(other))
	}
	if !errors.Is(err, audit.ErrKey) {
		t.Errorf("Open with another key returned the error %v", err)
	}
	name := filepath.Join(t.TempDir(), "file")
	os.WriteFile(name, nil, 0o600)
	if _, err := audit.Open(name); err == nil {
		t.Error("a log was opened in a file")
	}
}

// TestDiskCannotBeWritten checks that OnError is called once, and that the log says how many events
// are missing.
func TestDiskCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	told := make(chan error, 10)
	l := mustOpen(t, dir, audit.OnError(func(err error) { told <- err }))
	body := make([]byte, 100_000)
	event := func(n int) {
		l.Event(&report.Event{Kind: report.EventRobots, Time: time.Now(), URL: fmt.Sprint("http://a.test/", n), Body: append(body, byte(n))})
	}
	event(0)
	robots := filepath.Join(dir, "robots")
	if err := errors.Join(os.Rename(robots, robots+"-away"), os.WriteFile(robots, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		event(n + 1)
	}
	if err := <-told; !strings.Contains(err.Error(), "robots") {
		t.Errorf("OnError was told %v", err)
	}
	if err := errors.Join(os.Remove(robots), os.Rename(robots+"-away", robots)); err != nil {
		t.Fatal(err)
	}
	event(9)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l.Event(&report.Event{})
	l.Event(&report.Event{})
	if err := <-told; !errors.Is(err, audit.ErrClosed) || len(told) > 0 {
		t.Errorf("OnError was told %v, and %d more", err, len(told))
	}
	bundles, _ := filepath.Glob(filepath.Join(dir, "tile/entries/000.p/*"))
	text, err := os.ReadFile(bundles[len(bundles)-1])
	if err != nil || !strings.Contains(string(text), `"kind":"lost"`) || !strings.Contains(string(text), `"count":5`) {
		t.Errorf("the log does not say that five events are missing: %v", err)
	}
}

// TestHash checks what is left of URLs.
func TestHash(t *testing.T) {
	secret := []byte("0123456789abcdef")
	for _, test := range []struct {
		name   string
		option audit.Option
		there  []string
		gone   []string
	}{
		{"queries", audit.HashQueries(secret), []string{`"url":"http://shop.test/path?hmac-sha256-`, `http://shop.test/robots.txt`, `http://shop.test/other"`}, []string{"name=alice", "fragment"}},
		{"paths", audit.HashPaths(secret), []string{`"url":"http://shop.test/hmac-sha256-`, `http://shop.test/robots.txt`}, []string{"alice", "path", "other"}},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"shop.test": {"/robots.txt": http.StatusNotFound, "*": ""}})
			l := mustOpen(t, dir, test.option)
			crawl(t, l, web, []string{"http://shop.test/path?name=alice#fragment", "http://shop.test/other"})
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		bundles, _ := filepath.Glob(filepath.Join(dir, "tile/entries/000.p/*"))
		text, err := os.ReadFile(bundles[len(bundles)-1])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.there {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no entry contains %s", test.name, want)
			}
		}
		for _, bad := range test.gone {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s: an entry contains %s", test.name, bad)
			}
		}
	}
}

// TestLongURL checks that an event with a very long URL and error fits into an entry.
func TestLongURL(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir)
	long := "http://a.test/" + strings.Repeat("x", 1<<20)
	l.Event(&report.Event{Kind: report.EventDenied, URL: long, From: long, Err: errors.Join(io.EOF, errors.New(long)),
		Decision: &report.Decision{URL: long, Group: long, Err: context.Canceled}})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text := read(t, dir, "tile/entries/000.p/3"); !strings.Contains(text, "#sha256=") || len(text) > 65_535 {
		t.Errorf("the entries have %d bytes", len(text))
	}
}
