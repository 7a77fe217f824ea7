package collyrobots

import (
	"strconv"
	"sync"
	"time"

	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// debuggers are those of the attached collectors, which hear of events as Colly's own.
type debuggers struct {
	mu    sync.Mutex
	known []debug.Debugger
}

// add makes the debugger of a collector, if it has one, hear of events. One that several collectors
// share hears of each once. It reports whether there is one.
func (ds *debuggers) add(h *backend.Handle, r *report) bool {
	d := h.Debugger()
	if d == nil {
		return false
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, known := range ds.known {
		if backend.SameDebugger(known, d) {
			return true
		}
	}
	ds.known = append(ds.known, d)
	r.events.add(func(e Event) { d.Event(debugEvent(e)) }, r.log)
	return true
}

// debugEvent returns an event as Colly has it. The values have the names and texts that they have
// in JSON, but for a decision, which is in one line.
func debugEvent(e Event) *debug.Event {
	values := make(map[string]string)
	put := func(name, value string) {
		if value != "" {
			values[name] = value
		}
	}
	number := func(name string, n int64) {
		if n != 0 {
			put(name, strconv.FormatInt(n, 10))
		}
	}
	duration := func(name string, d time.Duration) {
		if d != 0 {
			put(name, d.String())
		}
	}
	put("host", e.Host)
	put("url", e.URL)
	put("for", e.For)
	put("from", e.From)
	duration("gap", e.Gap)
	duration("delay", e.Delay)
	put("source", string(e.Source))
	number("line", int64(e.Line))
	number("status", int64(e.Status))
	number("octets", e.Octets)
	duration("took", e.Took)
	put("error", textOf(e.Err))
	number("count", int64(e.Count))
	put("meaning", string(e.Meaning))
	put("hash", e.Hash)
	if !e.Until.IsZero() {
		put("until", e.Until.Format(time.RFC3339Nano))
	}
	if e.Decision != nil {
		put("decision", e.Decision.String())
	}
	if e.Change != nil {
		put("old", string(e.Change.Old.Meaning))
	}
	return &debug.Event{Type: "robots." + string(e.Kind), RequestID: e.Request, CollectorID: e.Collector, Values: values}
}
