package match

import (
	"strings"
	"testing"
)

// TestIsCanonical checks that IsCanonical returns true if and only if appendCanonical does not
// change a target. It tries every pair of bytes at every position of targets of several lengths.
func TestIsCanonical(t *testing.T) {
	for _, n := range []int{2, 7, 8, 9, 16, 21} {
		for at := range n - 1 {
			for pair := range 1 << 16 {
				target := []byte("/" + strings.Repeat("a", n-1))
				target[at] = byte(pair >> 8)
				target[at+1] = byte(pair)
				if target[at] == '%' || pair&0xFF == '%' || pair>>8 == '#' || pair&0xFF == '#' {
					continue // IsCanonical always returns false
				}
				form, _ := appendCanonical(nil, string(target), false, false)
				if got, want := IsCanonical(string(target)), string(form) == string(target); got != want {
					t.Fatalf("IsCanonical(%q) = %v, canonical form %q", target, got, form)
				}
			}
		}
	}
	for _, target := range []string{"/a%", "/aaaaaa%", "/%aaaaaaaaaaaaaaaaa", "/#", "/aaaaaaaaaaaaaaaa#"} {
		if IsCanonical(target) {
			t.Errorf("IsCanonical(%q)", target)
		}
	}
}
