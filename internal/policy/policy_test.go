package policy_test

import (
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestPolicyWithoutFetch: a policy that somebody made says nothing that is not in it.
func TestPolicyWithoutFetch(t *testing.T) {
	for _, m := range []policy.RobotsStatus{policy.Unreachable, policy.SiteDown, policy.NoRobots, policy.Rules} {
		p := &policy.Policy{Authority: dialect.Authority{Scheme: "http", Host: "a.test:81"}, RobotsStatus: m}
		if p.RobotsURL() != "http://a.test:81/robots.txt" {
			t.Errorf("robots.txt at %s", p.RobotsURL())
		}
		if g := p.Group(); g == nil || g.Name() != "" || !g.Decide("/").Allowed {
			t.Errorf("group %v", g)
		}
		if p.Sitemaps() != nil || p.CrawlDelay() != 0 || p.HasCrawlDelay() || p.Status() != 0 || p.Err() != nil || p.Failing() || p.Stale() {
			t.Errorf("%v: %+v", m, p)
		}
		if !p.Fetched().IsZero() || !p.Expires().IsZero() || p.Fresh(time.Now()) || p.Fresh(time.Time{}) {
			t.Errorf("%v: fetched %v, expires %v", m, p.Fetched(), p.Expires())
		}
	}
	if (*policy.Policy)(nil).Fresh(time.Now()) {
		t.Error("nothing is fresh")
	}
}
