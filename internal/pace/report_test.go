package pace

import (
	"testing"
	"time"
)

// TestReport checks that the gaps of Report are those between the requests in a log: those that were
// never sent do not count, and neither do those that are not in the log yet.
func TestReport(t *testing.T) {
	underRules(t, Rules{}, func(t *testing.T, w *world) {
		start := func() *Ticket {
			ticket := new(Ticket)
			if err := w.Start(t.Context(), ticket, true); err != nil {
				t.Fatal(err)
			}
			return ticket
		}
		reports := func(ticket *Ticket, want time.Duration) {
			t.Helper()
			ticket.Sent(time.Now())
			if s := ticket.Report(); s.Gap != want {
				t.Errorf("after %v: Gap is %v, want %v", time.Since(w.start), s.Gap, want)
			}
		}
		a := start()
		reports(a, 0)
		a.End()
		time.Sleep(10 * time.Second)
		refused := start()
		refused.NotSent()
		refused.End()
		time.Sleep(5 * time.Second)
		slow := start()
		time.Sleep(time.Second)
		fast := start()
		reports(fast, 16*time.Second)
		time.Sleep(2 * time.Second)
		reports(slow, 2*time.Second)
		if s := fast.Report(); s.Gap != -2*time.Second {
			t.Errorf("an earlier request has the Gap %v, want -2s", s.Gap)
		}
		slow.End()
		fast.End()
		if s := new(Ticket).Report(); s != (Start{}) {
			t.Errorf("a ticket that was never used: %+v", s)
		}
	})
}

// TestLateClaimsItsTime lets a request with a slow connection find that it is not late. No other
// request may start at the same time.
func TestLateClaimsItsTime(t *testing.T) {
	underRules(t, Rules{MinDelay: 2 * time.Second, MaxInFlightPerHost: 3}, func(t *testing.T, w *world) {
		var slow, fast, next Ticket
		for _, ticket := range []*Ticket{&slow, &fast} {
			w.Start(t.Context(), ticket, true)
			defer ticket.End()
		}
		time.Sleep(2 * time.Second)
		if slow.Late() {
			t.Error("the first request is late")
		}
		wait, ok := w.StartNow(time.Now(), &next, true)
		if wait != 2*time.Second || ok {
			t.Errorf("another request at the same time: StartNow = %v, %v, want 2s, false", wait, ok)
		}
	})
}
