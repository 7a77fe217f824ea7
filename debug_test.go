package collyrobots_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A recorder is a debugger that keeps what it hears of robots.
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
	waitForListeners()
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

func TestADebuggerHearsOfEvents(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 2\n", "/": ""}}
	want := strings.Fields("started answered robots waiting started answered denied")
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
			must(t, p.Attach(c.Clone()))
		},
		"not comparable": func(t *testing.T, c *colly.Collector, r *recorder) {
			c.SetDebugger(uncomparable{recorder: r})
			attachTo(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c, r := colly.NewCollector(), new(recorder)
				c.WithTransport(web.Transport())
				attach(t, c, r)
				c.Visit("http://a.test/")
				c.Visit("http://a.test/x")
				types := r.types()
				if !slices.Equal(types, want) {
					t.Errorf("%v, want %v", types, want)
				}
				denied := r.events[len(r.events)-1]
				if denied.Type != "robots.denied" || denied.CollectorID != c.ID || denied.RequestID != 2 ||
					denied.Values["url"] != "http://a.test/x" || !strings.Contains(denied.Values["decision"], "line 2 of") {
					t.Errorf("%+v", denied)
				}
			})
		})
	}
}

func attachTo(t *testing.T, c *colly.Collector) *collyrobots.Plugin {
	t.Helper()
	p, err := collyrobots.WithRobots(c)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

func ExampleOnEvent_debugger() {
	web := robotstest.New(nil, robotstest.Sites{"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /cart\n"}})
	defer web.Close()

	c := colly.NewCollector(colly.Debugger(printer{}))
	c.WithTransport(web.Transport())
	robots, err := collyrobots.WithRobots(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Visit("http://shop.test/cart")
	robots.Close() // it waits until all is told
	// Output:
	// robots.started http://shop.test/robots.txt
	// robots.answered http://shop.test/robots.txt
	// robots.robots http://shop.test/robots.txt
	// robots.denied http://shop.test/cart
}

// A printer is a debugger that prints what Colly's own events do not say.
type printer struct{}

func (printer) Init() error { return nil }

func (printer) Event(e *debug.Event) {
	if strings.HasPrefix(e.Type, "robots.") {
		fmt.Println(e.Type, e.Values["url"])
	}
}
