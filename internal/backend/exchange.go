package backend

import (
	"context"
	"io"
	"net/http/httptrace"
	"sync"
	"time"
)

// An exchange is one request on the wire, from just before it is sent until its body is closed, it fails, or its time is up.
type exchange struct {
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
	timeout time.Duration
	timer   *time.Timer  // nil: no limit
	again   func() error // asked before a second attempt to send; nil: nobody is
	ended   func()       // told once when it is over; nil: nobody is
	once    sync.Once
	tries   int
}

// begin starts an exchange that may take timeout, if that is more than 0. The time that again takes does not count.
func begin(parent context.Context, timeout time.Duration, again func() error, ended func()) *exchange {
	x := &exchange{timeout: timeout, again: again, ended: ended}
	x.ctx, x.cancel = context.WithCancelCause(parent)
	x.ctx = httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{GetConn: x.try})
	if timeout > 0 {
		x.timer = time.AfterFunc(timeout, func() { x.over(context.DeadlineExceeded) })
	}
	return x
}

// try is called before each attempt of net/http to send the request, on the goroutine that makes it.
func (x *exchange) try(string) {
	if x.tries++; x.tries == 1 || x.again == nil {
		return
	}
	if x.timer != nil && x.timer.Stop() {
		defer x.timer.Reset(x.timeout)
	}
	if err := x.again(); err != nil {
		x.cancel(err)
	}
}

// end ends the exchange, if it has not ended.
func (x *exchange) end(cause error) {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.over(cause)
}

func (x *exchange) over(cause error) {
	x.once.Do(func() {
		x.cancel(cause)
		if x.ended != nil {
			x.ended()
		}
	})
}

// failed ends an exchange that has no response, and returns why: err, or what had ended it before.
func (x *exchange) failed(err error) error {
	x.end(err)
	return context.Cause(x.ctx)
}

// body is a response's. The exchange lasts until it is closed, not only until the headers are there: a body may take long, and hang.
type body struct {
	io.ReadCloser
	x *exchange
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.x.ctx.Err() != nil {
		err = context.Cause(b.x.ctx)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.x.end(context.Canceled)
	return b.ReadCloser.Close()
}
