package budget

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTake checks which calls of Take succeed, with pages that are given back.
func TestTake(t *testing.T) {
	p := New()
	for i, step := range []struct {
		call string
		want string
	}{
		{"take", "ok 1"},
		{"take", "ok 2"},
		{"return", "1"},
		{"take", "ok 2"},
		{"take", "ok 3"},
		{"take", "denied 3"},
		{"return", "2"},
		{"take", "ok 3"},
		{"take", "denied 3"},
		{"return", "2"},
		{"return", "1"},
		{"return", "0"},
		{"return", "0"},
		{"take", "ok 1"},
	} {
		got := ""
		if step.call == "return" {
			p.Return("a.test")
		} else {
			got = "denied "
			if p.Take("a.test", 3) {
				got = "ok "
			}
		}
		got += fmt.Sprint(p.Used("a.test"))
		if got != step.want {
			t.Fatalf("step %d, %s: %s, want %s", i, step.call, got, step.want)
		}
	}
	if n := p.Used("b.test"); n != 0 {
		t.Errorf("another host has %d pages", n)
	}
}

// TestTakeIsExact checks that of many calls at once exactly as many succeed as the limit allows.
func TestTakeIsExact(t *testing.T) {
	p := New()
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 100 {
				if p.Take("a.test", 1000) {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() != 1000 || p.Used("a.test") != 1000 {
		t.Errorf("%d taken, %d used", taken.Load(), p.Used("a.test"))
	}
}

// TestMemory checks the bytes per host.
func TestMemory(t *testing.T) {
	const hosts = 200_000
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("host-%d.example.com", i)
	}
	p := New()
	before := heap()
	for _, name := range names {
		p.Take(name, 5)
	}
	perHost := float64(heap()-before) / hosts
	t.Logf("%.0f bytes per host", perHost)
	if perHost > 48 {
		t.Errorf("%.0f bytes per host, want at most 48", perHost)
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(names)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
