package backend

import (
	"context"
	"errors"
	"net/http/httptrace"
	"slices"
	"sync"
)

// A life is the context of an exchange: it ends with that of the request, or by end. It does what
// context.WithCancelCause does, without allocations of its own: every page has one.
//
// Err is what package context has for the cause; the cause itself is only known to the exchange.
type life struct {
	context.Context // of the request

	mu    sync.Mutex
	cause error         // why it has ended; nil: it has not
	done  chan struct{} // nil: nobody has asked for it
	after []*func()     // are called when it ends
	leave func() bool   // no longer watches Context; nil: it cannot end
}

// start makes l end when parent does.
func (l *life) start(parent context.Context) {
	l.Context = parent
	if parent.Done() == nil {
		return
	}
	if parent.Err() != nil {
		l.end(context.Cause(parent))
		return
	}
	leave := context.AfterFunc(parent, func() { l.end(context.Cause(parent)) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave = leave
}

// end ends l, unless it has ended. A nil cause is context.Canceled.
func (l *life) end(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	l.cause = cause
	if l.done != nil {
		close(l.done)
	}
	after, leave := l.after, l.leave
	l.after = nil
	l.mu.Unlock()
	for _, f := range after {
		go (*f)()
	}
	if leave != nil {
		leave()
	}
}

// endedBy returns why l has ended, or nil.
func (l *life) endedBy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Done implements context.Context.
func (l *life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.cause != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err implements context.Context.
func (l *life) Err() error {
	switch cause := l.endedBy(); {
	case cause == nil:
		return nil
	case errors.Is(cause, context.DeadlineExceeded):
		return context.DeadlineExceeded
	default:
		return context.Canceled
	}
}

// AfterFunc is what package context asks for, where it would else start a goroutine for each
// context that is made of this one, as net/http does.
func (l *life) AfterFunc(f func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		go f()
		return func() bool { return false }
	}
	l.after = append(l.after, &f)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.Index(l.after, &f)
		if i < 0 {
			return false
		}
		l.after = slices.Delete(l.after, i, i+1)
		return true
	}
}

// traceKey is the key under which package httptrace looks for a trace.
var traceKey = func() any {
	var p keyProbe
	httptrace.ContextClientTrace(&p)
	return p.key
}()

// A keyProbe is a context that remembers what it was asked for.
type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}
