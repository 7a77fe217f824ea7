package feed

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/sitemap"
)

// kindOf returns the text that faults of the same kind have in common: the text of the first cause
// of err, without the URLs of the file.
func (x *file) kindOf(err error) string {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return strings.NewReplacer(x.loc, "", x.name(), "").Replace(err.Error())
}

// failed counts and logs that a file could not be fetched.
func (w *walk) failed(x *file) {
	var limit *sitemap.LimitError
	switch {
	case errors.As(x.err, &limit):
		w.reachLimit(limit)
		return
	case !errors.Is(x.err, ErrElsewhere):
		w.spent.spend(func(s *spending) { s.cost.Failures++ })
	}
	w.count(FilesFailed)
	if w.guessAgain(x) {
		return
	}
	w.drop(Errors, x.name())
	w.warn(x, x.err, true)
	w.callRead(x)
}

// callRead calls Options.Read for a file that is finished.
func (w *walk) callRead(x *file) {
	if w.Read != nil && !w.ended() {
		w.Read(x.name(), x.entries, x.err)
	}
}

// guessAgain reports whether no file names x, which was only looked for at a usual location. If so,
// the walk looks at the next location.
func (w *walk) guessAgain(x *file) bool {
	if len(x.guess) == 0 {
		return false
	}
	w.Log.Debug("no sitemap at a usual location", "sitemap", x.name())
	if rest := x.guess[1:]; len(rest) > 0 {
		w.enqueue(job{loc: rest[0], site: x.site, scope: x.scope, guess: rest})
	}
	return true
}

// fault counts and logs a fault of a file that was fetched.
func (w *walk) fault(x *file, err error) {
	var fault *sitemap.Error
	lost := errors.As(err, &fault) && fault.Severity == sitemap.SeverityFile
	if lost {
		x.broken = true
		x.err = err
		if errors.Is(err, sitemap.ErrNotSitemap) {
			x.unreadable = true
			w.count(FilesFailed)
			w.spent.spend(func(s *spending) { s.cost.Failures++ })
			if w.guessAgain(x) {
				return
			}
			if x.coding != "" {
				err = fmt.Errorf("%w; its Content-Encoding is %q", err, x.coding)
			}
		} else {
			w.count(FilesCut)
		}
	}
	w.drop(Errors, cmp.Or(fault.Text, x.name()))
	w.warn(x, err, lost)
}

// warn logs a fault of a file. lost says that the file, or the rest of it, cannot be read.
func (w *walk) warn(x *file, err error, lost bool) {
	w.tally.warnKind(x.kindOf(err), "sitemap fault", "sitemap", x.name(), "error", err)
	if lost && w.lost != nil {
		w.lost(fmt.Errorf("%s: %w", x.name(), err))
	}
}

// warnOutside logs, once for a file, that some of its pages were out of scope. It names the scope
// that would include most of them, or the narrowest of several such scopes.
func (w *walk) warnOutside(x *file) {
	o := w.outside
	w.outside = outside{}
	if o.count == 0 {
		return
	}
	best := ScopeHost
	for kind := range o.kinds {
		if o.kinds[kind].count > o.kinds[best].count {
			best = Scope(kind)
		}
	}
	w.tally.warnKind("out of scope", "sitemap lists pages of other sites, skipping them",
		"sitemap", x.name(), "count", o.count, "url", redact.Text(o.kinds[best].example), "option", "Scope: "+best.String())
}
