package store

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestMemorySweep checks that expired records do not accumulate while others are written.
func TestMemorySweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory().(*memory)
		put := func(key string, ttl time.Duration) {
			err := m.Update(context.Background(), key, ttl, func([]byte) ([]byte, error) { return []byte("v"), nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1000 {
			put(fmt.Sprint("dead", i), time.Second)
		}
		time.Sleep(time.Second)
		for i := range 10_000 {
			put(fmt.Sprint("alive", i%1000), 0)
		}
		if n := len(m.records); n > 1100 {
			t.Errorf("%d records are kept; only 1000 have not expired", n)
		}
	})
}

// FuzzDecode checks that decode accepts or rejects any bytes without a panic, and that encode
// reproduces the bytes that decode accepts.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(encode("", record{}))
	f.Add(encode("key", record{[]byte("value"), time.Unix(1_800_000_000, 1)}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		key, r, err := decode(raw)
		if err != nil {
			return
		}
		if again := encode(key, r); string(again) != string(raw) {
			t.Fatalf("%q was encoded again as %q", raw, again)
		}
	})
}
