package dialect

import (
	"strings"
	"testing"
)

// TestIsCanonical puts every two octets into every place of targets of several
// lengths: a target is canonical if and only if bringing it into canonical form
// changes nothing.
func TestIsCanonical(t *testing.T) {
	for _, n := range []int{2, 7, 8, 9, 16, 21} {
		for at := range n - 1 {
			for pair := range 1 << 16 {
				target := []byte("/" + strings.Repeat("a", n-1))
				target[at], target[at+1] = byte(pair>>8), byte(pair)
				if target[at] == '%' || pair&0xFF == '%' || pair>>8 == '#' || pair&0xFF == '#' {
					continue // needs a look at what follows
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
