package judge

import (
	"log/slog"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
)

// A Delays applies the delays that robots.txt files request to their hosts.
type Delays struct{ *exchange.Wire }

// learn applies the crawl delay of a robots.txt that was just read to its host. It is called before
// the last request for the file gives its place back, so that no other request comes in between.
func (l Delays) learn(s *HostSettings, reader string, pol *policy.Policy) {
	now := time.Now()
	server, _ := policy.Server(pol.Authority)
	host := l.Hosts.At(now, server)
	l.setCrawlDelay(now, host, s, reader, pol)
	if pol.LastSchedule() == nil {
		host.SetSchedule(now, sourceOf(pol.Authority, reader, 0), nil, pol.Expires()) // a file before it may have had one
	}
	host.Save()
}

// found is called for a site whose robots.txt is in the Store, because another process, such as an
// earlier run, has put it there. private says that the file came from a private address.
func (l Delays) found(a dialect.Authority, private bool) {
	if private {
		server, _ := policy.Server(a)
		l.Networks.SetPrivate(l.Hosts.At(time.Now(), server))
	}
}

// private reports whether the server of an authority is at a private address.
func (l Delays) private(a dialect.Authority) bool {
	server, _ := policy.Server(a)
	return l.Networks.Private(server)
}

// setCrawlDelay applies the crawl delay of a robots.txt to its host, and returns its source, or the
// zero Source if the file requests no delay and the host has never had one. If the file cannot be
// read now, the delay of the last one that was read applies.
func (l Delays) setCrawlDelay(now time.Time, host *pace.Host, s *HostSettings, reader string, pol *policy.Policy) pace.Source {
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
func (l Delays) warnOfDelay(s *HostSettings, file string, delay time.Duration) {
	switch {
	case s.Skips(delay):
		l.Report.Log.Warn("crawl delay is longer than SkipCrawlDelayAbove, host is skipped", "robots", file, "delay", delay, "limit", s.SkipCrawlDelayAbove)
	case s.Caps(delay):
		l.Report.Log.Warn("crawl delay is longer than MaxCrawlDelay, capped", "robots", file, "delay", delay, "limit", s.MaxCrawlDelay)
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

// LogLongWait logs, once for each host and cause, that the pages of a host wait for long. It is
// called when one more page is about to wait.
func (l Delays) LogLongWait(now time.Time, host *pace.Host, pol *policy.Policy) {
	if !host.BusyFor(now, longWait) {
		return
	}
	s := host.Stats(now)
	if s.Source == report.SourcePaused {
		return // Plugin.Pause logs it
	}
	cause, option, first := l.causeOfWait(host, s.Source)
	if !first {
		return
	}
	l.Report.Log.Info("pages wait long for their host because of "+cause, "host", s.Host, "robots", fileOf(pol),
		"count", s.Waiting+1, "delay", s.Delay, "until", s.NextStart, option)
}

// causeOfWait returns the name of the cause of a delay and the option that changes it, if there is
// one. first reports whether the cause was not logged before. From now on it counts as logged.
func (l Delays) causeOfWait(host *pace.Host, c report.DelaySource) (cause string, option slog.Attr, first bool) {
	switch c {
	case report.SourceRetryAfter:
		return "Retry-After", slog.Attr{}, host.MarkPace(reporter.LoggedRetryAfter) // no option shortens it
	case report.SourceBackOff:
		return "status 429 or 503", slog.String("option", "MaxBackOff"), host.MarkPace(reporter.LoggedBackOff)
	case report.SourceRequestRate:
		return "Request-rate", slog.String("option", "MaxCrawlDelay"), host.MarkPace(reporter.LoggedRequestRate)
	case report.SourceVisitTime:
		return "Visit-time", slog.Attr{}, host.MarkPace(reporter.LoggedVisitTime) // no option shortens it
	case report.SourceMaxRate:
		return "MaxRate", slog.String("option", "MaxRate"), l.Report.MarkLogged("MaxRate") // it applies to all hosts
	case report.SourceHours:
		return "CrawlHours", slog.String("option", "CrawlHours"), l.Report.MarkLogged("CrawlHours") // it may apply to all hosts
	case report.SourceAdaptive:
		return "their response time", slog.String("option", "AdaptiveDelay"), l.Report.MarkLogged("AdaptiveDelay")
	case report.SourceMinDelay:
		return "MinDelay", slog.String("option", "MinDelay"), l.Report.MarkLogged("MinDelay") // it applies to all hosts
	}
	return "Crawl-delay", slog.String("option", "MaxCrawlDelay"), host.MarkPace(reporter.LoggedCrawlDelay)
}
