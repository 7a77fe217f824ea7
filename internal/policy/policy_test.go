package policy_test

import (
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestPolicyWithoutFetch checks that a policy that is made from an authority and a status alone has
// no rules, times or errors.
func TestPolicyWithoutFetch(t *testing.T) {
	for _, m := range []policy.RobotsStatus{policy.Unreachable, policy.SiteDown, policy.NoRobots, policy.Rules} {
		p := &policy.Policy{Authority: dialect.Authority{Scheme: "http", Host: "a.test:81"}, RobotsStatus: m}
		if p.RobotsURL() != "http://a.test:81/robots.txt" {
			t.Errorf("%v: robots.txt at %s", m, p.RobotsURL())
		}
		if g := p.Group(); g == nil || g.Name() != "" || !g.Decide("/").Allowed {
			t.Errorf("%v: group %v, want one without rules", m, g)
		}
		if p.Sitemaps() != nil || p.CrawlDelay() != 0 || p.Status() != 0 || p.Err() != nil || p.Failing() || p.Stale() {
			t.Errorf("%v: got %+v, want no values", m, p)
		}
		if !p.Fetched().IsZero() || !p.Expires().IsZero() || p.Fresh(time.Now()) || p.Fresh(time.Time{}) {
			t.Errorf("%v: fetched %v, expires %v, want no times", m, p.Fetched(), p.Expires())
		}
	}
	if (*policy.Policy)(nil).Fresh(time.Now()) {
		t.Error("a nil policy is fresh")
	}
}
