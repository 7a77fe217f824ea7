package programs

import (
	"errors"
	"fmt"
	"io"
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
	"github.com/collyrobots/collyrobots/store"
)

// The programs in the table programs are in the style of public Colly programs. If robots.txt
// allows everything, each of them must behave with the plugin as without it: the same callbacks are
// called, and the server gets the same requests.

// A program is a spider and the web that it crawls.
type program struct {
	name    string
	sites   func() robotstest.Sites
	run     func(p *kit.Run)
	options func(*kit.Run) []collyrobots.Option // more options of the plugin; may be nil

	// For the comparison of a run with the plugin with one without it.
	unordered bool                                                       // requests run at the same time, so the order of the output is not compared; see withoutOrder
	parallel  bool                                                       // like unordered, but each line must come as often
	rotates   bool                                                       // the request for robots.txt also uses one of the proxies, so the proxies are not compared
	closed    string                                                     // a robots.txt that denies pages of the program; see polite
	exit      func(w http.ResponseWriter, r *http.Request) (failed bool) // how a proxy answers in place of a site; may be nil

	// For the ends of the requests; see checkEnds.
	within   time.Duration // how long the program may take, or 0 if there is no limit
	aborts   int           // requests that the plugin ends without OnError, because their retries cannot succeed
	outcomes string        // the paths by the ends of their requests, with a number if there are several; not compared if it is ""
	schedule string        // of a.test; not compared if it is ""
	records  bool          // the plugins of the program share a Store
	impolite bool          // an option replaces robots.txt, so that Verify is not called
}

// A setting says how a program is run.
type setting struct {
	options []collyrobots.Option // of the plugin; nil for a run without it
	builtIn bool                 // without the plugin, Colly's built-in check reads robots.txt
	robots  string               // the robots.txt of all sites; if empty, the sites have their own
	verify  func(p *kit.Run)     // called at the end; may be nil
}

// follow visits the links of each page.
func follow(c *colly.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
}

// result runs a program on sites whose robots.txt allows everything.
func (x program) result(t *testing.T, withPlugin bool) (said, seen []string) {
	t.Helper()
	if !withPlugin {
		return x.once(t, setting{})
	}
	return x.once(t, setting{options: x.pluginOptions()})
}

// pluginOptions returns the options of the plugin under RFC 9309.
func (x program) pluginOptions() []collyrobots.Option {
	options := []collyrobots.Option{collyrobots.Dialect(dialect.RFC9309())}
	if x.options != nil {
		options = append(options, x.options(nil)...)
	}
	return options
}

// once runs a program in a bubble and returns its output and the requests that the server got.
func (x program) once(t *testing.T, s setting) (said, seen []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &kit.Run{T: t, Web: x.web(t, s.robots), BuiltIn: s.builtIn}
		if s.options != nil {
			p.Plug(append(s.options, collyrobots.MaxBackOff(0))...)
		}
		x.run(p)
		p.Unplug()
		if s.verify != nil {
			s.verify(p)
		}
		said = p.Said()
		seen = x.requests(p.Web)
	})
	if x.parallel {
		slices.Sort(said)
		slices.Sort(seen)
	}
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
		t.Run(x.name, func(t *testing.T) { x.isSame(t) })
	}
}

// isSame compares a run with the plugin with one without it. It returns the requests.
func (x program) isSame(t *testing.T) (seen []string) {
	t.Helper()
	said, seen := x.result(t, false)
	if len(said) == 0 || len(seen) == 0 {
		t.Fatalf("the program does nothing: output %q, requests %q", said, seen)
	}
	withSaid, withSeen := x.result(t, true)
	compare(t, said, withSaid, seen, withSeen)
	return seen
}

// compare compares the output and the requests of two runs.
func compare(t *testing.T, said, withSaid, seen, withSeen []string) {
	t.Helper()
	compareLines(t, "the output differs", said, withSaid)
	compareLines(t, "the requests differ", seen, withSeen)
}

// compareLines reports the first line that differs in a run with the plugin.
func compareLines(t *testing.T, what string, bare, with []string) {
	t.Helper()
	for i := range max(len(bare), len(with)) {
		was, is := "no more lines", "no more lines"
		if i < len(bare) {
			was = bare[i]
		}
		if i < len(with) {
			is = with[i]
		}
		if was != is {
			t.Errorf("%s in line %d of %d\n  without the plugin: %s\n  with the plugin:    %s", what, i+1, len(bare), was, is)
			return
		}
	}
}

// checkEnds runs a program with the plugin. It must end within its time, each request that begins
// must end, and the server must get only requests that robots.txt allows, with its delay.
func (x program) checkEnds(t *testing.T, more ...collyrobots.Option) {
	t.Helper()
	kit.InBubble(t, x.sites(), func(t *testing.T, web *robotstest.Web) {
		p := &kit.Run{T: t, Web: web}
		if x.options != nil {
			p.Options = x.options(p)
		}
		if x.records {
			p.Options = append(p.Options, collyrobots.Store(store.NewMemory()))
		}
		p.Plug(more...)
		start := time.Now()
		x.run(p)
		took := time.Since(start)
		synctest.Wait()
		p.Unplug()
		if x.within > 0 && took > x.within {
			t.Errorf("the program took %v, want at most %v", took, x.within)
		}
		if begun, ended := p.Counts(); begun != ended+x.aborts || begun == 0 && x.outcomes != "none" {
			t.Errorf("%d requests began and %d ended, want %d without an end: %s", begun, ended, x.aborts, p.Outcomes())
		}
		if got := p.Outcomes(); x.outcomes != "" && got != x.outcomes {
			t.Errorf("the requests end as\n%s\nwant\n%s", got, x.outcomes)
		}
		if x.schedule != "" {
			kit.WantSchedule(t, web, "a.test", x.schedule)
		}
		if !x.impolite && len(web.Log("")) > 0 {
			robotstest.Verify(t, web, dialect.RFC9309())
		}
	})
}

// revalidate returns the option Revalidate for a run. Pages that have not changed are counted as
// ends.
func revalidate(p *kit.Run) collyrobots.Option {
	return collyrobots.Revalidate(collyrobots.Revalidation{OnUnchanged: func(r *colly.Request) { p.End(r, "unchanged") }})
}

// skipFresh is like revalidate, with SkipFresh.
func skipFresh(p *kit.Run) collyrobots.Option {
	return collyrobots.Revalidate(collyrobots.Revalidation{
		SkipFresh:   true,
		OnUnchanged: func(r *colly.Request) { p.End(r, "unchanged") },
	})
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

// outcome returns a word for the error of a visit. The built-in check returns ErrRobotsTxtBlocked
// itself.
func outcome(err error) string {
	if errors.Is(err, colly.ErrRobotsTxtBlocked) {
		return "denied"
	}
	return kit.SameText(err)
}
