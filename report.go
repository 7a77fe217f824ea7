package collyrobots

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	"github.com/gocolly/colly/v2"
)

// A report tells the user what no call returns.
type report struct {
	log      *slog.Logger
	onDenied func(*colly.Request, error)
	warned   sync.Map // what was warned of, by message
}

// notSent logs what is not sent, or would not be in a dry run.
func (r *report) notSent(u *url.URL, err error, dryRun bool) {
	level := slog.LevelDebug
	if dryRun {
		level = slog.LevelInfo
	}
	r.log.Log(context.Background(), level, "request denied", "url", u.Redacted(), "error", err, "sent", dryRun)
}

// warn says once what is wired in a way that its user would not want.
func (r *report) warn(what string, args ...any) {
	if _, said := r.warned.LoadOrStore(what, true); !said {
		r.log.Warn("collyrobots: "+what, args...)
	}
}
