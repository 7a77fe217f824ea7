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
)

// A report passes information to the user by the log, by OnDenied and by events.
type report struct {
	log      *slog.Logger
	onDenied []func(*colly.Request, error)
	logged   sync.Map // the messages that were passed to markLogged
	events   *fanout.Broadcaster[Event]
	licenses atomic.Int64 // the responses that have asked for a license
	unsent   unsentCounts
	starts   sync.Mutex // held while an EventStarted is made and sent
}

// newReport returns the report of a new plugin, which has logged the warnings about its options.
func newReport(config *config) *report {
	r := &report{
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
func (r *report) notSent(u *url.URL, err error, dryRun bool) {
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
func (r *report) warn(message string, args ...any) {
	if r.markLogged(message) {
		r.log.Warn(message, args...)
	}
}

// licenseRequired counts the response of x, which asks for a license, and sends the event. It
// returns a function that logs the first such response.
func (r *report) licenseRequired(x *exchange) (log func()) {
	r.licenses.Add(1)
	r.tellLicense(x)
	url := x.trace.url.Redacted()
	return func() {
		r.warn("a site asks for a license, so it does not send the page; Stats.LicenseRequired counts further responses of this kind", "url", url)
	}
}

// markLogged records that a message is logged, and reports whether that is new.
func (r *report) markLogged(message string) bool {
	_, logged := r.logged.LoadOrStore(message, true)
	return !logged
}
