// Package store keeps small durable records for a crawler: what was learnt about a host, so that a restart, or another
// process, need not ask the host again.
//
// A back end is three methods. [Memory] lives as long as the process, [Dir] keeps one file per record in a directory,
// and heavier ones are modules of their own. Package storetest is the suite that all of them pass.
package store

import (
	"context"
	"errors"
	"time"
)

// A Store maps keys to small values. All methods may be called by any number of goroutines at once.
//
// Keys are any strings, of any length and content. Values are bytes; an empty value is a value, a nil one is none.
// A value handed out belongs to the caller, a value handed in belongs to the store.
type Store interface {
	// Get returns the value of key, or nil and no error when there is none or its time to live has passed.
	Get(ctx context.Context, key string) ([]byte, error)

	// Update replaces the value of key by what f makes of it, and no other Update of that key comes between. old is nil
	// when there is no value; f may keep or change it, may run more than once, and must not call the store. When f
	// returns nil the record is deleted; when it returns an error nothing is changed and Update returns that error.
	//
	// The record lives for ttl from now; with a ttl of zero or less, until it is deleted. When Update returns nil the
	// record is as safe as the back end makes it: a durable one has it on disk.
	Update(ctx context.Context, key string, ttl time.Duration, f func(old []byte) (new []byte, err error)) error

	// Close releases what the store holds. Later calls of Get and Update return [ErrClosed], of Close nothing but nil.
	Close() error
}

// ErrClosed is what Get and Update return after Close.
var ErrClosed = errors.New("store: closed")

// A CorruptError says that a record could not be read back as it was written. The store has put the damaged bytes
// aside and goes on as if there had been no record.
type CorruptError struct {
	Path  string // the damaged file
	Aside string // where its bytes are now; empty when they could not be moved
	Err   error  // what is wrong with them
}

func (e *CorruptError) Error() string {
	if e.Aside == "" {
		return "store: " + e.Path + " is damaged and could not be set aside: " + e.Err.Error()
	}
	return "store: " + e.Path + " was damaged and is now " + e.Aside + ": " + e.Err.Error()
}

func (e *CorruptError) Unwrap() error { return e.Err }
