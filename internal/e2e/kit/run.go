package kit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A Run is one run of a program in the style of public programs, with the plugin or without it. It
// records what the program prints, and how the requests of some collectors end.
type Run struct {
	*testing.T
	Web     *robotstest.Web
	Plugin  *collyrobots.Plugin // nil in a run without the plugin
	BuiltIn bool                // without the plugin, Colly's built-in check reads robots.txt
	Options []collyrobots.Option

	mu     sync.Mutex
	said   []string
	begun  int
	ended  int
	ends   map[string]map[string]int // the number of ends by kind and page; see End
	errs   map[string]error          // the last error of each URL
	scrape map[string]int            // how often each URL was scraped
}

// Say adds a line to the output of the program.
func (r *Run) Say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// Said returns the output of the program.
func (r *Run) Said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}

// Plug makes a plugin with options and with those of the run. It closes the plugin before.
func (r *Run) Plug(options ...collyrobots.Option) {
	r.Helper()
	r.Unplug()
	options = slices.Concat([]collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler))}, options, r.Options)
	var err error
	r.Plugin, err = collyrobots.New(options...)
	Must(r.T, err)
}

// Unplug closes the plugin, if there is one.
func (r *Run) Unplug() {
	r.Helper()
	if r.Plugin != nil {
		Must(r.T, r.Plugin.Close())
	}
}

// Collector returns a collector for the web of the program.
func (r *Run) Collector(options ...colly.CollectorOption) *colly.Collector {
	c := colly.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, options...)...)
	c.WithTransport(r.Web.Transport())
	c.IgnoreRobotsTxt = !r.BuiltIn
	return c
}

// Attach is called where the program would call WithRobots.
func (r *Run) Attach(collectors ...*colly.Collector) {
	r.Helper()
	if r.Plugin == nil {
		return
	}
	for _, c := range collectors {
		Must(r.T, r.Plugin.Attach(c))
	}
}

// New returns an attached collector whose requests are counted.
func (r *Run) New(options ...colly.CollectorOption) *colly.Collector {
	r.Helper()
	c := r.Count(r.Collector(options...))
	r.Attach(c)
	return c
}

// Client returns a client for the web of the program, which uses the plugin if there is one.
func (r *Run) Client() *http.Client {
	transport := r.Web.Transport()
	r.Cleanup(transport.CloseIdleConnections)
	if r.Plugin == nil {
		return &http.Client{Transport: transport}
	}
	return &http.Client{Transport: r.Plugin.Transport(transport)}
}

// Results makes c print the results of pages that are not denied.
func (r *Run) Results(c *colly.Collector) *colly.Collector {
	r.print(c, func(err error) bool { return !IsDenial(err) })
	return c
}

// Hear makes c print which callbacks are called.
func (r *Run) Hear(c *colly.Collector) *colly.Collector {
	c.OnRequest(func(req *colly.Request) { r.Say("request %s %s depth %d", req.Method, req.URL, req.Depth) })
	r.print(c, func(error) bool { return true })
	return c
}

// print makes c print responses, and the errors for which prints returns true.
func (r *Run) print(c *colly.Collector, prints func(error) bool) {
	c.OnResponse(func(resp *colly.Response) {
		r.Say("response %d %s %d bytes", resp.StatusCode, resp.Request.URL, len(resp.Body))
	})
	c.OnError(func(resp *colly.Response, err error) {
		if prints(err) {
			r.Say("error %d %s: %s", resp.StatusCode, resp.Request.URL, SameText(err))
		}
	})
	c.OnScraped(func(resp *colly.Response) { r.Say("scraped %s", resp.Request.URL) })
}

// Count counts the requests of c and records their ends. Call it before c is attached.
func (r *Run) Count(c *colly.Collector) *colly.Collector {
	c.OnRequest(func(*colly.Request) { r.Begin(1) })
	c.OnError(func(resp *colly.Response, err error) {
		r.mu.Lock()
		if r.errs == nil {
			r.errs = make(map[string]error)
		}
		r.errs[resp.Request.URL.String()] = err
		r.mu.Unlock()
		r.End(resp.Request, kindOf(resp, err))
	})
	c.OnScraped(func(resp *colly.Response) {
		r.mu.Lock()
		if r.scrape == nil {
			r.scrape = make(map[string]int)
		}
		r.scrape[resp.Request.URL.String()]++
		r.mu.Unlock()
		r.End(resp.Request, "done")
	})
	return c
}

// kindOf returns a word for the end of a request that has failed.
func kindOf(resp *colly.Response, err error) string {
	denied := (*collyrobots.DeniedError)(nil)
	switch {
	case errors.As(err, &denied):
		return string(denied.Decision.Reason)
	case errors.Is(err, collyrobots.ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case resp.StatusCode != 0:
		return fmt.Sprint("failed ", resp.StatusCode)
	}
	return "failed " + SameText(err)
}

// Begin changes the number of requests that have begun.
func (r *Run) Begin(change int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun += change
}

// End records how a request has ended.
func (r *Run) End(req *colly.Request, how string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	if r.ends == nil {
		r.ends = make(map[string]map[string]int)
	}
	if r.ends[how] == nil {
		r.ends[how] = make(map[string]int)
	}
	r.ends[how][strings.TrimPrefix(req.URL.Host, "a.test")+req.URL.RequestURI()]++
}

// Counts returns the number of requests that have begun, and of those that have ended.
func (r *Run) Counts() (begun, ended int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun, r.ended
}

// Errs returns the last error of each URL.
func (r *Run) Errs() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.errs)
}

// Scraped returns how often each URL was scraped.
func (r *Run) Scraped() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.scrape)
}

// Outcomes returns the paths of a.test and the URIs of other hosts by the ends of their requests,
// with a number if there are several. It returns "none" if no request has ended.
func (r *Run) Outcomes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ends) == 0 {
		return "none"
	}
	var all []string
	for how, pages := range r.ends {
		var names []string
		for page, n := range pages {
			if n > 1 {
				page = fmt.Sprint(page, " x", n)
			}
			names = append(names, page)
		}
		slices.Sort(names)
		all = append(all, how+": "+strings.Join(names, " "))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// SameText returns the text of an error, or its kind if the text differs between runs.
func SameText(err error) string {
	if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return "timeout"
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return "no such host"
	}
	return fmt.Sprint(err)
}
