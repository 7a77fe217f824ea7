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

	mu    sync.Mutex
	kinds map[string]*said
}

// said is when a kind of event was logged last, and how often it has happened since then.
type said struct {
	at    time.Time
	count int
}

const quiet = time.Minute // between two log records of one kind

// host reports what Redis has noticed during a call for a host: that its clock went back by back,
// that the state of the host was damaged and moved aside, or that the epoch is new.
func (r *report) host(host string, back time.Duration, aside, lost bool) {
	if back > 0 {
		r.say("clock went back in Redis, hosts wait no longer than before", "host", host, "jump", back)
	}
	if aside {
		r.say("pace of a host was damaged and moved aside, waiting for one delay", "host", host)
	}
	if lost {
		r.say("Redis has lost its data or was replaced, hosts wait for one delay and a second", "host", host)
	}
}

func (r *report) say(message string, args ...any) {
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
		r.kinds = make(map[string]*said)
	}
	s := r.kinds[message]
	if s == nil {
		s = new(said)
		r.kinds[message] = s
	}
	s.count++
	now := time.Now()
	if !s.at.IsZero() && now.Sub(s.at) < quiet {
		return 0
	}
	count = s.count
	s.at = now
	s.count = 0
	return count
}
