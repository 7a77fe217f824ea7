package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	maxStreams = 256
	streamTime = time.Minute     // the length of a stream; then the browser opens the next one
	writeTime  = 5 * time.Second // the time limit for writing a message; a slower client is disconnected
	quietTime  = 2 * time.Second // the time between two messages if there are no events
	together   = 16              // messages per second to all clients together
)

// streams counts the open streams.
type streams struct{ open atomic.Int32 }

// serveEvents sends the state and then its changes. It runs only on the goroutine of the request,
// so nothing remains when the request ends.
func (h *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	if h.streams.open.Add(1) > maxStreams {
		h.streams.open.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer h.streams.open.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	h.stream(w, r)
}

func (h *Page) stream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	defer control.SetWriteDeadline(time.Time{})
	q, told := questionOf(r), cursor{}
	end := time.Now().Add(streamTime)
	next := time.NewTimer(0)
	defer next.Stop()
	heard, sent := uint64(0), time.Time{}
	for time.Now().Before(end) {
		select {
		case <-r.Context().Done():
			return
		case <-next.C:
		}
		began := time.Now()
		if now := h.recorder.count(); now != heard || began.Sub(sent) >= quietTime {
			heard, sent = now, began
			if !h.send(w, control, q, &told) {
				return
			}
		}
		next.Reset(h.streams.pause(time.Since(began)))
	}
}

// send writes one message. It reports whether the client received it.
func (h *Page) send(w http.ResponseWriter, control *http.ResponseController, q question, told *cursor) bool {
	body, err := json.Marshal(h.stateFor(q, told))
	if err != nil {
		return false
	}
	control.SetWriteDeadline(time.Now().Add(writeTime)) // replaces the server's deadline, which is for a whole response
	if _, err := fmt.Fprintf(w, "retry: 500\ndata: %s\n\n", body); err != nil {
		return false
	}
	return control.Flush() == nil
}

// pause returns how long a stream waits after a message that took a given time. It grows with the
// number of streams and with the time that a message takes.
func (s *streams) pause(took time.Duration) time.Duration {
	return max(interval, time.Duration(s.open.Load())*time.Second/together, share*min(took, time.Second/10))
}
