package judge

import (
	"net/url"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
)

// A Rule is an optional reason to deny a URL that robots.txt allows. All rules of a plugin are in
// Judge.Rules, and the first one that denies the URL decides. A URL is judged by them again only
// when it is judged by its robots.txt again.
type Rule interface {
	// Judge returns why c is denied at now, or nil. It changes nothing.
	Judge(now time.Time, c Candidate) *Denial
}

// A Limit is a rule whose answer depends on the other requests of the host. All limits of a plugin
// are in Judge.Limits. They are asked after the rules, and not about a fresh page that Revalidate does not
// request. A request is judged three times:
//
//   - Judge decides when the request is judged by its robots.txt, so that most requests over the
//     limit do not wait.
//   - Judge decides again whenever a request of the host has ended, so that a request that can no
//     longer be sent does not wait for its start. It is then called under the lock of the pace of the
//     host, so it must be quick, and a candidate has no pace.Host: a call of it would never return.
//   - Take decides just before the request is sent. So the numbers are exact although many requests
//     are judged at the same time.
type Limit interface {
	Rule
	// Concerns reports whether the limit may deny pages under these settings.
	Concerns(s *HostSettings) bool
	// Take decides again, and counts c, which has marks.
	Take(now time.Time, c Candidate) *Denial
	// Undo undoes Take for a request that was never sent. host is the host of its mark.
	Undo(now time.Time, host string)
}

// A RuleSettings holds the options of rules that need nothing else.
type RuleSettings struct {
	EnforceNofollow bool // of EnforceNofollow
}

// rulesOf returns the rules that may deny pages under these settings.
func rulesOf(s *Settings) []Rule {
	rules := []Rule{usageRule{}} // a request may have a purpose without an option
	if s.IsForAny(func(s *HostSettings) bool { return s.EnforceNofollow }) {
		rules = append(rules, nofollowRule{})
	}
	return rules
}

// A nofollowRule is the rule of the option EnforceNofollow. It denies links that must not be
// followed.
type nofollowRule struct{}

func (nofollowRule) Judge(_ time.Time, c Candidate) *Denial {
	if c.linkedFrom == "" {
		return nil
	}
	return linkDenied(c.linkedFrom)
}

// linkDenied returns the denial of a link on the page from.
func linkDenied(from string) *Denial {
	return &Denial{Reason: report.ReasonNofollow, Describe: func(d *report.Decision) { d.LinkedFrom = from }}
}

// A Denial says why a rule denies a URL.
type Denial struct {
	Reason   report.Reason
	Describe func(d *report.Decision) // adds the facts to a Decision; nil if there are none
}

// A Candidate is a URL that robots.txt allows, as a rule sees it. It is passed by value, so that it
// needs no memory.
type Candidate struct {
	URL        *url.URL
	Host       string // the name of its host
	Settings   *HostSettings
	policy     *policy.Policy
	tdm        *usage.TDMFile // nil if the site has none, or if it is not used
	purpose    usage.Purpose  // see Target
	linkedFrom string         // the page whose link must not be followed; "" if it may be
	IsFile     bool           // the plugin reads it, so it is no page
	Redirected string         // the host whose redirect has led to it; "" if it follows no redirect
	*Marks                    // of the request; nil if there is no request
}

// CandidateOf returns the candidate of a target with the verdict v, for which no request exists.
func CandidateOf(v *Verdict, t *Target) Candidate {
	return Candidate{
		URL:        t.URL,
		Host:       v.Host.Name(),
		Settings:   v.Settings,
		policy:     v.Policy,
		tdm:        v.tdm,
		purpose:    t.Purpose,
		linkedFrom: t.LinkedFrom,
		IsFile:     t.IsFile,
	}
}

// Marks are what limits and responders remember about a request: at most one mark for each of them.
// Redirects get them with the page, and requests inside of another one from that one. The zero value
// has none, and so has a nil pointer. Most requests have at most one mark, which needs no memory of
// its own.
type Marks struct {
	first Mark
	more  []Mark
}

// A Mark is what one limit or responder remembers about a request.
type Mark struct {
	By     any    // the limit or the responder; nil if there is no mark
	Host   string // the host that the mark is about
	Count  int    // what it counts, if anything
	Source Source
}

// A Source says which request has set a mark.
type Source uint8

const (
	OfItself   Source = iota // the request that has it
	OfCarrier                // the request that it is a part of
	OfRedirect               // the request whose redirect it follows
)

// Of returns the mark of a limit or a responder, or the zero mark.
func (m *Marks) Of(by any) Mark {
	if m == nil || m.first.By == nil {
		return Mark{}
	}
	if m.first.By == by {
		return m.first
	}
	for _, one := range m.more {
		if one.By == by {
			return one
		}
	}
	return Mark{}
}

// None reports whether there is no mark.
func (m *Marks) None() bool { return m.first.By == nil }

// Set sets the mark of one.By.
func (m *Marks) Set(one Mark) {
	if m.first.By == nil || m.first.By == one.By {
		m.first = one
		return
	}
	i := slices.IndexFunc(m.more, func(other Mark) bool { return other.By == one.By })
	if i >= 0 {
		m.more[i] = one
	} else {
		m.more = append(m.more, one)
	}
}

// Clear removes the mark of a limit or a responder.
func (m *Marks) Clear(by any) {
	m.more = slices.DeleteFunc(m.more, func(one Mark) bool { return one.By == by })
	if m.first.By != by {
		return
	}
	m.first = Mark{}
	if n := len(m.more); n > 0 {
		m.first = m.more[n-1]
		m.more = m.more[:n-1]
	}
}

// HandOn returns the marks of a request that gets them from the one with m.
func (m *Marks) HandOn(s Source) Marks {
	next := Marks{first: m.first, more: slices.Clone(m.more)}
	next.first.Source = max(next.first.Source, s)
	for i := range next.more {
		next.more[i].Source = max(next.more[i].Source, s)
	}
	return next
}

// Deny makes v a denial that no rule of robots.txt causes.
func (v *Verdict) Deny(d *Denial) {
	v.Reason = d.Reason
	v.Rule = dialect.Verdict{}
	v.denial = d
}

// denialBy returns the denial of the first rule that denies c, or nil.
func denialBy(rules []Rule, now time.Time, c Candidate) *Denial {
	for _, r := range rules {
		if d := r.Judge(now, c); d != nil {
			return d
		}
	}
	return nil
}

// LimitOf returns the denial of the first limit that denies c, or nil.
func (j *Judge) LimitOf(now time.Time, c Candidate) *Denial {
	for _, l := range j.Limits {
		if d := l.Judge(now, c); d != nil {
			return d
		}
	}
	return nil
}
