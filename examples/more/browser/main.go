// Command browser visits pages with a headless Chromium that obeys robots.txt. Without arguments,
// it visits pages of demo sites on the loopback interface, and then prints the access log of the
// sites.
//
//	browser [flags] [URL...]
//
// It prints the status and the title of each page, or why the page was not requested. The requests
// of a page for images, scripts and other subresources also obey robots.txt and wait for their
// turns, unless the flag -subresources=false is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// userAgent is the User-Agent header of all requests.
const userAgent = "ExampleBot/1.0 (+https://example.com/bot)"

func main() {
	j := &job{out: os.Stdout, client: http.DefaultClient}
	flag.BoolVar(&j.subresources, "subresources", true, "also guard images, scripts and other subresources")
	flag.Parse()
	j.urls = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, j)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// run visits the URLs of a job, or pages of the demo sites if there are none.
func run(ctx context.Context, j *job) error {
	path, err := chromium()
	if err != nil {
		return err
	}
	j.flags = append(j.flags, chromedp.ExecPath(path))
	if len(j.urls) > 0 {
		return j.visitAll(ctx)
	}
	web, err := robotstest.Open(demoSites)
	if err != nil {
		return err
	}
	defer web.Close()
	j.urls = demoURLs
	err = j.visitWeb(ctx, web)
	fmt.Fprintln(j.out, "\nThe access log of the sites:")
	for _, r := range web.Log("") {
		fmt.Fprintf(j.out, "%8.3fs  http://%s%s\n", r.Elapsed.Seconds(), r.Host, r.URI)
	}
	return err
}

// chromium returns the path of a Chromium.
func chromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium found; on Debian and Ubuntu, apt-get install chromium")
}

// A job visits pages with a browser.
type job struct {
	urls         []string
	subresources bool
	client       *http.Client // requests robots.txt
	flags        []chromedp.ExecAllocatorOption
	out          io.Writer
}

// visitWeb visits the pages of a web in memory.
func (j *job) visitWeb(ctx context.Context, web *robotstest.Web) error {
	address, stop, err := serve(web)
	if err != nil {
		return err
	}
	defer stop()
	transport := web.Transport()
	defer transport.CloseIdleConnections()
	j.client = &http.Client{Transport: transport}
	j.flags = append(j.flags, chromedp.Flag("host-resolver-rules", "MAP *.test "+address+", MAP * ~NOTFOUND"))
	return j.visitAll(ctx)
}

// visitAll starts a browser, and visits the pages one after the other.
func (j *job) visitAll(ctx context.Context) error {
	robots, err := collyrobots.New(
		collyrobots.MinDelay(250*time.Millisecond),
		collyrobots.DelayFromEnd(true), // the browser takes some time to send a request
		collyrobots.RobotsClient(j.client))
	if err != nil {
		return err
	}
	defer robots.Close()
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.UserAgent(userAgent), chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		flags = append(flags, chromedp.NoSandbox) // the sandbox does not work for root
	}
	// The end of ctx closes the tabs. The browser itself is closed below, so that it removes its
	// files.
	browser, cancel := chromedp.NewExecAllocator(context.WithoutCancel(ctx), append(flags, j.flags...)...)
	defer cancel()
	browser, cancel = chromedp.NewContext(browser)
	defer cancel()
	err = chromedp.Do(browser) // starts it
	if err != nil {
		return err
	}
	g, err := newGuard(browser, robots, j.subresources)
	if err != nil {
		return err
	}
	for _, url := range j.urls {
		j.visit(ctx, g, url)
	}
	err = chromedp.Cancel(browser)
	g.handlers.Wait()
	return errors.Join(ctx.Err(), err)
}

// visit loads a page in a new tab, and prints its status and title, or why it was not loaded.
func (j *job) visit(ctx context.Context, g *guard, url string) {
	page, title, err := load(ctx, g, url)
	if err != nil {
		fmt.Fprintf(j.out, "%s: %v\n", url, err)
		return
	}
	fmt.Fprintf(j.out, "%d %s %q\n", page.Status, page.URL, title)
}

// load loads a page in a new tab, which is closed at the end or when ctx ends.
func load(ctx context.Context, g *guard, url string) (page *network.Response, title string, err error) {
	tab, cancel := chromedp.NewContext(g.browser)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	err = chromedp.Do(tab) // opens it
	if err != nil {
		return nil, "", err
	}
	err = g.watch(tab)
	if err != nil {
		return nil, "", err
	}
	page, err = chromedp.Run(tab, chromedp.NavigateResponse(url))
	refusal := g.leave(tab)
	if refusal != nil {
		return nil, "", refusal // instead of net::ERR_BLOCKED_BY_CLIENT
	}
	if err != nil {
		return nil, "", err
	}
	title, err = chromedp.Run(tab, chromedp.Title())
	return page, title, err
}
