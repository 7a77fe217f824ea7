package store

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// NewMemory returns a Store that keeps its records until the process ends. The number of records is
// not limited. An expired record is removed when its key is read; each write also looks at a few
// records and removes the expired ones.
func NewMemory() Store {
	return &memory{records: make(map[string]record)}
}

type memory struct {
	// mu protects the fields below it. Update calls its function while mu is held.
	mu      sync.Mutex
	records map[string]record
	closed  bool
}

// A record is a value and the time when it expires. If ends is the zero time, the record does not
// expire.
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

// Update calls f with the lock held. This makes the update atomic without a second attempt.
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
	m.records[key] = record{value: value, ends: ending(time.Now(), ttl)}
	m.sweep(time.Now())
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.records = nil
	return nil
}

func (m *memory) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// read returns a copy of the value of key, or nil if there is no value or it has expired.
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

// sweep looks at two records and removes them if they have expired. Go iterates over a map in no
// fixed order, so the two records vary. Two looks for each write keep the number of expired records
// small compared to the others.
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

// ending returns the time when a record that is written now expires, or the zero time if ttl is
// zero or less.
func ending(now time.Time, ttl time.Duration) time.Time {
	if ttl <= 0 {
		return time.Time{}
	}
	return now.Add(ttl)
}
