// Command crawl is a crawler to copy from. It crawls web sites, obeys their robots.txt files, and
// prints a report.
//
//	crawl [flags] [URL...]
//
// It follows the links within each site and fetches the pages in the site's sitemaps. Without URLs
// it starts a few demo sites on the loopback interface and crawls these, so it sends nothing to
// other machines. The command "collyrobots crawl" can do more, for example continue after an
// interruption.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/view"
)

func main() {
	depth := flag.Int("depth", 3, "follow links to this `depth`; the start page has depth 1, and 0 means no limit")
	delay := flag.Duration("delay", 250*time.Millisecond, "minimum delay between two requests to one host; hosts may ask for a longer one")
	address := flag.String("http", "", "show the crawl in a browser at this `address`, such as :8090 for port 8090 on loopback, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	s := &spider{urls: flag.Args(), depth: *depth, delay: *delay, out: os.Stdout, transport: http.DefaultTransport}
	if len(s.urls) == 0 {
		sites, err := demo.Start()
		if err != nil {
			fatal(err)
		}
		defer sites.Close()
		s.urls = demo.Starts()
		s.transport = sites.Transport()
		fmt.Printf("No URLs given: crawling %d demo sites on this machine.\n", len(s.urls))
	}
	if *address != "" {
		l, err := listen(*address)
		if err != nil {
			fatal(err)
		}
		s.listener = l
	}
	if err := s.crawl(ctx); err != nil {
		fatal(err)
	}
}

// listen listens on an address. If the address has no host, it listens on the loopback interface,
// because the page has no password.
func listen(address string) (net.Listener, error) {
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	return net.Listen("tcp", address)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "crawl:", err)
	os.Exit(1)
}

// A spider crawls the sites of its start URLs.
type spider struct {
	urls      []string
	depth     int           // start pages have depth 1; 0 means no limit
	delay     time.Duration // the minimum delay between two requests to one host
	transport http.RoundTripper
	listener  net.Listener // for the page that shows the crawl; if nil, there is no page

	mu    sync.Mutex
	out   io.Writer
	hosts map[string]bool // the hosts on which links are followed
}

// crawl crawls the sites until all pages are done or ctx ends, and prints the report.
func (s *spider) crawl(ctx context.Context) error {
	c := collyrobots.NewCollector(
		colly.Async(),
		colly.StdlibContext(ctx),
		colly.MaxDepth(s.depth),
		colly.UserAgent("ExampleBot/1.0 (+https://github.com/collyrobots/collyrobots)"))
	c.WithTransport(s.transport)
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 8}); err != nil {
		return err
	}
	c.OnResponse(s.onResponse)
	c.OnHTML("a[href]", s.onLink)
	c.OnError(s.onError)
	// WithRobots is called after the callbacks are registered: its own callback at the end of a
	// page reads the sitemaps of the site, which may take long.
	robots, err := c.WithRobots(
		collyrobots.MinDelay(s.delay),
		collyrobots.StopAfterRefusals(5),
		collyrobots.OnDenied(s.onDenied),
		collyrobots.FollowSitemaps(collyrobots.Feed{}))
	if err != nil {
		return err
	}
	if s.listener != nil {
		server := &http.Server{Handler: view.New(robots, view.Options{}), ReadHeaderTimeout: 10 * time.Second}
		go server.Serve(s.listener)
		defer server.Close()
		s.printf("Watch the crawl at http://%s/\n", s.listener.Addr())
	}
	s.hosts = make(map[string]bool)
	var faults []error
	for _, start := range s.urls {
		u, err := url.Parse(start)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.follow(u)
		faults = append(faults, c.Visit(start))
	}
	c.Wait()
	s.report(robots.Stats())
	faults = append(faults, robots.Close()) // before the wait, so that the page shows how the crawl ended
	if s.listener != nil {
		s.printf("The page is there until Ctrl-C.\n")
		<-ctx.Done()
	}
	return errors.Join(faults...)
}

// onResponse prints a page.
func (s *spider) onResponse(r *colly.Response) {
	if r.Request.Depth == 1 && r.Ctx.Get(collyrobots.CtxSitemap) == "" {
		s.follow(r.Request.URL) // example.com may have redirected to www.example.com
	}
	s.printf("%d  %s\n", r.StatusCode, r.Request.URL.Redacted())
}

// onLink follows a link to a page of the crawled sites.
func (s *spider) onLink(e *colly.HTMLElement) {
	link, err := url.Parse(e.Request.AbsoluteURL(e.Attr("href")))
	if err == nil && s.follows(link) {
		e.Request.Visit(link.String()) // errors are expected: the page was visited before, or it is too deep
	}
}

// onDenied prints why a page was not requested.
func (s *spider) onDenied(_ *colly.Request, err error) {
	s.printf("denied  %v\n", err)
}

// onError prints why a request failed. It is also called for denied pages.
func (s *spider) onError(r *colly.Response, err error) {
	denied := (*collyrobots.DeniedError)(nil)
	if !errors.As(err, &denied) {
		s.printf("failed  %s  (%q)\n", r.Request.URL.Redacted(), err)
	}
}

// report prints a table of the hosts.
func (s *spider) report(stats collyrobots.Stats) {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nhost\tpages\tdenied\tdelay\tsmallest gap")
	for _, h := range stats.Hosts {
		fmt.Fprintf(table, "%s\t%d\t%d\t%v\t%v\n", h.Host, h.Pages, h.Denied, h.Delay, gap(h.MinGap))
	}
	table.Flush()
}

// gap returns the time between two requests, or a dash for a host that got only one.
func gap(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}

func (s *spider) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...)
}

// follow makes the spider follow links on the host of a URL.
func (s *spider) follow(u *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts[u.Host] = true
}

func (s *spider) follows(u *url.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[u.Host]
}
