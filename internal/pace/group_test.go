package pace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A town is a registry of hosts that are in groups, with a transcript.
type town struct {
	*world
	hosts *Hosts
}

// inTown runs a test in a bubble, with hosts that have these rules.
func inTown(t *testing.T, rules Rules, test func(t *testing.T, w *town)) {
	t.Helper()
	rules.Shares = true
	synctest.Test(t, func(t *testing.T) {
		w := &town{world: &world{t: t, start: time.Now()}}
		w.hosts = New(func(string) *Rules { return &rules })
		test(t, w)
		synctest.Wait()
		for _, group := range w.hosts.groups.byName {
			if !group.isEmpty() {
				t.Errorf("group %s: a request still waits or is in flight", group.name)
			}
		}
	})
}

// at returns the host with a name, after it was told to join a group.
func (w *town) at(name, group string) *Host {
	h := w.hosts.At(time.Now(), name)
	h.Join(Assignment{Name: group})
	return h
}

// pages lets n pages of a host wait, one after another, and notes when each is sent.
func (w *town) pages(h *Host, n int) {
	for i := range n {
		go func() {
			ticket := new(Ticket)
			defer ticket.End()
			if h.Enter(w.t.Context(), ticket) != nil || h.Start(w.t.Context(), ticket, false) != nil || !ticket.OnWire() {
				w.t.Error("a page was not sent")
			}
			w.note("%s/%d", h.Name(), i)
		}()
		synctest.Wait() // each page enters the queue before the next
	}
}

// robots sends one request for robots.txt of a host.
func (w *town) robots(h *Host, delay time.Duration) {
	ticket := new(Ticket)
	defer ticket.End()
	ticket.Renew()
	if err := h.Start(w.t.Context(), ticket, true); err != nil {
		w.t.Error(err)
	}
	h.SetCrawlDelay(time.Now(), Source{Scheme: "http"}, delay, time.Now().Add(time.Hour))
	w.note("%s/robots.txt", h.Name())
}

func TestLongestDelayOfAGroupApplies(t *testing.T) {
	inTown(t, Rules{}, func(t *testing.T, w *town) {
		a, b := w.at("a.test", "g"), w.at("b.test", "g")
		w.robots(a, time.Second)
		w.robots(b, 3*time.Second)
		w.pages(a, 2)
		w.pages(b, 1)
		time.Sleep(time.Minute)
		w.check(`
0s a.test/robots.txt
1s b.test/robots.txt
4s a.test/0
7s b.test/0
10s a.test/1`)
		s := a.Stats(time.Now())
		if s.Group != "g" || s.SharedWith != 1 || s.Delay != 3*time.Second || s.CrawlDelay != 3*time.Second || s.Requests != 3 {
			t.Errorf("%+v", s)
		}
		if s.MinGap != time.Second || s.GapOverDelay != 1 {
			t.Errorf("smallest gap %v, %v of the delay", s.MinGap, s.GapOverDelay)
		}
	})
}

func TestHostsOfAGroupTakeTurns(t *testing.T) {
	inTown(t, Rules{MinDelay: time.Second}, func(t *testing.T, w *town) {
		a, b, c := w.at("a.test", "g"), w.at("b.test", "g"), w.at("c.test", "g")
		w.pages(a, 5)
		w.pages(b, 1)
		w.pages(c, 2)
		if s := a.Stats(time.Now()); s.Waiting != 4 || s.GroupWaiting != 7 {
			t.Errorf("%d and %d waiting", s.Waiting, s.GroupWaiting)
		}
		time.Sleep(time.Minute)
		w.check(`
0s a.test/0
1s a.test/1
2s b.test/0
3s c.test/0
4s a.test/2
5s c.test/1
6s a.test/3
7s a.test/4`)
		if s := a.Stats(time.Now()); s.Waiting != 0 || s.Requests != 5 || s.Waited != (1+4+6+7)*time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// TestHostMovesToAnotherGroup checks that a host moves when it has no requests, and that its delay
// goes with it.
func TestHostMovesToAnotherGroup(t *testing.T) {
	inTown(t, Rules{}, func(t *testing.T, w *town) {
		a, b, c := w.at("a.test", ""), w.at("b.test", "g"), w.at("c.test", "h")
		w.robots(a, 10*time.Second)
		a.Join(Assignment{Name: "g"})
		w.pages(a, 2) // they find no other request of a, so a moves
		w.pages(b, 1)
		a.Join(Assignment{Name: "h"})
		w.pages(a, 1) // pages of a wait, so a stays
		time.Sleep(time.Minute)
		w.pages(a, 1) // a moves
		w.pages(b, 2)
		w.pages(c, 1)
		time.Sleep(time.Minute)
		w.check(`
0s a.test/robots.txt
10s a.test/0
20s b.test/0
30s a.test/1
40s a.test/0
1m0s a.test/0
1m0s b.test/0
1m0s b.test/1
1m10s c.test/0`)
		if s := a.Stats(time.Now()); s.Requests != 5 || s.Group != "h" || s.SharedWith != 1 {
			t.Errorf("%+v", s)
		}
		a.Join(Assignment{})
		w.pages(a, 1)
		if s := a.Stats(time.Now()); s.Requests != 6 || s.Group != "" || s.SharedWith != 0 || s.Delay != 10*time.Second {
			t.Errorf("alone again: %+v", s)
		}
	})
}

// TestBackOffGoesWithAHost checks that a host that was throttled before it joined its group still
// keeps the Retry-After.
func TestBackOffGoesWithAHost(t *testing.T) {
	inTown(t, Rules{}, func(t *testing.T, w *town) {
		a := w.at("a.test", "")
		ticket := new(Ticket)
		if err := a.Start(t.Context(), ticket, true); err != nil {
			t.Error(err)
		}
		a.SlowDown(time.Now(), ticket, 20*time.Second)
		ticket.End()
		a.Join(Assignment{Name: "g"})
		w.pages(a, 1)
		time.Sleep(time.Minute)
		w.check("20s a.test/0")
	})
}

func TestRulesOfAGroup(t *testing.T) {
	const s = time.Second
	for _, test := range []struct{ a, b, want Rules }{
		{Rules{MinDelay: s}, Rules{MinDelay: 2 * s}, Rules{MinDelay: 2 * s}},
		{Rules{MaxCrawlDelay: s}, Rules{MaxCrawlDelay: 2 * s}, Rules{MaxCrawlDelay: 2 * s}},
		{Rules{MaxCrawlDelay: s}, Rules{}, Rules{}},
		{Rules{MaxInFlightPerHost: 2}, Rules{}, Rules{MaxInFlightPerHost: 2}},
		{Rules{MaxInFlightPerHost: 2}, Rules{MaxInFlightPerHost: 3}, Rules{MaxInFlightPerHost: 2}},
		{Rules{Adaptive: 1}, Rules{Adaptive: 2}, Rules{Adaptive: 2}},
		{Rules{Jitter: 0.5}, Rules{Jitter: 0.25}, Rules{Jitter: 0.5}},
		{Rules{FromEnd: true}, Rules{}, Rules{FromEnd: true}},
		{Rules{MaxBackOff: -1}, Rules{}, Rules{}},
		{Rules{MaxBackOff: -1}, Rules{MaxBackOff: s}, Rules{MaxBackOff: s}},
		{Rules{MaxBackOff: time.Hour}, Rules{}, Rules{MaxBackOff: time.Hour}},
	} {
		for _, got := range []*Rules{test.a.withThoseOf(&test.b), test.b.withThoseOf(&test.a)} {
			if *got != test.want {
				t.Errorf("%+v and %+v: got %+v, want %+v", test.a, test.b, *got, test.want)
			}
		}
	}
}

// TestGroupsAreForgotten fills a shard with hosts, each in a group of its own or in one of a few, and
// checks that the groups and their members are forgotten when they are idle.
func TestGroupsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &Rules{Shares: true}
		hosts := New(func(string) *Rules { return rules })
		ticket := new(Ticket)
		const later = keepAll / 2 // hosts that come when those before are idle
		const n = keepAll + later
		for i, name := range namesInAShard(hosts, n) {
			if i == n-later {
				time.Sleep(time.Hour)
			}
			h := hosts.At(time.Now(), name)
			group := fmt.Sprint("own ", i)
			if i%2 == 0 {
				group = fmt.Sprint("common ", i%10)
			}
			h.Join(Assignment{Name: group})
			if err := h.Start(t.Context(), ticket, true); err != nil {
				t.Fatal(err)
			}
			h.SetCrawlDelay(time.Now(), Source{Scheme: "http"}, time.Millisecond, time.Now().Add(time.Second))
			ticket.End()
			time.Sleep(2 * time.Millisecond)
		}
		kept := 0
		members := 0
		for range hosts.All() {
			kept++
		}
		delays := 0
		for _, group := range hosts.groups.byName {
			members += group.paced.members.count
			delays += len(group.paced.crawlDelays)
		}
		t.Logf("%d hosts, %d groups, %d members, %d delays", kept, len(hosts.groups.byName), members, delays)
		if kept > n-later || members != kept || delays >= n || len(hosts.groups.byName) >= n/2 {
			t.Errorf("%d hosts, %d groups, %d members, %d delays", kept, len(hosts.groups.byName), members, delays)
		}
		if all := hosts.Forgotten().Requests + kept; all != n {
			t.Errorf("%d requests are counted, want %d", all, n)
		}
	})
}

// TestForgottenHostDoesNotMove checks that a host that was forgotten while it was about to move to
// another group stays where it is, both if it was paced alone and if it was a member of a group.
func TestForgottenHostDoesNotMove(t *testing.T) {
	for _, first := range []string{"", "g"} {
		inTown(t, Rules{}, func(t *testing.T, w *town) {
			h := w.at("a.test", first)
			time.Sleep(time.Hour)
			if !h.forget(w.hosts.now()) {
				t.Fatal("the host was not forgotten")
			}
			h.member().assigned = Assignment{Name: "h"}
			h.settle(w.hosts.now())
			if g := h.group(); g != &h.own || !g.isForgotten {
				t.Errorf("group %q, forgotten: %v", g.name, g.isForgotten)
			}
			for name, g := range w.hosts.groups.byName {
				if g.paced.members.count != 0 {
					t.Errorf("group %s has %d members", name, g.paced.members.count)
				}
			}
		})
	}
}

// namesInAShard returns n names of hosts that all belong to the same shard.
func namesInAShard(hosts *Hosts, n int) []string {
	var names []string
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("%d.test", i)
		if hosts.shardOf(name) == &hosts.shards[0] {
			names = append(names, name)
		}
	}
	return names
}

// TestLeasesOfAGroup checks that the Pacer gets the name of the group.
func TestLeasesOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var names []string
		hosts := New(func(string) *Rules { return &Rules{MinDelay: time.Second, Shares: true} })
		hosts.UsePacer(namedPacer(func(host string) {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, host)
		}))
		w := &town{world: &world{t: t, start: time.Now()}, hosts: hosts}
		w.pages(w.at("a.test", "g"), 1)
		w.pages(w.at("b.test", "g"), 1)
		w.pages(w.at("c.test", ""), 1)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"g", "c.test", "g"}; !slices.Equal(names, want) {
			t.Errorf("asked for %q, want %q", names, want)
		}
		hosts.Close(nil)
	})
}

// A namedPacer grants every request, and calls a function with the name of the host.
type namedPacer func(host string)

func (f namedPacer) Acquire(_ context.Context, host string, _ time.Duration) (Lease, error) {
	f(host)
	return &deskLease{desk: new(desk), until: time.Now().Add(time.Minute)}, nil
}

func TestMaxInFlightPerHostOfAGroup(t *testing.T) {
	inTown(t, Rules{MaxInFlightPerHost: 1}, func(t *testing.T, w *town) {
		a, b := w.at("a.test", "g"), w.at("b.test", "g")
		ticket := new(Ticket)
		if err := a.Start(t.Context(), ticket, true); err != nil {
			t.Error(err)
		}
		w.pages(b, 1)
		time.Sleep(time.Second)
		ticket.End()
		time.Sleep(time.Second)
		w.check("1s b.test/0")
	})
}

// TestCanceledInAGroup ends the tickets of a host while they wait in the queue and behind it.
func TestCanceledInAGroup(t *testing.T) {
	for _, first := range []int{0, 1, 2} {
		inTown(t, Rules{MinDelay: time.Second}, func(t *testing.T, w *town) {
			a, b := w.at("a.test", "g"), w.at("b.test", "g")
			w.pages(b, 1)
			var ends []context.CancelFunc
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				ends = append(ends, cancel)
				go func() {
					ticket := new(Ticket)
					err := a.Enter(ctx, ticket)
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}()
				synctest.Wait()
			}
			for i := range ends {
				ends[(first+i)%3]()
				synctest.Wait()
			}
			w.pages(b, 1)
			time.Sleep(time.Minute)
			w.check("0s b.test/0\n1s b.test/0")
		})
	}
}

func TestComplaintSlowsAllOfAGroup(t *testing.T) {
	inTown(t, Rules{}, func(t *testing.T, w *town) {
		a, b := w.at("a.test", "g"), w.at("b.test", "g")
		ticket := new(Ticket)
		if err := a.Start(t.Context(), ticket, true); err != nil {
			t.Error(err)
		}
		if !a.SlowDown(time.Now(), ticket, 30*time.Second) {
			t.Error("the complaint was not new")
		}
		ticket.End()
		w.pages(b, 1)
		time.Sleep(time.Minute)
		w.check("30s b.test/0")
		if a, b := a.Stats(time.Now()), b.Stats(time.Now()); a.Throttled != 1 || b.Throttled != 0 {
			t.Errorf("%d and %d incidents", a.Throttled, b.Throttled)
		}
	})
}

// TestUnusedTurnInAGroup lets the only host in the queue take its turn and not use it. The next
// ticket of the same host follows after one delay.
func TestUnusedTurnInAGroup(t *testing.T) {
	inTown(t, Rules{MinDelay: time.Second}, func(t *testing.T, w *town) {
		a := w.at("a.test", "g")
		unused := new(Ticket)
		if err := a.Enter(t.Context(), unused); err != nil {
			t.Error(err)
		}
		w.pages(a, 2)
		time.Sleep(time.Minute)
		w.check("1s a.test/0\n2s a.test/1")
		unused.End()
	})
}
