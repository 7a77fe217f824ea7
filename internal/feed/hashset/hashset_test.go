package hashset

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

func TestSet(t *testing.T) {
	s, naive := New(1<<20), make(map[uint64]bool)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		h := r.Uint64N(40_000) * 0x9E3779B97F4A7C15
		if h == 0 {
			h = 1
		}
		if got := s.Has(h); got != naive[h] {
			t.Fatalf("Has(%x): %v", h, got)
		}
		if got := s.Add(h); got == naive[h] {
			t.Fatalf("Add(%x): %v", h, got)
		}
		naive[h] = true
	}
	if s.IsFull() {
		t.Error("the set is full")
	}
}

func TestSetIsBounded(t *testing.T) {
	s := New(3200)
	for i := range uint64(100_000) {
		if !s.Add((i + 1) * 0x9E3779B97F4A7C15) {
			t.Fatal("a new hash is not new")
		}
	}
	n := 0
	for i := range s.shards {
		n += s.shards[i].n
	}
	if n < 3200 || n > 3200+numShards || !s.IsFull() {
		t.Errorf("the set has %d hashes", n)
	}
}

func TestSetWithManyGoroutines(t *testing.T) {
	s := New(1 << 20)
	var added [4]int
	var all sync.WaitGroup
	for g := range added {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range 5000 {
				if h := r.Uint64N(3000) * 0x9E3779B97F4A7C15; s.Add(h) {
					added[g]++
				} else if !s.Has(h) {
					t.Errorf("%x is lost", h)
				}
			}
		})
	}
	all.Wait()
	n := 0
	for i := range s.shards {
		n += s.shards[i].n
	}
	if got := added[0] + added[1] + added[2] + added[3]; got != n {
		t.Errorf("%d were new, of %d", got, n)
	}
}

// TestBytesPerHash checks that a set takes at most 14 bytes for each hash, for
// any number of hashes.
func TestBytesPerHash(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, n := range []int{40_000, 65_000} {
		before := heap()
		s := New(25 << 20)
		for i := range uint64(n) {
			s.Add(i * 0x9E3779B97F4A7C15)
		}
		if each := float64(heap()-before) / float64(n); each > 14 {
			t.Errorf("%d hashes cost %.1f bytes each", n, each)
		}
		runtime.KeepAlive(s)
	}
}
