package collyrobots

import (
	"sync/atomic"
	"time"
)

// A core is what the collectors of one plugin share.
type core struct {
	*judge
	started   time.Time
	bubbled   bool // it was made in a bubble of testing/synctest
	requests  *requests
	denials   denials
	shadows   shadows
	debuggers debuggers
	sitemaps  *sitemaps // nil: they are not followed
	fed       fedPages
	closed    atomic.Bool
}

// inBubble reports whether the caller runs in a bubble of testing/synctest, where times have no
// monotonic clock reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}
