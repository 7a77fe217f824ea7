package hostqueue

import (
	"errors"
	"sync"
	"time"
)

// A hold is the lease of one host in this process. Its end is known without asking Redis: it is
// counted from before the command that has taken or renewed the lease.
type hold struct {
	// mu protects until.
	mu    sync.Mutex
	until time.Time
}

func newHold(until time.Time) *hold { return &hold{until: until} }

// renew extends the lease. If it has expired, renew has no effect, because another process may have
// taken the host before the renewal.
func (h *hold) renew(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.until) {
		h.until = until
	}
}

// valid reports whether no other process can have the host.
func (h *hold) valid() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Before(h.until)
}

// errExpired says that a page was not sent because the lease of its host had expired.
var errExpired = errors.New("lease expired before the page was sent")
