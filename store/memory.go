package store

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Memory returns a Store that lives as long as the process does. It has no bound: expired records
// are dropped when they are asked for and, a few at a time, as others are written.
func Memory() Store {
	return &memory{records: make(map[string]record)}
}

type memory struct {
	mu      sync.Mutex
	records map[string]record
	closed  bool
}

// record is a value and the instant it ends; the zero instant: never.
type record struct {
	value []byte
	ends  time.Time
}

func (r record) alive(now time.Time) bool { return r.ends.IsZero() || now.Before(r.ends) }

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	return m.read(key), nil
}

// Update runs f under the lock: simple, and atomic without a second try.
func (m *memory) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	value, err := f(m.read(key))
	if err != nil {
		return err
	}
	if value == nil {
		delete(m.records, key)
		return nil
	}
	m.records[key] = record{value, ending(time.Now(), ttl)}
	m.sweep(time.Now())
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.records = true, nil
	return nil
}

func (m *memory) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// read returns a copy of the living value of key, nil when there is none.
func (m *memory) read(key string) []byte {
	r, found := m.records[key]
	if !found {
		return nil
	}
	if !r.alive(time.Now()) {
		delete(m.records, key)
		return nil
	}
	return bytes.Clone(r.value)
}

// sweep looks at a handful of records, which Go's maps hand out in no fixed order, and drops the
// expired ones: two looks for each write are enough to keep the dead a fraction of the living.
func (m *memory) sweep(now time.Time) {
	looks := 2
	for key, r := range m.records {
		if looks == 0 {
			return
		}
		looks--
		if !r.alive(now) {
			delete(m.records, key)
		}
	}
}

// ending is the instant a record written now ends; the zero instant: never.
func ending(now time.Time, ttl time.Duration) time.Time {
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}
