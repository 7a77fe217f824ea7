package policy

import "fmt"

// A RobotsStatus says which rules apply to the pages of an authority: those of its robots.txt, or
// others because the file does not exist or cannot be read. It prints as a stable short code.
type RobotsStatus uint8

const (
	Unreachable RobotsStatus = iota // robots.txt cannot be read: nothing is allowed
	SiteDown                        // the site does not respond: nothing is requested until the policy expires
	NoRobots                        // there is no usable robots.txt: everything is allowed
	Rules                           // the rules of the policy's group decide
)

var codes = []string{
	Unreachable: "unreachable",
	SiteDown:    "site_down",
	NoRobots:    "no_robots",
	Rules:       "rules",
}

// String returns the code: "rules", "no_robots", "unreachable" or "site_down".
func (s RobotsStatus) String() string {
	if int(s) < len(codes) {
		return codes[s]
	}
	return fmt.Sprintf("RobotsStatus(%d)", uint8(s))
}
