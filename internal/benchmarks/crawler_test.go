//go:build unix

package benchmarks

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
)

// warmUp is the number of pages that a crawler visits before its first turn. These visits read
// robots.txt, open the connections and fill the pools.
const warmUp = 50

// A crawler is a process that crawls in turns. It is this test binary, started with an order.
type crawler struct {
	way   string
	in    *json.Encoder // the numbers of pages to visit
	out   *json.Decoder // the costs
	costs []cost        // of all turns

	instructions float64 // executed in user mode for one page; 0 if they were not counted
}

// An order tells a process what to crawl, and how. It is in the variable orderVariable of the
// environment, as JSON.
type order struct {
	Way    string // one of workload.ways
	Kind   kind   // of the workload
	Server string // the address of all hosts
}

const orderVariable = "COLLYROBOTS_BENCHMARK"

// variable returns the variable of the environment with o.
func (o order) variable() string {
	text, _ := json.Marshal(o) // cannot fail, because the fields are strings and a number
	return orderVariable + "=" + string(text)
}

// A cost is the cost of one turn.
type cost struct {
	Pages  int
	CPU    time.Duration // processor time of the process, in user and system mode
	Wall   time.Duration
	Allocs uint64
	Bytes  uint64 // allocated
}

// startCrawler starts a crawler, which ends with the test.
func startCrawler(t *testing.T, way string, w workload, server string) *crawler {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), order{Way: way, Kind: w.kind, Server: server}.variable())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", way, err)
		}
	})
	c := &crawler{way: way, in: json.NewEncoder(in), out: json.NewDecoder(out)}
	c.visit(t, warmUp)
	return c
}

// turn makes c visit n pages and records the cost.
func (c *crawler) turn(t *testing.T, n int) {
	t.Helper()
	c.costs = append(c.costs, c.visit(t, n))
}

// visit makes c visit n pages and returns the cost.
func (c *crawler) visit(t *testing.T, n int) cost {
	t.Helper()
	var measured cost
	if err := c.in.Encode(n); err != nil {
		t.Fatal(err)
	}
	if err := c.out.Decode(&measured); err != nil {
		t.Fatal(err)
	}
	return measured
}

// obeyOrders is the main function of a crawler's process. It visits as many pages as each line of
// in says and writes the cost to out, until in ends.
func obeyOrders(text string, in io.Reader, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	visit, stop, err := o.crawler()
	if err != nil {
		return err
	}
	defer stop()
	orders, costs := json.NewDecoder(in), json.NewEncoder(out)
	var m meter
	for turn := 0; ; turn++ {
		var n int
		switch err := orders.Decode(&n); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		measured, err := m.measure(n, func() error { return visit(turn, n) })
		if err != nil {
			return err
		}
		if err := costs.Encode(measured); err != nil {
			return err
		}
	}
}

// crawler returns a function that visits n pages in a turn, the way that o names. stop must be called
// in the end.
func (o order) crawler() (visit func(turn, n int) error, stop func(), err error) {
	p, stop, err := o.plugin()
	if err != nil {
		return nil, nil, err
	}
	if o.Kind == client || o.Kind == clientWithTimeout {
		return o.clientOf(p), stop, nil
	}
	c := colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit())
	c.IgnoreRobotsTxt = o.Way != "built-in"
	c.WithTransport(o.transport())
	if p != nil {
		if err := p.Attach(c); err != nil {
			return nil, nil, err
		}
	}
	switch o.Kind {
	case links:
		return visitLinks(c), stop, nil
	case manyHosts:
		return visitManyHosts(c), stop, nil
	}
	page := pageURL
	if o.Kind == https {
		page = strings.Replace(page, "http:", "https:", 1)
	}
	return repeat(func() error { return c.Visit(page) }), stop, nil
}

// plugin returns the plugin of o, or nil if its way has none. stop must be called in the end.
func (o order) plugin() (p *collyrobots.Plugin, stop func(), err error) {
	opts := []collyrobots.Option{collyrobots.Logger(slog.New(slog.DiscardHandler))}
	closeLog := func() {}
	switch o.Way {
	case "plugin":
	case "listener":
		opts = append(opts, collyrobots.OnEveryEvent(func(*collyrobots.Event) {}))
	case "audit log":
		listen, stopLog, err := newLog()
		if err != nil {
			return nil, nil, err
		}
		closeLog = stopLog
		opts = append(opts, collyrobots.OnEveryEvent(listen))
	default:
		return nil, closeLog, nil
	}
	p, err = collyrobots.New(opts...)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		p.Close()
		closeLog()
	}
	return p, stop, nil
}

// newLog returns the listener of a new audit log. stop removes the log.
func newLog() (listen func(*collyrobots.Event), stop func(), err error) {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		return nil, nil, err
	}
	l, err := audit.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		l.Close()
		os.RemoveAll(dir)
	}
	return l.Event, stop, nil
}

// transport returns a transport that sends all requests to the server.
func (o order) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, o.Server)
	}
	t.DisableKeepAlives = o.Kind == newConnections
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.ForceAttemptHTTP2 = false
	return t
}

// clientOf returns a function that requests pages with an http.Client and reads them. p may be nil.
func (o order) clientOf(p *collyrobots.Plugin) func(turn, n int) error {
	c := &http.Client{Transport: o.transport()}
	switch {
	case p != nil:
		c.Transport = p.Transport(c.Transport)
	case o.Way == "wrapped":
		c.Transport = wrapper{c.Transport}
	}
	if o.Kind == clientWithTimeout {
		c.Timeout = time.Minute
	}
	return repeat(func() error {
		req, err := http.NewRequest(http.MethodGet, pageURL, nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", userAgent)
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	})
}

// A wrapper is a RoundTripper that does nothing but call another one.
type wrapper struct{ http.RoundTripper }

// repeat returns a function that calls visit n times.
func repeat(visit func() error) func(turn, n int) error {
	return func(_, n int) error {
		for range n {
			if err := visit(); err != nil {
				return err
			}
		}
		return nil
	}
}

// visitLinks returns a function that follows the links of a site, four pages at once.
func visitLinks(c *colly.Collector) func(turn, n int) error {
	c.Async = true
	c.AllowURLRevisit = false
	c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return func(turn, n int) error {
		err := c.Visit(fmt.Sprintf("http://www.example.com/tree/%d/%d/0", n, turn))
		c.Wait()
		return err
	}
}

// visitManyHosts returns a function that visits pages of 50 hosts, four at once.
func visitManyHosts(c *colly.Collector) func(turn, n int) error {
	c.Async = true
	c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4})
	return func(_, n int) error {
		for i := range n {
			if err := c.Visit(fmt.Sprintf("http://www%d.example.com/some/page.html", i%50)); err != nil {
				return err
			}
		}
		c.Wait()
		return nil
	}
}

// A meter measures the turns of a crawler. What the process does between two turns counts for the
// second one, because the listener of a plugin and an audit log work on when a visit has returned.
type meter struct {
	worked time.Duration // processor time at the end of the last turn
	memory runtime.MemStats
}

// measure returns the cost of a visit of n pages.
func (m *meter) measure(n int, visit func() error) (cost, error) {
	before := *m
	start, _ := stopwatch()
	err := visit()
	end, worked := stopwatch()
	m.worked = worked
	runtime.ReadMemStats(&m.memory)
	return cost{
		Pages:  n,
		CPU:    m.worked - before.worked,
		Wall:   end - start,
		Allocs: m.memory.Mallocs - before.memory.Mallocs,
		Bytes:  m.memory.TotalAlloc - before.memory.TotalAlloc,
	}, err
}

// countInstructions returns how many instructions a process executes for one page. It runs two
// processes under valgrind that visit different numbers of pages, and compares them. Each process
// runs on one processor and without the garbage collector, so that the number varies little, and
// without preemption by signals, which callgrind does not support.
func countInstructions(t *testing.T, way string, w workload, server string) float64 {
	t.Helper()
	o := order{Way: way, Kind: w.kind, Server: server}
	few, many := 200, 1200
	if w.kind == links {
		few, many = 50, 300
	}
	return float64(o.executed(t, many)-o.executed(t, few)) / float64(many-few)
}

// executed returns how many instructions a process executes that visits n pages after the warm-up.
func (o order) executed(t *testing.T, n int) int {
	t.Helper()
	cmd := exec.Command("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", os.Args[0])
	cmd.Env = append(os.Environ(), o.variable(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	cmd.Stdin = strings.NewReader(fmt.Sprintln(warmUp, n))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	found := regexp.MustCompile(`Collected : (\d+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("valgrind reports no instructions:\n%s", out)
	}
	executed, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return executed
}
