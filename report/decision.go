package report

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/usage"
)

// A Decision says whether a URL may be fetched, and why. In JSON, durations are numbers of seconds,
// such as 1.5. A Decision that is read back from JSON is the same, except that Err has only its
// text.
type Decision struct {
	// URL is the URL of the request. If it has a password, that is replaced.
	URL string `json:"url"`
	// Authority has the scheme, host and port of URL, such as "https://example.com". If the request
	// has a Host header, it is "https://name@host".
	Authority string `json:"authority"`
	// RobotsURL is the URL of the robots.txt that applies to URL, or that the option RobotsTxt
	// replaces.
	RobotsURL string `json:"robots_url"`

	Allowed bool   `json:"allowed"`
	Reason  Reason `json:"reason"`

	// LinkedFrom is the URL of the page with the nofollow that denies the request. It is "" unless
	// Reason is ReasonNofollow.
	LinkedFrom string `json:"linked_from,omitempty"`

	// Dialect is the dialect that robots.txt was read in.
	Dialect dialect.Dialect `json:"dialect"`
	// Option is the name of an option that has replaced the robots.txt of the site ("RobotsTxt"),
	// or what the dialect says about a robots.txt that could not be read ("WhenUnreachable",
	// "WhenForbidden"). Otherwise it is "".
	Option string `json:"option,omitempty"`
	// Token is the product token that was used to find the group in robots.txt. Several tokens are
	// separated by blanks, the most specific one first.
	Token string `json:"token,omitempty"`
	// Group is the User-agent value of the group that applies, or "" if no group does.
	Group string `json:"group,omitempty"`
	// Rule is the rule that decided. It is zero if none did.
	Rule dialect.Rule `json:"rule,omitzero"`

	// Hash has the first 32 hexadecimal digits of the SHA-256 of the robots.txt whose rules apply.
	// It is "" if no rules apply.
	Hash string `json:"hash,omitempty"`
	// Status is the status of the last response to a request for robots.txt, or 0 if there was no
	// response.
	Status int `json:"status,omitempty"`
	// Walled says that the response to that request looks like that of a bot wall; see RobotsWalled.
	Walled bool `json:"walled,omitempty"`
	// Err says why robots.txt could not be read. It is nil if the file was read or does not exist.
	Err error `json:"-"`
	// Fetched is the time at which robots.txt was read or confirmed, or at which the last attempt
	// failed. Expires is the time until which the result is used. Both are zero with the option RobotsTxt.
	// Under ReasonIgnored, Fetched is zero, and Expires is the end of the Permission.
	Fetched time.Time `json:"fetched,omitzero"`
	Expires time.Time `json:"expires,omitzero"`

	// CrawlDelay is the delay that the group asks for, as the dialect reads it, or 0.
	CrawlDelay time.Duration `json:"-"`
	// Delay is the delay in force between the starts of two requests to the host, or 0. It takes
	// MinDelay, MaxCrawlDelay, SkipCrawlDelayAbove, AdaptiveDelay and BackOff into account.
	Delay time.Duration `json:"-"`
	// BackOff is the delay that responses with status 429 and 503 have caused, or 0.
	BackOff time.Duration `json:"-"`
	// Usage has the preferences for the use of the page that are known before it is fetched: those
	// of robots.txt and, with the option TDMRep, of the TDMRep file. The Hash of their sources is
	// empty. A page that robots.txt denies has no preferences. See Plugin.Usage.
	Usage usage.Preferences `json:"usage,omitzero"`

	// NotBefore is the time until which a Retry-After holds back all requests to the host. It is
	// zero if there is no Retry-After.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Opens is the time when the host opens again, if CrawlHours or Visit-time close it now.
	// Otherwise it is zero. It does not affect Allowed: pages wait until then.
	Opens time.Time `json:"opens,omitzero"`

	// Refusals is the number of requests that the host has refused in a row, and NextTry is the
	// time when one of its pages may be requested again. They are zero unless Reason is
	// ReasonRefused.
	Refusals int       `json:"refusals,omitempty"`
	NextTry  time.Time `json:"next_try,omitzero"`
	// Permission is that of IgnoreRobots, which must not be changed. It is nil unless Reason is
	// ReasonIgnored.
	Permission *Permission `json:"permission,omitempty"`
	// MaxPages or MaxPagesPerHost is the limit of the option of that name that has denied the request.
	// Both are 0 unless Reason is ReasonBudget.
	MaxPages        int `json:"max_pages,omitempty"`
	MaxPagesPerHost int `json:"max_pages_per_host,omitempty"`
}

// A Reason says why a request was allowed or denied. It is a stable short code.
type Reason string

const (
	ReasonRule        Reason = "rule"        // Decision.Rule matches; under temoto its Line is 0, because temoto does not report the rule
	ReasonNoRule      Reason = "no_rule"     // no rule of the group matches, or no group applies
	ReasonNoRobots    Reason = "no_robots"   // there is no robots.txt (status 404, for example), so everything is allowed
	ReasonUnreachable Reason = "unreachable" // robots.txt could not be read, so nothing is allowed
	ReasonSiteDown    Reason = "site_down"   // the request for robots.txt got no response, so the site gets no requests for a while
	ReasonDelay       Reason = "delay"       // the crawl delay is longer than SkipCrawlDelayAbove
	ReasonUsage       Reason = "usage"       // Decision.Usage disallows the Purpose of the crawl; see EnforceUsage
	ReasonNofollow    Reason = "nofollow"    // the request follows a link with nofollow; see EnforceNofollow
	ReasonIgnored     Reason = "ignored"     // robots.txt was not requested because of IgnoreRobots
	ReasonRefused     Reason = "refused"     // the host has refused too many requests in a row; see StopAfterRefusals
	ReasonBudget      Reason = "budget"      // MaxPages allows no further page, or MaxPagesPerHost none of the host
)

// reasons has all reasons with their texts.
var reasons = []struct {
	reason Reason
	text   string
}{
	{ReasonRule, "a rule matches"},
	{ReasonNoRule, "no rule matches"},
	{ReasonNoRobots, "there is no robots.txt"},
	{ReasonUnreachable, "robots.txt cannot be read"},
	{ReasonSiteDown, "the site does not answer"},
	{ReasonDelay, "the crawl delay exceeds SkipCrawlDelayAbove"},
	{ReasonUsage, "the owner disallows this use"},
	{ReasonNofollow, "the page with the link says nofollow"},
	{ReasonIgnored, "robots.txt is ignored"},
	{ReasonRefused, "the host refuses requests"},
	{ReasonBudget, "the budget of pages is used up"},
}

// Reasons returns all reasons.
func Reasons() []Reason {
	var all []Reason
	for _, known := range reasons {
		all = append(all, known.reason)
	}
	return all
}

// Text describes the reason in a few words, such as "the host refuses requests". It returns "" if
// the reason is not known.
func (r Reason) Text() string {
	for _, known := range reasons {
		if known.reason == r {
			return known.text
		}
	}
	return ""
}

// The names of options that change the text of a Decision.
const (
	optionRobotsTxt       = "RobotsTxt"
	optionWhenUnreachable = "WhenUnreachable"
)

// String returns the decision and its reason in one line.
func (d Decision) String() string {
	verdict := "denied"
	if d.Allowed {
		verdict = "allowed"
	}
	by := ""
	if d.Option != "" && d.Option != optionRobotsTxt {
		by = ", by option " + d.Option
	}
	return fmt.Sprintf("%s %s: %s%s (%v)", d.URL, verdict, d.because(), by, d.Dialect)
}

// file returns the name of the robots.txt that applies.
func (d Decision) file() string {
	if d.Option == optionRobotsTxt {
		return "option " + optionRobotsTxt
	}
	return d.RobotsURL
}

// because returns the reason as text.
func (d Decision) because() string {
	switch d.Reason {
	case ReasonRule:
		if d.Rule.Line == 0 {
			return "by a rule of " + d.file() // temoto does not report which
		}
		return fmt.Sprintf("%q, line %d of %s, group %q", d.Rule, d.Rule.Line, d.file(), d.Group)
	case ReasonDelay:
		return fmt.Sprintf("%s asks for a crawl delay of %v", d.file(), d.CrawlDelay)
	case ReasonUsage:
		return "its owner disallows this use: " + d.Usage.Disallowed()
	case ReasonNofollow:
		return "nofollow for this link on " + d.LinkedFrom
	case ReasonRefused:
		return fmt.Sprintf("the host has refused %d requests in a row; next try at %s", d.Refusals, d.NextTry.Format("15:04"))
	case ReasonBudget:
		if d.MaxPages > 0 {
			return fmt.Sprintf("MaxPages allows %d pages", d.MaxPages)
		}
		return fmt.Sprintf("MaxPagesPerHost allows %d pages of the host", d.MaxPagesPerHost)
	case ReasonIgnored:
		if d.Permission != nil {
			return d.Reason.Text() + ", by " + d.Permission.String()
		}
	case ReasonNoRule:
		return "no rule of " + d.file() + " matches" + d.wall()
	}
	text := d.Reason.Text()
	if d.Option == optionWhenUnreachable {
		text = ReasonUnreachable.Text() // under AllowAll, the Reason is ReasonNoRobots
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", d.RobotsURL, text)
	if why := d.why(); why != "" { // contains the status if that is the reason
		b.WriteString(": " + why)
	} else if d.Status != 0 {
		fmt.Fprintf(&b, ", status %d", d.Status)
	}
	return b.String() + d.wall()
}

// wall says that the answer for robots.txt may be that of a bot wall.
func (d Decision) wall() string {
	if !d.Walled {
		return ""
	}
	return ", the answer is a web page or a challenge of a bot wall"
}

// why returns the text of Err without the URL of robots.txt, which because has already written.
func (d Decision) why() string {
	if d.Err == nil {
		return ""
	}
	text := d.Err.Error()
	if failed := (*url.Error)(nil); errors.As(d.Err, &failed) {
		text = strings.Replace(redact.Text(text), redact.Text(failed.Error()), redact.Text(failed.Err.Error()), 1)
	}
	return text
}
