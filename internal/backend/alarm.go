package backend

import (
	"context"
	"sync"
	"time"
)

// An alarm ends an exchange whose time is up. Alarms are used again: a page has one, and a timer of
// its own would cost it more than all its locks.
type alarm struct {
	timer *time.Timer
	of    *exchange
	alone bool // not to be used again
}

var spareAlarms sync.Pool // of alarms that are not set

// setAlarm returns an alarm that ends x after d. A timer belongs to the synctest bubble that it was
// made in: alone says that x may be in one.
func setAlarm(x *exchange, d time.Duration, alone bool) *alarm {
	if !alone {
		if a, ok := spareAlarms.Get().(*alarm); ok {
			a.of = x
			a.timer.Reset(d)
			return a
		}
	}
	a := &alarm{of: x, alone: alone}
	a.timer = time.AfterFunc(d, a.ring)
	return a
}

func (a *alarm) ring() { a.of.end(context.DeadlineExceeded) }

// off turns a off, which the caller must not use any more; a may be nil. It reports whether a had
// not rung, nor ever will for its exchange.
func (a *alarm) off() bool {
	if a == nil || !a.timer.Stop() {
		return false
	}
	if !a.alone {
		a.of = nil
		spareAlarms.Put(a)
	}
	return true
}
