package exchange

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// leases is a Pacer whose leases have a length. If fail is not nil, it decides instead.
type leases struct {
	length   time.Duration
	fail     func() (pacer.Lease, error)
	acquired int
	released int
}

func (l *leases) Acquire(context.Context, string, time.Duration) (pacer.Lease, error) {
	l.acquired++
	if l.fail != nil {
		return l.fail()
	}
	return &lease{of: l, until: time.Now().Add(l.length)}, nil
}

// A lease is a lease of leases. Its methods panic if panics is set.
type lease struct {
	of     *leases
	until  time.Time
	panics bool
}

func (l *lease) Deadline() time.Time { return l.until }

func (l *lease) Valid() bool {
	if l.panics {
		panic("broken")
	}
	return time.Now().Before(l.until)
}

func (l *lease) Release(bool, time.Duration, time.Time) {
	l.of.released++
	if l.panics {
		panic("broken")
	}
}

// TestPacer checks what a request gets if the Pacer fails.
func TestPacer(t *testing.T) {
	all := new(leases)
	tests := []struct {
		name string
		fail func() (pacer.Lease, error)
		want string // the error; "" if the request is sent
		// acquired is how often one request asks the Pacer.
		acquired, released int
	}{
		{name: "works", acquired: 1, released: 1},
		{name: "error", fail: func() (pacer.Lease, error) { return nil, errRefused }, want: "refused", acquired: 1},
		{name: "neither", fail: func() (pacer.Lease, error) { return nil, nil }, want: errNoLease.Error(), acquired: 1},
		{name: "panic", fail: func() (pacer.Lease, error) { panic("broken") }, want: "panic: broken", acquired: 1},
		{
			name: "expired leases", want: errExpiredLease.Error(), acquired: 3, released: 3,
			fail: func() (pacer.Lease, error) { return &lease{of: all, until: time.Now()}, nil },
		},
		{
			name: "broken leases", want: "panic: broken", acquired: 1,
			fail: func() (pacer.Lease, error) { return &lease{of: all, panics: true}, nil },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			*all = leases{length: time.Minute, fail: test.fail}
			inBubble(t, time.Second, func(w *world) {
				w.Share(all)
				s := &sharedPace{pacer: all, report: w.Report}
				l, err := s.Acquire(w.t.Context(), "a.test", time.Second)
				unpaced := (*report.PaceError)(nil)
				switch {
				case test.want == "":
					if err != nil || !l.Valid() {
						t.Fatalf("got %v", err)
					}
					l.Release(true, 0, time.Time{})
					w.wantLog("")
				case !errors.As(err, &unpaced) || unpaced.Err.Error() != test.want || unpaced.Host != "a.test":
					t.Errorf("got %v, want %s", err, test.want)
				default:
					w.wantLog("Pacer failed, nothing is sent")
				}
				if all.acquired != test.acquired || all.released != test.released {
					t.Errorf("acquired %d, released %d; want %d, %d", all.acquired, all.released, test.acquired, test.released)
				}
			})
		})
	}
}

// TestPacerFailuresInARow checks that the error has the time of the first failure in a row, that a
// failure is logged once a minute, and that a wait ends with its context.
func TestPacerFailuresInARow(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		p := &leases{length: time.Minute}
		s := &sharedPace{pacer: p, report: w.Report}
		since := func() time.Duration {
			_, err := s.Acquire(w.t.Context(), "a.test", 0)
			unpaced := (*report.PaceError)(nil)
			if !errors.As(err, &unpaced) {
				return -1
			}
			return unpaced.Since.Sub(w.start)
		}
		p.fail = func() (pacer.Lease, error) { return nil, errRefused }
		for i, want := range []time.Duration{0, 0, 0} {
			if got := since(); got != want {
				t.Errorf("failure %d: since %v, want %v", i, got, want)
			}
			time.Sleep(20 * time.Second)
		}
		w.wantLog("Pacer failed")
		p.fail = nil
		if got := since(); got != -1 {
			t.Errorf("got an error since %v", got)
		}
		time.Sleep(time.Second)
		p.fail = func() (pacer.Lease, error) { return nil, errRefused }
		if got := since(); got != 61*time.Second {
			t.Errorf("after a success: since %v", got)
		}
		ctx, cancel := context.WithCancelCause(w.t.Context())
		cancel(report.ErrClosed)
		if _, err := s.Acquire(ctx, "a.test", 0); err != report.ErrClosed {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

// TestBrokenLease checks that a lease whose methods panic is not valid, and that this is logged when
// it is released.
func TestBrokenLease(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		p := new(leases)
		l := &sharedLease{lease: &lease{of: p, panics: true}, pace: &sharedPace{pacer: p, report: w.Report}, host: "a.test"}
		if l.Valid() {
			t.Error("a broken lease is valid")
		}
		w.wantLog("")
		l.Release(true, 0, time.Time{})
		w.wantLog("Pacer failed, nothing is sent\" host=a.test error=\"panic: broken\"")
		if p.released != 1 || !l.Deadline().IsZero() {
			t.Errorf("released %d times", p.released)
		}
	})
}
