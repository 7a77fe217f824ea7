package pace

import (
	"errors"
	"testing"
	"time"
)

// TestStartNow uses a clock of the caller. It needs no bubble, because nothing waits.
func TestStartNow(t *testing.T) {
	const s = time.Second
	hosts := noRules()
	start := time.Now()
	h := hosts.At(start, "a.test")
	h.SetCrawlDelay(start, Source{Scheme: "http"}, 10*s, time.Time{})
	var a, b Ticket
	for _, step := range []struct {
		at   time.Duration
		end  *Ticket // this ticket is ended before the step
		try  *Ticket
		wait time.Duration
		ok   bool
	}{
		{at: 0, try: &a, ok: true},
		{at: 4 * s, try: &b, wait: 96 * s},         // one request at a time; the place expires after ten delays
		{at: 4 * s, end: &a, try: &b, wait: 6 * s}, // the delay counts from the start
		{at: 10*s - 1, try: &b, wait: 1},
		{at: 10 * s, try: &b, ok: true},
		{at: 10 * s, try: &b, wait: 10 * s}, // StartNow has ended the previous request of the ticket
		{at: 20 * s, try: &a, ok: true},
	} {
		step.end.ended()
		if wait, ok := h.StartNow(start.Add(step.at), step.try, true); wait != step.wait || ok != step.ok {
			t.Errorf("after %v: StartNow = %v, %v, want %v, %v", step.at, wait, ok, step.wait, step.ok)
		}
	}
	a.End()
	if stats := h.Stats(start.Add(20 * s)); stats.Requests != 3 || stats.MinGap != 10*s {
		t.Errorf("%d requests, smallest gap %v, want 3 and %v", stats.Requests, stats.MinGap, 10*s)
	}
	hosts.Close(errors.New("over"))
	if wait, ok := h.StartNow(start.Add(time.Hour), &a, true); wait != 0 || ok {
		t.Errorf("closed: StartNow = %v, %v", wait, ok)
	}
}

// ended is like End, but t may be nil, for a step that ends nothing.
func (t *Ticket) ended() {
	if t != nil {
		t.End()
	}
}
