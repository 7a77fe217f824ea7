package policy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// Files are the robots.txt files of a program that reads them in several caches, for example under
// several names. A file that one cache has fetched serves the others. Until Share is called, Files
// keep nothing and cost nothing.
//
// Files are the store of the caches that have no other. They are bounded: a file that was dropped
// is fetched again by a cache that has not read it yet.
type Files struct {
	records atomic.Pointer[otter.Cache[string, []byte]] // nil before Share

	// mu protects claims. It is also held while a record is changed.
	mu     sync.Mutex
	claims map[dialect.Authority]*claim
}

// maxFiles bounds the memory of Files in bytes.
const maxFiles = 64_000_000

// recordWeight estimates the bytes that a record takes in addition to its key and its value.
const recordWeight = 200

// NewFiles returns Files that are not shared yet.
func NewFiles() *Files { return &Files{claims: make(map[dialect.Authority]*claim)} }

// Share makes the caches share the files that they fetch from now on.
func (fs *Files) Share() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.shared() {
		return
	}
	fs.records.Store(otter.Must(&otter.Options[string, []byte]{
		MaximumWeight: maxFiles,
		Weigher:       func(key string, value []byte) uint32 { return uint32(recordWeight + len(key) + len(value)) },
		Executor:      func(f func()) { f() },
	}))
}

// shared reports whether Share was called. It reports false if fs is nil.
func (fs *Files) shared() bool { return fs != nil && fs.records.Load() != nil }

// Get implements store.Store. The caller must not change the value.
func (fs *Files) Get(_ context.Context, key string) ([]byte, error) {
	value, _ := fs.records.Load().GetIfPresent(key)
	return value, nil
}

// Update implements store.Store. The records do not expire: those that are not used are dropped.
func (fs *Files) Update(_ context.Context, key string, _ time.Duration, f func([]byte) ([]byte, error)) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	records := fs.records.Load()
	old, _ := records.GetIfPresent(key)
	value, err := f(old)
	if err != nil {
		return err
	}
	records.Set(key, value)
	return nil
}

// Close implements store.Store. It does nothing.
func (fs *Files) Close() error { return nil }

// A claim is held by a cache that fetches a file, so that the other caches wait for it.
type claim struct {
	by      *Cache
	client  any           // Way.Client
	fetches int           // of by; several have different ways
	done    chan struct{} // closed when all of them have ended
}

// claim waits until no other cache fetches the file of a, and then claims the file for c. It waits
// at most as long as a fetch may take, or for patience if the other cache uses another client: the
// fetch may be without an answer, which says nothing about another one. The caller must call
// release after its fetch.
func (fs *Files) claim(ctx context.Context, a dialect.Authority, c *Cache, client any) (release func()) {
	if !fs.shared() {
		return func() {}
	}
	began := time.Now()
	for {
		other := fs.tryClaim(a, c, client)
		if other == nil {
			return func() { fs.release(a) }
		}
		if !other.wait(ctx, began, client) {
			return func() {}
		}
	}
}

// wait waits until x has ended, and reports whether it has. began is when the caller, which has
// this client, began to wait.
func (x *claim) wait(ctx context.Context, began time.Time, client any) bool {
	limit := FetchLimit
	if x.client != client {
		limit = patience
	}
	late := time.NewTimer(time.Until(began.Add(limit)))
	defer late.Stop()
	select {
	case <-x.done:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// tryClaim claims the file of a for c, or returns the claim of another cache.
func (fs *Files) tryClaim(a dialect.Authority, c *Cache, client any) (other *claim) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	x := fs.claims[a]
	switch {
	case x == nil:
		x = &claim{by: c, client: client, done: make(chan struct{})}
		fs.claims[a] = x
	case x.by != c:
		return x
	}
	x.fetches++
	return nil
}

// release ends one fetch of the claim on the file of a.
func (fs *Files) release(a dialect.Authority) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	x := fs.claims[a]
	x.fetches--
	if x.fetches == 0 {
		close(x.done)
		delete(fs.claims, a)
	}
}
