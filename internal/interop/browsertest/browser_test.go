package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// chromium returns the path of a Chromium. If there is none, it skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("needs a Chromium: apt-get install chromium")
	return ""
}

// A tab is a page in its own browser, with a record of its requests and messages.
type tab struct {
	*testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // the URLs of all requests
	console  []string // console messages, exceptions and log entries of the browser
}

// open starts a browser that is closed at the end of the test.
func open(t *testing.T) *tab {
	t.Helper()
	b := &tab{T: t, ctx: running(t)}
	if err := chromedp.Listen(b.ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.run(call(network.Enable, network.EnableParams{}), call(cdplog.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}))
	return b
}

// running starts a browser, and closes it at the end of the test. Chromium sometimes crashes when it
// starts on a busy machine, so it has three tries.
func running(t *testing.T) context.Context {
	t.Helper()
	for try := 1; ; try++ {
		ctx, stop := newBrowser(t)
		err := chromedp.Do(ctx)
		if err == nil {
			t.Cleanup(stop)
			return ctx
		}
		stop()
		if try == 3 {
			t.Fatal(err)
		}
		t.Logf("the browser does not start: %v", err)
	}
}

// newBrowser returns the context of a browser that has not been started, and a function that closes
// the browser.
func newBrowser(t *testing.T) (ctx context.Context, stop func()) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	limited, end := context.WithTimeout(context.Background(), 2*time.Minute) // not t.Context, which ends before the browser is closed
	allocator, release := chromedp.NewExecAllocator(limited, options...)
	ctx, cancel := chromedp.NewContext(allocator)
	return ctx, func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("closing the browser: %v", err)
		}
		cancel()
		release()
		end()
	}
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, fmt.Sprint(e.Type, ": ", len(e.Args), " values"))
	case *runtime.EventExceptionThrown:
		err := &chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}
		b.console = append(b.console, err.Error())
	case *cdplog.EventEntryAdded:
		b.console = append(b.console, e.Entry.Text+" "+e.Entry.URL)
	}
}

// run performs actions in the browser.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// result performs an action in the browser and returns its result.
func result[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// call returns an action that sends a command whose result is not needed.
func call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, command, params)
		return err
	})
}

// timezone makes the browser use a time zone, such as Europe/Berlin.
func timezone(id string) chromedp.Action[chromedp.Void] {
	return call(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: id})
}

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	return result(b, chromedp.Evaluate[T](expression))
}

// within waits until an expression is true.
func (b *tab) within(limit time.Duration, expression string) {
	b.Helper()
	for end := time.Now().Add(limit); !eval[bool](b, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not true within %v: %s\nthe page:\n%s", limit, expression, eval[string](b, "document.body.innerText"))
		}
	}
}

// quiet fails the test if there is a message in the console or a request to another origin.
func (b *tab) quiet(page string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, message := range b.console {
		b.Errorf("message in the console: %s", message)
	}
	home, err := url.Parse(page)
	if err != nil {
		b.Fatal(err)
	}
	for _, request := range b.requests {
		request = strings.TrimPrefix(request, "blob:") // of a script that the page has made
		if u, err := url.Parse(request); err != nil || u.Host != home.Host || !strings.HasPrefix(u.Path, home.Path) {
			b.Errorf("request to another origin: %s", request)
		}
	}
	if len(b.requests) < 3 {
		b.Errorf("%d requests were seen", len(b.requests))
	}
}

// picture writes a picture of the page to the folder in the environment variable PICTURES, if it is
// set, so that a developer can look at it.
func (b *tab) picture(name string) {
	b.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	png := result(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o644); err != nil {
		b.Fatal(err)
	}
}
