package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPause pauses a host while one request is admitted, one has started and has no connection yet, and
// others wait in both stages. Those of the second stage go first when the pause ends.
func TestPause(t *testing.T) {
	underRules(t, Rules{MinDelay: 10 * time.Second, MaxInFlightPerHost: 2}, func(t *testing.T, w *world) {
		w.once()
		time.Sleep(10 * time.Second)
		dialing := new(Ticket)
		if err := w.Start(t.Context(), dialing, true); err != nil {
			t.Fatal(err)
		}
		registry := w.own.registry
		registry.Pause("a.test", true)
		if !dialing.Late() {
			t.Error("a request without a connection was sent during the pause")
		}
		for _, name := range []string{"first", "second"} {
			go func() {
				if w.pass(t.Context()) == nil {
					w.note("%s page", name)
				}
			}()
			synctest.Wait()
		}
		go func() {
			if w.send(t.Context(), dialing, true) == nil {
				w.note("the request without a connection")
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Start(ctx, new(Ticket), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request whose context has ended: %v", err)
		}
		if _, ok := w.StartNow(time.Now(), new(Ticket), true); ok {
			t.Error("a request started during the pause")
		}
		if next, alone := w.NextStart(time.Now()); time.Until(next) != mayResume || !alone {
			t.Errorf("the next start is in %v", time.Until(next))
		}
		registry.Pause("a.test", false)
		time.Sleep(time.Hour)
		w.check(`
1m10s the request without a connection
1m20s first page
1m30s second page`)
	})
}

// TestPausesOfHosts checks which hosts are paused, also of those that are new.
func TestPausesOfHosts(t *testing.T) {
	h := New(func(string) *Rules { return new(Rules) })
	defer h.Close(nil)
	paused := func() (list string) {
		for _, name := range []string{"a", "b", "c"} {
			if h.At(time.Now(), name).IsPaused() {
				list += name
			}
		}
		return list
	}
	for _, test := range []struct {
		name   string
		paused bool
		want   string
	}{
		{"a", true, "a"}, {"a", true, "a"}, {"b", false, "a"}, {"", true, "abc"}, {"a", false, "bc"}, {"a", true, "abc"},
		{"b", false, "ac"}, {"", true, "abc"}, {"c", false, "ab"}, {"", false, ""}, {"c", true, "c"}, {"c", false, ""},
	} {
		h.Pause(test.name, test.paused)
		if got := paused(); got != test.want {
			t.Errorf("Pause(%q, %v): %q are paused, want %q", test.name, test.paused, got, test.want)
		}
	}
	h.Pause("d", true)
	if !h.At(time.Now(), "d").IsPaused() || h.At(time.Now(), "e").IsPaused() {
		t.Error("a host that was paused before its first use")
	}
}
