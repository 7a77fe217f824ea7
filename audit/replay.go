package audit

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// A replay checks the events of several logs in the order of their times. Hosts and URLs are kept as
// hashes, see hash.
type replay struct {
	report *Report
	rules  *rulebook
	paces  map[uint64]lastStart   // by the host, or by the group of hosts that have one pace
	sites  map[uint64][]siteState // by the URL of robots.txt; the oldest state first
	seed   maphash.Seed

	excepted map[string]bool // hosts and options that have an exception

	permissions map[uint64]int // indexes of Report.Permissions
}

// hash returns the hash of a comparable value. A hash needs less memory than a URL. The seed is
// random, so the writer of a log cannot choose values that have the same hash. Two of 10 million
// values have the same hash in one of 300,000 verifications.
func hash[T comparable](p *replay, value T) uint64 { return maphash.Comparable(p.seed, value) }

// A lastStart is the last start of a request to a host or a group.
type lastStart struct {
	at      time.Time
	log     *stream
	process int           // stream.process
	delay   time.Duration // see lasting
}

// sourceBefore is the source of a delay that an earlier request had.
const sourceBefore report.DelaySource = "as before"

// inForce returns the delay in force at a start, and its source. A sender that does not know the
// earlier requests, such as a new process, has to keep the delay of the last one.
func (last lastStart) inForce(e *report.Event) (time.Duration, report.DelaySource) {
	if e.Delay == 0 && e.Gap == 0 && e.Group == "" {
		return last.delay, sourceBefore
	}
	return e.Delay, e.Source
}

// lasting returns a delay if it comes from robots.txt or from MinDelay, and otherwise 0. Back-off and
// response times are known only to the process that has measured them.
func lasting(delay time.Duration, source report.DelaySource) time.Duration {
	switch source {
	case report.SourceCrawlDelay, report.SourceRequestRate, report.SourceMinDelay, sourceBefore:
		return delay
	}
	return 0
}

// A siteState is a robots.txt of a site.
type siteState struct {
	fetched int64  // in seconds since 1970
	file    uint64 // the hash of a robotsFacts
}

// robotsFacts are what an event says about a robots.txt.
type robotsFacts struct {
	hash   string
	status report.RobotsStatus
}

// statusesOf returns the states of a robots.txt that a decision with this reason may come from.
func statusesOf(r report.Reason) []report.RobotsStatus {
	switch r {
	case report.ReasonRule, report.ReasonNoRule:
		return []report.RobotsStatus{report.RobotsRules, report.RobotsWalled}
	case report.ReasonNoRobots:
		return []report.RobotsStatus{report.RobotsNone, report.RobotsWalled}
	case report.ReasonUnreachable:
		return []report.RobotsStatus{report.RobotsUnreachable, report.RobotsWalled}
	case report.ReasonSiteDown:
		return []report.RobotsStatus{report.RobotsSiteDown, report.RobotsWalled}
	}
	return []report.RobotsStatus{report.RobotsRules, report.RobotsNone, report.RobotsWalled}
}

// maxStates bounds the states of a site.
const maxStates = 64

func newReplay(r *Report) *replay {
	return &replay{
		report:   r,
		rules:    newRulebook(),
		paces:    make(map[uint64]lastStart),
		sites:    make(map[uint64][]siteState),
		seed:     maphash.MakeSeed(),
		excepted: make(map[string]bool),

		permissions: make(map[uint64]int),
	}
}

// run checks the entries of all logs. It always takes the earliest one next.
func (p *replay) run(streams []*stream) {
	live := make([]*stream, 0, len(streams))
	for _, s := range streams {
		if s.advance() {
			live = append(live, s)
		}
	}
	for len(live) > 0 {
		first := 0
		for i, s := range live {
			if s.at.Before(live[first].at) {
				first = i
			}
		}
		s := live[first]
		p.entry(s)
		if !s.advance() {
			live = append(live[:first], live[first+1:]...)
		}
	}
	for _, s := range streams {
		s.forget()
	}
}

// entry checks the current entry of a log.
func (p *replay) entry(s *stream) {
	if n := s.entry.Log; n != nil {
		p.notice(s, n)
		return
	}
	e := s.entry.Event
	s.seen(e)
	switch e.Kind {
	case report.EventRobots:
		p.robots(s, e)
	case report.EventStarted:
		p.started(s, e)
	case report.EventAnswered:
		p.answered(s, e)
	case report.EventDenied:
		s.log.Denied++
		if e.Decision != nil {
			p.decision(s, e.Decision)
		}
	case report.EventMissed:
		p.report.add(s.finding(CheckComplete, "%d events are missing, because the listener was too slow", e.Count))
	}
}

// notice checks an entry about the log itself.
func (p *replay) notice(s *stream, n *Notice) {
	s.log.Closed = n.Kind == NoticeClosed
	switch n.Kind {
	case NoticeOpened:
		s.clock.id = n.Clock
		s.process++
		s.forget() // a process that was killed has not ended its requests
	case NoticeLost:
		p.report.add(s.finding(CheckComplete, "%d events are missing, because the disk could not be written", n.Count))
	}
}

// robots records a robots.txt.
func (p *replay) robots(s *stream, e *report.Event) {
	key := hash(p, e.URL)
	p.sites[key] = addState(p.sites[key], siteState{
		fetched: e.Fetched.Unix(),
		file:    hash(p, robotsFacts{hash: e.Hash, status: e.RobotsStatus}),
	})
	if s.entry.Body != "" {
		err := p.rules.learn(s.bodies, s.entry.Body)
		if err != nil {
			p.report.add(s.finding(CheckTree, "%v", err))
		}
	}
}

// addState adds a state, and drops the oldest one if there are too many. A site may send different
// files to different names in the same second.
func addState(states []siteState, state siteState) []siteState {
	if slices.Contains(states, state) {
		return states
	}
	if len(states) == maxStates {
		states = slices.Delete(states, 0, 1)
	}
	return append(states, state)
}

// decided reports whether one of the states has the time and the facts of a decision. timeKnown
// says whether one has the time.
func (p *replay) decided(states []siteState, d *report.Decision) (known, timeKnown bool) {
	for _, status := range statusesOf(d.Reason) {
		state := siteState{fetched: d.Fetched.Unix(), file: hash(p, robotsFacts{hash: d.Hash, status: status})}
		if slices.Contains(states, state) {
			return true, true
		}
	}
	return false, slices.ContainsFunc(states, func(s siteState) bool { return s.fetched == d.Fetched.Unix() })
}

// started checks a request that was sent.
func (p *replay) started(s *stream, e *report.Event) {
	s.log.Starts++
	s.open[p.exchange(e)]++
	p.gap(s, e)
	switch e.RequestKind {
	case report.RequestRobots, report.RequestSitemap, report.RequestTDM:
		return // files that the plugin reads have no decision
	}
	p.report.check(CheckRules).Checked++
	if e.Decision == nil {
		if e.RequestKind != report.RequestRetry { // a retry of robots.txt or of a sitemap has none
			p.report.add(s.finding(CheckRules, "the request was sent without a decision"))
		}
		return
	}
	if e.Decision.URL != e.URL {
		p.report.add(s.finding(CheckRules, "the decision is about %s", e.Decision.URL))
	}
	if !e.Decision.Allowed {
		p.report.add(s.finding(CheckRules, "the request was sent although it was denied: %v", e.Decision.Reason))
	}
	p.decision(s, e.Decision)
	p.rate(s, e)
	p.fresh(s, e.Decision)
}

// exchange identifies a request of a log until it ends.
func (p *replay) exchange(e *report.Event) uint64 {
	return hash(p, struct {
		url                string
		kind               report.RequestKind
		collector, request uint32
	}{e.URL, e.RequestKind, e.Collector, e.Request})
}

// answered checks the end of a request.
func (p *replay) answered(s *stream, e *report.Event) {
	p.report.check(CheckComplete).Checked++
	x := p.exchange(e)
	switch s.open[x] {
	case 0:
		p.report.add(s.finding(CheckComplete, "the request has ended but not started"))
	case 1:
		delete(s.open, x)
	default:
		s.open[x]--
	}
	if age := s.clock.age(e); e.RequestKind == report.RequestRobots && age > longest+slack {
		p.report.add(s.finding(CheckFresh, "the response was %v old, as its Date says: a cache has kept it", age.Round(time.Second)))
		return
	}
	if jump := s.clock.compare(e); jump != 0 {
		p.report.add(s.finding(CheckComplete, "the clock of the log and those of the servers differ by %v more than before", jump.Round(time.Second)))
	}
}

// A paceKey names what has one pace: a host, or a group of hosts.
type paceKey struct{ host, group string }

func paceOf(e *report.Event) paceKey {
	if e.Group != "" {
		return paceKey{group: e.Group}
	}
	return paceKey{host: e.Host}
}

// tolerance is how much a gap may be shorter than the delay, because times are rounded.
const tolerance = time.Millisecond

// gap checks the time since the last start of a request to the same host or group.
func (p *replay) gap(s *stream, e *report.Event) {
	key := hash(p, paceOf(e))
	before, known := p.paces[key]
	delay, source := before.inForce(e)
	latest := latestStart(e)
	gap := latest.Sub(before.at)
	now := lastStart{at: latest, log: s, process: s.process, delay: lasting(delay, source)}
	if before.overtook(now, e, gap) {
		now.at = before.at
	}
	p.paces[key] = now
	if !known {
		return
	}
	if d := e.Decision; d != nil && d.CrawlDelay > e.Delay {
		p.except(s, e.Host, "MaxCrawlDelay", fmt.Sprintf("the crawl delay of %v was capped at %v", d.CrawlDelay, e.Delay))
	}
	if before.log == s && e.Gap != 0 {
		passed := max(e.Gap, 0)
		if wasSet(gap, e) {
			p.report.add(s.finding(CheckComplete, "%s: the log shows %v since the last request to the host, and %v have passed", gapFault(gap), gap, passed))
			gap = passed
		}
		gap = min(gap, passed)
	}
	if e.Gap < 0 {
		gap = e.Time.Sub(before.at)
	}
	if delay == 0 {
		return
	}
	if e.Gap < 0 && gap < 0 { // which requests came just before and after it is not known
		p.report.check(CheckDelay).Unchecked++
		return
	}
	uncertain, known := before.log.clock.uncertainty(&s.clock, e.Host)
	if !known {
		p.report.check(CheckDelay).Unchecked++
		return
	}
	p.report.check(CheckDelay).Checked++
	if gap+uncertain < delay-tolerance {
		p.report.add(s.finding(CheckDelay, "%v after the last request to the host, but the delay was %v (%s)", gap, delay, source))
	}
}

// latestStart returns the time of the latest request to the host or group of a started event. This
// is the time of the event, unless its Gap is negative: then a later request is already in the log.
func latestStart(e *report.Event) time.Time { return e.Time.Add(max(-e.Gap, 0)) }

// overtook reports whether the log has last before now, although that request started later. The
// events of two plugins with one log may come in any order, and some transports do not report when
// a request starts. e is the event of now, and gap is the time since last.
func (last lastStart) overtook(now lastStart, e *report.Event, gap time.Duration) bool {
	sameClock := last.log == now.log && last.process == now.process
	return sameClock && gap < 0 && (e.Gap == 0 || gap >= -clockTolerance)
}

// wasSet reports whether the gap between two times and the monotonic clock of the process disagree.
// When a host joins a group, the Gap may count from its own last request, so only a time that went
// back says something about a group.
func wasSet(gap time.Duration, e *report.Event) bool {
	forward := e.Group == "" && gap > max(e.Gap, 0)+clockTolerance
	return gap < -clockTolerance || forward
}

// rate compares the delay in force with the Request-rate of the robots.txt, if the dialect has that.
func (p *replay) rate(s *stream, e *report.Event) {
	if e.Decision.Hash == "" {
		return
	}
	group, err := p.rules.group(e.Decision)
	if err != nil || group.Schedule() == nil {
		return // decision has reported the error
	}
	rate, _, _ := group.Schedule().At(e.Time)
	if rate.Delay > e.Delay {
		p.except(s, e.Host, "MaxCrawlDelay", fmt.Sprintf("the request rate of one in %v was capped at %v", rate.Delay, e.Delay))
	}
}

// gapFault says why the clock of a log and the monotonic clock of its process show different gaps.
func gapFault(gap time.Duration) string {
	if gap < 0 {
		return "the clock was set back"
	}
	return "the clock was set forward, or a request is missing"
}

// except adds an exception, once for each host and option.
func (p *replay) except(s *stream, host, option, text string) {
	key := option + " " + host
	if p.excepted[key] || len(p.excepted) >= maxFindings {
		return
	}
	p.excepted[key] = true
	f := s.finding(CheckRules, "%s: %s", option, text)
	p.report.Exceptions = append(p.report.Exceptions, f)
}

// decision decides again, and compares.
func (p *replay) decision(s *stream, d *report.Decision) {
	host := s.entry.Event.Host
	if d.Option != "" {
		p.except(s, host, d.Option, "the option decided in place of the site")
	}
	switch d.Reason {
	case report.ReasonIgnored:
		p.except(s, host, "IgnoreRobots", "robots.txt was not requested")
		p.permission(s, d.Permission)
		return
	case report.ReasonRule, report.ReasonNoRule, report.ReasonDelay:
	default:
		return // the page was denied for another reason, or there are no rules; see fresh
	}
	s.log.add(Reading{Dialect: d.Dialect, Token: d.Token})
	if isConcealed(d.URL) || isClipped(d.URL) {
		p.report.check(CheckRules).Unchecked++
		return
	}
	text := p.rules.disagrees(d)
	if text != "" {
		p.report.add(s.finding(CheckRules, "%s", text))
	}
}

// permission counts a request that was sent because of a permission, and checks that the permission had not
// ended.
func (p *replay) permission(s *stream, by *report.Permission) {
	if by == nil {
		p.report.add(s.finding(CheckRules, "robots.txt was ignored without a permission"))
		return
	}
	if s.at.Sub(by.Until) > slack {
		p.report.add(s.finding(CheckRules, "the %v had ended", by))
	}
	host := s.entry.Event.Host
	key := hash(p, host+"\n"+by.String())
	i, known := p.permissions[key]
	if !known {
		if len(p.permissions) >= maxFindings {
			return
		}
		i = len(p.permissions)
		p.permissions[key] = i
		shown := report.Permission{By: shorten(by.By), Reference: shorten(by.Reference), Until: by.Until}
		p.report.Permissions = append(p.report.Permissions, PermissionReport{Permission: shown, Host: shorten(host)})
	}
	p.report.Permissions[i].Requests++
}

// slack is how long after Expires a robots.txt may be used: the plugin uses it while it reads the
// new one, and for one request of a host whose delay is longer than the file is valid.
const slack = time.Minute

// longest is how long a robots.txt may be valid in any dialect: a day (RFC 9309, section 2.4; Google
// has the same).
const longest = 24 * time.Hour

// fresh checks that the robots.txt of a decision was known and fresh.
func (p *replay) fresh(s *stream, d *report.Decision) {
	if d.Reason == report.ReasonIgnored || d.Option == "RobotsTxt" {
		return
	}
	p.report.check(CheckFresh).Checked++
	states := p.sites[hash(p, d.RobotsURL)]
	if states == nil {
		p.report.add(s.finding(CheckComplete, "nothing was known about %s when the request was sent", d.RobotsURL))
		return
	}
	known, timeKnown := p.decided(states, d)
	switch {
	case !timeKnown:
		p.report.add(s.finding(CheckFresh, "the log has no %s of %s", d.RobotsURL, d.Fetched.UTC().Format(time.DateTime)))
	case !known:
		p.report.add(s.finding(CheckFresh, "the decision was not made by the %s of %s", d.RobotsURL, d.Fetched.UTC().Format(time.DateTime)))
	}
	if late := s.at.Sub(d.Expires); late > slack+d.Delay {
		p.report.add(s.finding(CheckFresh, "%s had expired %v before", d.RobotsURL, late.Round(time.Second)))
	}
	if d.Hash != "" && s.at.Sub(d.Fetched) > longest+slack+d.Delay && d.Err == nil {
		p.report.add(s.finding(CheckFresh, "%s was %v old", d.RobotsURL, s.at.Sub(d.Fetched).Round(time.Second)))
	}
}
