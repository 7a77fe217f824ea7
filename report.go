package collyrobots

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"

	"github.com/gocolly/colly/v2"
)

// A report tells the user what no call returns.
type report struct {
	log      *slog.Logger
	onDenied func(*colly.Request, error)
	heard    bool     // onDenied is the user's
	warned   sync.Map // what was warned of, by message
	events   listeners
}

// What is remembered of each host: the bits of pace.Host.First.
const (
	toldDenial = 1 << iota // these were logged
	toldCrawlDelay
	toldRetryAfter
	toldBackOff
	seenPublic  // a connection to the host had a public address
	seenPrivate // a connection to the host had another address
)

// notSent logs what is not sent, or would not be in a dry run. The first denial of a host is for
// everybody to see: else a crawl that may do nothing does it without a word.
func (r *report) notSent(u *url.URL, err error, dryRun bool) {
	level, message := slog.LevelDebug, "request denied"
	if dryRun {
		level = slog.LevelInfo
	} else if denied := (*DisallowedError)(nil); errors.As(err, &denied) && denied.first {
		level = slog.LevelInfo
		if message += ", the first of its host"; !r.heard {
			message += ": set OnDenied to hear of the others"
		}
	}
	r.log.Log(context.Background(), level, message, "url", u.Redacted(), "error", err, "sent", dryRun)
}

// warn says once what is wired in a way that its user would not want.
func (r *report) warn(what string, args ...any) {
	if r.first(what) {
		r.log.Warn("collyrobots: "+what, args...)
	}
}

// first reports whether it is called for the first time with what.
func (r *report) first(what string) bool {
	_, said := r.warned.LoadOrStore(what, true)
	return !said
}
