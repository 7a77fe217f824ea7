package programs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The programs in the table programs are in the style of public Colly programs. If robots.txt
// allows everything, each of them must behave with the plugin as without it: the same callbacks are
// called, and the server gets the same requests.

// A program is a spider and the web that it crawls.
type program struct {
	name      string
	sites     func() robotstest.Sites
	run       func(p *programRun)
	unordered bool                                                       // requests run at the same time, so the order of the output is not compared
	rotates   bool                                                       // the request for robots.txt also uses one of the proxies, so the proxies are not compared
	options   func() []collyrobots.Option                                // more options of the plugin; may be nil
	closed    string                                                     // a robots.txt that denies pages of the program; see TestPolitePrograms
	exit      func(w http.ResponseWriter, r *http.Request) (failed bool) // how a proxy answers in place of a site; may be nil
}

// A programRun is one run of a program, with or without the plugin.
type programRun struct {
	*testing.T
	web    *robotstest.Web
	plugin *collyrobots.Plugin // nil in a run of bare Colly
	strict bool                // without the plugin, Colly's built-in check reads robots.txt
	robots string              // the robots.txt of all sites; if empty, the sites have their own

	mu   sync.Mutex
	said []string
}

// say adds a line to the output of the program.
func (p *programRun) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

// collector returns a collector for the web of the program.
func (p *programRun) collector(options ...colly.CollectorOption) *colly.Collector {
	c := colly.NewCollector(append([]colly.CollectorOption{colly.UserAgent("ExampleBot/1.0")}, options...)...)
	c.WithTransport(p.web.Transport())
	c.IgnoreRobotsTxt = !p.strict
	return c
}

// results makes c print the results of pages that are not denied.
func (p *programRun) results(c *colly.Collector) *colly.Collector {
	c.OnResponse(func(r *colly.Response) { p.say("response %d %s %d bytes", r.StatusCode, r.Request.URL, len(r.Body)) })
	c.OnError(func(r *colly.Response, err error) {
		if !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			p.say("error %d %s: %s", r.StatusCode, r.Request.URL, kit.SameText(err))
		}
	})
	c.OnScraped(func(r *colly.Response) { p.say("scraped %s", r.Request.URL) })
	return c
}

// attach is called where the program would call WithRobots.
func (p *programRun) attach(collectors ...*colly.Collector) {
	if p.plugin == nil {
		return
	}
	for _, c := range collectors {
		kit.Must(p.T, p.plugin.Attach(c))
	}
}

// hear makes c print which callbacks are called.
func (p *programRun) hear(c *colly.Collector) *colly.Collector {
	c.OnRequest(func(r *colly.Request) { p.say("request %s %s depth %d", r.Method, r.URL, r.Depth) })
	c.OnResponse(func(r *colly.Response) { p.say("response %d %s %d bytes", r.StatusCode, r.Request.URL, len(r.Body)) })
	c.OnError(func(r *colly.Response, err error) {
		p.say("error %d %s: %s", r.StatusCode, r.Request.URL, kit.SameText(err))
	})
	c.OnScraped(func(r *colly.Response) { p.say("scraped %s", r.Request.URL) })
	return c
}

// follow visits the links of each page.
func follow(c *colly.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
}

// result runs a program on sites whose robots.txt allows everything.
func (x program) result(t *testing.T, withPlugin bool) (said, seen []string) {
	t.Helper()
	if !withPlugin {
		return x.once(t, &programRun{}, nil, nil)
	}
	return x.once(t, &programRun{}, x.pluginOptions(), nil)
}

// pluginOptions returns the options of the plugin under RFC 9309.
func (x program) pluginOptions() []collyrobots.Option {
	options := []collyrobots.Option{collyrobots.Dialect(dialect.RFC9309())}
	if x.options != nil {
		options = append(options, x.options()...)
	}
	return options
}

// once runs a program in a bubble and returns its output and the requests that the server got. The
// program has a plugin with options, or none if options is nil. At the end once calls verify, which
// may be nil.
func (x program) once(t *testing.T, p *programRun, options []collyrobots.Option, verify func(p *programRun)) (said, seen []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p.T = t
		p.web = x.web(t, p.robots)
		if options != nil {
			options = append(options, collyrobots.MaxBackOff(0), collyrobots.Logger(slog.New(slog.DiscardHandler)))
			plugin, err := collyrobots.New(options...)
			kit.Must(t, err)
			p.plugin = plugin
		}
		x.run(p)
		if p.plugin != nil {
			kit.Must(t, p.plugin.Close())
		}
		if verify != nil {
			verify(p)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		said = p.said
		seen = x.requests(p.web)
	})
	if x.unordered {
		said = withoutOrder(said)
		seen = withoutOrder(seen)
	}
	return said, seen
}

// web returns the sites of the program. If robots is not empty, it is the robots.txt of each site.
func (x program) web(t *testing.T, robots string) *robotstest.Web {
	sites := x.sites()
	web := robotstest.New(t, sites)
	if robots == "" {
		return web
	}
	for host := range sites {
		web.Set(host, "/robots.txt", func(w http.ResponseWriter, r *http.Request) {
			if x.exit == nil || !x.exit(w, r) {
				io.WriteString(w, robots)
			}
		})
	}
	return web
}

// requests returns the requests that the server got, except those for robots.txt and those that
// proxy0 has answered in place of the site.
func (x program) requests(web *robotstest.Web) (seen []string) {
	for _, r := range web.Log("") {
		if x.exit != nil && r.Proxy == "proxy0.test:3128" {
			continue
		}
		if x.rotates {
			r.Proxy = ""
		}
		if r.URI != "/robots.txt" {
			seen = append(seen, fmt.Sprintf("%s %s://%s%s by %q, agent %q, cookie %q, referer %q", r.Method, r.Scheme, r.Host, r.URI, r.Proxy,
				r.Header.Get("User-Agent"), r.Header.Get("Cookie"), r.Header.Get("Referer")))
		}
	}
	return seen
}

// TestProgramsAreTheSameWithPlugin checks that each program has the same output and the same
// requests with the plugin and without it.
func TestProgramsAreTheSameWithPlugin(t *testing.T) {
	for _, x := range programs {
		t.Run(x.name, func(t *testing.T) {
			said, seen := x.result(t, false)
			if len(said) == 0 || len(seen) == 0 {
				t.Fatalf("the program does nothing: output %q, requests %q", said, seen)
			}
			withSaid, withSeen := x.result(t, true)
			kit.CompareLines(t, "the output differs", said, withSaid)
			kit.CompareLines(t, "the requests differ", seen, withSeen)
		})
	}
}

// withoutOrder returns the lines of a run sorted and without duplicates. It is for programs whose
// requests run at the same time. Colly checks in one call of its storage whether a page was
// visited, and marks it in another. Therefore it sometimes fetches a page twice, with the plugin
// and without it.
func withoutOrder(lines []string) []string {
	slices.Sort(lines)
	return slices.Compact(lines)
}

// tree returns two sites whose pages link to each other.
func tree() robotstest.Sites {
	return robotstest.Sites{"a.test": {
		"/":      robotstest.Page("/1", "/2", "/missing", "http://b.test/", "mailto:me@a.test"),
		"/1":     robotstest.Page("/2", "/3", "/moved"),
		"/2":     robotstest.Page("/", "/1"),
		"/3":     robotstest.Page("/4"),
		"/4":     robotstest.Page(),
		"/moved": robotstest.Redirect("/5"),
		"/5":     robotstest.Page(),
	}, "b.test": {"/": robotstest.Page("http://a.test/3"), "/late": answerLate}}
}

// answerLate answers after a minute.
func answerLate(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Minute):
		io.WriteString(w, robotstest.Page())
	case <-r.Context().Done():
	}
}

// flaky returns sites with pages that fail with a status, as often as the digit in their name says.
func flaky(status int) func() robotstest.Sites {
	return func() robotstest.Sites {
		var mu sync.Mutex
		tries := make(map[string]int)
		answer := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			tries[r.URL.Path]++
			if tries[r.URL.Path] <= int(r.URL.Path[1]-'0') {
				w.WriteHeader(status)
				return
			}
			io.WriteString(w, robotstest.Page())
		}
		return robotstest.Sites{"a.test": {"/robots.txt": 404, "*": answer}}
	}
}

// members returns a site whose pages require a login by a form.
func members() robotstest.Sites {
	page := func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("session"); err != nil || c.Value != "in" {
			http.Redirect(w, r, "/login", http.StatusFound)
			return
		}
		io.WriteString(w, robotstest.Page("/private/2", "/logout"))
	}
	form := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.FormValue("user") == "me" && r.FormValue("token") == "t0" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "in", Path: "/"})
			http.Redirect(w, r, "/private/1", http.StatusSeeOther)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "csrf", Value: "t0", Path: "/"})
		io.WriteString(w, `<!DOCTYPE html><form action="/login"><input name="token" value="t0"></form>`)
	}
	return robotstest.Sites{"a.test": {"/robots.txt": 404, "/login": form, "/private/1": page, "/private/2": page, "/logout": robotstest.Page()}}
}

// proxied returns the tree and three proxies.
func proxied() robotstest.Sites {
	sites := tree()
	for i := range 3 {
		sites[fmt.Sprintf("proxy%d.test:3128", i)] = nil
	}
	return sites
}
