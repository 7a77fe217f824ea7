package stop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// TestTranscripts plays requests to one host at given times. Each step is a time and what happens:
// "start" asks whether a request may be sent, "refused" and "succeeded" are results of requests
// that are not probes, and "probe refused", "probe succeeded" and "not sent" are those of probes.
// After the arrow is the result of the call and the Status. If there are several, separated by
// semicolons, the step is played as many times.
func TestTranscripts(t *testing.T) {
	for name, test := range map[string]struct {
		limit int
		steps string
	}{
		"a host is stopped after three refusals": {3, `
			0s refused -> 1
			1s refused -> 2
			1s start -> ok
			2s refused -> notable, 3 since 2s until 1h0m2s
			3s start -> denied
			1h0m1s start -> denied
			1h0m2s start -> probe
			1h0m2s start -> denied`},
		"a success resets the count": {3, `
			0s refused -> 1
			1s refused -> 2
			2s succeeded -> 0
			3s refused -> 1
			4s refused -> 2
			5s start -> ok`},
		"the pause doubles up to a day": {1, `
			0s refused -> notable, 1 since 0s until 1h0m0s
			1h start -> probe
			1h1s probe refused -> notable, 2 since 0s until 3h0m1s
			3h0m1s start -> probe
			3h0m1s probe refused -> notable, 3 since 0s until 7h0m1s
			8h start -> probe
			8h probe refused -> notable, 4 since 0s until 16h0m0s
			16h start -> probe
			16h probe refused -> notable, 5 since 0s until 32h0m0s
			32h start -> probe
			32h probe refused -> notable, 6 since 0s until 56h0m0s
			56h start -> probe
			56h probe refused -> notable, 7 since 0s until 80h0m0s`},
		"a successful probe ends the stop": {2, `
			0s refused -> 1
			0s refused -> notable, 2 since 0s until 1h0m0s
			1h start -> probe
			1h1s probe succeeded -> 0
			1h1s start -> ok
			1h2s refused -> 1
			1h3s refused -> notable, 2 since 1h0m3s until 2h0m3s`},
		"a probe without a result is repeated after the same pause": {1, `
			0s refused -> notable, 1 since 0s until 1h0m0s
			1h start -> probe
			1h59m start -> denied
			2h start -> probe
			2h probe refused -> notable, 2 since 0s until 4h0m0s
			5h start -> probe
			6h start -> denied
			7h start -> probe`},
		"a probe that was not sent is given back": {1, `
			0s refused -> notable, 1 since 0s until 1h0m0s
			1h start -> probe
			1h1s start -> denied
			1h2s not sent -> 1 since 0s until 1h0m2s
			1h3s start -> probe
			1h3s start -> denied`},
		"requests that were under way do not change a stop": {2, `
			0s refused -> 1
			0s refused -> notable, 2 since 0s until 1h0m0s
			1s refused -> 3 since 0s until 1h0m0s
			2s succeeded -> 3 since 0s until 1h0m0s
			3s start -> denied
			1h start -> probe
			1h1s succeeded -> 3 since 0s until 2h0m0s`},
		"without a limit": {0, `
			0s refused -> 1; 2; 3; 4; 5; 6; 7; 8; 9
			0s refused -> notable, 10
			0s refused -> 11
			0s start -> ok
			0s not sent -> 11
			0s succeeded -> 0`},
		"a limit above ten": {12, `
			0s refused -> 1; 2; 3; 4; 5; 6; 7; 8; 9
			0s refused -> notable, 10
			0s refused -> 11
			0s refused -> notable, 12 since 0s until 1h0m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			h := new(Hosts)
			for _, line := range strings.Split(strings.TrimSpace(test.steps), "\n") {
				step, want, _ := strings.Cut(strings.TrimSpace(line), " -> ")
				at, what, _ := strings.Cut(step, " ")
				d, err := time.ParseDuration(at)
				if err != nil {
					t.Fatal(err)
				}
				for result := range strings.SplitSeq(want, "; ") {
					if got := play(h, epoch.Add(d), test.limit, what); got != result {
						t.Fatalf("%s: %s, want %s", step, got, result)
					}
				}
			}
		})
	}
}

// play plays one step.
func play(h *Hosts, now time.Time, limit int, what string) string {
	const host = "a.test"
	var notable bool
	switch what {
	case "start":
		_, denied := h.Denied(now, host)
		probe, ok := h.Start(now, host)
		if denied == ok {
			return "Denied and Start differ"
		}
		return map[[2]bool]string{{true, true}: "probe", {false, true}: "ok", {false, false}: "denied"}[[2]bool{probe, ok}]
	case "refused", "probe refused":
		_, notable = h.Refused(now, host, limit, what != "refused")
	case "succeeded", "probe succeeded":
		h.Succeeded(host, what != "succeeded")
	case "not sent":
		h.NotSent(now, host)
	default:
		return "unknown step"
	}
	s := h.Status(host)
	text := fmt.Sprint(s.InRow)
	if notable {
		text = "notable, " + text
	}
	if s.Stopped() {
		text += fmt.Sprintf(" since %v until %v", s.Since.Sub(epoch), s.Until.Sub(epoch))
	}
	return text
}

// TestOneProbe checks that of many requests at the same time exactly one is a probe.
func TestOneProbe(t *testing.T) {
	h := new(Hosts)
	h.Refused(epoch, "a.test", 1, false)
	var probes, denied atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			probe, ok := h.Start(epoch.Add(firstStop), "a.test")
			if probe {
				probes.Add(1)
			}
			if !ok {
				denied.Add(1)
			}
		})
	}
	all.Wait()
	if probes.Load() != 1 || denied.Load() != 63 {
		t.Errorf("%d probes, %d denied, want 1 and 63", probes.Load(), denied.Load())
	}
}

// TestMemory checks that a million hosts that each refuse one request are forgotten in time, and
// that hosts which are stopped are not.
func TestMemory(t *testing.T) {
	h := new(Hosts)
	h.Refused(epoch, "stopped.test", 1, false)
	const longAgoHosts = 20 * 3600 // the hosts that refuse within longAgo
	now := epoch
	for i := range 1_000_000 {
		now = now.Add(time.Second / 20)
		h.Refused(now, fmt.Sprint(i, ".test"), 5, false)
		if n := len(h.byName); n > 2*longAgoHosts+10 {
			t.Fatalf("%d hosts are kept after %d", n, i)
		}
	}
	if h.None() || !h.Status("stopped.test").Stopped() {
		t.Error("a host that is stopped was forgotten")
	}
	for range 3 * keepAll {
		now = now.Add(time.Second)
		h.Refused(now, fmt.Sprint(rand.Uint64(), ".test"), 5, false)
	}
	if h.Status("stopped.test").Stopped() {
		t.Error("a host is kept for ever although no probe is sent")
	}
}

func TestSucceededWithoutRefusalsDoesNotAllocate(t *testing.T) {
	h := new(Hosts)
	h.Refused(epoch, "b.test", 1, false)
	if n := testing.AllocsPerRun(100, func() {
		h.Succeeded("a.test", false)
		h.Start(epoch, "a.test")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
