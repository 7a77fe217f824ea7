package frontier

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A logQueue passes log records to the handler of the program in a goroutine of its own. Where the
// frontier logs, it holds its locks or those of the storage engine. So a handler that is slow does
// not block the frontier, and a handler can call its methods.
type logQueue struct {
	handler slog.Handler

	mu      sync.Mutex
	running bool          // the goroutine runs
	ended   *sync.Cond    // running has become false
	records []slog.Record // that wait, at most mostRecords
	dropped int           // the number of records that were dropped after those in records
}

func newLogQueue(handler slog.Handler) *logQueue {
	q := &logQueue{handler: handler}
	q.ended = sync.NewCond(&q.mu)
	return q
}

// mostRecords limits the memory of a logQueue.
const mostRecords = 1000

// Handle implements slog.Handler. If too many records wait, it drops the record.
func (q *logQueue) Handle(_ context.Context, r slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == mostRecords {
		q.dropped++
		return nil
	}
	q.records = append(q.records, r.Clone())
	if !q.running {
		q.running = true
		go q.pass()
	}
	return nil
}

// pass passes the records on until none waits.
func (q *logQueue) pass() {
	ctx := context.Background()
	for {
		records := q.take()
		if records == nil {
			return
		}
		for _, r := range records {
			if q.handler.Enabled(ctx, r.Level) {
				_ = q.handler.Handle(ctx, r) // a Logger also ignores the error
			}
		}
	}
}

// take returns the records that wait, or nil if pass must end.
func (q *logQueue) take() []slog.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	records := q.records
	q.records = nil
	if q.dropped > 0 {
		r := slog.NewRecord(time.Now(), slog.LevelWarn, "log messages of the frontier were dropped, the handler of the logger is slow", 0)
		r.AddAttrs(slog.Int("count", q.dropped))
		records = append(records, r)
		q.dropped = 0
	}
	if records == nil {
		q.running = false
		q.ended.Broadcast()
	}
	return records
}

// wait waits until all records were passed on.
func (q *logQueue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running {
		q.ended.Wait()
	}
}

// Enabled implements slog.Handler. The level is checked by pass, because the method of the handler
// is also a function of the program.
func (q *logQueue) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. The frontier does not use it.
func (q *logQueue) WithAttrs([]slog.Attr) slog.Handler { panic("frontier: not used") }

// WithGroup implements slog.Handler. The frontier does not use it.
func (q *logQueue) WithGroup(string) slog.Handler { panic("frontier: not used") }
