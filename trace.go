package collyrobots

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/redact"
)

// errDropped is what became of a request that net/http sends again.
var errDropped = errors.New("collyrobots: the connection was dropped before an answer")

// A trace tells listeners of one exchange. While there are none it costs a look whether there are.
//
// An exchange has started when its headers are written: *http.Transport reports that. With another
// RoundTripper it has when it is handed over.
type trace struct {
	events             *fanout.Broadcaster[Event]
	url                *url.URL
	kind               RequestKind // Event.RequestKind
	from               string      // Event.From
	collector, request uint32      // Event.Collector and Event.Request

	mu     sync.Mutex
	told   bool      // of its start, and not of its end
	at     time.Time // of the start
	status int
}

// started is called when the exchange is on the wire.
func (t *trace) started(host *pace.Host, ticket *pace.Ticket) {
	if !t.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellStart(host, ticket)
}

// tellStart tells of the start, unless that was told. t.mu is held.
func (t *trace) tellStart(host *pace.Host, ticket *pace.Ticket) {
	if t.told {
		return
	}
	s := ticket.Start()
	t.told, t.at = true, s.At
	e := t.event(EventStarted, host)
	e.Time, e.From = s.At, t.from
	e.Gap, e.Delay, e.Source, e.Line = s.Gap, s.Delay, DelaySource(s.Cause), s.Line
	t.events.Send(e)
}

// answered is called when the headers of the response are there.
func (t *trace) answered(resp *http.Response) {
	if t.events.Active() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.status = resp.StatusCode
	}
}

// again is called when the exchange is to be made once more: err says why, nil because of its
// answer.
func (t *trace) again(host *pace.Host, err error) {
	if !t.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told {
		t.tellEnd(host, 0, err)
		t.kind = RequestRetry
		t.from = ""
	}
}

// ended is called when the exchange is over, before its place is given back. sent is false if the
// request was never written, for example because the connection was refused: it has not started then.
func (t *trace) ended(host *pace.Host, ticket *pace.Ticket, sent bool, bytes int64, err error) {
	if !t.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if private := (*PrivateNetworkError)(nil); !t.told && errors.As(err, &private) {
		e := t.denied(host.Name(), t.url.Redacted())
		e.Err = redact.Error(err)
		t.events.Send(e)
		return
	}
	if !sent && !t.told {
		return
	}
	t.tellStart(host, ticket)
	t.tellEnd(host, bytes, err)
}

// tellEnd tells what became of an exchange that had started. t.mu is held.
func (t *trace) tellEnd(host *pace.Host, bytes int64, err error) {
	e := t.event(EventAnswered, host)
	e.Status = t.status
	e.Bytes = bytes
	e.Took = e.Time.Sub(t.at)
	e.Err = redact.Error(err)
	t.told, t.status = false, 0
	t.events.Send(e)
}

// denied returns an event that says that the request of t, which may be nil, is not sent.
func (t *trace) denied(host, url string) Event {
	e := Event{Kind: EventDenied, Time: time.Now(), Host: host, URL: url}
	if t != nil {
		e.Collector, e.Request = t.collector, t.request
	}
	return e
}

// event returns an event of the exchange that happens now.
func (t *trace) event(kind EventKind, host *pace.Host) Event {
	return Event{
		Kind: kind, Time: time.Now(), Host: host.Name(), URL: t.url.Redacted(), RequestKind: t.kind,
		Collector: t.collector, Request: t.request,
	}
}
