package redisstore

import (
	"log/slog"
	"sync"
	"time"
)

// report logs what no call returns, each kind at most once a minute: it concerns many hosts at
// once.
type report struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*said
}

// said is when a kind of event was logged, and how often it has happened since.
type said struct {
	at    time.Time
	count int
}

const quiet = time.Minute

// host tells what Redis has noted when it was asked about a host: that its clock went back, that
// its state was something else, that the epoch is new.
func (r *report) host(host string, back time.Duration, aside, lost bool) {
	if back > 0 {
		r.say("Redis' clock went back: hosts wait as they would have before", "host", host, "jump", back)
	}
	if aside {
		r.say("a key of a host's pace held something else, which is set aside: the host waits for one delay", "host", host)
	}
	if lost {
		r.say("Redis has lost its data or is another server: hosts wait for one delay and a second", "host", host)
	}
}

func (r *report) say(message string, args ...any) {
	count := r.due(message)
	if count > 0 {
		r.log.Warn(message, append(args, "count", count)...)
	}
}

// due counts a message. It returns how often that has happened since it was logged last, or 0 if
// that was less than a minute ago.
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
	s.at, s.count = now, 0
	return count
}
