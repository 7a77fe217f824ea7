package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestManyHosts: four processes with pages for all of many hosts keep to the delay of each, and
// waste at most a tenth of what the delays allow.
func TestManyHosts(t *testing.T) {
	const processes, delay, window = 4, time.Second, 5 * time.Second
	hosts := 1000
	if raceEnabled {
		hosts = 100 // the same in slow motion
	}
	s, web := newServer(t), newSite(t)
	for n := range processes {
		newWorker(t, job{Name: fmt.Sprint(n), Redis: s.addr, Site: web.addr, Delay: delay, Hosts: hosts, Lease: 10 * time.Second})
	}
	time.Sleep(settled + 2*delay)
	scripts, cpu, from, began := s.scripts(t), s.cpu(t), web.count(), time.Now()
	time.Sleep(window)
	took := time.Since(began)
	scripts, cpu, starts := s.scripts(t)-scripts, s.cpu(t)-cpu, web.count()-from
	t.Logf("%d hosts: %d starts in %v, %d scripts (%.1f a start), %v of a core for Redis", hosts, starts, took.Round(time.Millisecond), scripts, float64(scripts)/float64(starts), cpu)
	gaps := web.gaps(began)
	slices.Sort(gaps)
	t.Logf("gaps: smallest %v, median %v, 99 of 100 under %v", web.gap(t, delay), gaps[len(gaps)/2], gaps[len(gaps)*99/100])
	if median := gaps[len(gaps)/2]; median > delay*11/10 {
		t.Errorf("half of the gaps are over %v", median)
	}
}

// scripts returns how many scripts a server has run.
func (s *server) scripts(t *testing.T) (n int) {
	t.Helper()
	text := fmt.Sprint(s.do(t, "INFO", "commandstats"))
	for _, name := range []string{"evalsha", "eval"} {
		calls, _, _ := strings.Cut(fieldOf(text, "cmdstat_"+name), ",")
		var some int
		_, _ = fmt.Sscanf(calls, "calls=%d", &some)
		n += some
	}
	return n
}

// cpu returns the time a server has computed for.
func (s *server) cpu(t *testing.T) time.Duration {
	t.Helper()
	text := fmt.Sprint(s.do(t, "INFO", "cpu"))
	var sum time.Duration
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		d, err := time.ParseDuration(fieldOf(text, name) + "s")
		if err != nil {
			t.Fatal(err)
		}
		sum += d
	}
	return sum
}

// count returns how many visits there were to all hosts.
func (s *site) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, visits := range s.log {
		n += len(visits)
	}
	return n
}

// gaps returns the times between visits of the same host since a time.
func (s *site) gaps(since time.Time) (gaps []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, visits := range s.log {
		for i := range len(visits) - 1 {
			if visits[i].at.After(since) {
				gaps = append(gaps, visits[i+1].at.Sub(visits[i].at))
			}
		}
	}
	return gaps
}
