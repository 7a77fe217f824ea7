// Package policy knows what each site's robots.txt says at the moment: it fetches the file, decides what the answer
// means under a dialect, keeps that for as long as the dialect lets it, and falls back on the last good copy when the
// file cannot be had.
//
// The facts of a fetch (a [record]) are the same for every dialect; what they mean is a row of the table in rows.go. So
// facts can be kept in a store and read by another dialect, another process or a later run.
package policy

import (
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Policy is what governs the pages of one authority at the time it was asked for. It is immutable.
type Policy struct {
	Authority string // scheme, host in lower-case punycode, port unless it is the default: "https://example.com"
	RobotsURL string // where its robots.txt is

	Meaning    Meaning
	Group      *dialect.Group // the rules that apply; never nil, and without rules unless Meaning is Rules
	Sitemaps   []string       // as the file lists them; shared, not to be changed
	CrawlDelay time.Duration  // as the dialect reads it
	HasDelay   bool           // whether the group has a Crawl-delay at all

	Status int   // of the last response to GET /robots.txt, redirects followed; 0 when there was none
	Err    error // why the file could not be read: *StatusError, *RedirectError, *NoAnswerError, *PanicError; nil when it was, or is known to be absent

	Fetched time.Time // when the copy in force was fetched or confirmed; without one, when the last try ended
	Expires time.Time // when robots.txt is asked for again

	facts facts // what the next fetch builds on
}

// Stale reports that the rules in force are an older copy, because the file could not be read at the last try; Err
// says why.
func (p *Policy) Stale() bool { return p.Meaning == Rules && p.Err != nil }

// Meaning is what is known about an authority.
type Meaning uint8

const (
	Unreachable   Meaning = iota // robots.txt cannot be read: nothing is allowed. The zero value lets nobody in
	SiteDown                     // the site does not answer: do not contact it before Expires
	NoRestriction                // there is no robots.txt, or none that counts: everything is allowed
	Rules                        // the rules of Group decide
)

func (m Meaning) String() string {
	switch m {
	case Rules:
		return "rules"
	case NoRestriction:
		return "no restriction"
	case SiteDown:
		return "site down"
	default:
		return "unreachable"
	}
}
