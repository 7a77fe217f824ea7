package figures

import (
	"reflect"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// reading returns a Sampler that reads the given Stats.
func reading(stats *report.Stats) *Sampler {
	return &Sampler{read: func(visit func(report.HostStats)) report.Stats {
		for _, host := range stats.Hosts {
			visit(host)
		}
		read := *stats
		read.Hosts = nil
		return read
	}}
}

func TestSampleOfHosts(t *testing.T) {
	s := reading(&report.Stats{
		Totals: report.HostStats{HostCounts: report.HostCounts{Pages: 4, Refusals: 2}},
		Hosts: []report.HostStats{
			{Waiting: 3}, {BackOff: time.Second}, {NotBefore: time.Now(), Waiting: 1}, {Stopped: time.Now()},
			{Group: "shops.test", BackOff: time.Second, HostCounts: report.HostCounts{Throttled: 1}}, {Group: "shops.test", BackOff: time.Second},
		},
		NotFed: map[string][]string{"old": {"http://a.test/"}},
	}).Read()
	if s.Known != 6 || s.Waiting != 2 || s.Slowed != 3 || s.Stopped != 1 || s.Totals.Refusals != 2 || s.Totals.Pages != 4 || s.Hosts != nil || s.NotFed != nil {
		t.Errorf("%+v", s)
	}
}

// TestCountersDoNotFall checks that counters do not decrease if Stats once misses a host.
// Prometheus treats a counter that decreases as restarted, and would count its whole value again.
func TestCountersDoNotFall(t *testing.T) {
	var stats report.Stats
	sampler := reading(&stats)
	sample := func(pages int, waited time.Duration, gap float64) *Sample {
		counts := report.HostCounts{Pages: pages, Failed: pages, Waited: waited}
		stats = report.Stats{Totals: report.HostStats{HostCounts: counts}, GapOverDelay: gap}
		sampler.until = time.Time{}
		return sampler.Read()
	}
	sample(1000, time.Hour, 1)
	second := sample(990, time.Minute, 0)
	if second.Totals.Pages != 1000 || second.Totals.Failed != 1000 || second.Totals.Waited != time.Hour || second.GapOverDelay != 1 {
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
	var stats report.FeedStats
	counts := reflect.ValueOf(&stats).Elem()
	for i := range counts.NumField() {
		counts.Field(i).SetInt(1)
		found := 0
		for _, f := range sampled {
			for _, labels := range f.Series() {
				if value, ok := f.Read(&Sample{Stats: report.Stats{Sitemaps: stats}}, labels[0]); ok && value == 1 {
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

// TestSignals checks that each count of pages with preferences, robots tags and signatures is in one
// series.
func TestSignals(t *testing.T) {
	stats := report.Stats{
		Usage: &report.UsageStats{
			Search:  report.UsageCounts{Allowed: 100, Disallowed: 1, Unknown: 100},
			AIUse:   report.UsageCounts{Disallowed: 2},
			TrainAI: report.UsageCounts{Disallowed: 3},
		},
		LicenseRequired: 4,
		RobotsTags:      report.RobotsTagStats{Pages: 100, NoIndex: 5, NoFollow: 6},
		Signatures:      &report.SignatureStats{Signed: 7, Failed: 8, Asked: 100, Hosts: 100},
	}
	want := map[string]float64{
		"collyrobots.disallowed_uses search": 1, "collyrobots.disallowed_uses ai-use": 2, "collyrobots.disallowed_uses train-ai": 3,
		"collyrobots.licenses_required ": 4, "collyrobots.tagged_pages noindex": 5, "collyrobots.tagged_pages nofollow": 6,
		"collyrobots.signatures signed": 7, "collyrobots.signatures failed": 8,
	}
	for _, f := range sampled {
		for _, labels := range f.Series() {
			name := f.Name + " " + labels[0]
			value, ok := f.Read(&Sample{Stats: stats}, labels[0])
			if ok && value != want[name] {
				t.Errorf("%s: got %v, want %v", name, value, want[name])
			}
			nothing, ok := f.Read(&Sample{}, labels[0])
			if ok && nothing != 0 {
				t.Errorf("%s: got %v of nothing", name, nothing)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no figure has %v", want)
	}
}
