package batch

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestStatuses checks that the dialect says what the status code of a robots.txt means.
func TestStatuses(t *testing.T) {
	for _, test := range []struct {
		dialect dialect.Dialect
		status  int
		want    string // "rules", "allowed" or "denied"
	}{
		{dialect.RFC9309(), 200, "rules"},
		{dialect.RFC9309(), 204, "rules"},
		{dialect.RFC9309(), 404, "allowed"},
		{dialect.RFC9309(), 429, "allowed"},
		{dialect.RFC9309(), 503, "denied"},
		{dialect.RFC9309(), 999, "denied"},
		{dialect.Google(), 404, "allowed"},
		{dialect.Google(), 429, "denied"},
		{dialect.Yandex(), 204, "allowed"},
		{dialect.Yandex(), 503, "allowed"},
	} {
		got := "rules"
		fixed, err := newStatuses(test.dialect).decision(test.status)
		switch {
		case err != nil:
			t.Fatal(err)
		case fixed != nil && fixed.Allowed:
			got = "allowed"
		case fixed != nil:
			got = "denied"
		}
		if got != test.want {
			t.Errorf("%v, status %d: %s, want %s", test.dialect, test.status, got, test.want)
		}
	}
}
