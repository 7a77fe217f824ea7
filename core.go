package collyrobots

import (
	"sync/atomic"
	"time"
)

// A core is what the collectors of one plugin share.
type core struct {
	*judge
	started   time.Time
	requests  *requests
	denials   denials
	shadows   shadows
	debuggers debuggers
	sitemaps  *sitemaps // nil: they are not followed
	fed       fedPages
	visits    visits
	closed    atomic.Bool
}
