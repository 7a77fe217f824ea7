package conformance_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/conformance/runner"
	"github.com/collyrobots/collyrobots/dialect"
)

// TestOwnReaders runs all cases on package dialect. A disputed case also has to be answered as the
// suite expects, because the documentation of the dialects says so.
func TestOwnReaders(t *testing.T) {
	for name, disputed := range map[string]bool{"scored": false, "disputed": true} {
		t.Run(name, func(t *testing.T) {
			for _, c := range conformance.Cases() {
				if c.Disputed == disputed {
					checkOwn(t, &c)
				}
			}
		})
	}
}

func checkOwn(t *testing.T, c *conformance.Case) {
	t.Helper()
	for _, q := range c.Questions() {
		if _, known := dialect.ByName(q.Dialect); !known {
			t.Errorf("%s: unknown dialect %q", c.ID, q.Dialect)
			continue
		}
		for _, fault := range c.Check(runner.AnswerOf(q)) {
			t.Errorf("%s, %s: %s", c.ID, q.Dialect, fault)
		}
	}
}

// TestSize checks the number of cases of each dialect.
func TestSize(t *testing.T) {
	scored := make(map[string]int)
	all := 0
	for _, c := range conformance.Cases() {
		all++
		for _, d := range c.Dialects {
			if !c.Disputed {
				scored[d]++
			}
		}
	}
	if all < 600 {
		t.Errorf("%d cases, want at least 600", all)
	}
	for _, d := range []string{"rfc9309", "google", "coccoc", "original1994", "yandex", "seznam"} {
		if scored[d] < 40 {
			t.Errorf("%s: %d scored cases, want at least 40", d, scored[d])
		}
	}
	t.Logf("%d cases; scored by dialect: %v", all, scored)
}
