package figures

import (
	"reflect"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
)

// reading returns a Sampler that reads the given Stats.
func reading(stats *collyrobots.Stats) *Sampler {
	return &Sampler{read: func(visit func(collyrobots.HostStats)) collyrobots.Stats {
		for _, host := range stats.Hosts {
			visit(host)
		}
		read := *stats
		read.Hosts = nil
		return read
	}}
}

func TestSampleOfHosts(t *testing.T) {
	s := reading(&collyrobots.Stats{
		Totals: collyrobots.HostStats{Pages: 4, Refusals: 2},
		Hosts: []collyrobots.HostStats{
			{Waiting: 3}, {BackOff: time.Second}, {NotBefore: time.Now(), Waiting: 1}, {Stopped: time.Now()},
		},
		NotFed: map[string][]string{"old": {"http://a.test/"}},
	}).Read()
	if s.Known != 4 || s.Waiting != 2 || s.Slowed != 2 || s.Stopped != 1 || s.Totals.Refusals != 2 || s.Totals.Pages != 4 || s.Hosts != nil || s.NotFed != nil {
		t.Errorf("%+v", s)
	}
}

// TestCountersDoNotFall checks that counters do not decrease if Stats once misses a host.
// Prometheus treats a counter that decreases as restarted, and would count its whole value again.
func TestCountersDoNotFall(t *testing.T) {
	var stats collyrobots.Stats
	sampler := reading(&stats)
	sample := func(pages int, waited time.Duration, gap float64) *Sample {
		stats = collyrobots.Stats{Totals: collyrobots.HostStats{Pages: pages, Waited: waited}, GapOverDelay: gap}
		sampler.until = time.Time{}
		return sampler.Read()
	}
	sample(1000, time.Hour, 1)
	second := sample(990, time.Minute, 0)
	if second.Totals.Pages != 1000 || second.Totals.Waited != time.Hour || second.GapOverDelay != 1 {
		t.Errorf("%+v", second.Totals)
	}
	third := sample(1001, 2*time.Hour, 1.5)
	if third.Totals.Pages != 1001 || third.Totals.Waited != 2*time.Hour || third.GapOverDelay != 1 {
		t.Errorf("%+v", third.Totals)
	}
}

func TestSamplerReadsSeldom(t *testing.T) {
	s := NewSampler(nil)
	began := time.Now()
	first := s.Read()
	if took := time.Since(began); s.until.Sub(began) > (share+1)*took {
		t.Errorf("a sample that took less than %v is used for %v", took, s.until.Sub(began))
	}
	s.until = time.Now().Add(time.Minute)
	if s.Read() != first {
		t.Error("Stats was read again too soon")
	}
	s.until = time.Now()
	if s.Read() == first {
		t.Error("Stats was not read again")
	}
}

// TestOutcomesOfSitemaps checks that each count of FeedStats is in one figure.
func TestOutcomesOfSitemaps(t *testing.T) {
	var stats collyrobots.FeedStats
	counts := reflect.ValueOf(&stats).Elem()
	for i := range counts.NumField() {
		counts.Field(i).SetInt(1)
		found := 0
		for _, f := range sampled {
			for _, labels := range f.Series() {
				if value, ok := f.Read(&Sample{Stats: collyrobots.Stats{Sitemaps: stats}}, labels[0]); ok && value == 1 {
					found++
				}
			}
		}
		if found != 1 {
			t.Errorf("%s is in %d figures", counts.Type().Field(i).Name, found)
		}
		counts.Field(i).SetInt(0)
	}
}
