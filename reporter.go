package collyrobots

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/stop"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// These types are part of package report. They have names here because most programs use them.
type (
	// A Decision says whether a URL may be fetched, and why.
	Decision = report.Decision
	// An Event reports something that happened on the wire, or that a request was not sent.
	Event = report.Event
	// Stats describes what a Plugin has done so far.
	Stats = report.Stats
)

// A reporter passes information to the user by the log and by events.
type reporter struct {
	log    *slog.Logger
	logged sync.Map // the messages that were passed to markLogged
	events *fanout.Broadcaster[report.Event]
	starts sync.Mutex // held while an EventStarted is made and sent
}

// newReporter returns a reporter that uses log and has no listeners.
func newReporter(log *slog.Logger) *reporter {
	return &reporter{log: log, events: newEvents(log)}
}

// Bits of pace.Host.Mark for messages that were logged about a host. Bits 6 and 7 belong to
// internal/netguard, and those from leftByBudget on to stats.go.
const (
	loggedDenial = 1 << iota
	loggedCrawlDelay
	loggedRetryAfter
	loggedBackOff
	loggedRequestRate
	loggedVisitTime
)

// warn logs a probable mistake in the program. It logs each message once.
func (r *reporter) warn(message string, args ...any) {
	if r.markLogged(message) {
		r.log.Warn(message, args...)
	}
}

// markLogged records that a message is logged, and reports whether that is new.
func (r *reporter) markLogged(message string) bool {
	_, logged := r.logged.LoadOrStore(message, true)
	return !logged
}

// The functions below build every Event. If there are no listeners, they return at once, and so do
// the methods of trace that call them.

// newEvents returns a Broadcaster for the events of a plugin.
func newEvents(log *slog.Logger) *fanout.Broadcaster[report.Event] {
	missed := func(count int) report.Event {
		return report.Event{Kind: report.EventMissed, Time: time.Now(), Count: count}
	}
	size := func(e report.Event) int { return len(e.Body) + ruleSize*len(e.Tags) }
	return fanout.New(missed, size, log)
}

// ruleSize is about the size of a robotstags.Rule in memory.
const ruleSize = 128

// tellTags reports the rules of a page.
func (r *reporter) tellTags(u *url.URL, tags robotstags.Tags, of numbers) {
	if !r.events.Active() {
		return
	}
	r.events.Send(report.Event{
		Kind:      report.EventTags,
		Time:      time.Now(),
		Host:      hostname.Of(u),
		URL:       u.Redacted(),
		Collector: of.collector,
		Request:   of.request,
		Tags:      tags,
	})
}

// tellStart sends the event about a start that start returns. A lock of all starts makes listeners
// get them in the order of their times.
func (r *reporter) tellStart(start func() report.Event) {
	r.starts.Lock()
	defer r.starts.Unlock()
	r.events.Send(start())
}

// tellDenied reports a request that is denied with a Decision.
func (r *reporter) tellDenied(host *pace.Host, d report.Decision, of numbers) {
	if !r.events.Active() {
		return
	}
	e := eventDenied(host.Name(), d.URL, of)
	e.Decision = &d
	r.events.Send(e)
}

// tellUnsent reports a request for u that was not sent for a reason other than robots.txt: because
// of its address, because of the site that led to it, or because it would have waited too long.
func (r *reporter) tellUnsent(u *url.URL, err error, of numbers) {
	if !r.events.Active() {
		return
	}
	e := eventDenied(hostname.Of(u), u.Redacted(), of)
	e.Err = redact.Error(err)
	r.events.Send(e)
}

func eventDenied(host, url string, of numbers) report.Event {
	return report.Event{Kind: report.EventDenied, Time: time.Now(), Host: host, URL: url, Collector: of.collector, Request: of.request}
}

// noticeable is the shortest wait that is reported as report.EventWaiting.
const noticeable = 100 * time.Millisecond

// tellWaiting reports that a page is about to wait for its host, unless the wait is too short. It
// reports whether it has sent an event.
func (r *reporter) tellWaiting(now time.Time, host *pace.Host, u *url.URL, of numbers) bool {
	if !r.events.Active() {
		return false
	}
	s := host.Stats(now)
	wait := max(s.NextStart.Sub(now), 0) + time.Duration(max(s.Waiting, s.GroupWaiting))*s.Delay
	if wait < noticeable {
		return false
	}
	e := eventOfPace(report.EventWaiting, now, s)
	e.URL = u.Redacted()
	e.Collector = of.collector
	e.Request = of.request
	e.Count = s.Waiting + 1
	e.Until = s.NextStart
	r.events.Send(e)
	return true
}

// tellParked reports that a page waits in a urlstore.Store, unless the wait is too short. s is about
// its host, and waiting is the number of pages that wait for the host.
func (r *reporter) tellParked(now time.Time, s pace.Stats, waiting int, u *url.URL, of numbers) {
	wait := max(s.NextStart.Sub(now), 0) + time.Duration(max(waiting, s.GroupWaiting)-1)*s.Delay
	if wait < noticeable {
		return
	}
	e := eventOfPace(report.EventWaiting, now, s)
	e.URL = u.Redacted()
	e.Collector = of.collector
	e.Request = of.request
	e.Count = waiting
	e.OnDisk = true
	e.Until = s.NextStart
	r.events.Send(e)
}

// tellUnrecorded reports that the urlstore.Store of Frontier has failed to record p or its result. p is
// nil if it has failed otherwise.
func (r *reporter) tellUnrecorded(p *urlstore.Page, err error) {
	if !r.events.Active() {
		return
	}
	e := report.Event{Kind: report.EventUnrecorded, Time: time.Now(), Err: redact.Error(err)}
	if p != nil {
		e.Host = p.Host
		e.URL = redact.Text(p.URL)
	}
	r.events.Send(e)
}

// tellUnchanged reports a page that has not changed. status is 0 if it was not requested.
func (r *reporter) tellUnchanged(host *pace.Host, u *url.URL, status int, of numbers) {
	if !r.events.Active() {
		return
	}
	r.events.Send(report.Event{
		Kind:      report.EventUnchanged,
		Time:      time.Now(),
		Host:      host.Name(),
		URL:       u.Redacted(),
		Collector: of.collector,
		Request:   of.request,
		Status:    status,
	})
}

// tellPace reports that a response to a request for u has changed the pace of its host.
func (r *reporter) tellPace(kind report.EventKind, host *pace.Host, u *url.URL, status int, of numbers) {
	if !r.events.Active() {
		return
	}
	now := time.Now()
	s := host.Stats(now)
	e := eventOfPace(kind, now, s)
	e.URL = u.Redacted()
	e.Collector = of.collector
	e.Request = of.request
	e.Status = status
	e.Until = s.NotBefore
	r.events.Send(e)
}

// tellRefused reports that a host has refused requests in a row, the last of them for u. status is
// that of the last response, or 0 if there was the error err instead.
func (r *reporter) tellRefused(host *pace.Host, u *url.URL, status int, err error, s stop.Status, of numbers) {
	if !r.events.Active() {
		return
	}
	r.events.Send(report.Event{
		Kind:      report.EventRefused,
		Time:      time.Now(),
		Host:      host.Name(),
		URL:       u.Redacted(),
		Collector: of.collector,
		Request:   of.request,
		Status:    status,
		Err:       redact.Error(err),
		Count:     s.InRow,
		Until:     s.Until,
	})
}

// eventOfPace returns an event with the delay of a host.
func eventOfPace(kind report.EventKind, now time.Time, s pace.Stats) report.Event {
	return report.Event{Kind: kind, Time: now, Host: s.Host, Delay: s.Delay, Source: report.DelaySource(s.Cause), Line: s.Line}
}

// tellRobots reports a robots.txt that was read, or could not be. change may be nil. option is the
// name of the option that decides in place of the file, or "".
func (r *reporter) tellRobots(u policy.Update, change *report.RobotsChange, option string) {
	if !r.events.Active() {
		return
	}
	pol := u.Policy
	server, _ := policy.Server(pol.Authority)
	r.events.Send(report.Event{
		Kind:         report.EventRobots,
		Time:         time.Now(),
		Host:         server,
		URL:          pol.RobotsURL(),
		Status:       pol.Status(),
		Err:          redact.Error(pol.Err()),
		RobotsStatus: report.RobotsStatus(pol.RobotsStatus.String()),
		Option:       option,
		Fetched:      pol.Fetched(),
		Stored:       u.Stored,
		Hash:         pol.Sum(),
		Body:         u.Body,
		Change:       change,
	})
}

// tellSitemap reports a sitemap that was read, or could not be.
func (r *reporter) tellSitemap(sitemap string, entries int, err error) {
	if !r.events.Active() {
		return
	}
	e := report.Event{Kind: report.EventSitemap, Time: time.Now(), URL: sitemap, Count: entries, Err: redact.Error(err)}
	if u, err := url.Parse(sitemap); err == nil {
		e.Host = hostname.Of(u)
	}
	r.events.Send(e)
}

// changeOf returns the change from one policy to the next.
func changeOf(old, new *policy.Policy) *report.RobotsChange {
	return &report.RobotsChange{
		Authority: new.Authority.String(),
		RobotsURL: new.RobotsURL(),
		Old:       stateOf(old),
		New:       stateOf(new),
	}
}

func stateOf(p *policy.Policy) report.RobotsState {
	return report.RobotsState{
		RobotsStatus: report.RobotsStatus(p.RobotsStatus.String()),
		Status:       p.Status(),
		Err:          p.Err(),
		Fetched:      p.Fetched(),
		CrawlDelay:   p.CrawlDelay(),
		Sitemaps:     p.Sitemaps(),
	}
}

// A debuggers holds the debuggers of the attached collectors. They get the events of the plugin as
// events of Colly.
type debuggers struct {
	// mu protects known.
	mu    sync.Mutex
	known []debugger
}

// A debugger is called only from the hooks of its collectors, on the goroutines on which Colly
// calls it. A debugger that works without a lock under Colly therefore needs none here.
type debugger struct {
	debug.Debugger
	events *fanout.Listener[Event]
}

// add adds the debugger of a collector and returns its listener, or nil if the collector has none.
// The hooks of the collector deliver the events. A debugger that several collectors share gets each
// event once.
func (ds *debuggers) add(h *backend.Handle, r *reporter) *fanout.Listener[Event] {
	d := h.Debugger()
	if d == nil {
		return nil
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, known := range ds.known {
		if backend.SameDebugger(known.Debugger, d) {
			return known.events
		}
	}
	l := r.events.ListenOnDemand(func(e Event) { d.Event(debugEvent(e)) })
	ds.known = append(ds.known, debugger{Debugger: d, events: l})
	return l
}

// deliver delivers the remaining events to all debuggers. No collector may be using them.
func (ds *debuggers) deliver() {
	ds.mu.Lock()
	known := slices.Clone(ds.known)
	ds.mu.Unlock()
	for _, d := range known {
		d.events.Deliver()
	}
}

// debugEvent converts an event to Colly's type. The values are the members of the event in JSON. A
// duration is a text such as "1.5s", a decision is one line, and of a change there is only the old
// status.
func debugEvent(e Event) *debug.Event {
	values := membersOf(&e)
	for _, name := range []string{"kind", "time", "collector", "request", "change"} {
		delete(values, name)
	}
	for name, d := range map[string]time.Duration{"gap": e.Gap, "delay": e.Delay, "took": e.Took} {
		if d != 0 {
			values[name] = d.String()
		}
	}
	if e.Decision != nil {
		values["decision"] = e.Decision.String()
	}
	if e.Change != nil {
		values["old"] = string(e.Change.Old.RobotsStatus)
	}
	return &debug.Event{Type: "robots." + string(e.Kind), RequestID: e.Request, CollectorID: e.Collector, Values: values}
}

// membersOf returns the members of the JSON object of e. A string has no quotes, and other values
// are in JSON. If e cannot be encoded, the only member is "error".
func membersOf(e *Event) map[string]string {
	var members map[string]json.RawMessage
	text, err := e.AppendJSON(nil)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	json.Unmarshal(text, &members) // AppendJSON has written an object
	values := make(map[string]string, len(members))
	for name, member := range members {
		var text string
		if json.Unmarshal(member, &text) != nil {
			text = string(member)
		}
		values[name] = text
	}
	return values
}
