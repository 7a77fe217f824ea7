package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// BenchmarkStart measures a start with nothing to wait for, which takes two round trips, on ten
// thousand hosts.
func BenchmarkStart(b *testing.B) {
	s := newServer(b)
	store := open(b, s.client(b))
	time.Sleep(settled)
	var n atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			l, err := store.Acquire(ctx, fmt.Sprint("host", n.Add(1)%10_000), time.Microsecond)
			if err != nil {
				b.Error(err)
				return
			}
			l.Release(true, time.Microsecond, time.Time{})
		}
	})
	b.ReportMetric(float64(s.used(b))/10_000, "bytes/host")
}

// BenchmarkNew measures New, which reads all epochs.
func BenchmarkNew(b *testing.B) {
	client := newServer(b).client(b)
	for b.Loop() {
		if _, err := redisstore.New(ctx, client); err != nil {
			b.Fatal(err)
		}
	}
}
