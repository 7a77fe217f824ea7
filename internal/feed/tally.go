package feed

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/collyrobots/collyrobots/dialect"
)

// A tally logs the faults of the sitemaps of one site. Of each kind of fault, it logs the first
// three and finally the total.
type tally struct {
	log    *slog.Logger
	site   dialect.Authority
	counts map[string]int
}

const (
	loggedFirst = 3  // faults of one kind that are logged in full
	mostKinds   = 16 // kinds of faults that are counted separately
)

// warnKind logs a fault of a kind. attrs are added after the attribute robots.
func (t *tally) warnKind(kind, message string, attrs ...any) {
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	if _, ok := t.counts[kind]; !ok && len(t.counts) >= mostKinds {
		kind = "other"
	}
	t.counts[kind]++
	if t.counts[kind] <= loggedFirst {
		t.log.Warn(message, append([]any{"robots", t.site.RobotsURL()}, attrs...)...)
	}
}

// sum logs the total of each kind of fault, unless each fault of the kind was logged.
func (t *tally) sum() {
	for _, kind := range slices.Sorted(maps.Keys(t.counts)) {
		if n := t.counts[kind]; n > loggedFirst {
			t.log.Warn("total sitemap faults", "robots", t.site.RobotsURL(), "error", kind, "count", n)
		}
	}
}

// outside counts the pages that a file lists and may not list.
type outside struct {
	count int
	kinds [ScopeAny + 1]struct { // by the narrowest scope that would include the page
		count   int
		example string
	}
}

func (o *outside) add(needs Scope, loc string) {
	o.count++
	k := &o.kinds[needs]
	if k.count == 0 {
		k.example = loc
	}
	k.count++
}
