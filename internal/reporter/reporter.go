// Package reporter passes information about a crawl to the user: messages to the log, and events to
// the listeners. Each Event is made here, or in package exchange if it is about one exchange. The
// package also makes the statistics of hosts from their counts.
package reporter

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

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

// IDs identify in events the page that a request belongs to, and say how long the request has waited.
type IDs struct {
	Collector, Request uint32        // the IDs of Colly; 0 for clones, clients and the plugin's own requests
	Page               *Page         // nil if there is none, or if there was no listener when it was requested
	Since              time.Time     // when the request was made, or its last attempt has ended; zero if it is made for no page
	Robots             time.Duration // Event.RobotsWait
}

// A Page is a page as events describe it. It is not changed.
type Page struct {
	number  uint64          // Event.Page
	context context.Context // Event.Context
	Began   time.Time       // when it was requested
}

// Describe sets the fields of e that identify the page. p may be nil.
func (p *Page) Describe(e *report.Event) {
	if p != nil {
		e.Page = p.number
		e.Context = p.context
	}
}

// A Reporter passes information to the user by the log and by events. If there are no listeners, the
// methods that make events return at once.
type Reporter struct {
	Log    *slog.Logger
	Events *fanout.Broadcaster[*report.Event]
	logged sync.Map      // the messages that were passed to MarkLogged
	starts sync.Mutex    // held while an EventStarted is made and sent
	pages  atomic.Uint64 // the number of the last Page
}

// New returns a Reporter that uses log and has no listeners.
func New(log *slog.Logger) *Reporter {
	return &Reporter{Log: log, Events: newEvents(log)}
}

// Bits of pace.Host.Mark for messages that were logged about a host. Bits 6 and 7 belong to
// internal/netguard.
const (
	LoggedDenial = 1 << iota
	LoggedCrawlDelay
	LoggedRetryAfter
	LoggedBackOff
	LoggedRequestRate
	LoggedVisitTime
)

// Bits of pace.Host.Mark that say why pages of a host were not sent.
const (
	LeftByBudget = 1 << (iota + 8)
	LeftByRefusals
	LeftByCancel
	LeftByClose
	LeftByThrottle
)

// Warn logs a probable mistake in the program. It logs each message once.
func (r *Reporter) Warn(message string, args ...any) {
	if r.MarkLogged(message) {
		r.Log.Warn(message, args...)
	}
}

// MarkLogged records that a message is logged, and reports whether that is new.
func (r *Reporter) MarkLogged(message string) bool {
	_, logged := r.logged.LoadOrStore(message, true)
	return !logged
}

// newEvents returns a Broadcaster for the events of a plugin.
func newEvents(log *slog.Logger) *fanout.Broadcaster[*report.Event] {
	missed := func(count int) *report.Event {
		return &report.Event{Kind: report.EventMissed, Time: time.Now(), Count: count}
	}
	size := func(e *report.Event) int { return len(e.Body) + ruleSize*len(e.Tags) }
	return fanout.New(missed, size, log)
}

// ruleSize is about the size of a robotstags.Rule in memory.
const ruleSize = 128

// NewPage returns a new page whose request has a context, or nil if there are no listeners.
func (r *Reporter) NewPage(ctx context.Context) *Page {
	if !r.Events.Active() {
		return nil
	}
	return &Page{number: r.pages.Add(1), context: ctx, Began: time.Now()}
}

// TellTags reports the rules of a page.
func (r *Reporter) TellTags(u *url.URL, tags robotstags.Tags, of IDs) {
	if !r.Events.Active() {
		return
	}
	r.Events.Send(&report.Event{
		Kind:      report.EventTags,
		Time:      time.Now(),
		Host:      hostname.Of(u),
		URL:       u.Redacted(),
		Collector: of.Collector,
		Request:   of.Request,
		Tags:      tags,
	})
}

// TellStart sends the event about a start that start returns. A lock of all starts makes listeners
// get them in the order of their times.
func (r *Reporter) TellStart(start func() *report.Event) {
	r.starts.Lock()
	defer r.starts.Unlock()
	r.Events.Send(start())
}

// TellDenied reports a request that is denied with a Decision. In a dry run it is sent all the same.
func (r *Reporter) TellDenied(host *pace.Host, d report.Decision, dryRun bool, of IDs) {
	if !r.Events.Active() {
		return
	}
	e := eventUnsent(report.EventDenied, host.Name(), d.URL, of)
	e.Decision = &d
	e.More = dryRun
	r.Events.Send(e)
}

// TellUnsent reports a request for u that was not sent for a reason other than robots.txt: because
// of its address, because of the site that led to it, or because it would have waited too long. failed
// is Event.Failed.
func (r *Reporter) TellUnsent(u *url.URL, err error, failed bool, of IDs) {
	r.tellFailure(report.EventDenied, u, err, failed, of)
}

// TellGivenUp reports a request for u that was given up before it reached the transport, because of err.
// failed is Event.Failed.
func (r *Reporter) TellGivenUp(u *url.URL, err error, failed bool, of IDs) {
	r.tellFailure(report.EventUnsent, u, err, failed, of)
}

// tellFailure sends an event of a kind about a request for u that was not sent because of err.
func (r *Reporter) tellFailure(kind report.EventKind, u *url.URL, err error, failed bool, of IDs) {
	if !r.Events.Active() {
		return
	}
	e := eventUnsent(kind, hostname.Of(u), u.Redacted(), of)
	e.Err = redact.Error(err)
	e.Failed = failed
	r.Events.Send(e)
}

// eventUnsent returns an Event about a request that was not sent.
func eventUnsent(kind report.EventKind, host, url string, of IDs) *report.Event {
	e := &report.Event{
		Kind:       kind,
		Time:       time.Now(),
		Host:       host,
		URL:        url,
		Collector:  of.Collector,
		Request:    of.Request,
		RobotsWait: of.Robots,
	}
	of.Page.Describe(e)
	if !of.Since.IsZero() {
		e.Waited = e.Time.Sub(of.Since)
	}
	return e
}

// noticeable is the shortest wait that is reported as report.EventWaiting.
const noticeable = 100 * time.Millisecond

// TellWaiting reports that a page is about to wait for its host, unless the wait is too short. It
// reports whether it has sent an event.
func (r *Reporter) TellWaiting(now time.Time, host *pace.Host, u *url.URL, of IDs) bool {
	if !r.Events.Active() {
		return false
	}
	s := host.Stats(now)
	wait := max(s.NextStart.Sub(now), 0) + time.Duration(max(s.Waiting, s.GroupWaiting))*s.Delay
	isPaused := s.Source == report.SourcePaused
	if max(wait, s.RateWait) < noticeable && !isPaused {
		return false
	}
	if s.RateWait > wait && !isPaused {
		s.Source = report.SourceMaxRate
		s.Line = 0
		s.NextStart = now.Add(s.RateWait)
	}
	e := eventOfPace(report.EventWaiting, now, s)
	e.URL = u.Redacted()
	e.Collector = of.Collector
	e.Request = of.Request
	e.Count = s.Waiting + 1
	e.Until = s.NextStart
	r.Events.Send(e)
	return true
}

// TellParked reports that a page waits in a urlstore.Store, unless the wait is too short. s is about
// its host, and waiting is the number of pages that wait for the host.
func (r *Reporter) TellParked(now time.Time, s pace.Stats, waiting int, u *url.URL, of IDs) {
	wait := max(s.NextStart.Sub(now), 0) + time.Duration(max(waiting, s.GroupWaiting)-1)*s.Delay
	if wait < noticeable && s.Source != report.SourcePaused {
		return
	}
	e := eventOfPace(report.EventWaiting, now, s)
	e.URL = u.Redacted()
	e.Collector = of.Collector
	e.Request = of.Request
	e.Count = waiting
	e.OnDisk = true
	e.Until = s.NextStart
	r.Events.Send(e)
}

// TellUnrecorded reports that the urlstore.Store of Frontier has failed to record p or its result. p is
// nil if it has failed otherwise.
func (r *Reporter) TellUnrecorded(p *urlstore.Page, err error) {
	if !r.Events.Active() {
		return
	}
	e := &report.Event{Kind: report.EventUnrecorded, Time: time.Now(), Err: redact.Error(err)}
	if p != nil {
		e.Host = p.Host
		e.URL = redact.Text(p.URL)
	}
	r.Events.Send(e)
}

// TellUnchanged reports a page that has not changed. status is 0 if it was not requested.
func (r *Reporter) TellUnchanged(host *pace.Host, u *url.URL, status int, of IDs) {
	if !r.Events.Active() {
		return
	}
	r.Events.Send(&report.Event{
		Kind:      report.EventUnchanged,
		Time:      time.Now(),
		Host:      host.Name(),
		URL:       u.Redacted(),
		Collector: of.Collector,
		Request:   of.Request,
		Status:    status,
	})
}

// TellPace reports that a response to a request for u has changed the pace of its host.
func (r *Reporter) TellPace(kind report.EventKind, host *pace.Host, u *url.URL, status int, of IDs) {
	if !r.Events.Active() {
		return
	}
	now := time.Now()
	s := host.Stats(now)
	e := eventOfPace(kind, now, s)
	e.URL = u.Redacted()
	e.Collector = of.Collector
	e.Request = of.Request
	e.Status = status
	e.Until = s.NotBefore
	r.Events.Send(e)
}

// TellRefused reports that a host has refused requests in a row, the last of them for u. status is
// that of the last response, or 0 if there was the error err instead.
func (r *Reporter) TellRefused(host *pace.Host, u *url.URL, status int, err error, s stop.Status, of IDs) {
	if !r.Events.Active() {
		return
	}
	r.Events.Send(&report.Event{
		Kind:      report.EventRefused,
		Time:      time.Now(),
		Host:      host.Name(),
		URL:       u.Redacted(),
		Collector: of.Collector,
		Request:   of.Request,
		Status:    status,
		Err:       redact.Error(err),
		Count:     s.InRow,
		Until:     s.Until,
	})
}

// eventOfPace returns an event with the delay of a host.
func eventOfPace(kind report.EventKind, now time.Time, s pace.Stats) *report.Event {
	return &report.Event{Kind: kind, Time: now, Host: s.Host, Delay: s.Delay, Source: s.Source, Line: s.Line}
}

// TellRobots reports a robots.txt that was read, or could not be. change may be nil. option is the
// name of the option that decides in place of the file, or "".
func (r *Reporter) TellRobots(u policy.Update, change *report.RobotsChange, option string) {
	if !r.Events.Active() {
		return
	}
	pol := u.Policy
	server, _ := policy.Server(pol.Authority)
	r.Events.Send(&report.Event{
		Kind:         report.EventRobots,
		Time:         time.Now(),
		Host:         server,
		URL:          pol.RobotsURL(),
		Status:       pol.Status(),
		Err:          redact.Error(pol.Err()),
		RobotsStatus: StatusOf(pol),
		Option:       option,
		Fetched:      pol.Fetched(),
		Stored:       u.Stored,
		Hash:         pol.Sum(),
		Body:         u.Body,
		Change:       change,
	})
}

// TellSitemap reports a sitemap that was read, or could not be.
func (r *Reporter) TellSitemap(sitemap string, entries int, err error) {
	if !r.Events.Active() {
		return
	}
	e := &report.Event{Kind: report.EventSitemap, Time: time.Now(), URL: sitemap, Count: entries, Err: redact.Error(err)}
	if u, err := url.Parse(sitemap); err == nil {
		e.Host = hostname.Of(u)
	}
	r.Events.Send(e)
}

// ChangeOf returns the change from one policy to the next.
func ChangeOf(old, new *policy.Policy) *report.RobotsChange {
	return &report.RobotsChange{
		Authority: new.Authority.String(),
		RobotsURL: new.RobotsURL(),
		Old:       StateOf(old),
		New:       StateOf(new),
	}
}

// StatusOf returns the status of a robots.txt.
func StatusOf(p *policy.Policy) report.RobotsStatus {
	if p.Walled() {
		return report.RobotsWalled
	}
	return report.RobotsStatus(p.RobotsStatus.String())
}

// StateOf returns the state of a robots.txt.
func StateOf(p *policy.Policy) report.RobotsState {
	return report.RobotsState{
		RobotsStatus: StatusOf(p),
		Status:       p.Status(),
		Err:          p.Err(),
		Fetched:      p.Fetched(),
		CrawlDelay:   p.CrawlDelay(),
		Sitemaps:     p.Sitemaps(),
	}
}
