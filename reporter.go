package collyrobots

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/report"
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
// internal/netguard, and those from leftByBudget on to ended.go.
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
	denied := (*DisallowedError)(nil)
	switch {
	case dryRun:
		level = slog.LevelInfo
	case len(r.onDenied) == 0 && errors.As(err, &denied) && denied.first:
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
