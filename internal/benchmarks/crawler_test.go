//go:build unix

package benchmarks

import (
	"context"
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
	Way    string // one of ways
	Links  bool   // see workload
	Server string // the address of all hosts
}

const orderVariable = "COLLYROBOTS_BENCHMARK"

// variable returns the variable of the environment with o.
func (o order) variable() string {
	text, _ := json.Marshal(o) // cannot fail, because the fields are strings and a bool
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
	cmd.Env = append(os.Environ(), order{Way: way, Links: w.links, Server: server}.variable())
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
	c, stop, err := o.collector()
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
		measured, err := m.measure(n, func() error { return o.visit(c, turn, n) })
		if err != nil {
			return err
		}
		if err := costs.Encode(measured); err != nil {
			return err
		}
	}
}

// collector returns a collector that crawls the way that o names. stop must be called in the end.
func (o order) collector() (c *colly.Collector, stop func(), err error) {
	c = colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit(), colly.Async(o.Links))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, o.Server)
	}
	c.WithTransport(transport)
	stop = func() {}
	switch o.Way {
	case "built-in":
		c.IgnoreRobotsTxt = false
	case "plugin":
		p, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, nil, err
		}
		stop = func() { p.Close() }
	case "listener":
		p, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.OnEveryEvent(func(collyrobots.Event) {}))
		if err != nil {
			return nil, nil, err
		}
		stop = func() { p.Close() }
	case "audit log":
		stop, err = o.audited(c)
		if err != nil {
			return nil, nil, err
		}
	}
	if !o.Links {
		return c, stop, nil
	}
	c.AllowURLRevisit = false
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c, stop, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4})
}

// audited attaches a plugin with an audit log to c. The log is removed in the end.
func (o order) audited(c *colly.Collector) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		return nil, err
	}
	l, err := audit.Open(dir)
	if err != nil {
		return nil, err
	}
	p, err := collyrobots.WithRobots(c, collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.OnEveryEvent(l.Event))
	if err != nil {
		return nil, err
	}
	return func() {
		p.Close()
		l.Close()
		os.RemoveAll(dir)
	}, nil
}

// visit visits n pages of the site.
func (o order) visit(c *colly.Collector, turn, n int) error {
	if o.Links {
		err := c.Visit(fmt.Sprintf("http://www.example.com/tree/%d/%d/0", n, turn))
		c.Wait()
		return err
	}
	for range n {
		if err := c.Visit(pageURL); err != nil {
			return err
		}
	}
	return nil
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
	o := order{Way: way, Links: w.links, Server: server}
	few, many := 200, 1200
	if w.links {
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
