package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestManyHosts checks that no gap is shorter than the delay when four processes share many hosts.
// With a hundred hosts, it also checks that the median gap is not much longer than the delay; with
// a thousand, the machine may be too slow for that.
func TestManyHosts(t *testing.T) {
	const processes, delay, window = 4, time.Second, 4 * time.Second
	for _, hosts := range []int{100, 1000} {
		if raceEnabled && hosts > 100 {
			continue // too slow with the race detector
		}
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			s, web := newServer(t), newSite(t)
			for n := range processes {
				newWorker(t, job{Name: fmt.Sprint(n), Redis: s.addr, Site: web.addr, Delay: delay, Hosts: hosts, Lease: 10 * time.Second})
			}
			time.Sleep(settled + 2*delay)
			scripts := s.scripts(t)
			cpu := s.cpu(t)
			from := web.count()
			began := time.Now()
			late := lateness()
			time.Sleep(window)
			took := time.Since(began)
			over := late()
			scripts = s.scripts(t) - scripts
			cpu = s.cpu(t) - cpu
			starts := web.count() - from
			t.Logf("%d hosts: %d starts in %v, %d scripts (%.1f for each start), %v of a core for Redis", hosts, starts, took.Round(time.Millisecond), scripts, float64(scripts)/float64(starts), cpu)
			gaps := web.gaps(began)
			slices.Sort(gaps)
			median := gaps[len(gaps)/2]
			t.Logf("gaps: smallest %v, p50 %v, p99 %v", web.gap(t, delay), median, gaps[len(gaps)*99/100])
			if hosts == 100 && median > delay*12/10+over/2 {
				t.Errorf("the median gap is %v; the machine was %v late", median, over)
			}
		})
	}
}

// scripts returns how many scripts the server has run.
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

// cpu returns the CPU time that the server has used.
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

// count returns the number of visits to all hosts.
func (s *site) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, visits := range s.log {
		n += len(visits)
	}
	return n
}

// gaps returns the times between successive visits to each host, starting at a given time.
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
