package view

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// pick gives hosts to a picker.
func pick(q question, hosts []report.HostStats) *picker {
	p := &picker{question: q, now: then}
	for _, host := range hosts {
		p.add(host)
	}
	return p
}

func TestQuestions(t *testing.T) {
	hosts := []report.HostStats{
		{Host: "a.test", HostCounts: report.HostCounts{Pages: 5, GapOverDelay: 1.5}, Delay: time.Second},
		{Host: "b.test", HostCounts: report.HostCounts{Pages: 9}, Delay: time.Minute, Waiting: 2, NextStart: then.Add(30 * time.Second)},
		{Host: "c.org", HostCounts: report.HostCounts{Pages: 1, GapOverDelay: 1.1}, Delay: 20 * time.Second, Waiting: 4, NextStart: then},
		{Host: "d.test", HostCounts: report.HostCounts{Pages: 9, Denied: 3}},
	}
	for _, test := range []struct {
		query, want string
		matching    int
	}{
		{"", "b.test c.org a.test d.test", 4},
		{"sort=left&n=2", "b.test c.org", 4},
		{"sort=-left&n=2", "d.test a.test", 4},
		{"sort=done", "b.test d.test a.test c.org", 4},
		{"sort=host&q=TEST", "a.test b.test d.test", 3},
		{"sort=-host", "d.test c.org b.test a.test", 4},
		{"sort=gap", "c.org a.test b.test d.test", 4},
		{"sort=denied&n=1", "d.test", 4},
		{"sort=nonsense&n=-7&q=.ORG", "c.org", 1},
		{"q=nowhere", "", 0},
	} {
		q := questionOf(httptest.NewRequest("GET", "/?"+test.query, nil))
		var got []string
		picked := pick(q, hosts)
		for _, h := range picked.best {
			got = append(got, h.Host)
		}
		if strings.Join(got, " ") != test.want || picked.matching != test.matching {
			t.Errorf("%s: %q of %d, want %q of %d", test.query, got, picked.matching, test.want, test.matching)
		}
	}
	if q := questionOf(httptest.NewRequest("GET", "/?n=1000000&q="+strings.Repeat("x", 9999), nil)); q.n != maxRows || len(q.q) != maxQ {
		t.Errorf("n is %d, q has %d bytes", q.n, len(q.q))
	}
}

// TestPickOfMany checks that pick finds the first hosts among many that are in no order.
func TestPickOfMany(t *testing.T) {
	hosts := make([]report.HostStats, 100_000)
	for i := range hosts {
		hosts[i] = report.HostStats{Host: fmt.Sprintf("h%05d.test", i), HostCounts: report.HostCounts{Pages: i * 7919 % len(hosts)}}
	}
	picked := pick(question{sort: "done", n: 3}, hosts)
	best := picked.best
	if picked.matching != len(hosts) || len(best) != 3 || best[0].Pages != 99_999 || best[1].Pages != 99_998 || best[2].Pages != 99_997 {
		t.Errorf("%d: %+v", picked.matching, best)
	}
}
