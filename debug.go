package collyrobots

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fanout"
)

// A debuggers holds the debuggers of the attached collectors. They get the events of the plugin as
// events of Colly.
type debuggers struct {
	mu    sync.Mutex
	known []debugger
}

// A debugger is called only from the hooks of its collectors, on the goroutines on which Colly
// calls it. A debugger that works without a lock under Colly therefore needs none here.
type debugger struct {
	debug.Debugger
	events *fanout.Listener[Event]
}

// add adds the debugger of a collector and returns its listener, or nil if the collector has none.
// The hooks of the collector deliver the events. A debugger that several collectors share gets each
// event once.
func (ds *debuggers) add(h *backend.Handle, r *report) *fanout.Listener[Event] {
	d := h.Debugger()
	if d == nil {
		return nil
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, known := range ds.known {
		if backend.SameDebugger(known.Debugger, d) {
			return known.events
		}
	}
	l := r.events.ListenOnDemand(func(e Event) { d.Event(debugEvent(e)) })
	ds.known = append(ds.known, debugger{Debugger: d, events: l})
	return l
}

// deliver delivers the remaining events to all debuggers. No collector may be using them.
func (ds *debuggers) deliver() {
	ds.mu.Lock()
	known := slices.Clone(ds.known)
	ds.mu.Unlock()
	for _, d := range known {
		d.events.Deliver()
	}
}

// debugEvent converts an event to Colly's type. The values have their names from JSON. A duration
// is a text such as "1.5s", and a decision is one line.
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
	put("request_kind", string(e.RequestKind))
	put("from", e.From)
	duration("gap", e.Gap)
	duration("delay", e.Delay)
	put("source", string(e.Source))
	number("line", int64(e.Line))
	number("status", int64(e.Status))
	number("bytes", e.Bytes)
	duration("took", e.Took)
	if e.Err != nil {
		put("error", e.Err.Error())
	}
	number("count", int64(e.Count))
	put("robots_status", string(e.RobotsStatus))
	put("hash", e.Hash)
	if !e.Until.IsZero() {
		put("until", e.Until.Format(time.RFC3339Nano))
	}
	if e.Decision != nil {
		put("decision", e.Decision.String())
	}
	if e.Change != nil {
		put("old", string(e.Change.Old.RobotsStatus))
	}
	return &debug.Event{Type: "robots." + string(e.Kind), RequestID: e.Request, CollectorID: e.Collector, Values: values}
}
