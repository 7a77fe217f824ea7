package collyrobots

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/fanout"
)

// A report tells the user what no call returns.
type report struct {
	log      *slog.Logger
	onDenied func(*colly.Request, error)
	heard    bool     // onDenied is the user's
	warned   sync.Map // what was warned of, by message
	events   *fanout.Broadcaster[Event]
}

// Bits of pace.Host.First that say what was logged about a host. The two highest bits belong to
// internal/netguard.
const (
	loggedDenial = 1 << iota
	loggedCrawlDelay
	loggedRetryAfter
	loggedBackOff
)

// notSent logs a request that is not sent, or would not be without a dry run. Without OnDenied, the
// first denial of each host has level INFO. Otherwise a crawl that may fetch nothing would not say so.
func (r *report) notSent(u *url.URL, err error, dryRun bool) {
	level, message := slog.LevelDebug, "request denied"
	denied := (*DisallowedError)(nil)
	switch {
	case dryRun:
		level = slog.LevelInfo
	case !r.heard && errors.As(err, &denied) && denied.first:
		level = slog.LevelInfo
		message = "request denied, the first of its host: set OnDenied to hear of the others"
	}
	r.log.Log(context.Background(), level, message, "url", u.Redacted(), "error", err, "sent", dryRun)
}

// warn says once what is wired in a way that its user would not want.
func (r *report) warn(what string, args ...any) {
	if r.first(what) {
		r.log.Warn(what, args...)
	}
}

// first reports whether it is called for the first time with what.
func (r *report) first(what string) bool {
	_, said := r.warned.LoadOrStore(what, true)
	return !said
}
