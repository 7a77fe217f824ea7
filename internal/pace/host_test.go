package pace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A world is one host with a transcript of the events in a bubble, each with its instant.
type world struct {
	*Host
	t     *testing.T
	start time.Time
	mu    sync.Mutex
	lines []string
}

// inBubble runs a test with a host that requests a crawl delay.
func inBubble(t *testing.T, delay time.Duration, test func(t *testing.T, w *world)) {
	underRules(t, Rules{}, func(t *testing.T, w *world) {
		w.wants(delay)
		test(t, w)
	})
}

// underRules runs a test with a host that has its own pace, and with one that is in a group.
func underRules(t *testing.T, rules Rules, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("alone", func(t *testing.T) { underRulesInGroup(t, rules, "", test) })
	t.Run("in a group", func(t *testing.T) { underRulesInGroup(t, rules, "group", test) })
}

func underRulesInGroup(t *testing.T, rules Rules, group string, test func(t *testing.T, w *world)) {
	t.Helper()
	rules.Shares = group != ""
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		hosts := New(func(string) *Rules { return &rules })
		w := &world{Host: hosts.At(time.Now(), "a.test"), t: t, start: time.Now()}
		w.Join(Assignment{Name: group})
		test(t, w)
		synctest.Wait()
		if !w.empty() {
			t.Error("a request still waits or is in flight")
		}
	})
}

// wants sets the crawl delay of robots.txt.
func (w *world) wants(delay time.Duration) {
	w.SetCrawlDelay(time.Now(), Source{Scheme: "http"}, delay, time.Time{})
}

// once sends one request that needs no ticket and ends it at once.
func (w *world) once() { w.send(w.t.Context(), new(Ticket), true) }

// send takes a request through the second stage and ends it at once.
func (w *world) send(ctx context.Context, ticket *Ticket, direct bool) error {
	defer ticket.End()
	if err := w.Start(ctx, ticket, direct); err != nil {
		return err
	}
	if !ticket.OnWire() {
		w.t.Error("a request that has started did not reach the wire")
	}
	return nil
}

// pass takes a request through both stages.
func (w *world) pass(ctx context.Context) error {
	ticket := new(Ticket)
	if err := w.Enter(ctx, ticket); err != nil {
		return err
	}
	return w.send(ctx, ticket, false)
}

// empty reports whether no request waits or is in flight.
func (w *world) empty() bool {
	if m := w.member(); m != nil && (m.tickets != 0 || m.queued != 0 || m.inLine != nil || m.backlog.front != nil) {
		return false
	}
	return w.group().isEmpty()
}

// isEmpty reports whether no request of g waits or is in flight.
func (g *Group) isEmpty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight.front == nil && (g.paced == nil || g.paced.waiting.front == nil && g.paced.urgent.front == nil && g.paced.queued == 0)
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%v %s", time.Since(w.start), fmt.Sprintf(format, args...)))
}

func (w *world) check(want string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := strings.Join(ordered(w.lines), "\n")
	want = strings.Join(ordered(strings.Split(strings.TrimSpace(want), "\n")), "\n")
	if got != want {
		w.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// ordered returns the lines with those of the same time in the order of their texts, because the
// goroutines that write them run at the same time.
func ordered(lines []string) []string {
	lines = slices.Clone(lines)
	for first := 0; first < len(lines); {
		at, _, _ := strings.Cut(lines[first], " ")
		end := first + 1
		for end < len(lines) && strings.HasPrefix(lines[end], at+" ") {
			end++
		}
		slices.Sort(lines[first:end])
		first = end
	}
	return lines
}

func TestPagesStartADelayApart(t *testing.T) {
	inBubble(t, 300*time.Millisecond, func(t *testing.T, w *world) {
		for i := range 4 {
			go func() {
				if err := w.pass(t.Context()); err != nil {
					t.Error(err)
				}
				w.note("page %d", i)
			}()
			synctest.Wait() // each page enters the queue before the next
		}
		time.Sleep(2 * time.Second)
		w.check(`
0s page 0
300ms page 1
600ms page 2
900ms page 3`)
	})
}

func TestDelayCountsFromTheLastStartWhenIdle(t *testing.T) {
	inBubble(t, time.Second, func(t *testing.T, w *world) {
		for _, idle := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second, 999 * time.Millisecond} {
			time.Sleep(idle)
			w.pass(t.Context())
			w.note("after %v", idle)
		}
		w.check(`
0s after 0s
1s after 100ms
6s after 5s
7s after 999ms`)
	})
}

func TestHTTPAndHTTPSOfAHostShareTheLargerDelay(t *testing.T) {
	hosts := New(func(string) *Rules { return &Rules{MinDelay: 1} })
	host, now := hosts.At(time.Now(), "a.test"), time.Now()
	for _, step := range []struct {
		scheme      string
		asked, want time.Duration
	}{
		{"http", 2, 2}, {"https", 5, 5}, {"http", 3, 5}, {"https", 0, 3}, {"http", 0, 1},
	} {
		if !host.SetCrawlDelay(now, Source{Scheme: step.scheme}, step.asked, time.Time{}) {
			t.Errorf("%s requests %d: SetCrawlDelay = false, want true", step.scheme, step.asked)
		}
		if host.SetCrawlDelay(now, Source{Scheme: step.scheme}, step.asked, time.Time{}) {
			t.Errorf("%s requests %d again: SetCrawlDelay = true, want false", step.scheme, step.asked)
		}
		if got := host.Stats(now); got.Delay != step.want || got.CrawlDelay != step.want && step.want != 1 {
			t.Errorf("after %s requests %d: %+v, want %d", step.scheme, step.asked, got, step.want)
		}
	}
}

func TestRedirectsAndRobotsTxtGoBeforePages(t *testing.T) {
	inBubble(t, time.Second, func(t *testing.T, w *world) {
		w.pass(t.Context())
		for i := range 2 {
			go func() { w.pass(t.Context()); w.note("page %d", i) }()
			synctest.Wait()
		}
		for i := range 2 {
			go func() { w.once(); w.note("hop %d", i) }()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		w.check(`
1s hop 0
2s hop 1
3s page 0
4s page 1`)
	})
}

// TestSeveralInStart checks that requests in Start follow each other after the delay, not after the
// end of the previous one.
func TestSeveralInStart(t *testing.T) {
	underRules(t, Rules{MinDelay: time.Second, MaxInFlightPerHost: 3}, func(t *testing.T, w *world) {
		for i := range 4 {
			go func() {
				var hop Ticket
				w.Start(t.Context(), &hop, true)
				w.note("hop %d", i)
				time.Sleep(10 * time.Second)
				hop.End()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		w.check(`
0s hop 0
1s hop 1
2s hop 2
10s hop 3`)
	})
}

// TestOnlyOnePageIsAdmittedBeforeItIsSent checks that only one page of a host passes Enter at a
// time. This page may wait in Colly's OnRequestHeaders for a LimitRule slot of another host, where
// the other pages of its host must not gather.
func TestOnlyOnePageIsAdmittedBeforeItIsSent(t *testing.T) {
	inBubble(t, time.Second, func(t *testing.T, w *world) {
		var first, second Ticket
		w.Enter(t.Context(), &first)
		w.note("first in")
		go func() { w.Enter(t.Context(), &second); w.note("second in") }()
		time.Sleep(900 * time.Millisecond)
		w.send(t.Context(), &first, false)
		w.note("first sent")
		time.Sleep(5 * time.Second)
		second.End()
		w.check(`
0s first in
900ms first sent
1.9s second in`)
	})
}

func TestUnusedTicketExpiresAfterOneDelay(t *testing.T) {
	inBubble(t, time.Second, func(t *testing.T, w *world) {
		var aborted, late Ticket
		w.Enter(t.Context(), &aborted) // a later OnRequest callback aborts the request; no hook reports that
		go func() { w.Enter(t.Context(), &late); w.note("next in") }()
		time.Sleep(5 * time.Second)
		aborted.End() // has no effect, because the ticket has expired
		w.send(t.Context(), &late, false)
		w.note("next sent")
		w.check(`
1s next in
5s next sent`)
	})
}

func TestNewDelayAppliesToWaitingRequests(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, w *world) {
		w.pass(t.Context())
		for i := range 3 {
			go func() { w.pass(t.Context()); w.note("page %d", i) }()
			synctest.Wait()
		}
		if got := w.Stats(time.Now()).Waiting; got != 3 {
			t.Errorf("%d wait, want 3", got)
		}
		time.Sleep(10 * time.Second)
		w.wants(2 * time.Second) // shorter: the last start was longer ago
		time.Sleep(time.Second)
		w.wants(4 * time.Second) // longer
		time.Sleep(5 * time.Second)
		w.wants(0) // none
		synctest.Wait()
		w.check(`
10s page 0
14s page 1
16s page 2`)
	})
}

func TestContextEndsTheWait(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, w *world) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		w.once()
		for range 500 {
			go func() {
				if err := w.Enter(ctx, new(Ticket)); err != cause {
					t.Errorf("Enter: %v, want the context's cause", err)
				}
			}()
		}
		go func() {
			if err := w.send(ctx, new(Ticket), true); err != cause {
				t.Errorf("Start: %v, want the context's cause", err)
			}
		}()
		time.Sleep(time.Second)
		cancel(cause)
		synctest.Wait()
		w.note("empty: %v", w.empty())
		if err := w.Enter(ctx, new(Ticket)); err != cause {
			t.Errorf("Enter after the end: %v, want the context's cause", err)
		}
		w.wants(0)
		if err := w.Start(ctx, new(Ticket), true); err != cause {
			t.Errorf("Start after the end: %v, want the context's cause", err)
		}
		if err := w.pass(t.Context()); err != nil {
			t.Errorf("another collector: %v", err)
		}
		w.check(`1s empty: true`)
	})
}

func TestContextEndsBetweenEnterAndStart(t *testing.T) {
	inBubble(t, time.Minute, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		var ticket Ticket
		w.Enter(ctx, &ticket)
		cancel()
		if err := w.Start(ctx, &ticket, false); err != context.Canceled {
			t.Errorf("Start: %v", err)
		}
		w.pass(t.Context())
		w.note("next")
		w.check(`0s next`)
	})
}

func TestMinGapIsMeasuredUnderADelay(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		w.once()
		w.once() // there is no delay yet, so this gap does not count
		w.wants(time.Second)
		for _, idle := range []time.Duration{0, 3 * time.Second, 0} {
			time.Sleep(idle)
			w.once()
		}
		if got := w.Stats(time.Now()); got.Requests != 5 || got.MinGap != time.Second {
			t.Errorf("%d requests, smallest gap %v; want 5 and 1s", got.Requests, got.MinGap)
		}
	})
}

// TestMinGapWithoutUnsentRequests checks that no gap begins or ends at a request that was never written.
func TestMinGapWithoutUnsentRequests(t *testing.T) {
	underRules(t, Rules{MinDelay: time.Second}, func(t *testing.T, w *world) {
		for i, test := range []struct {
			written bool
			want    time.Duration
		}{{false, 0}, {false, 0}, {true, 0}, {false, 0}, {false, 0}, {true, 3 * time.Second}, {true, time.Second}} {
			var ticket Ticket
			w.Start(t.Context(), &ticket, true)
			if !test.written {
				ticket.NotSent()
			}
			ticket.End()
			if s := w.Stats(time.Now()); s.MinGap != test.want || s.GapOverDelay != test.want.Seconds() {
				t.Errorf("after request %d: MinGap is %v, %.2f of the delay, want %v", i, s.MinGap, s.GapOverDelay, test.want)
			}
		}
	})
}

// TestCloseEndsAllWaits calls Close while pages wait.
func TestCloseEndsAllWaits(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, w *world) {
		closed := errors.New("closed")
		var sent Ticket
		w.Start(t.Context(), &sent, true)
		for range 100 {
			go func() {
				if err := w.pass(t.Context()); err != closed {
					t.Errorf("Enter: %v", err)
				}
			}()
			go func() {
				if err := w.Start(t.Context(), new(Ticket), true); err != closed {
					t.Errorf("Start: %v", err)
				}
			}()
		}
		time.Sleep(time.Minute)
		w.own.registry.Close(closed)
		w.own.registry.Close(errors.New("again"))
		synctest.Wait()
		w.note("%d wait", w.Stats(time.Now()).Waiting)
		if err := w.Enter(t.Context(), new(Ticket)); err != closed {
			t.Errorf("Enter after Close: %v", err)
		}
		if err := w.Start(t.Context(), new(Ticket), true); err != closed {
			t.Errorf("Start after Close: %v", err)
		}
		if !sent.OnWire() {
			t.Error("Close took a request off the wire")
		}
		sent.End()
		w.check(`1m0s 0 wait`)
	})
}

func TestCloseWithoutAnError(t *testing.T) {
	hosts := New(func(string) *Rules { return new(Rules) })
	hosts.Close(nil)
	if err := hosts.At(time.Now(), "a.test").Start(t.Context(), new(Ticket), true); err == nil {
		t.Error("Start after Close(nil) returned no error")
	}
}

// TestEndFromEveryState checks that End works in every state, from any goroutine, and more than
// once.
func TestEndFromEveryState(t *testing.T) {
	for _, test := range []struct {
		name string
		into func(w *world, t *Ticket)
	}{
		{"zero", func(*world, *Ticket) {}},
		{"waiting", func(w *world, t *Ticket) {
			w.once()
			go w.fails(ErrEnded, func() error { return w.Enter(w.t.Context(), t) })
			synctest.Wait()
		}},
		{"admitted", func(w *world, t *Ticket) { w.Enter(w.t.Context(), t) }},
		{"urgent", func(w *world, t *Ticket) {
			w.once()
			go w.fails(ErrEnded, func() error { return w.Start(w.t.Context(), t, true) })
			synctest.Wait()
		}},
		{"started", func(w *world, t *Ticket) { w.Start(w.t.Context(), t, false) }},
		{"on the wire", func(w *world, t *Ticket) { w.Start(w.t.Context(), t, true) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, time.Second, func(t *testing.T, w *world) {
				var ticket Ticket
				test.into(w, &ticket)
				for range 3 {
					go ticket.End()
				}
				synctest.Wait()
				if !w.empty() {
					t.Error("the ticket still holds something")
				}
				if ticket.OnWire() {
					t.Error("the ended ticket has started")
				}
				ticket.Sent(time.Now().Add(time.Hour))
				if w.BusyFor(time.Now(), time.Second) {
					t.Error("the ended ticket was sent")
				}
				if err := w.Enter(t.Context(), &ticket); err != nil { // the ended ticket can be used again
					t.Error(err)
				}
				ticket.End()
				ticket = Ticket{}
				if err := w.send(t.Context(), &ticket, false); err != nil { // and again for Start
					t.Error(err)
				}
			})
		})
	}
}

func (w *world) fails(want error, f func() error) {
	if err := f(); err != want {
		w.t.Errorf("%v, want %v", err, want)
	}
}

// TestTicketMovesToAnotherHost checks that a ticket that is used with another host, as for a
// redirect, holds nothing at the first host.
func TestTicketMovesToAnotherHost(t *testing.T) {
	for _, next := range []string{"Enter", "Start"} {
		t.Run(next, func(t *testing.T) {
			inBubble(t, time.Hour, func(t *testing.T, w *world) {
				other := w.own.registry.At(time.Now(), "b.test")
				var ticket Ticket
				w.Enter(t.Context(), &ticket)
				w.Start(t.Context(), &ticket, true)
				if next == "Enter" {
					other.Enter(t.Context(), &ticket)
				} else {
					other.Start(t.Context(), &ticket, true)
				}
				if !w.empty() {
					t.Error("the ticket is still in flight at the first host")
				}
				ticket.End()
				if !(&world{Host: other}).empty() {
					t.Error("the ticket is still in flight at the second host")
				}
			})
		})
	}
}

func TestDryRunDoesNotWait(t *testing.T) {
	underRules(t, Rules{Free: true, MinDelay: time.Hour, MaxInFlightPerHost: 1}, func(t *testing.T, w *world) {
		w.SlowDown(time.Now(), nil, time.Hour)
		for range 10 {
			w.pass(t.Context())
		}
		if got := w.Stats(time.Now()); got.Requests != 10 || got.Delay != time.Hour || got.Throttled != 1 {
			t.Errorf("%+v", got)
		}
		w.note("done")
		w.check(`0s done`)
	})
}

// TestNextStart checks the time before which no request starts, regardless of the waiting requests.
func TestNextStart(t *testing.T) {
	inBubble(t, 20*time.Second, func(t *testing.T, w *world) {
		want := func(when string, in time.Duration) {
			t.Helper()
			now := time.Now()
			got := w.Stats(now).NextStart
			if in == 0 && !got.IsZero() || in > 0 && !got.Equal(now.Add(in)) {
				t.Errorf("%s: %v, want in %v", when, got.Sub(now), in)
			}
			if w.BusyFor(now, in) || in > 0 && !w.BusyFor(now, in-1) {
				t.Errorf("%s: it starts within %v, but not within less", when, in)
			}
		}
		want("before the first request", 0)
		w.once()
		want("after it", 20*time.Second)
		time.Sleep(5 * time.Second)
		want("5 s later", 15*time.Second)
		w.SlowDown(time.Now(), nil, time.Minute)
		want("Retry-After", time.Minute)
		time.Sleep(time.Minute)
		want("and after that", 0)
		w.wants(1 << 62)
		if next := w.Stats(time.Now()).NextStart; next.Before(time.Now().Add(1 << 61)) {
			t.Errorf("a delay of centuries: %v", next)
		}
	})
	underRules(t, Rules{MinDelay: time.Hour, Free: true}, func(t *testing.T, w *world) {
		w.once()
		if s := w.Stats(time.Now()); !s.NextStart.IsZero() {
			t.Errorf("a dry run waits until %v", s.NextStart)
		}
	})
}

func TestFirst(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, w *world) {
		got := fmt.Sprint(w.Mark(1), w.Mark(1), w.Mark(4), w.Mark(1), w.Mark(4), w.Mark(2))
		if want := "true false true false false true"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestStartLed sends requests that other sites have led to before, while and after the crawl itself
// visits a host.
func TestStartLed(t *testing.T) {
	for name, tc := range map[string]struct {
		rules Rules
		delay time.Duration // of robots.txt
		want  string
	}{
		"no delay":      {want: "0s led\n1s led\n2s led\n2s page\n2s led\n2s led\n"},
		"a shorter one": {delay: time.Second / 2, want: "0s led\n1s led\n2s led\n2.5s page\n3s led\n3.5s led\n"},
		"a longer one":  {delay: 2 * time.Second, want: "0s led\n2s led\n4s led\n6s page\n8s led\n10s led\n"},
		"MinDelay":      {rules: Rules{MinDelay: 2 * time.Second}, want: "0s led\n2s led\n4s led\n6s page\n8s led\n10s led\n"},
		"MaxCrawlDelay": {rules: Rules{MaxCrawlDelay: time.Second / 2}, delay: time.Minute, want: "0s led\n1s led\n2s led\n2.5s page\n3s led\n3.5s led\n"},
		"a dry run":     {rules: Rules{Free: true}, want: "0s led\n0s led\n0s led\n0s page\n0s led\n0s led\n"},
	} {
		t.Run(name, func(t *testing.T) {
			underRules(t, tc.rules, func(t *testing.T, w *world) {
				w.wants(tc.delay)
				led := func() {
					ticket := new(Ticket)
					defer ticket.End()
					if err := w.StartLed(t.Context(), ticket, nil); err != nil {
						t.Error(err)
					}
					w.note("led")
				}
				led()
				led()
				led()
				w.once()
				w.note("page")
				led()
				led()
				w.check(tc.want)
			})
		})
	}
}

// TestVisitEndsTheWaitOfStartLed lets the crawl visit a host while a request that another site has
// led to waits.
func TestVisitEndsTheWaitOfStartLed(t *testing.T) {
	underRules(t, Rules{}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				ticket := new(Ticket)
				defer ticket.End()
				w.StartLed(t.Context(), ticket, nil)
				w.note("start")
			})
		}
		time.Sleep(time.Second / 2)
		w.pass(t.Context())
		w.note("start")
		all.Wait()
		w.check("0s start\n500ms start\n500ms start\n500ms start\n")
	})
}
