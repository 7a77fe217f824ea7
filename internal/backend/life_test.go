package backend

import (
	"context"
	"errors"
	"net/http/httptrace"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type key struct{}

var errTest = errors.New("the cause")

// lifeOf returns a life of a request with parent.
func lifeOf(parent context.Context) *life {
	l := new(life)
	l.start(parent)
	return l
}

// A life ends once, with what is made of it, for all who wait, and keeps its first cause.
func TestALifeEnds(t *testing.T) {
	for name, end := range map[string]struct {
		parent func() (context.Context, func())
		err    error
		cause  error
	}{
		"by itself":       {func() (context.Context, func()) { return t.Context(), nil }, context.Canceled, errTest},
		"without a cause": {func() (context.Context, func()) { return context.Background(), nil }, context.Canceled, context.Canceled},
		"with its parent": {func() (context.Context, func()) { return cancelled(errTest) }, context.Canceled, errTest},
		"by parent's timeout": {func() (context.Context, func()) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			return ctx, func() { <-ctx.Done(); cancel() }
		}, context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			parent, over := end.parent()
			l := lifeOf(parent)
			child, cancel := context.WithCancel(l)
			defer cancel()
			grandchild, cancel := context.WithTimeout(context.WithValue(l, key{}, "v"), time.Hour)
			defer cancel()
			if l.Err() != nil || child.Err() != nil {
				t.Fatal("it has ended too early")
			}
			switch {
			case over != nil:
				over()
			case end.cause == context.Canceled:
				l.end(nil)
			default:
				l.end(end.cause)
			}
			<-l.Done()
			<-child.Done()
			<-grandchild.Done()
			l.end(errors.New("another"))
			if !errors.Is(l.Err(), end.err) || l.endedBy() != end.cause || !errors.Is(child.Err(), end.err) || !errors.Is(grandchild.Err(), end.err) {
				t.Errorf("%v by %v; child %v, %v", l.Err(), l.endedBy(), child.Err(), grandchild.Err())
			}
			called := make(chan bool)
			if stop := context.AfterFunc(l, func() { close(called) }); stop() {
				t.Error("stopped what follows at once")
			}
			<-called
		})
	}
}

func cancelled(cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, func() { cancel(cause) }
}

// What has ended before it begins does not begin.
func TestALifeOfWhatHasEnded(t *testing.T) {
	parent, cancel := cancelled(errTest)
	cancel()
	if l := lifeOf(parent); l.Err() == nil || l.endedBy() != errTest {
		t.Errorf("%v by %v", l.Err(), l.endedBy())
	}
}

// Nothing of a context that was made of a life stays with it, and no goroutine is needed for one.
func TestWhatIsMadeOfALife(t *testing.T) {
	parent, over := cancelled(errTest)
	defer over()
	l := lifeOf(parent)
	before := runtime.NumGoroutine()
	var called atomic.Int32
	for range 100 {
		_, cancel := context.WithCancel(l)
		stop := context.AfterFunc(l, func() { called.Add(1) })
		if n := runtime.NumGoroutine(); n > before {
			t.Fatalf("%d goroutines, %d before", n, before)
		}
		cancel()
		if !stop() || stop() {
			t.Fatal("an AfterFunc is stopped once")
		}
	}
	if len(l.after) != 0 {
		t.Errorf("%d are left", len(l.after))
	}
	l.end(nil)
	if called.Load() != 0 {
		t.Error("a stopped func was called")
	}
}

// Everybody may use it at once.
func TestALifeOfMany(t *testing.T) {
	for range 100 {
		parent, over := cancelled(errTest)
		l := lifeOf(parent)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch i {
				case 0:
					over()
				case 1:
					l.end(errTest)
				default:
					ctx, cancel := context.WithCancel(l)
					defer cancel()
					<-ctx.Done()
				}
			})
		}
		all.Wait()
		if l.endedBy() != errTest {
			t.Fatal(l.endedBy())
		}
	}
}

// The exchange's trace is found, and one of the user's is told as well.
func TestTraces(t *testing.T) {
	x := begin(t.Context(), 0, nobody{})
	defer x.end(nil)
	var found [8]*httptrace.ClientTrace
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i] = httptrace.ContextClientTrace(x) })
	}
	all.Wait()
	for _, trace := range found {
		if trace == nil || trace != found[0] {
			t.Fatalf("the traces %p", found)
		}
	}
	found[0].GetConn("b.test:80")
	if x.hop != "b.test:80" {
		t.Errorf("the exchange was told of %q", x.hop)
	}
	if x.Value(key{}) != nil || httptrace.ContextClientTrace(x.life.Context) != nil {
		t.Error("something else was found")
	}
	tries := 0
	users := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { tries++ }})
	x = begin(users, 0, nobody{})
	defer x.end(nil)
	httptrace.ContextClientTrace(x).GetConn("a.test:80")
	if tries != 1 || x.hop != "a.test:80" {
		t.Errorf("told the user %d times, the exchange of %q", tries, x.hop)
	}
}
