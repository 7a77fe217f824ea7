package conformance_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/conform"
)

// TestOwnReaders runs all cases on package dialect. A disputed case also has to be answered as the
// suite expects, because the documentation of the dialects says so.
func TestOwnReaders(t *testing.T) {
	cases := conformance.Cases()
	for i := range cases {
		c := &cases[i]
		for _, q := range c.Questions() {
			if _, known := dialect.ByName(q.Dialect); !known {
				t.Errorf("%s: unknown dialect %q", c.ID, q.Dialect)
				continue
			}
			for _, fault := range c.Check(conform.AnswerOf(q)) {
				t.Errorf("%s, %s: %s", c.ID, q.Dialect, fault)
			}
		}
	}
}
