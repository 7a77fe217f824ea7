package observe

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A recorder is a debugger that records the events of the plugin.
type recorder struct {
	mu     sync.Mutex
	events []debug.Event
}

func (r *recorder) Init() error { return nil }

func (r *recorder) Event(e *debug.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.HasPrefix(e.Type, "robots.") {
		r.events = append(r.events, *e)
	}
}

func (r *recorder) types() (types []string) {
	kit.WaitForListeners()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		types = append(types, strings.TrimPrefix(e.Type, "robots."))
	}
	return types
}

// uncomparable is a debugger that cannot be compared.
type uncomparable struct {
	*recorder
	_ []int
}

func TestDebuggerGetsEvents(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 2\n", "/": ""}}
	want := strings.Fields("started robots answered waiting started answered denied")
	for name, attach := range map[string]func(t *testing.T, c *colly.Collector, r *recorder){
		"set before": func(t *testing.T, c *colly.Collector, r *recorder) {
			c.SetDebugger(r)
			attachTo(t, c)
		},
		"set after Attach": func(t *testing.T, c *colly.Collector, r *recorder) {
			attachTo(t, c)
			c.SetDebugger(r)
		},
		"shared with a clone": func(t *testing.T, c *colly.Collector, r *recorder) {
			c.SetDebugger(r)
			p := attachTo(t, c)
			kit.Must(t, p.Attach(c.Clone()))
		},
		"not comparable": func(t *testing.T, c *colly.Collector, r *recorder) {
			c.SetDebugger(uncomparable{recorder: r})
			attachTo(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c, r := colly.NewCollector(), new(recorder)
				c.WithTransport(web.Transport())
				attach(t, c, r)
				c.Visit("http://a.test/")
				c.Visit("http://a.test/x")
				types := r.types()
				if !slices.Equal(types, want) {
					t.Errorf("got %v, want %v", types, want)
				}
				denied := r.events[len(r.events)-1]
				if denied.Type != "robots.denied" || denied.CollectorID != c.ID || denied.RequestID != 2 ||
					denied.Values["url"] != "http://a.test/x" || !strings.Contains(denied.Values["decision"], "line 2 of") {
					t.Errorf("got denied event %+v", denied)
				}
			})
		})
	}
}

func attachTo(t *testing.T, c *colly.Collector) *collyrobots.Plugin {
	t.Helper()
	p, err := collyrobots.WithRobots(c)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, p.Close()) })
	return p
}

// An unlocked debugger counts events by type without a lock, like published debuggers. It also
// counts the calls that are made on another goroutine than the test's.
type unlocked struct {
	counts map[string]int
	home   string // the goroutine of the test
	away   int
}

func (u *unlocked) Init() error { return nil }

func (u *unlocked) Event(e *debug.Event) {
	u.counts[e.Type]++
	if goroutine() != u.home {
		u.away++
	}
}

// goroutine returns the name of the current goroutine.
func goroutine() string {
	stack := make([]byte, 64)
	stack = stack[:runtime.Stack(stack, false)]
	name, _, _ := strings.Cut(string(stack), " [")
	return name
}

// TestDebuggerNeedsNoLock checks that the plugin calls the debugger of a synchronous collector only
// on the goroutine on which Colly calls it.
func TestDebuggerNeedsNoLock(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 1\nDisallow: /3\nSitemap: http://a.test/sitemap.xml\n"),
		"b.test": {"/robots.txt": kit.Hang, "/": robotstest.Page()},
	}
	sites["a.test"]["/sitemap.xml"] = robotstest.Sitemap("http://a.test/19")
	sites["a.test"]["/gone"] = robotstest.Redirect("/19")
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		u := &unlocked{counts: make(map[string]int), home: goroutine()}
		c := colly.NewCollector(colly.Debugger(u))
		c.WithTransport(web.Transport())
		p, err := collyrobots.WithRobots(c, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		kit.Must(t, err)
		heard := make(map[string]int)
		p.Listen(func(e *collyrobots.Event) { heard["robots."+string(e.Kind)]++ })
		for i := range 10 {
			c.Visit(fmt.Sprint("http://a.test/", i))
		}
		c.Visit("http://a.test/gone")
		c.Visit("http://b.test/")
		_, err = p.Check(t.Context(), "http://a.test/3")
		kit.Must(t, err)
		kit.Must(t, p.Close())
		for kind, n := range heard {
			if u.counts[kind] != n {
				t.Errorf("the debugger got %d events of type %s, a listener %d", u.counts[kind], kind, n)
			}
		}
		if u.away > 0 || u.counts["robots.started"] < 10 || u.counts["request"] < 10 {
			t.Errorf("%d events were delivered on another goroutine, of %v", u.away, u.counts)
		}
	})
}

// TestCloseDoesNotCallDebuggerDuringRequest checks that Close calls no debugger while a request is
// in flight, because Colly may be calling it. The hooks of the request deliver the events.
func TestCloseDoesNotCallDebuggerDuringRequest(t *testing.T) {
	slow := func(out http.ResponseWriter, r *http.Request) { time.Sleep(5 * time.Second) }
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "", "/": http.HandlerFunc(slow)}}, func(t *testing.T, web *robotstest.Web) {
		u := &unlocked{counts: make(map[string]int), home: goroutine()}
		c := colly.NewCollector(colly.Debugger(u))
		c.WithTransport(web.Transport())
		p, err := collyrobots.WithRobots(c)
		kit.Must(t, err)
		time.AfterFunc(time.Second, func() { p.Close() })
		kit.Must(t, c.Visit("http://a.test/"))
		if want := 2; u.away > 0 || u.counts["robots.started"] != want {
			t.Errorf("%d events were delivered on another goroutine; got %v, want %d started", u.away, u.counts, want)
		}
	})
}
