package feed

import (
	"log/slog"

	"github.com/collyrobots/collyrobots/dialect"
)

// A tally logs the faults of the sitemaps of one site. Of equal faults, it logs the first three and
// finally their total.
type tally struct {
	log    *slog.Logger
	site   dialect.Authority
	counts map[string]int
}

const (
	toldFirst = 3  // faults of one kind that are logged in full
	toldKinds = 16 // kinds of faults that are counted separately
)

// tell logs a fault of a kind. attrs are added after the attribute robots.
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

// sum logs the total of each kind of fault of which some were not logged.
func (t *tally) sum() {
	for kind, n := range t.counts {
		if n > toldFirst {
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
	if k.count++; k.count == 1 {
		k.example = loc
	}
}
