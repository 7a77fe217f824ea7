package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/demo"
)

// An output collects the output of a program.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor waits until the output contains a text.
func (o *output) waitFor(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(o.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the output does not contain %q:\n%s", text, o.String())
		}
	}
}

// wantPages has the numbers of allowed pages and sitemaps of the sites, counted by hand.
var wantPages = map[string]int{"down.test": 0, "maps.test": 9, "moved.test": 4, "slow.test": 6, "wild.test": 6}

// check checks a crawl by the logs of the sites. killed has the names of the killed workers.
func check(t *testing.T, c *cluster, killed []string) {
	t.Helper()
	for host, want := range wantPages {
		log := c.sites.Log(host)
		agents := make(map[string][]string) // by page
		for i, a := range log {
			if a.Path != "/robots.txt" {
				agents[a.Path] = append(agents[a.Path], a.Agent)
			}
			if i == 0 {
				continue
			}
			delay := 250 * time.Millisecond
			if host == "slow.test" {
				delay = time.Second
			}
			if gap := a.At.Sub(log[i-1].At); gap < delay*95/100 {
				t.Errorf("%s got the request for %s %v after %s, want at least %v", host, a.Path, gap, log[i-1].Path, delay)
			}
		}
		if len(agents) != want {
			t.Errorf("%s: %d pages were requested, want %d: %v", host, len(agents), want, slices.Sorted(maps.Keys(agents)))
		}
		for page, agents := range agents {
			for _, agent := range agents[:len(agents)-1] {
				if !slices.ContainsFunc(killed, func(name string) bool { return strings.Contains(agent, name+";") }) {
					t.Errorf("%d requests for %s%s: %v", len(agents), host, page, agents)
				}
			}
		}
	}
	if pids := left(c.job.Redis); len(pids) > 0 {
		t.Errorf("processes %v have not ended", pids)
	}
}

// TestCommand runs the program without flags.
func TestCommand(t *testing.T) {
	t.Parallel()
	needRedis(t)
	program, out := startProgram(t, "")
	if err := program.Wait(); err != nil {
		t.Fatal(err, out.String())
	}
	t.Log(out.String())
	for _, want := range []string{
		"killed with -9\n",
		"starting worker 5\n",
		"\nFetched twice, by the killed worker and by another one (",
		"No page was lost, and the delay of each host was kept.\n",
	} {
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("the output contains %q %d times, want once", want, n)
		}
	}
}

// TestKill kills a worker while it fetches a page, as the program does.
func TestKill(t *testing.T) {
	t.Parallel()
	needRedis(t)
	c, r := crawlSites(t, settings{workers: 3, kill: 2 * time.Second}, nil)
	check(t, c, r.killed)
	// Two pages are fetched again if one redirects to the other.
	if again := againOf(r); len(r.killed) != 1 || len(again) == 0 || !r.good() {
		t.Errorf("killed %v, fetched again %v, good %v", r.killed, again, r.good())
	}
}

func TestWithoutKill(t *testing.T) {
	t.Parallel()
	needRedis(t)
	c, r := crawlSites(t, settings{workers: 2}, nil)
	check(t, c, nil)
	for _, h := range r.hosts {
		if h.robots != 1 {
			t.Errorf("%d requests for the robots.txt of %s, want 1", h.robots, h.host)
		}
	}
	if len(r.killed) > 0 || len(againOf(r)) > 0 || !r.good() {
		t.Errorf("killed %v, fetched again %v, good %v", r.killed, againOf(r), r.good())
	}
}

// TestGeneratedSites crawls generated sites and kills a worker.
func TestGeneratedSites(t *testing.T) {
	t.Parallel()
	needRedis(t)
	_, r := crawlSites(t, settings{workers: 2, kill: time.Second, sites: 30, pages: 10}, nil)
	requests := 0
	for _, h := range r.hosts {
		requests += h.requests
	}
	if again := len(againOf(r)); len(r.hosts) != 30 || requests != 30*(10+1)+again || !r.good() {
		t.Errorf("%d hosts, %d requests, %d pages again, good %v", len(r.hosts), requests, again, r.good())
	}
	if _, allowed := r.rates(); allowed != 30*4 {
		t.Errorf("%v requests a second are allowed, want 4 for each host", allowed)
	}
}

// TestRandomKills kills workers at random times: while they start, wait, queue links or mark a page
// as done.
func TestRandomKills(t *testing.T) {
	needRedis(t)
	for n := range 5 {
		seed := uint64(time.Now().UnixNano()) + uint64(n)
		t.Run("", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			kills := 1 + random.IntN(2)
			c, r := crawlSites(t, settings{workers: 4}, func(ctx context.Context, c *cluster) {
				for _, victim := range random.Perm(4)[:kills] {
					select {
					case <-ctx.Done():
						return
					case <-time.After(time.Duration(random.Int64N(int64(5 * time.Second)))):
					}
					c.mu.Lock()
					w := c.workers[victim]
					c.mu.Unlock()
					c.kill(w)
				}
			})
			t.Logf("seed %d: killed %v, fetched again %v", seed, r.killed, againOf(r))
			check(t, c, r.killed)
			if !r.good() {
				t.Error("the report is not good")
			}
		})
	}
}

// crawlSites crawls the demo sites, and returns the cluster and the report.
func crawlSites(t *testing.T, s settings, interfere func(context.Context, *cluster)) (c *cluster, r *outcome) {
	t.Helper()
	out := new(output)
	var wg sync.WaitGroup
	wg.Add(1)
	r, err := crawl(t.Context(), s, out, func(ctx context.Context, crawling *cluster) {
		defer wg.Done()
		c = crawling
		if interfere != nil {
			interfere(ctx, c)
		}
	})
	if err != nil {
		t.Fatal(err, out.String())
	}
	wg.Wait()
	if t.Failed() || !r.good() {
		t.Log(out.String())
	}
	var table bytes.Buffer
	r.print(&table)
	t.Log(table.String())
	return c, r
}

func againOf(r *outcome) (pages []string) {
	for _, h := range r.hosts {
		pages = append(pages, h.again...)
	}
	return pages
}

// TestTakenPort checks that another Redis on the same port is not used.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	options, err := redisOptions(ownRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := startChild(job{Redis: "redis://:mine@" + options.Addr}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.end)
	if err := keeper.waitForRedis(t.Context()); err == nil {
		t.Error("another Redis on the same port is used")
	}
}

// TestForeignRedis crawls with a running Redis, and checks that no keys are left in it.
func TestForeignRedis(t *testing.T) {
	t.Parallel()
	address := ownRedis(t)
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-redis", address + "/3", "-kill=0", "-workers=2"}, &stdout, &stderr); status != 0 {
		t.Fatal(status, stdout.String(), stderr.String())
	}
	if !strings.Contains(stdout.String(), "No worker was killed.") {
		t.Error(stdout.String())
	}
	client := clientOf(t, address+"/3")
	if keys := client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("the crawl has left the keys %v", keys)
	}
}

// TestReport checks the reports of good and bad crawls.
func TestReport(t *testing.T) {
	const killed, other = 1, 2
	complete := []demo.Access{{Path: "/robots.txt"}}
	for _, page := range pagesOf("slow.test", demo.Sites["slow.test"]) {
		complete = append(complete, demo.Access{Path: page, Agent: userAgent(other)})
	}
	for _, test := range []struct {
		name               string
		gap                time.Duration
		change             func([]demo.Access) []demo.Access
		lost, again, twice int
		good               bool
	}{
		{name: "good", gap: time.Second, good: true},
		{name: "slightly early", gap: 960 * time.Millisecond, good: true},
		{name: "too early", gap: 900 * time.Millisecond},
		{name: "lost page", gap: time.Second, lost: 1, change: func(log []demo.Access) []demo.Access { return log[:len(log)-1] }},
		{name: "killed worker first", gap: time.Second, again: 1, good: true, change: func(log []demo.Access) []demo.Access {
			return slices.Insert(log, 1, demo.Access{Path: "/", Agent: userAgent(killed)})
		}},
		{name: "killed worker last", gap: time.Second, twice: 1, change: func(log []demo.Access) []demo.Access {
			return append(log, demo.Access{Path: "/", Agent: userAgent(killed)})
		}},
		{name: "twice by the same worker", gap: time.Second, twice: 1, change: func(log []demo.Access) []demo.Access {
			return append(log, demo.Access{Path: "/", Agent: userAgent(other)})
		}},
	} {
		log := slices.Clone(complete)
		if test.change != nil {
			log = test.change(log)
		}
		for i := range log {
			log[i].At = time.Unix(0, 0).Add(time.Duration(i) * test.gap)
		}
		h := newHostReport("slow.test", demo.Sites["slow.test"], log, nil)
		h.findPages(demo.Sites["slow.test"], log, func(agent string) bool { return agent == userAgent(killed) })
		r := &outcome{hosts: []*hostReport{h}, complete: true}
		if len(h.lost) != test.lost || len(h.again) != test.again || len(h.twice) != test.twice || r.good() != test.good {
			t.Errorf("%s: %d lost, %d again, %d twice, good %v", test.name, len(h.lost), len(h.again), len(h.twice), r.good())
		}
		r.print(io.Discard)
		if h.robots != 1 || h.delay != time.Second {
			t.Errorf("%s: %d requests for robots.txt, a delay of %v, want 1 and 1s", test.name, h.robots, h.delay)
		}
	}
}
