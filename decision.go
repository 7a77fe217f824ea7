package collyrobots

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
)

// A Decision says whether a URL may be fetched, and why. In JSON, durations are numbers of seconds,
// such as 1.5. A Decision that is read back from JSON is the same, except that Err has only its text.
type Decision struct {
	URL       string `json:"url"`        // as asked, a password replaced
	Authority string `json:"authority"`  // scheme, host and port of URL: "https://example.com"; with a Host header: "https://name@host"
	RobotsURL string `json:"robots_url"` // of the robots.txt that governs URL

	Allowed bool   `json:"allowed"`
	Reason  Reason `json:"reason"`

	// Dialect is the reading of robots.txt that was applied.
	Dialect dialect.Dialect `json:"dialect"`
	// Group is the User-agent value of the group that applied; empty: none did.
	Group string `json:"group,omitempty"`
	// Rule is the rule that decided; Line 0: none did.
	Rule dialect.Rule `json:"rule,omitzero"`

	// Status is that of the last response to a request for robots.txt; 0: there was none.
	Status int `json:"status,omitempty"`
	// Err is why robots.txt could not be read; nil: it was read, or there is none.
	Err error `json:"-"`
	// Fetched is when robots.txt was read or confirmed, or the last try failed, and Expires until
	// when that holds; zero under ReasonIgnored.
	Fetched time.Time `json:"fetched,omitzero"`
	Expires time.Time `json:"expires,omitzero"`

	// CrawlDelay is what the group asks for, as the dialect reads it; 0: nothing.
	CrawlDelay time.Duration `json:"-"`
	// Delay is kept between the starts of two requests to the host, MinDelay, MaxDelay, SkipAbove and
	// BackOff included; 0: none.
	Delay time.Duration `json:"-"`
	// BackOff is the delay that answers with status 429 and 503 have brought; 0: none.
	BackOff time.Duration `json:"-"`
	// NotBefore is until when a Retry-After holds all requests to the host; zero: it does not.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// A Reason is why a Decision came out as it did: a stable short code.
type Reason string

const (
	ReasonRule        Reason = "rule"        // a rule matched: Decision.Rule, whose Line is 0 under temoto, which names none
	ReasonNoRule      Reason = "no_rule"     // no rule of the group matches, or no group applies
	ReasonNoRobots    Reason = "no_robots"   // there is no robots.txt (404, for example): everything is allowed
	ReasonUnreachable Reason = "unreachable" // robots.txt could not be read: nothing is allowed
	ReasonSiteDown    Reason = "site_down"   // robots.txt got no answer: the site is left alone for a while
	ReasonDelay       Reason = "delay"       // the crawl delay is longer than SkipAbove
	ReasonIgnored     Reason = "ignored"     // IgnoreRobotsWithPermission: robots.txt was not asked for
)

// decisions count how often each reason has decided.
type decisions map[Reason]*atomic.Int64

func newDecisions() decisions {
	d := make(decisions)
	for _, r := range []Reason{ReasonRule, ReasonNoRule, ReasonNoRobots, ReasonUnreachable, ReasonSiteDown, ReasonDelay, ReasonIgnored} {
		d[r] = new(atomic.Int64)
	}
	return d
}

func (d decisions) add(r Reason) { d[r].Add(1) }

// counts returns those that have decided at all.
func (d decisions) counts() map[Reason]int {
	counts := make(map[Reason]int)
	for r, count := range d {
		if n := count.Load(); n > 0 {
			counts[r] = int(n)
		}
	}
	return counts
}

// reasons are in plain words what String does not say in its own.
var reasons = map[Reason]string{
	ReasonNoRobots:    "there is no robots.txt",
	ReasonUnreachable: "robots.txt cannot be read",
	ReasonSiteDown:    "the site does not answer",
	ReasonIgnored:     "robots.txt is not asked for",
}

// unread reports whether a URL is denied because its robots.txt cannot be read at present.
func (d *Decision) unread() bool { return d.Reason == ReasonUnreachable || d.Reason == ReasonSiteDown }

// String explains the decision in one line.
func (d Decision) String() string {
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	return fmt.Sprintf("%s %s: %s (%v)", d.URL, verdict, d.because(), d.Dialect)
}

// because says what decided.
func (d Decision) because() string {
	switch d.Reason {
	case ReasonRule:
		if d.Rule.Line == 0 {
			return "by a rule of " + d.RobotsURL + " that is not named"
		}
		return fmt.Sprintf("%q, line %d of %s, group %q", d.Rule, d.Rule.Line, d.RobotsURL, d.Group)
	case ReasonDelay:
		return fmt.Sprintf("%s asks for a crawl delay of %v", d.RobotsURL, d.CrawlDelay)
	case ReasonNoRule:
		return "no rule of " + d.RobotsURL + " matches"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", d.RobotsURL, reasons[d.Reason])
	if why := d.why(); why != "" { // which names the status, if that is why
		b.WriteString(": " + why)
	} else if d.Status != 0 {
		fmt.Fprintf(&b, ", status %d", d.Status)
	}
	return b.String()
}

// why is the text of Err without the URL of robots.txt, which the decision has named.
func (d Decision) why() string {
	if d.Err == nil {
		return ""
	}
	text := d.Err.Error()
	if failed := (*url.Error)(nil); errors.As(d.Err, &failed) {
		text = strings.Replace(redact.Text(text), redact.Text(failed.Error()), redact.Text(failed.Err.Error()), 1)
	}
	return strings.TrimPrefix(text, "robots.txt: ")
}
