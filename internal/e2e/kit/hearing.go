package kit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// A Hearing records events of some kinds. Without kinds it records all events.
type Hearing struct {
	kinds []report.EventKind
	Began time.Time

	mu     sync.Mutex
	Events []*collyrobots.Event
}

// Hear returns a hearing that records the events of some kinds, or of all kinds.
func Hear(kinds ...report.EventKind) *Hearing {
	return &Hearing{kinds: kinds, Began: time.Now()}
}

// On returns the option that makes a plugin report its events to h.
func (h *Hearing) On() collyrobots.Option { return collyrobots.OnEvent(h.Hear) }

// Hear records an event.
func (h *Hearing) Hear(e *collyrobots.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.kinds) == 0 || slices.Contains(h.kinds, e.Kind) {
		h.Events = append(h.Events, e)
	}
}

// Wait returns the events after all listeners were called. It needs a bubble.
func (h *Hearing) Wait() []*collyrobots.Event {
	WaitForListeners()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.Events)
}

// WaitForListeners waits until all listeners were called. It needs a bubble.
func WaitForListeners() {
	time.Sleep(100 * time.Millisecond) // listeners are called with a short delay
	synctest.Wait()
}

// Want compares the recorded events with lines of text.
func (h *Hearing) Want(t *testing.T, want string) {
	t.Helper()
	if got, want := strings.Join(h.Lines(), "\n"), strings.TrimSpace(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Lines returns the recorded events as text.
func (h *Hearing) Lines() (lines []string) {
	for _, e := range h.Wait() {
		lines = append(lines, h.line(e))
	}
	return lines
}

// line returns the fields of an event that are not zero.
func (h *Hearing) line(e *collyrobots.Event) string {
	line := fmt.Sprint(e.Time.Sub(h.Began), " ", e.Kind)
	add := func(is bool, format string, args ...any) {
		if is {
			line += " " + fmt.Sprintf(format, args...)
		}
	}
	add(e.RequestKind != "", "%s", e.RequestKind)
	add(e.URL != "", "%s", strings.TrimPrefix(e.URL, "http://"))
	add(e.URL == "" && e.Host != "", "%s", e.Host)
	add(e.From != "", "from %s", strings.TrimPrefix(e.From, "http://"))
	add(e.Gap != 0, "gap %v", e.Gap)
	add(e.Delay != 0, "delay %v", e.Delay)
	add(e.Source != "", "%s", e.Source)
	add(e.Line != 0, "line %d", e.Line)
	add(e.Status != 0, "%d", e.Status)
	add(e.Bytes != 0, "%d bytes", e.Bytes)
	add(e.Took != 0, "took %v", e.Took)
	add(e.Count != 0, "count %d", e.Count)
	add(!e.Until.IsZero(), "until %v", e.Until.Sub(h.Began))
	add(e.RobotsStatus != "", "%s", e.RobotsStatus)
	add(e.Stored, "stored")
	add(e.Hash != "", "%.4s", e.Hash)
	add(e.Body != nil, "%d bytes", len(e.Body))
	if e.Kind == report.EventDenied && e.Decision != nil {
		add(true, "%s line %d", e.Decision.Reason, e.Decision.Rule.Line)
	}
	if c := e.Change; c != nil {
		add(true, "%s -> %s", c.Old.RobotsStatus, c.New.RobotsStatus)
	}
	add(e.Err != nil, "(%v)", e.Err)
	return line
}
