package netguard

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxRequests is how many requests to other sites a host may cause in quotaTime.
	maxRequests = 200
	// maxDomains is how many registrable domains these requests may go to.
	maxDomains = 10
	// quotaTime is the time after which the requests of a host are counted anew.
	quotaTime = 24 * time.Hour
	// maxCounts bounds the number of hosts whose requests are counted; see Quota.forget.
	maxCounts = 1 << 15
)

// A Quota limits how many requests to other sites each host causes, for example by naming sitemaps
// of other sites. Hosts of one registrable domain belong to the same site.
type Quota struct {
	domain func(host string) string
	cause  error

	// mu protects counts.
	mu     sync.Mutex
	counts map[string]*count // by the host that causes the requests
}

// A count holds the requests that a host has caused.
type count struct {
	since    time.Time
	requests int
	domains  []string // the registrable domains that they went to
}

// NewQuota returns a Quota without counted requests. domain returns the registrable domain of a
// host. cause is what each QuotaError unwraps to.
func NewQuota(domain func(host string) string, cause error) *Quota {
	return &Quota{domain: domain, cause: cause}
}

// A QuotaError says that a request is not sent because of a Quota.
type QuotaError struct {
	From string // the host that has led to the request
	Host string // the host that the request is for

	used  string
	cause error
}

// Error says how much of the quota From has used.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("collyrobots: %s leads to %s but has already caused %s in 24 hours: %v", e.From, e.Host, e.used, e.cause)
}

// Unwrap returns the cause that was passed to NewQuota.
func (e *QuotaError) Unwrap() error { return e.cause }

// Applies reports whether a request to host, which from leads to, is counted: host belongs to
// another site. from is empty if the program has made the request itself.
func (q *Quota) Applies(from, host string) bool {
	if from == "" || from == host {
		return false
	}
	return q.domain(strings.ToLower(from)) != q.domain(strings.ToLower(host))
}

// Check returns a *QuotaError if the Quota applies and from may not cause a request to host.
func (q *Quota) Check(from, host string) error {
	if !q.Applies(from, host) {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, err := q.find(from, host)
	return err
}

// Charge is like Check but also counts the request. It must only be called if the Quota applies.
func (q *Quota) Charge(from, host string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, err := q.find(from, host)
	if err != nil {
		return err
	}
	c.requests++
	if domain := q.domain(host); !slices.Contains(c.domains, domain) {
		c.domains = append(c.domains, strings.Clone(domain))
	}
	return nil
}

// find returns the count of from. If from may not cause a request to host, find returns an error.
// q.mu is held.
func (q *Quota) find(from, host string) (*count, error) {
	now := time.Now()
	c := q.counts[from]
	if c == nil || now.Sub(c.since) >= quotaTime {
		c = q.add(from, now)
	}
	used := ""
	switch {
	case c.requests >= maxRequests:
		used = fmt.Sprintf("%d requests", maxRequests)
	case len(c.domains) >= maxDomains && !slices.Contains(c.domains, q.domain(host)):
		used = fmt.Sprintf("requests to %d domains", maxDomains)
	default:
		return c, nil
	}
	return nil, &QuotaError{From: from, Host: host, used: used, cause: q.cause}
}

// add starts a new count for from. q.mu is held.
func (q *Quota) add(from string, now time.Time) *count {
	if q.counts == nil {
		q.counts = make(map[string]*count)
	}
	if len(q.counts) >= maxCounts {
		q.forget(now)
	}
	c := &count{since: now}
	q.counts[strings.Clone(from)] = c
	return c
}

// forget forgets a quarter of the hosts, those that have caused the fewest requests, and the hosts
// whose time has passed. A host that has used up its quota is forgotten last: otherwise many other
// hosts could give it a new one. q.mu is held.
func (q *Quota) forget(now time.Time) {
	var used []int
	for from, c := range q.counts {
		if now.Sub(c.since) >= quotaTime {
			delete(q.counts, from)
			continue
		}
		used = append(used, c.used())
	}
	slices.Sort(used)
	spare := len(q.counts) - maxCounts*3/4
	if spare <= 0 {
		return
	}
	least := used[spare-1]
	for from, c := range q.counts {
		if spare > 0 && c.used() <= least {
			delete(q.counts, from)
			spare--
		}
	}
}

// used returns how much of the quota a host has used, as a number of requests.
func (c *count) used() int { return max(c.requests, len(c.domains)*maxRequests/maxDomains) }
