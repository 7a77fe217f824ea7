package feed

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A tally logs what is wrong with a site's sitemaps: of equal faults the first three, and then how many
// there were.
type tally struct {
	log    *slog.Logger
	site   dialect.Authority
	counts map[string]int
}

const (
	toldFirst = 3
	toldKinds = 16 // of faults that are told apart
)

// tell logs a fault of a kind. attrs follow the key robots.
func (t *tally) tell(kind, message string, attrs ...any) {
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	if _, ok := t.counts[kind]; !ok && len(t.counts) >= toldKinds {
		kind = "other"
	}
	if t.counts[kind]++; t.counts[kind] <= toldFirst {
		t.log.Warn(message, append([]any{"robots", t.site.RobotsURL()}, attrs...)...)
	}
}

// sum logs how many faults there were of each kind that was not told in full.
func (t *tally) sum() {
	for kind, n := range t.counts {
		if n > toldFirst {
			t.log.Warn("sitemap faults in all", "robots", t.site.RobotsURL(), "error", kind, "count", n)
		}
	}
}

// kindOf returns what equal faults have in common: the text of their first cause, without URLs of the
// file.
func (x *file) kindOf(err error) string {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return strings.NewReplacer(x.loc, "", x.name(), "").Replace(err.Error())
}
