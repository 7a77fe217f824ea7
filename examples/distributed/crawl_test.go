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

	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A saying is what a program has said so far.
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saying) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns when something was said.
func (s *saying) await(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !strings.Contains(s.String(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q was not said, but\n%s", text, s.String())
		}
	}
}

// wantPages is how many pages and sitemaps of each site there are to fetch, counted by hand.
var wantPages = map[string]int{"down.test": 0, "maps.test": 9, "moved.test": 4, "slow.test": 6, "wild.test": 6}

// check holds a crawl against the log of its sites.
func check(t *testing.T, st *stage, killed []string) {
	t.Helper()
	for host, want := range wantPages {
		log := st.sites.Log(host)
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
				t.Errorf("%s was asked for %s %v after %s", host, a.Path, gap, log[i-1].Path)
			}
		}
		if len(agents) != want {
			t.Errorf("%s: %d pages were asked for, not %d: %v", host, len(agents), want, slices.Sorted(maps.Keys(agents)))
		}
		for page, agents := range agents {
			for _, agent := range agents[:len(agents)-1] {
				if !slices.ContainsFunc(killed, func(name string) bool { return strings.Contains(agent, name+";") }) {
					t.Errorf("%s%s was asked for %d times: %v", host, page, len(agents), agents)
				}
			}
		}
	}
	if pids := left(st.job.Redis); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}

// TestCommand runs the whole program as it is run without flags.
func TestCommand(t *testing.T) {
	t.Parallel()
	needRedis(t)
	program, said := startWhole(t, "")
	if err := program.Wait(); err != nil {
		t.Fatal(err, said.String())
	}
	t.Log(said.String())
	for _, want := range []string{
		"is killed with -9\n",
		"goes back to the queue, and worker 5 starts\n",
		"\nFetched twice, by the worker that was killed and by another one (",
		"No page is lost, and no host was asked before its delay had passed.\n",
	} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("it does not say %q once", want)
		}
	}
}

// TestKilledOverAPage kills a worker that has asked for a page, as the program does.
func TestKilledOverAPage(t *testing.T) {
	t.Parallel()
	needRedis(t)
	st, r := stageOf(t, settings{workers: 3, kill: 2 * time.Second}, nil)
	check(t, st, r.killed)
	if again := againOf(r); len(r.killed) != 1 || len(again) == 0 || !r.good() { // two, where one redirects to the other
		t.Errorf("killed %v, fetched again %v, good %v", r.killed, again, r.good())
	}
}

func TestNobodyIsKilled(t *testing.T) {
	t.Parallel()
	needRedis(t)
	st, r := stageOf(t, settings{workers: 2}, nil)
	check(t, st, nil)
	for _, h := range r.hosts {
		if h.robots != 1 {
			t.Errorf("the robots.txt of %s was fetched %d times", h.host, h.robots)
		}
	}
	if len(r.killed) > 0 || len(againOf(r)) > 0 || !r.good() {
		t.Errorf("killed %v, fetched again %v, good %v", r.killed, againOf(r), r.good())
	}
}

// TestKilledAtRandom kills workers at any moment: while they start, wait, queue links or say that a
// page is done.
func TestKilledAtRandom(t *testing.T) {
	needRedis(t)
	for n := range 5 {
		seed := uint64(time.Now().UnixNano()) + uint64(n)
		t.Run("", func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			kills := 1 + random.IntN(2)
			st, r := stageOf(t, settings{workers: 4}, func(ctx context.Context, st *stage) {
				for _, victim := range random.Perm(4)[:kills] {
					select {
					case <-ctx.Done():
						return
					case <-time.After(time.Duration(random.Int64N(int64(5 * time.Second)))):
					}
					st.mu.Lock()
					w := st.workers[victim]
					st.mu.Unlock()
					st.kill(w)
				}
			})
			t.Logf("seed %d: killed %v, fetched again %v", seed, r.killed, againOf(r))
			check(t, st, r.killed)
			if !r.good() {
				t.Error("it is not content")
			}
		})
	}
}

// stageOf crawls, and returns what is left to look at.
func stageOf(t *testing.T, s settings, meddle func(context.Context, *stage)) (st *stage, r *report) {
	t.Helper()
	said := new(saying)
	var wg sync.WaitGroup
	wg.Add(1)
	r, err := crawl(t.Context(), s, term.NewDisplay(said), func(ctx context.Context, whole *stage) {
		defer wg.Done()
		if st = whole; meddle != nil {
			meddle(ctx, whole)
		}
	})
	if err != nil {
		t.Fatal(err, said.String())
	}
	wg.Wait()
	if t.Failed() || !r.good() {
		t.Log(said.String())
	}
	var table bytes.Buffer
	r.print(&table)
	t.Log(table.String())
	return st, r
}

func againOf(r *report) (pages []string) {
	for _, h := range r.hosts {
		pages = append(pages, h.again...)
	}
	return pages
}

// TestTakenPort: a Redis that has taken the port before is not taken for the own one, which it keeps from starting.
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
	if err := keeper.answers(t.Context()); err == nil {
		t.Error("another Redis is taken for the own one")
	}
}

// TestForeignRedis crawls with a Redis that is there already, and stays as it was.
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
		t.Errorf("it leaves %v", keys)
	}
}

// TestReport looks at logs that no good crawl leaves.
func TestReport(t *testing.T) {
	const killed, other = 1, 2
	whole := []demo.Access{{Path: "/robots.txt"}}
	for _, page := range pagesOf("slow.test") {
		whole = append(whole, demo.Access{Path: page, Agent: userAgent(other)})
	}
	for _, test := range []struct {
		name               string
		gap                time.Duration
		change             func([]demo.Access) []demo.Access
		lost, again, twice int
		good               bool
	}{
		{"as it should be", time.Second, nil, 0, 0, 0, true},
		{"noted a little late", 960 * time.Millisecond, nil, 0, 0, 0, true},
		{"too early", 900 * time.Millisecond, nil, 0, 0, 0, false},
		{"lost", time.Second, func(log []demo.Access) []demo.Access { return log[:len(log)-1] }, 1, 0, 0, false},
		{"killed over a page", time.Second, func(log []demo.Access) []demo.Access {
			return slices.Insert(log, 1, demo.Access{Path: "/", Agent: userAgent(killed)})
		}, 0, 1, 0, true},
		{"killed in the end", time.Second, func(log []demo.Access) []demo.Access {
			return append(log, demo.Access{Path: "/", Agent: userAgent(killed)})
		}, 0, 0, 1, false},
		{"twice", time.Second, func(log []demo.Access) []demo.Access {
			return append(log, demo.Access{Path: "/", Agent: userAgent(other)})
		}, 0, 0, 1, false},
	} {
		log := slices.Clone(whole)
		if test.change != nil {
			log = test.change(log)
		}
		for i := range log {
			log[i].At = time.Unix(0, 0).Add(time.Duration(i) * test.gap)
		}
		h := newHostReport("slow.test", log, nil)
		h.findPages(log, func(agent string) bool { return agent == userAgent(killed) })
		r := &report{hosts: []*hostReport{h}, whole: true}
		if len(h.lost) != test.lost || len(h.again) != test.again || len(h.twice) != test.twice || r.good() != test.good {
			t.Errorf("%s: %d lost, %d again, %d twice, good %v", test.name, len(h.lost), len(h.again), len(h.twice), r.good())
		}
		if r.print(io.Discard); h.robots != 1 || h.delay != time.Second {
			t.Errorf("%s: %d robots.txt, a delay of %v", test.name, h.robots, h.delay)
		}
	}
}
