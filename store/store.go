// Package store keeps small durable records for a crawler: what it has learnt about a host, so that
// a restart, or another process, need not ask the host again.
//
// A back end is three methods. [Memory] lives as long as the process, [Dir] keeps one file for each
// record in a directory, and heavier ones are modules of their own. Package storetest is the suite
// that all of them pass.
package store

import (
	"context"
	"errors"
	"time"
)

// A Store maps keys to small values. Any number of goroutines may call its methods at once.
//
// A key is any string, of any length and content. A value is a slice of bytes: an empty one is a
// value, nil is none. Every back end takes values of up to [MaxRecord] bytes, and some take no longer
// ones. A value that Get returns belongs to the caller, one that is put in belongs to the store.
type Store interface {
	// Get returns the value of key, or nil and no error if there is none or its time to live has
	// passed.
	Get(ctx context.Context, key string) ([]byte, error)

	// Update replaces the value of key by what f returns for it, and no other Update of that key
	// comes between. old is nil if there is no value; f may keep or change it, may run more than
	// once, and must not call the store. If f returns nil, the record is deleted; if it returns an
	// error, nothing is changed and Update returns that error.
	//
	// The record lives for ttl from now; with a ttl of zero or less, until it is deleted. When
	// Update returns nil, the record is as safe as the back end makes it: a durable one has it on
	// disk.
	Update(ctx context.Context, key string, ttl time.Duration, f func(old []byte) (new []byte, err error)) error

	// Close releases what the store holds. After it Get and Update return [ErrClosed], and Close
	// returns nil.
	Close() error
}

// MaxRecord is the length in bytes of a value that every back end takes.
const MaxRecord = 8 << 20

// ErrClosed is the error of Get and Update after Close.
var ErrClosed = errors.New("store: closed")

// A CorruptError reports a record that could not be read back as it was written. The store has put
// the damaged file aside and goes on as if there had been no record.
type CorruptError struct {
	Path  string // the damaged file
	Aside string // where it is now, "" if it could not be moved
	Err   error  // what is wrong with it
}

// Error returns where the file was, where it is, and what is wrong with it.
func (e *CorruptError) Error() string {
	if e.Aside == "" {
		return "store: " + e.Path + " is damaged and could not be set aside: " + e.Err.Error()
	}
	return "store: " + e.Path + " was damaged and is now " + e.Aside + ": " + e.Err.Error()
}

// Unwrap returns what is wrong with the file.
func (e *CorruptError) Unwrap() error { return e.Err }

// A VersionError reports a record that a later version of this package has written. It is left as
// it is, for that version; for this one it is neither read nor replaced.
type VersionError struct {
	Path    string
	Version string // of the record's format
}

// Error returns where the record is, and its version.
func (e *VersionError) Error() string {
	return "store: " + e.Path + " is a record of version " + e.Version + ", which is later than this program"
}
