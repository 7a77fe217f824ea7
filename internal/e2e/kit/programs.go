package kit

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/gocolly/colly/v2"
)

// SameText returns the text of an error, or its kind if the text differs between runs.
func SameText(err error) string {
	if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return "timeout"
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return "no such host"
	}
	return fmt.Sprint(err)
}

// CompareLines reports the first line that differs in a run with the plugin.
func CompareLines(t *testing.T, what string, bare, with []string) {
	t.Helper()
	for i := range max(len(bare), len(with)) {
		was, is := "no more lines", "no more lines"
		if i < len(bare) {
			was = bare[i]
		}
		if i < len(with) {
			is = with[i]
		}
		if was != is {
			t.Errorf("%s in line %d of %d\n  without the plugin: %s\n  with the plugin:    %s", what, i+1, len(bare), was, is)
			return
		}
	}
}

// Outcome returns a word for the error of a visit. The built-in check returns ErrRobotsTxtBlocked
// itself.
func Outcome(err error) string {
	if errors.Is(err, colly.ErrRobotsTxtBlocked) {
		return "denied"
	}
	return SameText(err)
}
