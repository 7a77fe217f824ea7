package collyrobots

import (
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A limiter keeps the pace of all hosts. http and https of a host are one host. Another port is
// another host. With the option PaceBy, several hosts share one pace.
type limiter struct {
	hosts  *pace.Hosts
	client *http.Client // for the plugin's own exchanges; if nil, they use the collector's client
	report *reporter
	shared bool // other processes share the pace: SharedPace

	stores atomic.Pointer[[]urlstore.Store] // get the pace of each host; nil if there are none

	signatures *signatures // nil if no request is signed

	groupings *groupings

	networks *netguard.Guard
	quota    *netguard.Quota // of requests to other sites
}

func newLimiter(s *settings, client *http.Client, allowPrivate bool, r *reporter) *limiter {
	hosts := pace.New(func(host string) *pace.Rules { return &s.of(host).pace })
	l := &limiter{hosts: hosts, client: client, report: r, groupings: newGroupings(s)}
	l.networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, allowPrivate)
	l.quota = netguard.NewQuota(feed.Registrable, feed.ErrElsewhere)
	return l
}

// share makes all hosts ask p for their turns.
func (l *limiter) share(p pace.Pacer) {
	l.hosts.Share(p)
	l.shared = true
}

// learn applies the crawl delay of a robots.txt that was just read to its host. It is called before
// the last request for the file gives its place back, so that no other request comes in between.
func (l *limiter) learn(s *hostSettings, reader string, pol *policy.Policy) {
	now := time.Now()
	server, _ := policy.Server(pol.Authority)
	host := l.hosts.At(now, server)
	l.setCrawlDelay(now, host, s, reader, pol)
	if pol.LastSchedule() == nil {
		host.SetSchedule(now, sourceOf(pol.Authority, reader, 0), nil, pol.Expires()) // a file before it may have had one
	}
}

// found is called for a site whose robots.txt is in the Store, because another process, such as an
// earlier run, has put it there. private says that the file came from a private address.
func (l *limiter) found(a dialect.Authority, private bool) {
	server, _ := policy.Server(a)
	host := l.hosts.At(time.Now(), server)
	if private {
		l.networks.SetPrivate(host)
	}
	if !l.shared {
		host.AskedBefore() // the Store does not say when
	}
}

// private reports whether the server of an authority is at a private address.
func (l *limiter) private(a dialect.Authority) bool {
	server, _ := policy.Server(a)
	return l.networks.Private(server)
}

// setCrawlDelay applies the crawl delay of a robots.txt to its host, and returns its source, or the
// zero Source if the file requests no delay and the host has never had one. If the file cannot be
// read now, the delay of the last one that was read applies.
func (l *limiter) setCrawlDelay(now time.Time, host *pace.Host, s *hostSettings, reader string, pol *policy.Policy) pace.Source {
	delay, line, known := pol.LastCrawlDelay()
	schedule := pol.LastSchedule()
	if delay == 0 && schedule == nil && host.Plain() {
		return pace.Source{} // most hosts have no delay from any source
	}
	source := sourceOf(pol.Authority, reader, line)
	if !known {
		return source
	}
	changed := host.SetCrawlDelay(now, source, delay, pol.Expires())
	if changed {
		l.warnOfDelay(s, fileOf(pol), delay)
	}
	if schedule != nil {
		host.SetSchedule(now, source, (*timetable)(schedule), pol.Expires())
	}
	return source
}

// A timetable is the schedule of a robots.txt as package pace uses it.
type timetable dialect.Schedule

// At implements pace.Schedule.
func (s *timetable) At(t time.Time) pace.Slot {
	rate, open, until := (*dialect.Schedule)(s).At(t)
	slot := pace.Slot{Delay: rate.Delay, DelayLine: rate.Line, Closed: !open, Until: until}
	if len(s.Visits) > 0 {
		slot.OpenLine = s.Visits[0].Line
	}
	return slot
}

// warnOfDelay warns of a crawl delay that is longer than the options accept.
func (l *limiter) warnOfDelay(s *hostSettings, file string, delay time.Duration) {
	switch {
	case s.skips(delay):
		l.report.log.Warn("crawl delay is longer than SkipAbove, host is skipped", "robots", file, "delay", delay, "limit", s.skipAbove)
	case s.caps(delay):
		l.report.log.Warn("crawl delay is longer than MaxDelay, capped", "robots", file, "delay", delay, "limit", s.maxDelay)
	}
}

// sourceOf returns the source of a crawl delay. The sites that one server has under several names
// are separate sources. The longest of their delays applies.
func sourceOf(a dialect.Authority, reader string, line int) pace.Source {
	if policy.IsVirtual(a) {
		reader += " " + a.Host
	}
	return pace.Source{Scheme: a.Scheme, Reader: reader, Line: line}
}

// longWait is the wait for a host after which its pages are logged as waiting.
const longWait = 10 * time.Second

// logLongWait logs, once for each host and cause, that the pages of a host wait for long. It is
// called when one more page is about to wait.
func (l *limiter) logLongWait(now time.Time, host *pace.Host, pol *policy.Policy) {
	if !host.BusyFor(now, longWait) {
		return
	}
	s := host.Stats(now)
	cause, option, first := l.causeOfWait(host, s.Cause)
	if !first {
		return
	}
	l.report.log.Info("pages wait long for their host because of "+cause, "host", s.Host, "robots", fileOf(pol),
		"count", s.Waiting+1, "delay", s.Delay, "until", s.NextStart, option)
}

// causeOfWait returns the name of the cause of a delay and the option that changes it, if there is
// one. first reports whether the cause was not logged before. From now on it counts as logged.
func (l *limiter) causeOfWait(host *pace.Host, c pace.Cause) (cause string, option slog.Attr, first bool) {
	switch c {
	case pace.RetryAfter:
		return "Retry-After", slog.Attr{}, host.MarkPace(loggedRetryAfter) // no option shortens it
	case pace.BackOff:
		return "status 429 or 503", slog.String("option", "MaxBackOff"), host.MarkPace(loggedBackOff)
	case pace.RequestRate:
		return "Request-rate", slog.String("option", "MaxDelay"), host.MarkPace(loggedRequestRate)
	case pace.VisitTime:
		return "Visit-time", slog.Attr{}, host.MarkPace(loggedVisitTime) // no option shortens it
	case pace.Hours:
		return "CrawlHours", slog.String("option", "CrawlHours"), l.report.markLogged("CrawlHours") // it may apply to all hosts
	case pace.Adaptive:
		return "their response time", slog.String("option", "AdaptiveDelay"), l.report.markLogged("AdaptiveDelay")
	case pace.MinDelay:
		return "MinDelay", slog.String("option", "MinDelay"), l.report.markLogged("MinDelay") // it applies to all hosts
	}
	return "Crawl-delay", slog.String("option", "MaxDelay"), host.MarkPace(loggedCrawlDelay)
}

// hostOf returns the name under which the host of u is known, or "" if it has none.
func hostOf(u *url.URL) string {
	a, _ := dialect.AuthorityOf(u)
	return a.Host
}
