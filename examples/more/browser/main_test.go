package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/collyrobots/collyrobots/internal/leaktest"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// visit visits pages of a web with a browser, and returns the output. It skips the test if there is
// no Chromium. It fails the test if a process or a file of the browser is left.
func visit(ctx context.Context, t *testing.T, web *robotstest.Web, j *job) string {
	t.Helper()
	path, err := chromium()
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // the browser has its profile there
	var out bytes.Buffer
	j.flags = append(j.flags, chromedp.ExecPath(path))
	j.out = &out
	err = j.visitWeb(ctx, web)
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if processes := processesWith(dir); len(processes) > 0 {
		t.Errorf("processes %v are left", processes)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) > 0 {
		t.Errorf("%v are left", files)
	}
	return out.String()
}

// processesWith returns the processes with text in their command lines. On systems without /proc,
// there are none.
func processesWith(text string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

// wantGaps checks that the requests to a host are at least a delay apart.
func wantGaps(t *testing.T, web *robotstest.Web, host string, delay time.Duration) {
	t.Helper()
	log := web.Log(host)
	for i, r := range log[1:] {
		if gap := r.Time.Sub(log[i].Time); gap < delay {
			t.Errorf("%s came %v after %s, want at least %v", r.URI, gap, log[i].URI, delay)
		}
	}
}

const output = `200 http://shop.test/ "A shop"
http://shop.test/cart: collyrobots: http://shop.test/cart denied: "Disallow: /cart", line 3 of http://shop.test/robots.txt, group "*" (rfc9309)
200 http://shop.test/tea "Tea"
http://shop.test/basket: collyrobots: http://shop.test/cart denied: "Disallow: /cart", line 3 of http://shop.test/robots.txt, group "*" (rfc9309)
200 http://shop.test/frame "A frame"
`

// TestDemo visits the demo sites, and checks their access log.
func TestDemo(t *testing.T) {
	web := robotstest.New(t, demoSites)
	got := visit(t.Context(), t, web, &job{urls: demoURLs, subresources: true})
	if got != output {
		t.Errorf("printed\n%swant\n%s", got, output)
	}
	shop := []string{"/robots.txt", "/", "/style.css", "/old", "/tea", "/basket", "/frame"}
	if uris := web.Log("shop.test").URIs(); !slices.Equal(uris, shop) {
		t.Errorf("requests to shop.test: got %v, want %v", uris, shop)
	}
	if uris := web.Log("images.test").URIs(); !slices.Equal(uris, []string{"/robots.txt", "/tea.png"}) {
		t.Errorf("requests to images.test: %v", uris)
	}
	wantGaps(t, web, "shop.test", 500*time.Millisecond)
	robotstest.Verify(t, web, dialect.RFC9309())
}

// TestDocuments checks that only documents obey robots.txt if subresources is false.
func TestDocuments(t *testing.T) {
	web := robotstest.New(t, demoSites)
	got := visit(t.Context(), t, web, &job{urls: demoURLs})
	if got != output {
		t.Errorf("printed\n%swant\n%s", got, output)
	}
	uris := web.Log("shop.test").URIs()
	if !slices.Contains(uris, "/ads/1.png") || slices.Contains(uris, "/cart") || slices.Contains(uris, "/cart/embedded") {
		t.Errorf("requests to shop.test: %v", uris)
	}
}

// TestThrottled checks that the guard reports the status and the Retry-After of a response.
func TestThrottled(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"busy.test": {
		"/robots.txt": http.StatusNotFound,
		"/2":          page("Two", ""),
		"/1": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, page("Later", ""))
		},
	}})
	got := visit(t.Context(), t, web, &job{urls: []string{"http://busy.test/1", "http://busy.test/2"}, subresources: true})
	if want := "429 http://busy.test/1 \"Later\"\n200 http://busy.test/2 \"Two\"\n"; got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	log := web.Log("busy.test")
	if last := len(log) - 1; last < 1 || log[last].Time.Sub(log[last-1].Time) < 3*time.Second {
		t.Errorf("got %q, want a gap of 3s before the last request", log.Schedule())
	}
}

// TestRedirect checks that the request of a redirect has the response that has led to it. The
// plugin needs it to guard redirects of public sites to private addresses.
func TestRedirect(t *testing.T) {
	before := new(http.Response)
	g := &guard{redirects: map[fetch.RequestID]*http.Response{"1": before}}
	event := &fetch.EventRequestPaused{
		Request:             &network.Request{Method: http.MethodGet, URL: "http://a.test/"},
		RedirectedRequestID: "1",
	}
	req, err := g.newRequest(event)
	if err != nil || req.Response != before || len(g.redirects) > 0 {
		t.Errorf("got request %v, %v, and %d redirects are left", req, err, len(g.redirects))
	}
	event.RedirectedRequestID = ""
	req, err = g.newRequest(event)
	if err != nil || req.Response != nil {
		t.Errorf("without a redirect: got request %v, %v", req, err)
	}
}

// TestAllRequests checks that the guard sees the requests of frames, other tabs, workers and
// beacons, and the request for the icon.
func TestAllRequests(t *testing.T) {
	const text = `<!DOCTYPE html><title>A</title>
		<script>
			open("/popup");
			new Worker("/worker.js");
			navigator.sendBeacon("/beacon", "text");
		</script>
		<iframe src="http://b.test/"></iframe>
		<img src="http://c.test/wait">`
	const worker = `fetch("/closed/worker"); fetch("/in-worker")`
	var web *robotstest.Web
	want := []string{"/", "/beacon", "/in-popup", "/in-worker", "/popup", "/robots.txt", "/worker.js"}
	wantFrame := []string{"/", "/in-frame", "/robots.txt"}
	allSent := func() bool {
		return slices.Equal(web.Log("a.test").SortedURIs(), want) && slices.Equal(web.Log("b.test").SortedURIs(), wantFrame)
	}
	web = robotstest.New(t, robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 0.2\nDisallow: /closed\nDisallow: /favicon.ico\n",
			"/":           text,
			"/popup":      page("A popup", `<img src="/closed/popup"><img src="/in-popup">`),
			"/worker.js":  typed("text/javascript", worker),
			"*":           http.StatusOK,
		},
		"b.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\n",
			"/":           page("B", `<img src="/closed/frame"><img src="/in-frame">`),
			"*":           http.StatusOK,
		},
		"c.test": {"/robots.txt": http.StatusNotFound, "/wait": func(http.ResponseWriter, *http.Request) {
			for end := time.Now().Add(20 * time.Second); !allSent() && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
			}
		}},
	})
	got := visit(t.Context(), t, web, &job{urls: []string{"http://a.test/"}, subresources: true})
	if got != "200 http://a.test/ \"A\"\n" {
		t.Errorf("printed %s", got)
	}
	if !allSent() {
		t.Errorf("got requests %v and %v", web.Log("a.test").Schedule(), web.Log("b.test").Schedule())
	}
	wantGaps(t, web, "a.test", 200*time.Millisecond)
	robotstest.Verify(t, web, dialect.RFC9309())
}

// TestCanceled checks that a request without a response holds its host only until the page cancels
// it or is left.
func TestCanceled(t *testing.T) {
	const abort = `<script>
		const c = new AbortController();
		fetch("/hangs", {signal: c.signal}).catch(() => {});
		setTimeout(() => { c.abort(); new Image().src = "/after"; }, 1500);
	</script>`
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/after": http.StatusOK,
		"/left":  page("Left", `<script>fetch("/hangs").catch(() => {})</script><img src="http://b.test/wait">`),
		"/next":  page("Next", abort+`<img src="http://b.test/wait/2">`),
	}, "b.test": {
		"*": func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) },
	}})
	began := time.Now()
	got := visit(t.Context(), t, web, &job{urls: []string{"http://a.test/left", "http://a.test/next"}, subresources: true})
	if want := "200 http://a.test/left \"Left\"\n200 http://a.test/next \"Next\"\n"; got != want {
		t.Errorf("printed %s", got)
	}
	want := []string{"/robots.txt", "/left", "/hangs", "/next", "/hangs", "/after"}
	if uris := web.Log("a.test").URIs(); !slices.Equal(uris, want) {
		t.Errorf("got requests %v, want %v", uris, want)
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestInterrupted interrupts the program while a request waits for its turn.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	web := robotstest.New(t, robotstest.Sites{"slow.test": {
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			time.AfterFunc(time.Second, cancel)
			io.WriteString(w, "User-agent: *\nCrawl-delay: 3600\n")
		},
		"*": http.StatusOK,
	}})
	began := time.Now()
	got := visit(ctx, t, web, &job{urls: []string{"http://slow.test/1"}})
	if !strings.Contains(got, context.Canceled.Error()) {
		t.Errorf("printed %s", got)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
	if uris := web.Log("slow.test").URIs(); !slices.Equal(uris, []string{"/robots.txt"}) {
		t.Errorf("requests %v", uris)
	}
}

// TestWithoutChromium checks the error if there is no Chromium.
func TestWithoutChromium(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(t.Context(), new(job))
	if err == nil || !strings.Contains(err.Error(), "apt-get install chromium") {
		t.Errorf("got error %v", err)
	}
}
