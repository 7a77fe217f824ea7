package revalidate

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store"
)

// A Pages keeps the records of pages in the Store.
type Pages struct {
	store  store.Store
	report *reporter.Reporter

	collectors atomic.Int32 // the number of collectors that were attached
	pause      atomic.Int64 // the time until which the Store is not used, in Unix nanoseconds

	Conditional atomic.Int64 // the requests that were conditional
	Fresh       atomic.Int64 // the pages that were not requested
	Unusable    atomic.Int64 // the responses with malformed validators

	recorded, failed atomic.Int64
}

const (
	recallPatience = time.Second // the longest time that a look-up may take
	storePause     = time.Minute // the time after a failure during which the Store is not used
)

// NewPages returns the records of the pages in s.
func NewPages(s store.Store, r *reporter.Reporter) *Pages {
	return &Pages{store: s, report: r}
}

// Statistics returns the counts so far, or nil without the option.
func (v *Pages) Statistics() *report.RevalidationStats {
	if v == nil {
		return nil
	}
	return &report.RevalidationStats{
		Conditional: int(v.Conditional.Load()),
		Fresh:       int(v.Fresh.Load()),
		Recorded:    int(v.recorded.Load()),
		Unusable:    int(v.Unusable.Load()),
		Failed:      int(v.failed.Load()),
	}
}

// Add returns the store of the pages of one more collector.
func (v *Pages) Add() *Collector {
	return &Collector{Pages: v, collector: int(v.collectors.Add(1)) - 1}
}

// A Collector has the records of the pages of one collector.
type Collector struct {
	*Pages
	collector int // by the order of Attach
}

// Key returns the key of the record of a page.
func (s *Collector) Key(u *url.URL) string { return Key(s.collector, u) }

// Recall returns the record with a key, or nil if there is none.
func (v *Pages) Recall(ctx context.Context, key string) *Record {
	if v.isPaused() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recallPatience)
	defer cancel()
	raw, err := v.store.Get(ctx, key)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			v.fail(err)
		}
		return nil
	}
	if raw == nil {
		return nil
	}
	record, err := Decode(raw)
	if err != nil {
		v.failed.Add(1)
		return nil
	}
	return record
}

// Remember writes the record of a page.
func (v *Pages) Remember(key string, record *Record) {
	if v.update(key, record.Encode()) {
		v.recorded.Add(1)
	}
}

// Forget removes the record of a page that has neither validators nor freshness now. Otherwise, if the page
// returned to its recorded version, a later visit would report it as unchanged. Most such pages
// have no record, and a look-up costs less than an update.
func (v *Pages) Forget(key string) {
	if v.Recall(context.Background(), key) != nil {
		v.update(key, nil)
	}
}

// update writes a value, or removes the record if the value is nil. It reports whether it has
// succeeded.
func (v *Pages) update(key string, value []byte) bool {
	if v.isPaused() {
		return false
	}
	f := func([]byte) ([]byte, error) { return value, nil }
	err := v.store.Update(context.Background(), key, Life, f)
	if isCorrupt(err) {
		err = v.store.Update(context.Background(), key, Life, f) // the Store has moved the damaged record aside
	}
	if err != nil {
		v.fail(err)
	}
	return err == nil
}

// isPaused reports whether the Store is not used now.
func (v *Pages) isPaused() bool { return time.Now().UnixNano() < v.pause.Load() }

// fail records a failure of the Store. Unless the failure concerns only one record, the Store is
// not used for storePause, because otherwise each page would wait for it.
func (v *Pages) fail(err error) {
	v.failed.Add(1)
	version := (*store.VersionError)(nil)
	if isCorrupt(err) || errors.As(err, &version) {
		return
	}
	v.pause.Store(time.Now().Add(storePause).UnixNano())
	v.report.Warn("the Store has failed, so pages are requested in full for a while", "error", err)
}

func isCorrupt(err error) bool {
	corrupt := (*store.CorruptError)(nil)
	return errors.As(err, &corrupt)
}

// UnchangedMark is the name of a header field that marks the response of an unchanged page. Its
// value is the record of the page. No site can send it, because it is not a token.
const UnchangedMark = "collyrobots: unchanged"
