package policy

import (
	"math"
	"sync/atomic"
	"time"
)

// instant is a time in Unix nanoseconds; 0 means never. It takes a third of the memory of a
// time.Time. It has no monotonic clock reading, so it is also valid in other processes.
type instant int64

// earliest and latest stand for all times before 1970 and after 2262.
const (
	earliest instant = 1
	latest   instant = math.MaxInt64
)

func now() instant { return instantOf(time.Now()) }

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	switch s := t.Unix(); {
	case s <= 0:
		return earliest
	case s >= int64(latest/1e9):
		return latest
	}
	return instant(t.UnixNano())
}

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i))
}

// add returns the instant that is d later. d must not be negative.
func (i instant) add(d time.Duration) instant {
	if latest-i < instant(d) {
		return latest
	}
	return i + instant(d)
}

// moment is an instant that several goroutines may set and read. A nil moment and the zero value
// mean never.
type moment struct{ at atomic.Int64 }

func (m *moment) set(i instant) { m.at.Store(int64(i)) }

func (m *moment) get() instant {
	if m == nil {
		return 0
	}
	return instant(m.at.Load())
}

// within reports whether m is at most d before now.
func (m *moment) within(now instant, d time.Duration) bool {
	at := m.get()
	return at != 0 && now < at.add(d)
}

// seconds is a duration in whole seconds. It is small, because a cache keeps very many of them.
type seconds int32

func (s seconds) duration() time.Duration { return time.Duration(s) * time.Second }
