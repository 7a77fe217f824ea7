package exchange

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/collyrobots/collyrobots/internal/typednil"
	"github.com/collyrobots/collyrobots/report"
)

// ErrNotSent says that the program has not sent a request that it has a turn for.
var ErrNotSent = errors.New("collyrobots: the request was not sent")

// A Failure says what the error of an exchange means on the wire. The zero Failure is that of no
// error.
type Failure struct {
	Unsent   bool // there was no connection, or the program has not sent the request
	Reset    bool // the connection was reset
	Canceled bool // the context was canceled
	Closed   bool // the plugin is closed
}

// FailureOf returns what err and the errors that it wraps mean.
func FailureOf(err error) Failure {
	var f Failure
	f.addAll(err)
	return f
}

// addAll adds what err and the errors that it wraps mean.
func (f *Failure) addAll(err error) {
	if typednil.Is(err) {
		return
	}
	f.Add(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		f.addAll(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			f.addAll(inner)
		}
	}
}

// Add adds what err means, without the errors that it wraps.
func (f *Failure) Add(err error) {
	switch err {
	case report.ErrClosed:
		f.Closed = true
	case ErrNotSent, error(syscall.ECONNREFUSED):
		f.Unsent = true
	case error(syscall.ECONNRESET):
		f.Reset = true
	case context.Canceled:
		f.Canceled = true
	}
	switch e := err.(type) {
	case *net.DNSError:
		f.Unsent = true
	case *net.OpError:
		f.Unsent = f.Unsent || e.Op == "dial"
	}
	if e, ok := err.(interface{ Is(error) bool }); ok { // such as the error of a dial that was canceled
		f.Canceled = f.Canceled || e.Is(context.Canceled)
		f.Reset = f.Reset || e.Is(syscall.ECONNRESET)
		f.Unsent = f.Unsent || e.Is(ErrNotSent) || e.Is(syscall.ECONNREFUSED)
	}
}
