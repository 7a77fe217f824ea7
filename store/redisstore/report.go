package redisstore

import (
	"log/slog"
	"sync"
	"time"
)

// A report logs events that no call returns. Such an event can concern many hosts at once, so each
// kind is logged at most once a minute.
type report struct {
	log *slog.Logger

	// mu protects kinds.
	mu    sync.Mutex
	kinds map[string]*occurrence
}

// An occurrence counts the events of one kind.
type occurrence struct {
	logged time.Time // when an event was logged last
	count  int       // the events after that
}

// quiet is the shortest time between two log records of one kind.
const quiet = time.Minute

// host reports what Redis has noticed during a call for a host: that its clock went back by back,
// that the state of the host was damaged and moved aside, or that the epoch is new.
func (r *report) host(host string, back time.Duration, aside, lost bool) {
	if back > 0 {
		r.warn("clock went back in Redis, hosts wait no longer than before", "host", host, "jump", back)
	}
	if aside {
		r.warn("pace of a host was damaged and moved aside, waiting for one delay", "host", host)
	}
	if lost {
		r.warn("Redis has lost its data or was replaced, hosts wait for one delay and a second", "host", host)
	}
}

// warn logs an event, unless an event of the same kind was logged less than a minute ago.
func (r *report) warn(message string, args ...any) {
	count := r.due(message)
	if count > 0 {
		r.log.Warn(message, append(args, "count", count)...)
	}
}

// due counts an event. It returns how often the event has happened since it was logged last, or 0
// if it was logged less than a minute ago.
func (r *report) due(message string) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds = make(map[string]*occurrence)
	}
	s := r.kinds[message]
	if s == nil {
		s = new(occurrence)
		r.kinds[message] = s
	}
	s.count++
	now := time.Now()
	if !s.logged.IsZero() && now.Sub(s.logged) < quiet {
		return 0
	}
	count = s.count
	s.logged = now
	s.count = 0
	return count
}
