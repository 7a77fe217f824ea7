// Package store keeps small durable records for a crawler. A record holds what the crawler has
// learned about a host, so that after a restart, or in another process, the crawler does not have
// to ask the host again.
//
// A back end implements three methods. [NewMemory] keeps records until the process ends. [OpenDir]
// keeps one file for each record in a directory. Back ends with more dependencies are separate
// modules. Package storetest contains the tests that every back end passes.
package store

import (
	"context"
	"errors"
	"time"
)

// A Store maps keys to small values. Its methods are safe for concurrent use.
//
// A key is a string of any length and content. A value is a slice of bytes: an empty slice is a
// value, and nil means that there is no value. Every back end accepts values of up to [MaxRecord]
// bytes; some back ends reject longer values. The caller owns a value that Get returns. The store
// owns a value that the function passed to Update returns.
type Store interface {
	// Get returns the value of key. It returns nil and no error if there is no value or the value's
	// time to live has passed.
	Get(ctx context.Context, key string) ([]byte, error)

	// Update replaces the value of key with the value that f returns. Updates of one key are
	// atomic: no other Update of the key runs between the read of old and the write of new. old is
	// nil if there is no value. f may keep or modify old, may be called more than once, and must
	// not call the store. If f returns nil, the record is deleted. If f returns an error, the
	// record is unchanged and Update returns that error.
	//
	// The record expires after ttl. If ttl is zero or less, the record is kept until it is deleted.
	// When Update returns nil, the record is as safe as the back end can make it: a durable back
	// end has written it to disk.
	Update(ctx context.Context, key string, ttl time.Duration, f func(old []byte) (new []byte, err error)) error

	// Close releases the resources of the store. After Close, Get and Update return [ErrClosed],
	// and Close returns nil.
	Close() error
}

// MaxRecord is the length in bytes of the longest value that every back end accepts.
const MaxRecord = 8 << 20

// ErrClosed is returned by Get and Update after Close.
var ErrClosed = errors.New("store: closed")

// A CorruptError reports a record that was read back differently from how it was written. The store
// has moved the damaged data aside and continues as if there had been no record.
type CorruptError struct {
	Path  string // the damaged file
	Aside string // where the damaged data is now; "" if it could not be moved
	Err   error  // the reason
}

// Error returns both locations and the reason.
func (e *CorruptError) Error() string {
	if e.Aside == "" {
		return "store: damaged data in " + e.Path + " could not be moved aside: " + e.Err.Error()
	}
	return "store: damaged data in " + e.Path + " was moved to " + e.Aside + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

// A VersionError reports a record that a later version of this package has written. The store
// neither reads nor replaces such a record, so that the later version can still use it.
type VersionError struct {
	Path    string
	Version string // of the record's format
}

// Error returns the path of the record and the version of its format.
func (e *VersionError) Error() string {
	return "store: " + e.Path + " has a record of version " + e.Version + ", which this program is too old to read"
}
