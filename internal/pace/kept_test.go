package pace

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A notebook is a Memory that survives the processes of a test.
type notebook struct {
	kept  map[string]Kept
	saves int
	fault error // of Load; nil if it works
}

func (n *notebook) Load(host string) (*Kept, error) {
	k, found := n.kept[host]
	if !found || n.fault != nil {
		return nil, n.fault
	}
	return &k, nil
}

func (n *notebook) Save(host string, k Kept) {
	n.saves++
	n.kept[host] = k
}

// restarts runs a test in a bubble. start starts a process: it returns the registry of one that
// uses the same notebook.
func restarts(t *testing.T, rules Rules, test func(t *testing.T, n *notebook, start func() *town)) {
	t.Helper()
	rules.Shares = true
	synctest.Test(t, func(t *testing.T) {
		n := &notebook{kept: make(map[string]Kept)}
		began := time.Now()
		test(t, n, func() *town {
			w := &town{world: &world{t: t, start: began}, hosts: New(func(string) *Rules { return &rules })}
			w.hosts.UseMemory(n)
			return w
		})
	})
}

// robotsAsks makes a robots.txt of a host ask for a delay, for an hour.
func robotsAsks(h *Host, scheme string, delay time.Duration) {
	h.SetCrawlDelay(time.Now(), Source{Scheme: scheme}, delay, time.Now().Add(time.Hour))
	h.Save()
}

// wantStart sends a request, and checks when it starts.
func (w *town) wantStart(h *Host, want time.Duration) {
	w.t.Helper()
	ticket := new(Ticket)
	defer ticket.End()
	if err := h.Start(w.t.Context(), ticket, true); err != nil {
		w.t.Fatal(err)
	}
	if at := time.Since(w.start); at != want {
		w.t.Errorf("%s: a request started at %v, want %v", h.Name(), at, want)
	}
}

// complains lets a host answer a request with status 429.
func (w *town) complains(h *Host, after time.Duration) {
	w.t.Helper()
	ticket := new(Ticket)
	defer ticket.End()
	if err := h.Start(w.t.Context(), ticket, true); err != nil {
		w.t.Fatal(err)
	}
	h.SlowDown(time.Now(), ticket, after)
	h.Save()
}

func TestRestartKeepsMinDelay(t *testing.T) {
	restarts(t, Rules{MinDelay: 4 * time.Second}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		for i := range 5 {
			first.wantStart(first.at("a.test", ""), time.Duration(i)*4*time.Second)
		}
		if n.saves != 1 {
			t.Errorf("the pace was saved %d times, want once", n.saves)
		}
		time.Sleep(time.Second)
		again := start()
		again.wantStart(again.at("new.test", ""), 17*time.Second)
		again.wantStart(again.at("a.test", ""), 21*time.Second)
		again.wantStart(again.at("a.test", ""), 25*time.Second)
		if n.saves != 2 {
			t.Errorf("the pace of two hosts was saved %d times, want twice", n.saves)
		}
	})
}

// TestRestartKeepsDelayOfOtherFile checks that a robots.txt that was never read waits for the delay
// that another one of the host has asked for.
func TestRestartKeepsDelayOfOtherFile(t *testing.T) {
	restarts(t, Rules{MaxCrawlDelay: 30 * time.Second}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		h := first.at("a.test", "")
		first.wantStart(h, 0)
		robotsAsks(h, "http", 20*time.Second)
		again := start()
		h = again.at("a.test", "")
		again.wantStart(h, 20*time.Second)
		robotsAsks(h, "https", 5*time.Second)
		again.wantStart(h, 40*time.Second) // the other file still asks for it
		time.Sleep(2 * time.Hour)          // both files have to be read again
		last := start()
		last.wantStart(last.at("a.test", ""), 2*time.Hour+40*time.Second)
	})
}

func TestRestartKeepsRetryAfter(t *testing.T) {
	restarts(t, Rules{}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		first.complains(first.at("a.test", ""), time.Minute)
		time.Sleep(time.Second)
		again := start()
		h := again.at("a.test", "")
		if !h.BusyFor(time.Now(), 58*time.Second) || h.BusyFor(time.Now(), 59*time.Second) {
			t.Error("BusyFor does not know the Retry-After")
		}
		again.wantStart(h, time.Minute)
	})
}

// TestRestartWithOtherClock checks that no time of a clock that was ahead holds for long.
func TestRestartWithOtherClock(t *testing.T) {
	restarts(t, Rules{}, func(t *testing.T, n *notebook, start func() *town) {
		year := time.Now().AddDate(1, 0, 0)
		n.kept["a.test"] = Kept{At: year, NotBefore: year}
		n.kept["b.test"] = Kept{At: year, Delay: time.Minute, Until: year, BackOff: time.Second}
		w := start()
		w.wantStart(w.at("a.test", ""), time.Hour)
		w.wantStart(w.at("b.test", ""), time.Hour)
		w.wantStart(w.at("b.test", ""), time.Hour+time.Minute)
		time.Sleep(24 * time.Hour)
		if delay := w.at("b.test", "").Delay(time.Now()); delay != 0 {
			t.Errorf("after a day, the delay is %v", delay)
		}
	})
}

// TestRestartKeepsBackOff checks that a process that is started again does not send at full speed
// to a host that has complained, and that this is forgotten as in a process that goes on.
func TestRestartKeepsBackOff(t *testing.T) {
	restarts(t, Rules{}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		h := first.at("a.test", "")
		first.complains(h, 0)
		backOff := h.Delay(time.Now())
		if backOff <= 0 {
			t.Fatal("the host does not back off")
		}
		again := start()
		h = again.at("a.test", "")
		again.wantStart(h, backOff)
		again.complains(h, 0) // the probe
		if longer := h.Delay(time.Now()); longer <= backOff {
			t.Errorf("after another complaint, the delay is %v, want more than %v", longer, backOff)
		}
		time.Sleep(time.Hour)
		last := start()
		last.wantStart(last.at("a.test", ""), time.Hour+2*backOff)
		if delay := last.at("a.test", "").Delay(time.Now()); delay != 0 {
			t.Errorf("after an hour, the delay is %v", delay)
		}
	})
}

// TestRestartWithFailingMemory checks that a host whose pace cannot be loaded may have got a
// request.
func TestRestartWithFailingMemory(t *testing.T) {
	restarts(t, Rules{MinDelay: time.Second}, func(t *testing.T, n *notebook, start func() *town) {
		n.fault = errors.New("disk failure")
		w := start()
		w.wantStart(w.at("a.test", ""), time.Second)
	})
}

// TestDryRunKeepsNoPace checks that nothing is loaded or saved where every request starts at once.
func TestDryRunKeepsNoPace(t *testing.T) {
	restarts(t, Rules{MinDelay: time.Second, Free: true}, func(t *testing.T, n *notebook, start func() *town) {
		for range 2 {
			w := start()
			w.wantStart(w.at("a.test", ""), 0)
		}
		if n.saves > 0 {
			t.Errorf("the pace was saved %d times", n.saves)
		}
	})
}

// TestRestartForgetsDelay checks that a delay which a robots.txt no longer asks for is not
// restored.
func TestRestartForgetsDelay(t *testing.T) {
	restarts(t, Rules{}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		h := first.at("a.test", "")
		first.wantStart(h, 0)
		robotsAsks(h, "http", 20*time.Second)
		robotsAsks(h, "http", 0)
		again := start()
		again.wantStart(again.at("a.test", ""), 0)
	})
}

func TestRestartKeepsGroup(t *testing.T) {
	restarts(t, Rules{MinDelay: 2 * time.Second}, func(t *testing.T, n *notebook, start func() *town) {
		first := start()
		h := first.at("a.test", "group")
		first.wantStart(h, 0)
		robotsAsks(h, "http", 10*time.Second)
		again := start()
		again.wantStart(again.at("b.test", "group"), 10*time.Second)
		again.wantStart(again.at("a.test", "group"), 20*time.Second)
		again.wantStart(again.at("new.test", ""), 20*time.Second)
	})
}

// TestRestartBeforeTheFirstResponse checks that the process may be killed as soon as a request has
// started.
func TestRestartBeforeTheFirstResponse(t *testing.T) {
	restarts(t, Rules{MinDelay: time.Second}, func(t *testing.T, n *notebook, start func() *town) {
		for i := range 5 { // a process each
			w := start()
			at := time.Duration(i) * time.Second
			w.wantStart(w.at("a.test", ""), at)
		}
	})
}
