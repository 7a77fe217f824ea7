package policy

import (
	"fmt"
	"slices"
)

// Meaning is what is known about an authority. It prints and marshals as a short code that does not
// change.
type Meaning uint8

const (
	Unreachable Meaning = iota // robots.txt cannot be read: nothing is allowed. The zero value
	SiteDown                   // the site does not respond: leave it alone until the policy expires
	NoRobots                   // there is no robots.txt, or none that counts: everything is allowed
	Rules                      // the rules of the policy's group decide
)

var codes = []string{
	Unreachable: "unreachable",
	SiteDown:    "site_down",
	NoRobots:    "no_robots",
	Rules:       "rules",
}

// String returns the code: "rules", "no_robots", "unreachable" or "site_down".
func (m Meaning) String() string {
	if int(m) < len(codes) {
		return codes[m]
	}
	return fmt.Sprintf("Meaning(%d)", uint8(m))
}

// MarshalText returns the code. The error says that m is none of the constants.
func (m Meaning) MarshalText() ([]byte, error) {
	if int(m) >= len(codes) {
		return nil, fmt.Errorf("policy: no such meaning: %d", uint8(m))
	}
	return []byte(codes[m]), nil
}

// UnmarshalText reads what MarshalText wrote. The error says that text is no code; m stays as it is
// then.
func (m *Meaning) UnmarshalText(text []byte) error {
	i := slices.Index(codes, string(text))
	if i < 0 {
		return fmt.Errorf("policy: no such meaning: %q", text)
	}
	*m = Meaning(i)
	return nil
}
