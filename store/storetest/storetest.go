// Package storetest tests whether a back end keeps the contract of package store.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

// Run tests the stores that open returns. Each store must be empty; the test closes it. Run also
// calls open in a testing/synctest bubble, so a store must use the clock of package time.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"absent key is nil", absent},
		{"value is read as written", written},
		{"any key", anyKey},
		{"large value", large},
		{"keys do not collide", apart},
		{"nil deletes the record", deletes},
		{"an error changes nothing", failing},
		{"values are copies", copies},
		{"updates are atomic", atomic},
		{"ended context", ended},
		{"closed", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			test.run(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	t.Run("time to live", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := open(t)
			lives(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	})
}

func absent(t *testing.T, s store.Store) {
	want(t, s, "absent", nil)
	update(t, s, "absent", 0, func(old []byte) []byte {
		if old != nil {
			t.Errorf("old = %q, want nil", old)
		}
		return nil
	})
	want(t, s, "absent", nil)
}

func written(t *testing.T, s store.Store) {
	for _, value := range []string{"one", "", "two\x00\n\xff"} {
		put(t, s, "k", value)
		want(t, s, "k", []byte(value))
	}
}

func anyKey(t *testing.T, s store.Store) {
	keys := []string{"", "/", "../../etc/passwd", "a\x00b", "\xff\xfe", "CON", "Key", "key", "robots:https://example.com",
		strings.Repeat("long", 20_000)}
	for i, key := range keys {
		put(t, s, key, strconv.Itoa(i))
	}
	for i, key := range keys {
		want(t, s, key, []byte(strconv.Itoa(i)))
	}
}

func large(t *testing.T, s store.Store) {
	value := strings.Repeat("0123456789abcdef", store.MaxRecord/16)
	put(t, s, "k", value)
	want(t, s, "k", []byte(value))
}

func apart(t *testing.T, s store.Store) {
	const n = 100
	for i := range n {
		put(t, s, fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
	for i := range n {
		want(t, s, fmt.Sprint("key", i), []byte(fmt.Sprint("value", i)))
	}
}

func deletes(t *testing.T, s store.Store) {
	put(t, s, "k", "v")
	update(t, s, "k", 0, func([]byte) []byte { return nil })
	want(t, s, "k", nil)
}

func failing(t *testing.T, s store.Store) {
	put(t, s, "k", "v")
	mine := errors.New("mine")
	err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) { return []byte("w"), mine })
	if !errors.Is(err, mine) {
		t.Errorf("Update returned %v, want the error of its function", err)
	}
	want(t, s, "k", []byte("v"))
}

func copies(t *testing.T, s store.Store) {
	put(t, s, "k", "value")
	got, err := s.Get(context.Background(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = 'X'
	}
	want(t, s, "k", []byte("value"))
	_ = s.Update(context.Background(), "k", 0, func(old []byte) ([]byte, error) {
		for i := range old {
			old[i] = 'X'
		}
		return nil, errors.New("no")
	})
	want(t, s, "k", []byte("value"))
}

func atomic(t *testing.T, s store.Store) {
	const writers, rounds = 8, 12
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range rounds {
				err := s.Update(context.Background(), "count", 0, func(old []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(old))
					return []byte(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Get(context.Background(), "count"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want(t, s, "count", []byte(strconv.Itoa(writers*rounds)))
}

func ended(t *testing.T, s store.Store) {
	put(t, s, "k", "v")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Get(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with an ended context: %v", err)
	}
	err := s.Update(ctx, "k", 0, func([]byte) ([]byte, error) { return []byte("w"), nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update with an ended context: %v", err)
	}
	want(t, s, "k", []byte("v"))
}

func closed(t *testing.T, s store.Store) {
	put(t, s, "k", "v")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(context.Background(), "k"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	err := s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
		t.Error("Update ran its function after Close")
		return nil, nil
	})
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update after Close: %v", err)
	}
}

// lives must run in a testing/synctest bubble.
func lives(t *testing.T, s store.Store) {
	set := func(key string, ttl time.Duration) {
		update(t, s, key, ttl, func([]byte) []byte { return []byte(key) })
	}
	set("hour", time.Hour)
	set("renewed", time.Hour)
	set("for ever", 0)
	set("long", math.MaxInt64)
	time.Sleep(time.Hour - time.Nanosecond)
	want(t, s, "hour", []byte("hour"))
	set("renewed", time.Hour)
	time.Sleep(time.Nanosecond)
	want(t, s, "hour", nil)
	want(t, s, "renewed", []byte("renewed"))
	update(t, s, "hour", 0, func(old []byte) []byte {
		if old != nil {
			t.Errorf("Update passed %q to its function after the record expired", old)
		}
		return old
	})
	time.Sleep(40 * 24 * time.Hour)
	want(t, s, "renewed", nil)
	want(t, s, "for ever", []byte("for ever"))
	want(t, s, "long", []byte("long"))
}

func put(t *testing.T, s store.Store, key, value string) {
	t.Helper()
	update(t, s, key, 0, func([]byte) []byte { return []byte(value) })
}

func update(t *testing.T, s store.Store, key string, ttl time.Duration, f func(old []byte) []byte) {
	t.Helper()
	err := s.Update(context.Background(), key, ttl, func(old []byte) ([]byte, error) { return f(old), nil })
	if err != nil {
		t.Fatalf("Update(%.40q): %v", key, err)
	}
}

func want(t *testing.T, s store.Store, key string, value []byte) {
	t.Helper()
	got, err := s.Get(context.Background(), key)
	if err != nil {
		t.Fatalf("Get(%.40q): %v", key, err)
	}
	if (got == nil) != (value == nil) || !bytes.Equal(got, value) {
		t.Fatalf("Get(%.40q) = %.40q, want %.40q", key, got, value)
	}
}
