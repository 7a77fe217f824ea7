package policy

import "testing"

// TestRedirectErrorText checks the text for each kind of redirect that is not followed.
func TestRedirectErrorText(t *testing.T) {
	for want, err := range map[string]*RedirectError{
		"more than 5 redirects":      {TooMany: true, Followed: 5},
		"redirect 3 has no Location": {Followed: 2},
		`redirect 1 leads to "ftp://a.test/", which must not be followed`: {Location: "ftp://a.test/"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
