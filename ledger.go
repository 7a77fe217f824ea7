package collyrobots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"net/http"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A ledger is what is written down of a sitemap file, so that the next run neither starts over nor skips a page. All methods of a
// nil ledger do nothing: nothing is written down. They are called from the goroutine of the walk, but for left.
type ledger struct {
	feeder *feeder
	key    string
	last   ledgerRecord // of an earlier run

	mu       sync.Mutex
	now      ledgerRecord
	pages    int // read so far
	underWay int // of these: handed on and not yet done
	broken   bool
	finished bool
}

// A ledgerRecord is stored as JSON.
type ledgerRecord struct {
	ETag         string `json:",omitempty"` // validators of the answer
	LastModified string `json:",omitempty"`
	Sum          []byte // SHA-256 of the body as it came
	Passed       int    // pages that need not be looked at again
	Done         bool   // all of them
}

const (
	ledgerTime  = 90 * 24 * time.Hour // how long a file is remembered after it was last read
	ledgerEvery = 100                 // pages between two records; as many may be handed on twice after a crash
)

// errUnchanged is why a file is not read: it is as it was when it was fed to its end.
var errUnchanged = errors.New("collyrobots: sitemap has not changed")

// recall returns the ledger of the sitemap at loc.
func (f *feeder) recall(ctx context.Context, loc string) *ledger {
	if !f.feed.Resume {
		return nil
	}
	b := &ledger{feeder: f, key: "sitemap " + loc}
	val, err := f.plugin.config.store.Get(ctx, b.key)
	if err == nil && val != nil {
		err = json.Unmarshal(val, &b.last)
	}
	if err != nil {
		f.plugin.config.log.Warn("sitemap record could not be read: the file is fed from its beginning", "sitemap", loc, "error", err)
		b.last = ledgerRecord{}
	}
	return b
}

// ask makes the request for a file that was done a conditional one.
func (b *ledger) ask(h http.Header) {
	if b == nil || !b.last.Done {
		return
	}
	if b.last.ETag != "" {
		h.Set("If-None-Match", b.last.ETag)
	}
	if b.last.LastModified != "" {
		h.Set("If-Modified-Since", b.last.LastModified)
	}
}

// sum returns where the body is to be written to, nil where nobody wants to know.
func (b *ledger) sum() hash.Hash {
	if b == nil {
		return nil
	}
	return sha256.New()
}

// opened notes the answer. It returns errUnchanged if there is nothing new in it.
func (b *ledger) opened(h http.Header, sum hash.Hash) error {
	if b == nil {
		return nil
	}
	b.now = ledgerRecord{ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified"), Sum: sum.Sum(nil)}
	if !bytes.Equal(b.now.Sum, b.last.Sum) {
		b.last.Passed = 0
		return nil
	}
	if b.last.Done {
		return errUnchanged
	}
	return nil
}

// known counts a page, and tells whether an earlier run has passed it.
func (b *ledger) known() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages++
	return b.pages <= b.last.Passed
}

// handed notes that the page last counted goes to the collector. left follows when it is done.
func (b *ledger) handed() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.underWay++
	}
}

func (b *ledger) left() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.underWay--
		b.close()
	}
}

// passed notes that the page last counted was handed on or skipped for good. Those that may still be under way are not taken
// for passed: handed on twice is better than never.
func (b *ledger) passed() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now.Passed = max(b.last.Passed, b.pages-b.feeder.feed.Window)
	if b.pages%ledgerEvery == 0 {
		b.save()
	}
}

// cut notes an error that costs more than one entry: the file is not done, but can go on where it was.
func (b *ledger) cut(err error) {
	if fault := (*sitemap.Error)(nil); b != nil && errors.As(err, &fault) && fault.Scope == sitemap.ScopeFile {
		b.broken = true
	}
}

// finish notes that the file was read to its end. An index, which has no pages, is never done: its children may change under it.
func (b *ledger) finish(ctx context.Context) {
	if b == nil || b.pages == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken || ctx.Err() != nil {
		b.save()
		return
	}
	b.finished = true
	b.close()
}

// interrupted notes that the rest of the file is not read.
func (b *ledger) interrupted() {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.save()
	}
}

// close writes that the file is done, once it was read and no page of it is under way. b.mu is held.
func (b *ledger) close() {
	if b.finished && b.underWay == 0 {
		b.now.Passed, b.now.Done = b.pages, true
		b.save()
	}
}

// save writes the record, also when the crawl has just been cancelled. b.mu is held.
func (b *ledger) save() {
	val, err := json.Marshal(b.now)
	if err == nil {
		err = b.feeder.plugin.config.store.Update(context.Background(), b.key, ledgerTime, func([]byte) ([]byte, error) { return val, nil })
	}
	if err != nil {
		b.feeder.plugin.config.log.Warn("sitemap record could not be written", "record", b.key, "error", err)
	}
}
