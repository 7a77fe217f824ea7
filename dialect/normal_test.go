package dialect

import (
	"strings"
	"testing"
)

// TestIsCanonical checks that isCanonical returns true if and only if appendCanonical does not
// change a target. It tries every pair of bytes at every position of targets of several lengths.
func TestIsCanonical(t *testing.T) {
	for _, n := range []int{2, 7, 8, 9, 16, 21} {
		for at := range n - 1 {
			for pair := range 1 << 16 {
				target := []byte("/" + strings.Repeat("a", n-1))
				target[at] = byte(pair >> 8)
				target[at+1] = byte(pair)
				if target[at] == '%' || pair&0xFF == '%' || pair>>8 == '#' || pair&0xFF == '#' {
					continue // isCanonical always returns false
				}
				form, _ := appendCanonical(nil, string(target), false, false)
				if got, want := isCanonical(string(target)), string(form) == string(target); got != want {
					t.Fatalf("isCanonical(%q) = %v, canonical form %q", target, got, form)
				}
			}
		}
	}
	for _, target := range []string{"/a%", "/aaaaaa%", "/%aaaaaaaaaaaaaaaaa", "/#", "/aaaaaaaaaaaaaaaa#"} {
		if isCanonical(target) {
			t.Errorf("isCanonical(%q)", target)
		}
	}
}
