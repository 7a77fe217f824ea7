// Package stop decides when a host that refuses requests gets no more requests. It only counts: the
// time is an argument, and the caller decides which responses are refusals and which are successes.
//
// A host is stopped after a number of refusals in a row. An hour later, one request may be sent as
// a probe. If the host refuses the probe, the time until the next probe doubles, up to a day. If
// the probe succeeds, the stop ends. The results of other requests that are still in flight do not
// change a stop.
//
//	status, denied := hosts.Denied(now, "example.com")     // before a request waits
//	probe, ok := hosts.Start(now, "example.com")           // just before it is sent
//	status, notable := hosts.Refused(now, "example.com", 5, probe) // or Succeeded, or neither
//
// The package knows hosts only by name, and neither HTTP nor robots.txt.
package stop

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstStop is the time from the stop to the first probe, and lastStop the longest time between
	// two probes.
	firstStop = time.Hour
	lastStop  = 24 * time.Hour

	// Many is the number of refusals in a row that is notable although it does not stop the host.
	Many = 10
)

const (
	// keepAll is the number of hosts that are kept without checking whether they are still needed.
	keepAll = 1 << 16
	// A host that is not stopped can be forgotten when longAgo has passed since its last refusal. A
	// stopped host can be forgotten when lastStop has passed since a probe was due.
	longAgo = time.Hour
)

// A Status has the refusals of a host since its last success. It is zero if there are none.
type Status struct {
	InRow int // refusals since the last success
	// Since is the time when the host was stopped. If it is not stopped, Since and Until are zero.
	Since time.Time
	// Until is the time when the next probe may be sent.
	Until time.Time
}

// Stopped reports whether the host gets no requests except probes.
func (s Status) Stopped() bool { return !s.Since.IsZero() }

// A record has the state of one host.
type record struct {
	Status
	pause time.Duration // the time from one probe to the next
	last  time.Time     // of the last refusal
}

// Hosts has the hosts that have refused a request and have not accepted one since. The zero value
// is empty. All methods may be called from any goroutine.
type Hosts struct {
	count atomic.Int64 // len(byName), which is read without the lock

	// mu protects byName and limit.
	mu     sync.Mutex
	byName map[string]*record
	limit  int // sweep is called when byName has this length and at least keepAll
}

// None reports whether no host has a Status. It takes no lock.
func (h *Hosts) None() bool { return h.count.Load() == 0 }

// Status returns the Status of a host.
func (h *Hosts) Status(host string) Status {
	if h.None() {
		return Status{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[host]
	if r == nil {
		return Status{}
	}
	return r.Status
}

// Denied reports whether a host is stopped at now, and no probe is due. It changes nothing.
func (h *Hosts) Denied(now time.Time, host string) (s Status, denied bool) {
	s = h.Status(host)
	return s, s.Stopped() && now.Before(s.Until)
}

// Start is called when a request is about to be sent. It returns false if the request must not be
// sent. If probe is true, the request is a probe, and no other request is sent before the next
// probe is due, unless NotSent is called.
func (h *Hosts) Start(now time.Time, host string) (probe, ok bool) {
	if h.None() {
		return false, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[host]
	switch {
	case r == nil || !r.Stopped():
		return false, true
	case now.Before(r.Until):
		return false, false
	}
	r.Until = now.Add(r.pause)
	return true, true
}

// NotSent records that the probe of a host was not sent, so that another request may be the probe
// at now.
func (h *Hosts) NotSent(now time.Time, host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[host]
	if r != nil && r.Stopped() {
		r.Until = now
	}
}

// Refused records that a host has refused a request. probe says that the request was a probe. The
// host is stopped after limit refusals in a row, or never if limit is 0.
//
// notable reports whether the host was stopped just now, has refused a probe, or has refused Many
// requests in a row and is not stopped.
func (h *Hosts) Refused(now time.Time, host string, limit int, probe bool) (s Status, notable bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[host]
	if r == nil {
		r = h.add(now, host)
	}
	r.InRow++
	r.last = now
	switch {
	case !r.Stopped() && limit > 0 && r.InRow >= limit:
		r.Since = now
		r.pause = firstStop
		r.Until = now.Add(r.pause)
		notable = true
	case !r.Stopped():
		notable = r.InRow == Many
	case probe:
		r.pause = min(2*r.pause, lastStop)
		r.Until = now.Add(r.pause)
		notable = true
	}
	return r.Status, notable
}

// Succeeded records that a host has accepted a request. probe says that the request was a probe.
// Requests that were sent before the host was stopped do not end the stop.
func (h *Hosts) Succeeded(host string, probe bool) {
	if h.None() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.byName[host]
	if r == nil || r.Stopped() && !probe {
		return
	}
	delete(h.byName, host)
	h.count.Store(int64(len(h.byName)))
}

// add adds a host. h.mu is held.
func (h *Hosts) add(now time.Time, host string) *record {
	if len(h.byName) >= max(h.limit, keepAll) {
		h.sweep(now)
	}
	if h.byName == nil {
		h.byName = make(map[string]*record)
	}
	r := new(record)
	h.byName[strings.Clone(host)] = r
	h.count.Store(int64(len(h.byName)))
	return r
}

// sweep forgets the hosts that are no longer needed. h.mu is held.
func (h *Hosts) sweep(now time.Time) {
	for host, r := range h.byName {
		if r.Stopped() && now.Sub(r.Until) > lastStop || !r.Stopped() && now.Sub(r.last) > longAgo {
			delete(h.byName, host)
		}
	}
	h.limit = 2 * len(h.byName)
}
