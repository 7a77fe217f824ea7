package collyrobots

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/reporter"
)

// A debuggers holds the debuggers of the attached collectors. They get the events of the plugin as
// events of Colly.
type debuggers struct {
	// mu protects known.
	mu    sync.Mutex
	known []debugger
}

// A debugger is called only from the hooks of its collectors, on the goroutines on which Colly
// calls it. A debugger that works without a lock under Colly therefore needs none here.
type debugger struct {
	debug.Debugger
	events *fanout.Listener[*Event]
}

// add adds the debugger of a collector and returns its listener, or nil if the collector has none.
// The hooks of the collector deliver the events. A debugger that several collectors share gets each
// event once.
func (ds *debuggers) add(h *backend.Handle, r *reporter.Reporter) *fanout.Listener[*Event] {
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
	l := r.Events.ListenOnDemand(func(e *Event) { d.Event(debugEvent(e)) })
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

// debugEvent converts an event to Colly's type. The values are the members of the event in JSON. A
// duration is a text such as "1.5s", a decision is one line, and of a change there is only the old
// status.
func debugEvent(e *Event) *debug.Event {
	values := membersOf(e)
	for _, name := range []string{"kind", "time", "collector", "request", "change"} {
		delete(values, name)
	}
	for name, d := range map[string]time.Duration{"gap": e.Gap, "delay": e.Delay, "took": e.Took} {
		if d != 0 {
			values[name] = d.String()
		}
	}
	if e.Decision != nil {
		values["decision"] = e.Decision.String()
	}
	if e.Change != nil {
		values["old"] = string(e.Change.Old.RobotsStatus)
	}
	return &debug.Event{Type: "robots." + string(e.Kind), RequestID: e.Request, CollectorID: e.Collector, Values: values}
}

// membersOf returns the members of the JSON object of e. A string has no quotes, and other values
// are in JSON. If e cannot be encoded, the only member is "error".
func membersOf(e *Event) map[string]string {
	var members map[string]json.RawMessage
	text, err := e.AppendJSON(nil)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	json.Unmarshal(text, &members) // AppendJSON has written an object
	values := make(map[string]string, len(members))
	for name, member := range members {
		var text string
		if json.Unmarshal(member, &text) != nil {
			text = string(member)
		}
		values[name] = text
	}
	return values
}
