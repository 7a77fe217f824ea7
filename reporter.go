package collyrobots

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/fanout"
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

// A reporter passes information to the user by the log, by OnDenied and by events.
type reporter struct {
	log      *slog.Logger
	onDenied []func(*colly.Request, error)
	logged   sync.Map // the messages that were passed to markLogged
	events   *fanout.Broadcaster[Event]
	licenses atomic.Int64 // the responses that have asked for a license
	unsent   unsentCounts
	starts   sync.Mutex // held while an report.EventStarted is made and sent
}

// newReporter returns the reporter of a new plugin, which has logged the warnings about its options.
func newReporter(config *config) *reporter {
	r := &reporter{
		log:      config.log,
		onDenied: config.onDenied,
		events:   newEvents(config.log),
	}
	config.warnings(r.warn)
	for _, f := range config.onEvent {
		r.events.Listen(f)
	}
	for _, f := range config.onEveryEvent {
		r.events.ListenToAll(f)
	}
	return r
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

// notSent logs a request that is not sent, or would not be sent without the dry run. If the user
// has not set OnDenied, the first denial of each host has level INFO. Otherwise a crawl that may
// fetch nothing would log nothing.
func (r *reporter) notSent(u *url.URL, err error, dryRun bool) {
	level := slog.LevelDebug
	message := "request denied"
	o := outcomeOf(err)
	switch {
	case dryRun:
		level = slog.LevelInfo
	case len(r.onDenied) == 0 && o.denied != nil && o.denied.first:
		level = slog.LevelInfo
		message = "request denied, the first of its host; set OnDenied to get all denials"
	}
	r.log.Log(context.Background(), level, message, "url", u.Redacted(), "error", err, "sent", dryRun)
}

// warn logs a probable mistake in the program. It logs each message once.
func (r *reporter) warn(message string, args ...any) {
	if r.markLogged(message) {
		r.log.Warn(message, args...)
	}
}

// licenseRequired counts the response of x, which asks for a license, and sends the event. It
// returns a function that logs the first such response.
func (r *reporter) licenseRequired(x *exchange) (log func()) {
	r.licenses.Add(1)
	r.tellLicense(x)
	url := x.trace.url.Redacted()
	return func() {
		r.warn("a site asks for a license, so it does not send the page; Stats.LicenseRequired counts further responses of this kind", "url", url)
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
func newEvents(log *slog.Logger) *fanout.Broadcaster[Event] {
	missed := func(count int) Event { return Event{Kind: report.EventMissed, Time: time.Now(), Count: count} }
	size := func(e Event) int { return len(e.Body) + ruleSize*len(e.Tags) }
	return fanout.New(missed, size, log)
}

// ruleSize is about the size of a robotstags.Rule in memory.
const ruleSize = 128

// tellTags reports the rules of a page.
func (r *reporter) tellTags(page *colly.Response, tags robotstags.Tags, of numbers) {
	if !r.events.Active() {
		return
	}
	u := page.Request.URL
	r.events.Send(Event{
		Kind:      report.EventTags,
		Time:      time.Now(),
		Host:      hostOf(u),
		URL:       u.Redacted(),
		Collector: of.collector,
		Request:   of.request,
		Tags:      tags,
	})
}

// tellStarted reports that a request was sent.
func (r *reporter) tellStarted(t *trace, host *pace.Host, s pace.Start) {
	e := t.event(report.EventStarted, host)
	e.Time = s.At
	e.From = t.from
	e.Group = s.Group
	e.Gap = s.Gap
	e.Delay = s.Delay
	e.Source = report.DelaySource(s.Cause)
	e.Line = s.Line
	e.Decision = t.decision
	r.events.Send(e)
}

// tellAnswered reports the end of a request that has started. err is its error, or nil.
func (r *reporter) tellAnswered(t *trace, host *pace.Host, bytes int64, err error) {
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
	r.events.Send(e)
}

// event returns an Event of the exchange of t, with the current time.
func (t *trace) event(kind report.EventKind, host *pace.Host) Event {
	return Event{
		Kind:        kind,
		Time:        time.Now(),
		Host:        host.Name(),
		URL:         t.url.Redacted(),
		RequestKind: t.kind,
		Collector:   t.collector,
		Request:     t.request,
	}
}

// tellDenied reports a request that is denied with a Decision.
func (r *reporter) tellDenied(host *pace.Host, d Decision, of numbers) {
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
	e := eventDenied(hostOf(u), u.Redacted(), of)
	e.Err = redact.Error(err)
	r.events.Send(e)
}

func eventDenied(host, url string, of numbers) Event {
	return Event{Kind: report.EventDenied, Time: time.Now(), Host: host, URL: url, Collector: of.collector, Request: of.request}
}

// noticeable is the shortest wait that is reported as report.EventWaiting.
const noticeable = 100 * time.Millisecond

// tellWaiting reports that q is about to wait for its host, unless the wait is too short. It
// reports whether it has sent an event.
func (r *reporter) tellWaiting(q *request) bool {
	if !r.events.Active() {
		return false
	}
	s := q.host.Stats(q.now)
	wait := max(s.NextStart.Sub(q.now), 0) + time.Duration(max(s.Waiting, s.GroupWaiting))*s.Delay
	if wait < noticeable {
		return false
	}
	e := eventOfPace(report.EventWaiting, q.now, s)
	e.URL = q.target.url.Redacted()
	e.Collector = q.page.collector
	e.Request = q.numbers.request
	e.Count = s.Waiting + 1
	e.Until = s.NextStart
	r.events.Send(e)
	return true
}

// tellParked reports that the page of r waits in the urlstore.Store of Frontier, unless the wait is too
// short.
func (f *frontier) tellParked(r *colly.Request, p *urlstore.Page, of numbers) {
	if !f.report.events.Active() {
		return
	}
	now := time.Now()
	s := f.limiter.hosts.At(now, p.Host).Stats(now)
	waiting := s.Waiting + f.store.Waiting(p.Host)
	wait := max(s.NextStart.Sub(now), 0) + time.Duration(max(waiting, s.GroupWaiting)-1)*s.Delay
	if wait < noticeable {
		return
	}
	e := eventOfPace(report.EventWaiting, now, s)
	e.URL = r.URL.Redacted()
	e.Collector = of.collector
	e.Request = of.request
	e.Count = waiting
	e.OnDisk = true
	e.Until = s.NextStart
	f.report.events.Send(e)
}

// tellUnrecorded reports that the urlstore.Store of Frontier has failed to record p or its result. p is
// nil if it has failed otherwise.
func (r *reporter) tellUnrecorded(p *urlstore.Page, err error) {
	if !r.events.Active() {
		return
	}
	e := Event{Kind: report.EventUnrecorded, Time: time.Now(), Err: redact.Error(err)}
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
	r.events.Send(Event{
		Kind:      report.EventUnchanged,
		Time:      time.Now(),
		Host:      host.Name(),
		URL:       u.Redacted(),
		Collector: of.collector,
		Request:   of.request,
		Status:    status,
	})
}

// tellPace reports that a response has changed the pace of its host.
func (r *reporter) tellPace(kind report.EventKind, x *exchange, resp *http.Response) {
	if !r.events.Active() {
		return
	}
	now := time.Now()
	s := x.host.Stats(now)
	e := eventOfPace(kind, now, s)
	e.URL = x.trace.url.Redacted()
	e.Collector = x.trace.collector
	e.Request = x.trace.request
	e.Status = resp.StatusCode
	e.Until = s.NotBefore
	r.events.Send(e)
}

// tellLicense reports that the response of x asks for a license.
func (r *reporter) tellLicense(x *exchange) {
	if !r.events.Active() {
		return
	}
	e := x.trace.event(report.EventLicense, x.host)
	e.Status = http.StatusUnauthorized
	r.events.Send(e)
}

// tellRefused reports that the host of q has refused requests in a row. status is that of the last
// response, or 0 if there was the error err instead.
func (r *reporter) tellRefused(q *request, status int, err error, s stop.Status) {
	if !r.events.Active() {
		return
	}
	r.events.Send(Event{
		Kind:      report.EventRefused,
		Time:      time.Now(),
		Host:      q.host.Name(),
		URL:       q.target.url.Redacted(),
		Collector: q.page.collector,
		Request:   q.numbers.request,
		Status:    status,
		Err:       redact.Error(err),
		Count:     s.InRow,
		Until:     s.Until,
	})
}

// eventOfPace returns an event with the delay of a host.
func eventOfPace(kind report.EventKind, now time.Time, s pace.Stats) Event {
	return Event{Kind: kind, Time: now, Host: s.Host, Delay: s.Delay, Source: report.DelaySource(s.Cause), Line: s.Line}
}

// tellRobots reports a robots.txt that was read, or could not be. change may be nil. option is the
// name of the option that decides in place of the file, or "".
func (r *reporter) tellRobots(u policy.Update, change *report.RobotsChange, option string) {
	if !r.events.Active() {
		return
	}
	pol := u.Policy
	server, _ := policy.Server(pol.Authority)
	r.events.Send(Event{
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
	e := Event{Kind: report.EventSitemap, Time: time.Now(), URL: sitemap, Count: entries, Err: redact.Error(err)}
	if u, err := url.Parse(sitemap); err == nil {
		e.Host = hostOf(u)
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
