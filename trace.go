package collyrobots

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/report"
)

// errDropped is the Event.Err of a request that net/http sends again.
var errDropped = errors.New("collyrobots: the connection was dropped before an answer")

// A trace sends the events of one exchange: report.EventStarted and report.EventAnswered each time that the
// request is sent.
//
// An exchange has started when its headers are written, which *http.Transport reports. With another
// RoundTripper it has started when it is handed over.
type trace struct {
	report *reporter
	url    *url.URL
	kind   report.RequestKind // Event.RequestKind
	from   string             // Event.From
	numbers

	// mu protects the fields below it. It is held while an event of the exchange is sent, so that the
	// events have the order of what happened.
	mu       sync.Mutex
	running  bool      // report.EventStarted was sent, and report.EventAnswered was not
	at       time.Time // of the start; valid while running
	status   int       // of the response; 0 before that
	signed   bool      // the request was signed when it was last sent
	date     time.Time // Event.Date
	remote   net.Addr  // of the connection; nil if it is not known
	decision *Decision // the decision that allows the request; nil for requests of the plugin's own
}

// decide records v, the verdict on u, when the request is about to start.
func (t *trace) decide(v *verdict, u *url.URL) {
	if !t.report.events.Active() {
		return
	}
	d := v.decision(u)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decision = &d
}

// connected is called when there is a connection to an address.
func (t *trace) connected(addr net.Addr) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = addr
}

// started is called when the exchange is on the wire.
func (t *trace) started(host *pace.Host, ticket *pace.Ticket) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(host, ticket, true)
}

// begin reports the start, unless it was reported before. If sent is true, the exchange reaches the
// wire now. Otherwise it has started when ticket says. t.mu is held.
//
// The lock of all starts makes listeners get them in the order of their times.
func (t *trace) begin(host *pace.Host, ticket *pace.Ticket, sent bool) {
	if t.running {
		return
	}
	t.report.starts.Lock()
	defer t.report.starts.Unlock()
	if sent {
		ticket.Sent(time.Now())
	}
	s := ticket.Report()
	t.running = true
	t.at = s.At
	t.report.tellStarted(t, host, s)
}

// answered is called when the headers of the response are there.
func (t *trace) answered(resp *http.Response) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = resp.StatusCode
	t.date = dateOf(resp.Header)
}

// dateOf returns the time at which a server has sent a response, by its clock. It is zero if the
// header does not say: if Date is malformed, or if a cache has kept the response for some time (RFC
// 9111, section 5.1), so that Date is older.
func dateOf(h http.Header) time.Time {
	if age := h.Get("Age"); age != "" && age != "0" {
		return time.Time{}
	}
	date, _ := http.ParseTime(h.Get("Date"))
	return date
}

// setSigned records whether the request was signed.
func (t *trace) setSigned(signed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signed = signed
}

// again is called when the request is about to be sent once more. err is the error of the last
// attempt. It is nil if that got a response, with status 429 or 503.
func (t *trace) again(host *pace.Host, err error) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		t.end(host, 0, err)
		t.kind = report.RequestRetry
		t.from = ""
	}
}

// ended is called when the exchange is over, before its place is given back. sent is false if the
// request was never written, for example because the connection was refused. Then no start is
// reported.
func (t *trace) ended(host *pace.Host, ticket *pace.Ticket, sent bool, bytes int64, err error) {
	if !t.report.events.Active() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if private := (*PrivateNetworkError)(nil); !t.running && errors.As(err, &private) {
		t.report.tellUnsent(t.url, err, t.numbers)
		return
	}
	if !sent && !t.running {
		return
	}
	t.begin(host, ticket, false)
	t.end(host, bytes, err)
}

// end reports the end of an exchange that has started. t.mu is held.
func (t *trace) end(host *pace.Host, bytes int64, err error) {
	t.report.tellAnswered(t, host, bytes, err)
	t.running = false
	t.status = 0
	t.date = time.Time{}
}
