package collyrobots

import (
	"errors"
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

// errBubble is the error of a Plugin that is used in a testing/synctest bubble but was made outside
// of it, or the other way round. Its timers and channels would never wake the other side up.
var errBubble = errors.New("collyrobots: the Plugin was made outside of the synctest bubble that uses it, or the other way round: call New inside the bubble")

// inBubble reports whether the caller runs in a bubble of testing/synctest, where times have no
// monotonic clock reading.
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0)
}
