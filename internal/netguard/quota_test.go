package netguard

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errQuota = errors.New("too many")

// newTestQuota returns a Quota that takes the last two labels of a host for its domain.
func newTestQuota() *Quota {
	return NewQuota(func(host string) string {
		labels := strings.Split(host, ".")
		return strings.Join(labels[max(0, len(labels)-2):], ".")
	}, errQuota)
}

// charge charges n requests and returns how many were accepted.
func charge(q *Quota, from, host string, n int) (accepted int) {
	for range n {
		if q.Charge(from, host) == nil {
			accepted++
		}
	}
	return accepted
}

func TestQuotaOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestQuota()
		if got := charge(q, "a.test", "b.test", 300); got != 200 {
			t.Errorf("%d requests, want 200", got)
		}
		err := q.Check("a.test", "c.test")
		quota := (*QuotaError)(nil)
		if !errors.As(err, &quota) || quota.From != "a.test" || quota.Host != "c.test" || !errors.Is(err, errQuota) {
			t.Errorf("%v", err)
		}
		if got := charge(q, "other.test", "b.test", 300); got != 200 {
			t.Errorf("%d requests of another site, want 200", got)
		}
		time.Sleep(24*time.Hour - time.Nanosecond)
		if q.Check("a.test", "b.test") == nil {
			t.Error("a request is accepted within 24 hours")
		}
		time.Sleep(time.Nanosecond)
		if got := charge(q, "a.test", "b.test", 300); got != 200 {
			t.Errorf("%d requests on the next day, want 200", got)
		}
	})
}

func TestQuotaOfDomains(t *testing.T) {
	q := newTestQuota()
	for i := range 12 {
		err := q.Charge("a.test", fmt.Sprintf("www.b%d.test", i))
		if want := i < 10; want != (err == nil) {
			t.Errorf("domain %d: %v", i, err)
		}
	}
	if err := q.Charge("a.test", "cdn.b3.test"); err != nil {
		t.Errorf("another host of a domain: %v", err)
	}
}

func TestQuotaApplies(t *testing.T) {
	q := newTestQuota()
	charge(q, "a.test", "b.test", 200)
	for _, test := range []struct {
		from, host string
		want       bool
	}{
		{"a.test", "b.test", true},
		{"a.test", "a.test", false},
		{"a.test", "www.a.test", false},
		{"a.test", "WWW.A.test", false},
		{"", "b.test", false},
	} {
		if got := q.Applies(test.from, test.host); got != test.want {
			t.Errorf("Applies(%q, %q) = %v", test.from, test.host, got)
		}
		if err := q.Check(test.from, test.host); test.want != (err != nil) {
			t.Errorf("Check(%q, %q) = %v", test.from, test.host, err)
		}
	}
}

// TestQuotaOfManyHosts checks that many other hosts do not give a host a new quota, and that the
// number of hosts that are counted is bounded.
func TestQuotaOfManyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestQuota()
		charge(q, "requests.test", "b.test", maxRequests)
		for i := range maxDomains {
			charge(q, "domains.test", fmt.Sprintf("b%d.test", i), 1)
		}
		for i := range 3 * maxCounts {
			charge(q, fmt.Sprintf("h%d.test", i), "b.test", 1)
			if len(q.counts) > maxCounts {
				t.Fatalf("%d hosts are counted", len(q.counts))
			}
		}
		for from, to := range map[string]string{"requests.test": "b.test", "domains.test": "other.test"} {
			if q.Check(from, to) == nil {
				t.Errorf("%s has a new quota", from)
			}
		}
		time.Sleep(quotaTime)
		for i := range maxCounts {
			charge(q, fmt.Sprintf("n%d.test", i), "b.test", 1)
		}
		if q.counts["requests.test"] != nil || q.Check("requests.test", "b.test") != nil {
			t.Error("the quota of the day before is counted")
		}
	})
}
