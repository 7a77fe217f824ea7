package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A SiteReport says what a crawl did to one host, for the owner of the host.
type SiteReport struct {
	Host        string
	First, Last time.Time // of the requests; zero if there were none
	Requests    map[report.RequestKind]int
	Statuses    map[int]int // responses by status; 0 counts requests without a response
	Bytes       int64       // of all responses
	Denied      map[report.Reason]int
	Tokens      []string // the names that were looked for in robots.txt
	Files       []SiteFile
	Slowed      int           // how often the host asked for fewer requests: status 429 or 503
	MinGap      time.Duration // the shortest time between two requests; 0 if there were fewer than two
	Delay       time.Duration // the delay in force at that time

	// Gaps are the shortest gaps of equal periods between First and Last, with the delay in force.
	// There are at most 500. A period without a gap is missing.
	Gaps []SiteGap

	// Permissions, Findings and Exceptions are those of Verify about the host. OK is Report.OK of the whole log.
	Permissions []PermissionReport
	Findings    []Finding
	Exceptions  []Finding
	OK          bool
	Faults      int // of the whole log
}

// A SiteFile is a robots.txt of the host that was in force.
type SiteFile struct {
	URL     string
	Time    time.Time // when it came into force
	Status  report.RobotsStatus
	Hash    string // as in Event.Hash; "" if there are no rules
	Fetches int    // how often it was read or confirmed
}

// A SiteGap is the time between two requests.
type SiteGap struct {
	Time  time.Time // of the second request
	Gap   time.Duration
	Delay time.Duration // the delay in force
}

// maxGaps is the largest number of SiteReport.Gaps.
const maxGaps = 500

// Site verifies the logs in these folders, and returns what the crawl did to a host. host is a name
// as in HostStats, such as "example.com" or "example.com:8080". The error says that a folder could
// not be read, or that the logs have no event of the host.
func Site(host string, dirs ...string) (*SiteReport, error) {
	verified, err := Verify(dirs...)
	if err != nil {
		return nil, err
	}
	s := &siteBuilder{SiteReport: SiteReport{
		Host:     host,
		OK:       verified.OK(),
		Requests: make(map[report.RequestKind]int),
		Statuses: make(map[int]int),
		Denied:   make(map[report.Reason]int),
	}}
	for _, c := range verified.Checks {
		s.Faults += c.Faults
	}
	for _, dir := range dirs {
		err := s.read(dir)
		if err != nil {
			return nil, err
		}
	}
	if s.events == 0 {
		return nil, fmt.Errorf("audit: the log has no event of the host %q", host)
	}
	s.Findings = ofHost(verified.Findings, host)
	s.Exceptions = ofHost(verified.Exceptions, host)
	s.Permissions = slices.DeleteFunc(slices.Clone(verified.Permissions), func(p PermissionReport) bool { return p.Host != host })
	s.finish()
	return &s.SiteReport, nil
}

func ofHost(all []Finding, host string) (some []Finding) {
	for _, f := range all {
		if f.Host == host {
			some = append(some, f)
		}
	}
	return some
}

// A siteBuilder makes a SiteReport from events.
type siteBuilder struct {
	SiteReport
	events int
	starts []SiteGap // the starts of requests; Gap is not set
}

// read adds the events of a log. Entries that cannot be read are findings of Verify.
func (s *siteBuilder) read(dir string) error {
	for entry, err := range Entries(dir) {
		if err != nil && !errors.Is(err, ErrDamaged) && entry.Event == nil {
			continue
		}
		if e := entry.Event; e != nil && e.Host == s.Host {
			s.event(e)
		}
	}
	return nil
}

func (s *siteBuilder) event(e *report.Event) {
	s.events++
	switch e.Kind {
	case report.EventStarted:
		s.Requests[e.RequestKind]++
		s.starts = append(s.starts, SiteGap{Time: e.Time, Delay: e.Delay})
		if d := e.Decision; d != nil && d.Token != "" && !slices.Contains(s.Tokens, d.Token) && len(s.Tokens) < 100 {
			s.Tokens = append(s.Tokens, d.Token)
		}
	case report.EventAnswered:
		s.Statuses[e.Status]++
		s.Bytes += e.Bytes
	case report.EventDenied:
		reason := report.Reason("other")
		if e.Decision != nil {
			reason = e.Decision.Reason
		}
		s.Denied[reason]++
	case report.EventSlowed:
		s.Slowed++
	case report.EventRobots:
		s.file(e)
	}
}

// file adds a robots.txt. One that has not changed counts as another fetch of the last one.
func (s *siteBuilder) file(e *report.Event) {
	f := SiteFile{URL: e.URL, Time: e.Time, Status: e.RobotsStatus, Hash: e.Hash, Fetches: 1}
	for i := len(s.Files) - 1; i >= 0; i-- {
		last := &s.Files[i]
		if last.URL != f.URL {
			continue
		}
		if last.Status == f.Status && last.Hash == f.Hash {
			last.Fetches++
			return
		}
		break
	}
	s.Files = append(s.Files, f)
}

// finish computes the gaps.
func (s *siteBuilder) finish() {
	slices.SortFunc(s.starts, func(a, b SiteGap) int { return a.Time.Compare(b.Time) })
	if len(s.starts) == 0 {
		return
	}
	s.First = s.starts[0].Time
	s.Last = s.starts[len(s.starts)-1].Time
	period := s.Last.Sub(s.First)/maxGaps + 1
	at := -1 // the period of the last element of Gaps
	for i := 1; i < len(s.starts); i++ {
		g := s.starts[i]
		g.Gap = g.Time.Sub(s.starts[i-1].Time)
		if s.MinGap == 0 || g.Gap < s.MinGap {
			s.MinGap = g.Gap
			s.Delay = g.Delay
		}
		n := int(g.Time.Sub(s.First) / period)
		switch {
		case n != at:
			s.Gaps = append(s.Gaps, g)
			at = n
		case g.Gap < s.Gaps[len(s.Gaps)-1].Gap:
			s.Gaps[len(s.Gaps)-1] = g
		}
	}
}

// kindNames are the request kinds in the words of a report.
var kindNames = []struct {
	kind report.RequestKind
	name string
}{
	{report.RequestPage, "pages"},
	{report.RequestRedirect, "redirects"},
	{report.RequestRobots, "robots.txt"},
	{report.RequestSitemap, "sitemaps"},
	{report.RequestTDM, "tdmrep.json"},
	{report.RequestRetry, "repeated requests"},
}

// Sentences returns the report as sentences, for text and HTML.
func (s *SiteReport) Sentences() (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if s.First.IsZero() {
		add("The crawler sent no request to %s.", s.Host)
	} else {
		add("The crawler sent %s to %s between %s and %s.", s.requests(), s.Host, stamp(s.First), stamp(s.Last))
	}
	if len(s.Tokens) > 0 {
		add("It looked for the name %s in robots.txt.", strings.Join(s.Tokens, ", "))
	}
	for _, f := range s.Files {
		add("%s", f.sentence())
	}
	if s.MinGap > 0 {
		add("The shortest time between two requests was %v; the delay in force was %v.", s.MinGap.Round(time.Millisecond), s.Delay)
	}
	if s.Slowed > 0 {
		add("The host asked for fewer requests (429 or 503) on %d occasions, and the crawler slowed down.", s.Slowed)
	}
	if denied := s.denied(); denied != "" {
		add("The crawler did not send %s.", denied)
	}
	add("The responses were: %s. They had %d bytes.", s.statuses(), s.Bytes)
	if s.OK {
		add("The log was verified without a fault.")
	} else {
		add("The verification of the log found faults. %d of them are about this host.", len(s.Findings))
	}
	return all
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// requests returns the numbers of requests as text.
func (s *SiteReport) requests() string {
	total := 0
	var parts []string
	for _, k := range kindNames {
		if n := s.Requests[k.kind]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d for %s", n, k.name))
		}
	}
	return fmt.Sprintf("%d requests (%s)", total, strings.Join(parts, ", "))
}

// sentence says when a robots.txt was in force.
func (f SiteFile) sentence() string {
	times := "once"
	if f.Fetches > 1 {
		times = fmt.Sprintf("%d times", f.Fetches)
	}
	rules := "had no rules (" + string(f.Status) + ")"
	if f.Hash != "" {
		rules = "had the SHA-256 " + f.Hash + "..."
	}
	return fmt.Sprintf("From %s, %s %s; it was read %s.", stamp(f.Time), f.URL, rules, times)
}

// denied returns the numbers of denied requests by reason.
func (s *SiteReport) denied() string {
	total := 0
	var parts []string
	for _, reason := range sortedKeys(s.Denied) {
		total += s.Denied[reason]
		parts = append(parts, fmt.Sprintf("%d because of %s", s.Denied[reason], reason))
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%d requests (%s)", total, strings.Join(parts, ", "))
}

// statuses returns the numbers of responses by status.
func (s *SiteReport) statuses() string {
	var parts []string
	for _, status := range sortedKeys(s.Statuses) {
		name := fmt.Sprint(status)
		if status == 0 {
			name = "none"
		}
		parts = append(parts, fmt.Sprintf("%s %d times", name, s.Statuses[status]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// WriteText writes the report as text.
func (s *SiteReport) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, sentence := range s.Sentences() {
		b.WriteString(sentence + "\n")
	}
	writeFindings(&b, "Exceptions that options of the operator caused", s.Exceptions)
	writePermissions(&b, s.Permissions)
	writeFindings(&b, "Faults", s.Findings)
	b.WriteString("\n" + limits)
	_, err := io.WriteString(w, b.String())
	return err
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered](m map[K]int) []K { return slices.Sorted(maps.Keys(m)) }
