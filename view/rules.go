package view

import (
	"time"
)

const (
	maxRules     = 200 // rules and other reasons
	maxRuleHosts = 256 // hosts that are counted for each rule, and for each reason of failed pages
)

// A deniedRule has the denials of all hosts by one rule or other reason. The same rule in several
// robots.txt files is one rule.
type deniedRule struct {
	Reason  string `json:"reason"` // as in denial
	Allow   bool   `json:"allow,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Option  string `json:"option,omitempty"` // as in denial
	tally
}

// A tally counts what happened to the pages of some hosts.
type tally struct {
	Count int       `json:"count"`
	Hosts int       `json:"hosts"`                // at most maxRuleHosts
	More  bool      `json:"more_hosts,omitempty"` // whether there may be more hosts
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	hosts map[string]struct{}
}

func newTally(at time.Time) tally { return tally{First: at, hosts: make(map[string]struct{})} }

type ruleKey struct {
	reason, pattern, option string
	allow                   bool
}

func (d *denial) rule() ruleKey {
	return ruleKey{reason: d.Reason, pattern: d.Pattern, option: d.Option, allow: d.Allow}
}

// deniedByRule counts a denial.
func (r *recorder) deniedByRule(d *denial, at time.Time) {
	rule, _ := r.rules.touch(d.rule(), func() *deniedRule { return newRule(d, at) })
	rule.add(d.Host, 1, at)
}

func newRule(d *denial, at time.Time) *deniedRule {
	return &deniedRule{Reason: d.Reason, Allow: d.Allow, Pattern: d.Pattern, Option: d.Option, tally: newTally(at)}
}

// add counts n pages of a host.
func (t *tally) add(host string, n int, at time.Time) {
	t.Count += n
	t.Last = at
	if _, ok := t.hosts[host]; ok {
		return
	}
	if len(t.hosts) == maxRuleHosts {
		t.More = true
		return
	}
	t.hosts[host] = struct{}{}
	t.Hosts = len(t.hosts)
}

// rulesFor returns the rules, the one that has denied most recently first. If the question selects
// hosts, it counts the latest denials of these hosts. r.mu must be held.
func (r *recorder) rulesFor(q question) []deniedRule {
	found := []deniedRule{}
	if q.q == "" {
		for d := range r.rules.all() {
			if len(found) < maxListed {
				found = append(found, *d)
			}
		}
		return found
	}
	at := make(map[ruleKey]int) // indexes of found
	for d := range r.denials.all() {
		if !q.matches(d.Host) {
			continue
		}
		i, ok := at[d.rule()]
		if !ok {
			i = len(found)
			at[d.rule()] = i
			found = append(found, *newRule(d, d.First))
			found[i].add(d.Host, d.Count, d.Last)
			continue
		}
		last := found[i].Last // the first denial is the latest one
		found[i].add(d.Host, d.Count, last)
		if d.First.Before(found[i].First) {
			found[i].First = d.First
		}
	}
	return found
}
