package collyrobots

import (
	"fmt"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Decision says whether a URL may be fetched, and everything that led there.
type Decision struct {
	URL       string // as asked
	Authority string // scheme, host and port that the robots.txt governs: "https://example.com"
	RobotsURL string // where it was asked for
	Allowed   bool
	Reason    Reason
	Dialect   string       // whose reading: "rfc9309"
	Group     string       // the user-agent value of the group that applied; empty: none did
	Rule      dialect.Rule // the rule that decided; Line 0: none did
	Status    int          // of the robots.txt response; 0: there was none
	Err       error        // why robots.txt could not be read; nil: it was, or the status says it all
	Fetched   time.Time    // when robots.txt was read
	Expires   time.Time    // when it will be read again
	// CrawlDelay is what the group asks for, as the dialect reads it; Delay is what is kept between the starts of two
	// requests to the host, MinDelay and MaxDelay included. Zero: none.
	CrawlDelay, Delay time.Duration
	BackOff           time.Duration // the part of Delay that 429 and 503 have added; zero: none
	NotBefore         time.Time     // until when a Retry-After holds everything; zero: it does not
}

// A Reason is why a Decision came out as it did.
type Reason string

const (
	ReasonRule        Reason = "rule"                 // a rule matched: Decision.Rule; under temoto, which names none, Line is 0
	ReasonNoRule      Reason = "no matching rule"     // no rule of the group matches, or no group applies
	ReasonNoRobots    Reason = "no robots.txt"        // the answer means that there are no restrictions (404, say)
	ReasonUnreachable Reason = "unreachable"          // robots.txt could not be read: nothing is allowed
	ReasonSiteDown    Reason = "site down"            // robots.txt got no answer: the site is left alone for a while
	ReasonDelay       Reason = "crawl delay too long" // longer than MaxDelay, which says Skip
	ReasonIgnored     Reason = "not asked"            // IgnoreRobotsWithOwnersLeave
)

// String explains the decision in one line.
func (d Decision) String() string {
	var b strings.Builder
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	fmt.Fprintf(&b, "%s %s: ", d.URL, verdict)
	switch d.Reason {
	case ReasonRule:
		if d.Rule.Line == 0 {
			fmt.Fprintf(&b, "by a rule of %s that is not named", d.RobotsURL)
			break
		}
		fmt.Fprintf(&b, "%q, line %d of %s, group %q", d.Rule, d.Rule.Line, d.RobotsURL, d.Group)
	case ReasonDelay:
		fmt.Fprintf(&b, "%s asks for a crawl delay of %v", d.RobotsURL, d.CrawlDelay)
	case ReasonNoRule:
		fmt.Fprintf(&b, "no rule of %s matches", d.RobotsURL)
	default:
		fmt.Fprintf(&b, "%s: %s", d.RobotsURL, d.Reason)
		if d.Status != 0 {
			fmt.Fprintf(&b, ", status %d", d.Status)
		}
		if d.Err != nil {
			fmt.Fprintf(&b, ": %v", d.Err)
		}
	}
	fmt.Fprintf(&b, " (%s)", d.Dialect)
	return b.String()
}

// A DisallowedError says that a request was not sent because of the host's robots.txt. errors.Is(err, colly.ErrRobotsTxtBlocked)
// holds, as for the built-in check; errors.As finds it as DisallowedError and as *DisallowedError.
type DisallowedError struct{ Decision Decision }

func (e DisallowedError) Error() string { return "robots.txt: " + e.Decision.String() }

// Unwrap gives Colly's own error, and the reason robots.txt could not be read if that is why.
func (e DisallowedError) Unwrap() []error {
	if e.Decision.Err == nil {
		return []error{colly.ErrRobotsTxtBlocked}
	}
	return []error{colly.ErrRobotsTxtBlocked, e.Decision.Err}
}

// As lets errors.As find the error by value too.
func (e *DisallowedError) As(target any) bool {
	v, ok := target.(*DisallowedError)
	if ok {
		*v = *e
	}
	return ok
}
