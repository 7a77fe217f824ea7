package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/collyrobots/collyrobots/internal/policy"
)

// TestMeaning: every meaning is a code that stays what it is, and nothing else is one.
func TestMeaning(t *testing.T) {
	for m, code := range map[policy.Meaning]string{
		policy.Rules: "rules", policy.NoRobots: "no_robots", policy.Unreachable: "unreachable", policy.SiteDown: "site_down",
	} {
		if m.String() != code {
			t.Errorf("%q, want %q", m, code)
		}
		raw, err := json.Marshal(map[policy.Meaning]policy.Meaning{m: m})
		if want := `{"` + code + `":"` + code + `"}`; err != nil || string(raw) != want {
			t.Errorf("marshalled as %s, %v, want %s", raw, err, want)
		}
		var back map[policy.Meaning]policy.Meaning
		if err := json.Unmarshal(raw, &back); err != nil || len(back) != 1 || back[m] != m {
			t.Errorf("%s is read as %v, %v", raw, back, err)
		}
	}
	none := policy.Meaning(99)
	if raw, err := none.MarshalText(); err == nil {
		t.Errorf("no meaning is marshalled as %q", raw)
	}
	if got := none.String(); got != "Meaning(99)" {
		t.Errorf("no meaning prints as %q", got)
	}
	for _, text := range []string{"", "Rules", "no restriction", "Meaning(1)"} {
		m := policy.SiteDown
		if err := m.UnmarshalText([]byte(text)); err == nil || m != policy.SiteDown {
			t.Errorf("%q is read as %v, %v", text, m, err)
		}
	}
}
