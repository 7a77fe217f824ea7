package frontier

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

// Records returns a store.Store in the folder. The option Frontier keeps robots.txt files and the
// pace of hosts there, unless there is also the option Store. When Update returns, a kill of the
// process does not lose the record; a power failure may lose the last seconds. Records that have
// expired stay on the disk until they are replaced. The store ends with Close of the Frontier; its
// own Close has no effect.
func (f *Frontier) Records() store.Store { return records{f} }

// records are the small records in the folder of a Frontier.
type records struct{ f *Frontier }

// Get implements store.Store.
func (r records) Get(ctx context.Context, key string) ([]byte, error) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	return r.read(ctx, recordID(key))
}

// Update implements store.Store.
func (r records) Update(ctx context.Context, key string, ttl time.Duration, update func(old []byte) ([]byte, error)) error {
	err := r.update(ctx, key, ttl, update)
	if err == nil {
		r.f.flush()
	}
	return err
}

// Close implements store.Store.
func (r records) Close() error { return nil }

// update is Update without the write to the operating system.
func (r records) update(ctx context.Context, key string, ttl time.Duration, update func(old []byte) ([]byte, error)) error {
	r.f.updating.Lock()
	defer r.f.updating.Unlock()
	old, err := r.Get(ctx, key)
	if err != nil {
		return err
	}
	value, err := update(old)
	if err != nil {
		return err
	}
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if r.f.closed {
		return store.ErrClosed
	}
	c := r.f.disk.change()
	if value == nil {
		c.remove(recordID(key))
	} else {
		c.set(recordID(key), encodeRecord(value, ttl))
	}
	if err := r.f.disk.apply(c); err != nil {
		return r.f.fault(cause(err))
	}
	r.f.written()
	return nil
}

// read returns the value of a record, or nil if there is none or it has expired. It removes a
// record that is damaged. f.mu must be held.
func (r records) read(ctx context.Context, id []byte) ([]byte, error) {
	switch {
	case r.f.closed:
		return nil, store.ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	raw, err := r.f.disk.get(id)
	var value []byte
	if err == nil {
		value, err = decodeRecord(raw)
	}
	switch {
	case err == nil:
		return value, nil
	case !isDamage(err) && err != errRecord:
		return nil, r.f.fault(cause(err))
	}
	c := r.f.disk.change()
	c.remove(id)
	if failed := r.f.disk.apply(c); failed != nil {
		err = fmt.Errorf("%w, and %w", err, failed)
	}
	return nil, &store.CorruptError{Path: r.f.path, Err: err}
}

// recordID returns the key of a record in the engine.
func recordID(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return append([]byte{recordKey}, sum[:]...)
}

// encodeRecord returns a value and the time when it expires, in milliseconds, or 0 if it does not.
func encodeRecord(value []byte, ttl time.Duration) []byte {
	expires := int64(0)
	if ttl > 0 {
		expires = time.Now().Add(ttl).UnixMilli()
	}
	b := make([]byte, 0, binary.MaxVarintLen64+len(value))
	return append(binary.AppendVarint(b, expires), value...)
}

// decodeRecord is the inverse of encodeRecord. It returns nil if there is no record or it has
// expired.
func decodeRecord(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	expires, n := binary.Varint(b)
	if n <= 0 {
		return nil, errRecord
	}
	if expires != 0 && time.Now().UnixMilli() >= expires {
		return nil, nil
	}
	return b[n:], nil
}
