package exchange

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// errDropped is the Event.Err of a request that net/http sends again.
var errDropped = errors.New("collyrobots: the connection was dropped before an answer")

// A Trace sends the events of one exchange: report.EventStarted and report.EventAnswered each time that the
// request is sent.
//
// An exchange has started when its headers are written, which *http.Transport reports. With another
// RoundTripper it has started when it is handed over.
type Trace struct {
	Report       *reporter.Reporter
	URL          *url.URL           // not changed by an attempt
	Kind         report.RequestKind // Event.RequestKind
	From         string             // Event.From
	reporter.IDs                    // changed by Continue while an attempt may be under way
	Ready        time.Time          // when the last wait has ended; zero if it has not, and for requests of the plugin's own

	// mu protects the fields below it. It is held while an event of the exchange is sent, so that the
	// events have the order of what happened.
	mu       sync.Mutex
	url      string           // Event.URL; "" before it is needed
	running  bool             // report.EventStarted was sent, and report.EventAnswered was not
	at       time.Time        // of the start; valid while running
	status   int              // of the response; 0 before that
	signed   bool             // the request was signed when it was last sent
	date     time.Time        // Event.Date
	more     bool             // a redirect may be followed
	failed   bool             // Event.Failed
	reported bool             // an event says why the request is not sent again
	remote   net.Addr         // of the connection; nil if it is not known
	decision *report.Decision // the decision that allows the request; nil for requests of the plugin's own
}

// IsOn reports whether there is a listener for the events of the exchange.
func (t *Trace) IsOn() bool { return t.Report.Events.Active() }

// Decide records the decision that allows the request, which is about to start.
func (t *Trace) Decide(d report.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decision = &d
	t.url = d.URL
}

// madeFor records the page that a request of the plugin's own is made for, which may be nil.
func (t *Trace) madeFor(page *reporter.Page) {
	t.Page = page
	if page != nil {
		t.Since = page.Began
	}
}

// Continue records the end of the wait for another attempt, which may start now. of says how long the
// wait was.
func (t *Trace) Continue(of reporter.IDs, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.IDs = of
	t.Ready = now
}

// GiveUp records that there is no other attempt. reported says whether there was an event about that.
func (t *Trace) GiveUp(of reporter.IDs, reported bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.IDs = of
	t.Ready = time.Time{}
	t.reported = reported
}

// Fail records that the page has failed.
func (t *Trace) Fail() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
}

// HandOn records that the page goes on with a redirect.
func (t *Trace) HandOn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more = true
}

// license reports that the response asks for a license.
func (t *Trace) license(host *pace.Host) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.event(report.EventLicense, host)
	e.Status = http.StatusUnauthorized
	t.Report.Events.Send(e)
}

// connected is called when there is a connection to an address.
func (t *Trace) connected(addr net.Addr) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remote = addr
}

// started is called when the exchange is on the wire.
func (t *Trace) started(host *pace.Host, ticket *pace.Ticket) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(host, ticket, true)
}

// begin reports the start, unless it was reported before. If sent is true, the exchange reaches the
// wire now. Otherwise it has started when ticket says. t.mu is held.
func (t *Trace) begin(host *pace.Host, ticket *pace.Ticket, sent bool) {
	if t.running {
		return
	}
	t.Report.TellStart(func() *report.Event {
		if sent {
			ticket.Sent(time.Now())
		}
		s := ticket.Report()
		t.running = true
		t.at = s.At
		return t.start(host, s)
	})
}

// start returns the event about a start. t.mu is held.
func (t *Trace) start(host *pace.Host, s pace.Start) *report.Event {
	e := t.event(report.EventStarted, host)
	e.Time = s.At
	e.From = t.From
	e.Group = s.Group
	e.Gap = s.Gap
	e.Delay = s.Delay
	e.Source = s.Source
	e.Line = s.Line
	e.Decision = t.decision
	t.describeWait(e)
	return e
}

// notStarted reports a request that has reached the transport but was not sent, because of err. t.mu is
// held.
func (t *Trace) notStarted(kind report.EventKind, host *pace.Host, err error) {
	e := t.event(kind, host)
	e.Err = redact.Error(err)
	e.Failed = t.failed
	t.describeWait(e)
	t.Report.Events.Send(e)
}

// describeWait sets the fields of e that say how long the request has waited until e. t.mu is held.
func (t *Trace) describeWait(e *report.Event) {
	e.RobotsWait = t.Robots
	switch {
	case t.Since.IsZero():
	case t.Ready.IsZero():
		e.Waited = e.Time.Sub(t.Since)
	default:
		e.Waited = t.Ready.Sub(t.Since)
		e.Connect = max(0, e.Time.Sub(t.Ready))
	}
}

// event returns an Event of the exchange, with the current time. t.mu is held.
func (t *Trace) event(kind report.EventKind, host *pace.Host) *report.Event {
	if t.url == "" {
		t.url = t.URL.Redacted()
	}
	e := &report.Event{
		Kind:        kind,
		Time:        time.Now(),
		Host:        host.Name(),
		URL:         t.url,
		RequestKind: t.Kind,
		Collector:   t.Collector,
		Request:     t.Request,
	}
	t.Page.Describe(e)
	return e
}

// answered is called when the headers of the response are there. d parses its date.
func (t *Trace) answered(resp *http.Response, d *dates) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = resp.StatusCode
	t.date = d.of(resp.Header)
}

// A dates parses the field Date of responses. It keeps the last result, because most responses have
// the date of the one before.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	text string
	time time.Time
}

// of returns the time at which a server has sent a response, by its clock. It is zero if the header
// does not say: if Date is malformed, or if a cache has kept the response for some time (RFC 9111,
// section 5.1), so that Date is older.
func (d *dates) of(h http.Header) time.Time {
	if age := h.Get("Age"); age != "" && age != "0" {
		return time.Time{}
	}
	text := h.Get("Date")
	last := d.last.Load()
	if last != nil && last.text == text {
		return last.time
	}
	parsed, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}
	}
	d.last.Store(&date{text: strings.Clone(text), time: parsed})
	return parsed
}

// setSigned records whether the request was signed.
func (t *Trace) setSigned(signed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signed = signed
}

// again is called when the request is about to be sent once more. err is the error of the last
// attempt. It is nil if that got a response, with status 429 or 503.
func (t *Trace) again(host *pace.Host, err error) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running {
		t.end(host, 0, err, true)
		t.Kind = report.RequestRetry
		t.From = ""
	}
}

// ended is called when the exchange is over, before its place is given back. sent is false if the
// request was never written, for example because the connection was refused. Then no start is
// reported.
func (t *Trace) ended(host *pace.Host, ticket *pace.Ticket, sent bool, bytes int64, err error) {
	if !t.IsOn() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if private := (*report.PrivateNetworkError)(nil); !t.running && errors.As(err, &private) {
		t.notStarted(report.EventDenied, host, err)
		return
	}
	if !sent && !t.running {
		if !t.reported {
			t.notStarted(report.EventUnsent, host, err)
		}
		return
	}
	t.begin(host, ticket, false)
	t.end(host, bytes, err, t.more)
}

// end reports the end of an exchange that has started. more is Event.More. t.mu is held.
func (t *Trace) end(host *pace.Host, bytes int64, err error, more bool) {
	e := t.event(report.EventAnswered, host)
	e.Status = t.status
	e.Signed = t.signed
	e.Date = t.date
	if t.remote != nil {
		e.Remote = t.remote.String()
	}
	e.Bytes = bytes
	e.Took = e.Time.Sub(t.at)
	e.Err = redact.Error(err)
	e.More = more
	e.Failed = t.failed
	t.Report.Events.Send(e)
	t.running = false
	t.status = 0
	t.date = time.Time{}
}
