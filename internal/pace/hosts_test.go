package pace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/collyrobots/collyrobots/report"
)

func noRules() *Hosts {
	rules := new(Rules)
	return New(func(string) *Rules { return rules })
}

func TestAtReturnsTheSameHost(t *testing.T) {
	var asked []string
	hosts := New(func(name string) *Rules { asked = append(asked, name); return new(Rules) })
	name := []byte("a.test")
	a := hosts.At(time.Now(), unsafe.String(&name[0], len(name)))
	name[0] = 'x' // the caller may reuse the memory of the name
	b := hosts.At(time.Now(), "b.test:8080")
	if a == b || hosts.At(time.Now(), "a.test") != a || hosts.At(time.Now(), "b.test:8080") != b {
		t.Error("At did not return the same host for the same name")
	}
	if a.Name() != "a.test" || b.Name() != "b.test:8080" || a.Rules() == b.Rules() {
		t.Errorf("%q, %q", a.Name(), b.Name())
	}
	if len(asked) != 2 {
		t.Errorf("rules was called for %q, want two calls", asked)
	}
	b.Count(report.HostCounts{Pages: 3, Denied: 1})
	b.Count(report.HostCounts{Pages: 1})
	if got := b.Stats(time.Now()); got.Host != "b.test:8080" || got.HostCounts != (report.HostCounts{Pages: 4, Denied: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestAll(t *testing.T) {
	hosts := noRules()
	var want, got []string
	for i := range 10_000 {
		name := fmt.Sprintf("%05d.test", i)
		want = append(want, name)
		hosts.At(time.Now(), name)
	}
	for host := range hosts.All() {
		hosts.At(time.Now(), host.Name()).Count(report.HostCounts{Pages: 1}) // At needs the lock, so All must not hold it
		got = append(got, host.Name())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d hosts, want %d", len(got), len(want))
	}
	for _, most := range []int{1, 64, 100, 500} {
		n := 0
		for range hosts.All() {
			n++
			if n == most {
				break
			}
		}
		if n != most {
			t.Errorf("%d hosts, want %d", n, most)
		}
	}
	hosts.At(time.Now(), "the locks are free")
}

// crowded returns a shard with so many hosts that it examines idle ones, and its hosts, which are
// named "0", "1", and so on.
func crowded(hosts *Hosts, now instant) (*shard, []*Host) {
	s := &hosts.shards[0]
	var all []*Host
	for i := range keepAll {
		h, examined := s.insert(now, hosts.host(fmt.Sprint(i)))
		if examined != 0 {
			panic("insert examined a host too early")
		}
		all = append(all, h)
	}
	return s, all
}

func TestIdleHostsAreForgottenAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := noRules()
		s, old := crowded(hosts, hosts.now())
		old[1].Count(report.HostCounts{Pages: 5, Denied: 7})
		s.find(at(time.Minute), "2")
		time.Sleep(longAgo * time.Second)
		for i := range 3 * keepAll {
			before := len(s.byName)
			_, examined := s.insert(hosts.now(), hosts.host(fmt.Sprint("new ", i)))
			if examined > mostExamined || examined == 0 && before >= keepAll {
				t.Fatalf("host %d: insert examined %d hosts", i, examined)
			}
			if grown := len(s.byName) - before; grown < 1-mostExamined || grown > 1 {
				t.Fatalf("host %d: the shard grew by %d hosts", i, grown)
			}
		}
		// All old hosts are forgotten except the one that was used again, and none of the new
		// ones.
		if n := len(s.byName); n != 3*keepAll+1 || s.byName["2"] != old[2] {
			t.Errorf("%d hosts are left", n)
		}
		if got := hosts.Forgotten(); got != (report.HostCounts{Pages: 5, Denied: 7}) {
			t.Errorf("forgotten: %+v", got)
		}
		if ring := ringOf(s); len(ring) != len(s.byName) {
			t.Errorf("%d hosts in the ring, %d in the map", len(ring), len(s.byName))
		}
	})
}

func ringOf(s *shard) []*Host {
	var ring []*Host
	for h := s.hand; ; h = h.nextInRing {
		ring = append(ring, h)
		if h.nextInRing == s.hand {
			return ring
		}
	}
}

// TestForget checks that only hosts that are not needed are forgotten.
func TestForget(t *testing.T) {
	for _, test := range []struct {
		name    string
		rules   Rules
		prepare func(t *testing.T, h *Host, ticket *Ticket)
		want    bool
	}{
		{"idle", Rules{}, func(t *testing.T, h *Host, _ *Ticket) {}, true},
		{"asked long ago", Rules{MinDelay: time.Minute}, func(t *testing.T, h *Host, ticket *Ticket) {
			h.Enter(t.Context(), ticket)
			h.Start(t.Context(), ticket, true)
			ticket.End()
		}, true},
		{"within its delay", Rules{MinDelay: time.Hour}, func(t *testing.T, h *Host, ticket *Ticket) {
			h.Start(t.Context(), ticket, true)
			ticket.End()
		}, false},
		{"in flight", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) { h.Start(t.Context(), ticket, true) }, false},
		{"never sent", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) { h.Start(t.Context(), ticket, false) }, true},
		{"never started", Rules{MinDelay: time.Minute}, func(t *testing.T, h *Host, ticket *Ticket) { h.Enter(t.Context(), ticket) }, true},
		{"admitted", Rules{MinDelay: time.Hour}, func(t *testing.T, h *Host, ticket *Ticket) { h.Enter(t.Context(), ticket) }, false},
		{"about to enter", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			ticket.state = waiting
			h.own.ensurePaced().waiting.push(ticket)
		}, false},
		{"about to start", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			ticket.state = urgent
			h.own.ensurePaced().urgent.push(ticket)
		}, false},
		{"Retry-After", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) { h.SlowDown(time.Now(), nil, time.Hour) }, false},
		{"after Retry-After", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			h.SlowDown(time.Now(), nil, time.Minute)
		}, false},
		{"long after Retry-After", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			h.SlowDown(time.Now(), nil, time.Minute)
			time.Sleep(2 * time.Minute)
		}, true},
		{"backing off", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			for range 10 {
				h.SlowDown(time.Now(), nil, 0)
			}
		}, false},
		{"locked", Rules{}, func(t *testing.T, h *Host, ticket *Ticket) {
			go h.own.mu.Lock()
			synctest.Wait()
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := New(func(string) *Rules { return &test.rules })
				defer hosts.Close(nil)
				s, all := crowded(hosts, hosts.now())
				var ticket Ticket
				test.prepare(t, all[0], &ticket)
				time.Sleep(longAgo * time.Second)
				s.insert(hosts.now(), hosts.host("new"))
				if got := s.byName["0"] == nil; got != test.want {
					t.Errorf("forgotten: %v, want %v", got, test.want)
				}
				if test.name != "locked" && all[0].own.isForgotten != test.want {
					t.Errorf("isForgotten: %v, want %v", all[0].own.isForgotten, test.want)
				}
			})
		})
	}
}

// TestStartOnForgottenHost checks that a host still has one pace when a caller keeps it for longer
// than the registry does: a request that the forgotten host has started must start again.
func TestStartOnForgottenHost(t *testing.T) {
	for name, rules := range map[string]Rules{"without a delay": {}, "with a delay": {MinDelay: time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hosts := New(func(string) *Rules { return &rules })
				old := hosts.At(time.Now(), "a.test")
				var late Ticket
				old.Start(t.Context(), &late, false)
				time.Sleep(time.Hour) // the callbacks of the request take long
				s := hosts.shardOf("a.test")
				s.mu.Lock()
				s.examine(hosts.now())
				s.mu.Unlock()
				if n := hosts.Forgotten().Requests; !old.own.isForgotten || n != 0 {
					t.Fatalf("forgotten: %t, with %d requests; want 0, because none was sent", old.own.isForgotten, n)
				}
				if late.OnWire() {
					t.Error("the request is on the wire with a forgotten host")
				}
				old.Start(t.Context(), &late, false)
				if next := hosts.At(time.Now(), "a.test"); !late.OnWire() || next == old || next.Stats(time.Now()).Requests != 1 {
					t.Errorf("%+v", next.Stats(time.Now()))
				}
				late.End()
			})
		})
	}
}

// TestRandomUse calls the methods in random order and checks that no gap is shorter than the delay,
// and that at the end no request waits and no ticket holds anything.
func TestRandomUse(t *testing.T) {
	for _, test := range []struct {
		name  string
		rules Rules
	}{
		{"no rules", Rules{}},
		{"MaxInFlightPerHost", Rules{MaxInFlightPerHost: 3}},
		{"FromEnd", Rules{FromEnd: true}},
		{"MinDelay", Rules{MinDelay: 50 * time.Millisecond, MaxCrawlDelay: 400 * time.Millisecond}},
	} {
		for seed := range uint64(8) {
			for _, complain := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", test.name, seed, complain), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { randomUse(t, test.rules, seed, complain) })
				})
			}
		}
	}
}

// A server records when requests reach it. It compares each gap with the smallest delay that was in
// force since the previous request.
type server struct {
	mu    sync.Mutex
	delay time.Duration
	last  time.Time
	seen  int
}

// sees records a request that was started under the delay started. now is the delay in force now.
func (s *server) sees(t *testing.T, started, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gap := time.Since(s.last); s.seen > 0 && gap < min(s.delay, started) {
		t.Errorf("gap %v under a delay of %v", gap, min(s.delay, started))
	}
	s.last, s.delay = time.Now(), now
	s.seen++
}

func (s *server) changes(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = min(s.delay, delay)
}

func randomUse(t *testing.T, rules Rules, seed uint64, complain bool) {
	hosts := New(func(string) *Rules { return &rules })
	var servers [3]server
	var wg sync.WaitGroup
	change := rand.New(rand.NewPCG(seed, 0))
	time.Sleep(time.Microsecond) // so that changes happen between the other calls
	for i := range 200 {
		random := rand.New(rand.NewPCG(seed, uint64(i)+1))
		wg.Go(func() {
			time.Sleep(time.Duration(random.IntN(10_000))*time.Millisecond + time.Microsecond)
			which := random.IntN(len(servers))
			h := hosts.At(time.Now(), fmt.Sprint(which))
			s := &servers[which]
			client := &randomClient{Rand: random, host: h, dials: rules.MaxInFlightPerHost < 2 && !complain, complains: complain}
			client.request(t, s)
		})
	}
	for range 40 {
		time.Sleep(time.Duration(change.IntN(500)) * time.Millisecond)
		which := change.IntN(len(servers))
		h := hosts.At(time.Now(), fmt.Sprint(which))
		scheme := []string{"http", "https"}[change.IntN(2)]
		h.SetCrawlDelay(time.Now(), Source{Scheme: scheme}, time.Duration(change.IntN(4)*150)*time.Millisecond, time.Time{})
		servers[which].changes(h.Stats(time.Now()).Delay)
	}
	wg.Wait() // if a request starves, the bubble ends in a deadlock
	for i := range servers {
		if servers[i].seen < 20 {
			t.Errorf("host %d got only %d requests, too few for the test", i, servers[i].seen)
		}
	}
	time.Sleep(time.Minute)
	for h := range hosts.All() {
		g, _ := h.lock()
		if now := g.registry.now(); g.busy(now) || g.paced != nil && !g.deserted(now) {
			t.Errorf("%s has a request that waits or is in flight", h.Name())
		}
		g.mu.Unlock()
	}
}

// A randomClient makes requests to a host in a random way.
type randomClient struct {
	*rand.Rand
	host      *Host
	dials     bool // some requests take a while to be sent
	complains bool // some get a complaint as the response
}

// request uses one ticket in a random way.
func (c *randomClient) request(t *testing.T, s *server) {
	h := c.host
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pause := func(most int) { time.Sleep(time.Duration(c.IntN(most)) * time.Millisecond) }
	var ticket Ticket
	defer func() {
		for range c.IntN(3) { // a request that was not sent needs no End; a second End has no effect
			ticket.End()
		}
	}()
	what := c.IntN(10)
	direct := c.IntN(4) == 0
	if what == 0 {
		time.AfterFunc(time.Duration(c.IntN(3000))*time.Millisecond, cancel)
	}
	if what == 1 {
		time.AfterFunc(time.Duration(c.IntN(3000))*time.Millisecond, ticket.End)
	}
	if !direct {
		if h.Enter(ctx, &ticket) != nil || what == 2 {
			return
		}
		pause(50)
	}
	if h.Start(ctx, &ticket, direct) != nil || !direct && what == 3 {
		return
	}
	delay := ticket.Start().Delay // the delay may have changed since the start
	if !ticket.OnWire() {
		return // the ticket was ended or has expired
	}
	if c.dials && what > 1 {
		pause(300)
	}
	if what > 1 {
		s.sees(t, delay, h.Stats(time.Now()).Delay)
	}
	ticket.Sent(time.Now())
	pause(100)
	switch answer := c.IntN(8); {
	case !c.complains:
	case answer == 0:
		h.SlowDown(time.Now(), &ticket, 0)
	case answer == 1:
		h.SlowDown(time.Now(), &ticket, time.Duration(c.IntN(5))*time.Second)
	case answer < 4:
		h.Unavailable(time.Now(), &ticket)
	case answer < 6:
		h.Answered(&ticket, 200, 1)
		pause(100)
	}
	ticket.End()
}

func TestNoAllocationsWithoutADelay(t *testing.T) {
	hosts := noRules()
	hosts.At(time.Now(), "example.com")
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() { hosts.At(now, "example.com") }); n != 0 {
		t.Errorf("At: %v allocations", n)
	}
	h, ticket := hosts.At(now, "example.com"), new(Ticket)
	if n := testing.AllocsPerRun(100, func() { passOnce(h, ticket) }); n != 0 {
		t.Errorf("a request: %v allocations", n)
	}
	h.SetCrawlDelay(now, Source{Scheme: "http"}, time.Nanosecond, time.Time{})
	passOnce(h, ticket)
	if n := testing.AllocsPerRun(100, func() { passOnce(h, ticket) }); n != 0 {
		t.Errorf("a request that need not wait for its delay: %v allocations", n)
	}
}

func passOnce(h *Host, t *Ticket) {
	if h.Enter(context.Background(), t) != nil || h.Start(context.Background(), t, false) != nil || !t.OnWire() {
		panic("the request had to wait")
	}
	t.Sent(h.own.registry.epoch)
	t.End()
}

func BenchmarkRequestWithoutDelay(b *testing.B) {
	h, ticket := noRules().At(time.Now(), "example.com"), new(Ticket)
	b.ReportAllocs()
	for b.Loop() {
		passOnce(h, ticket)
	}
}

func TestInsertKeepsTheFirstHost(t *testing.T) {
	hosts := noRules()
	s := &hosts.shards[0]
	first, _ := s.insert(1, hosts.host("a.test"))
	if second, _ := s.insert(1, hosts.host("a.test")); second != first || first.nextInRing != first {
		t.Error("insert kept two hosts with the same name")
	}
}
