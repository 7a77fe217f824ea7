package policy_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestRobotsStatusCodes checks that each status prints as its code, which must not change.
func TestRobotsStatusCodes(t *testing.T) {
	for status, want := range map[policy.RobotsStatus]string{
		policy.Rules:            "rules",
		policy.NoRobots:         "no_robots",
		policy.Unreachable:      "unreachable",
		policy.SiteDown:         "site_down",
		policy.RobotsStatus(99): "RobotsStatus(99)",
	} {
		if got := status.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
