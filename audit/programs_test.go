package audit_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The programs in the tables politePrograms, permittedPrograms and rudePrograms are crawlers in the
// style of public Colly programs. Each of them sends real requests in a bubble and logs its events.

// A program is a crawler with a log, and the web that it crawls.
type program struct {
	name  string
	sites robotstest.Sites // if nil, plainSites
	run   func(p *programRun)
	// exceptions are the exceptions in the report, as "host: text", and the permissions.
	exceptions []string
	// faults are all faults in the report, as "check: URL: text". The URL is without "http://".
	faults []string
	// dialect is that of the program, for the check of the access log. If it is nil, it is RFC 9309.
	dialect *dialect.Dialect
	// loose is why the access log of the program is not checked. It is "" for most polite programs.
	loose string
}

// A programRun is one run of a program.
type programRun struct {
	*testing.T
	web *robotstest.Web
	log *audit.Log
	dir string
}

// plainSites have a crawl delay, denied pages, and a site without a robots.txt.
func plainSites() robotstest.Sites {
	return robotstest.Sites{
		"shop.test": {
			"/robots.txt": "User-agent: *\nDisallow: /cart\nCrawl-delay: 2\n\nUser-agent: OtherBot\nDisallow: /tea\nCrawl-delay: 5\n",
			"/":           robotstest.Page("/tea", "/cart", "/gone", "http://blog.test/"),
			"/tea":        robotstest.Page("/cart/2", "/"), "/cart": "", "/cart/2": "",
		},
		"blog.test": {"/": robotstest.Page("/1", "/2"), "/1": "", "/2": ""},
	}
}

// result runs a program in a bubble, and returns the report about its log and the number of requests
// that the server got.
func (x program) result(t *testing.T) (r *audit.Report, requests int) {
	t.Helper()
	p := &programRun{dir: filepath.Join(t.TempDir(), "log")}
	synctest.Test(t, func(t *testing.T) {
		if x.sites == nil {
			x.sites = plainSites()
		}
		p.T = t
		p.web = robotstest.New(t, x.sites)
		p.log = mustOpen(t, p.dir)
		x.run(p)
		if err := p.log.Close(); err != nil {
			t.Error(err)
		}
		requests = len(p.web.Log(""))
		if x.loose == "" {
			robotstest.Verify(t, p.web, x.reads())
		}
	})
	r, err := audit.Verify(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	return r, requests
}

// reads returns the dialect of the program.
func (x program) reads() dialect.Dialect {
	if x.dialect == nil {
		return dialect.RFC9309()
	}
	return *x.dialect
}

// check runs a program and checks the report about its log.
func (x program) check(t *testing.T) {
	t.Helper()
	r, requests := x.result(t)
	var exceptions, faults []string
	for _, f := range r.Exceptions {
		exceptions = append(exceptions, f.Host+": "+f.Text)
	}
	for _, p := range r.Permissions {
		exceptions = append(exceptions, p.String())
	}
	for _, f := range r.Findings {
		faults = append(faults, fmt.Sprintf("%s: %s: %s", f.Check, strings.TrimPrefix(f.URL, "http://"), f.Text))
	}
	compareLines(t, "exceptions", exceptions, x.exceptions)
	compareLines(t, "faults", faults, x.faults)
	if r.OK() != (len(x.faults) == 0) {
		t.Errorf("OK is %t", r.OK())
	}
	if l := r.Logs[0]; r.OK() && (l.Starts != requests || l.Open > 0 || requests == 0) {
		t.Errorf("the server got %d requests, and the report has %+v", requests, l)
	}
}

// compareLines reports lines that differ.
func compareLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the %s are\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// with returns a plugin that logs its events. The program closes it.
func (p *programRun) with(opts ...collyrobots.Option) *collyrobots.Plugin {
	p.Helper()
	return p.withListener(p.log.Event, opts...)
}

// withListener returns a plugin whose events go to a listener instead of the log.
func (p *programRun) withListener(listener func(*report.Event), opts ...collyrobots.Option) *collyrobots.Plugin {
	p.Helper()
	denied := collyrobots.OnDenied(func(*colly.Request, error) {})
	robots, err := collyrobots.New(append([]collyrobots.Option{quiet, denied, collyrobots.OnEveryEvent(listener)}, opts...)...)
	if err != nil {
		p.Fatal(err)
	}
	return robots
}

// collector returns a collector with a plugin. Close the plugin at the end.
func (p *programRun) collector(robots *collyrobots.Plugin, options ...colly.CollectorOption) *colly.Collector {
	p.Helper()
	c := colly.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, options...)...)
	c.WithTransport(p.web.Transport())
	if err := robots.Attach(c); err != nil {
		p.Fatal(err)
	}
	return c
}

// follow visits the links of each page.
func follow(c *colly.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
}

// spider crawls shop.test and follows links.
func (p *programRun) spider(opts ...collyrobots.Option) {
	robots := p.with(opts...)
	defer robots.Close()
	c := p.collector(robots)
	follow(c)
	c.Visit("http://shop.test/")
}

// visit requests pages one after the other.
func (p *programRun) visit(opts []collyrobots.Option, urls ...string) {
	p.visitWith(p.with(opts...), urls...)
}

// visitWith is like visit with a plugin, which it closes.
func (p *programRun) visitWith(robots *collyrobots.Plugin, urls ...string) {
	defer robots.Close()
	c := p.collector(robots, colly.AllowURLRevisit())
	for _, u := range urls {
		c.Visit(u)
	}
}

// get requests a page with a client and reads its body.
func (p *programRun) get(client *http.Client, url string, header ...string) {
	req, err := http.NewRequestWithContext(p.Context(), http.MethodGet, url, nil)
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return // it was denied
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
