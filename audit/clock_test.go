package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// TestVerifyClocks checks that Verify compares the clock of a log with the clocks of the servers.
func TestVerifyClocks(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		hosts int
		// clock and server return the error of the clock of the log, and of that of a server, when
		// the n-th page is requested.
		clock  func(n int) time.Duration
		server func(host, n int) time.Duration
		want   int // jumps that are found
	}{
		{"all clocks are right", 5, never, noServer, 0},
		{"servers have wrong clocks", 5, never, func(host, _ int) time.Duration { return time.Duration(host) * time.Hour }, 0},
		{"a server sets its clock", 5, never, func(host, n int) time.Duration { return time.Duration(n/30*host/4) * time.Hour }, 0},
		{"the clock of the log is set back", 5, func(n int) time.Duration { return time.Duration(n/30) * -time.Hour }, noServer, 1},
		{"the clock of the log is set forward", 5, func(n int) time.Duration { return time.Duration(n/30) * time.Minute }, noServer, 1},
		{"the clock of the log is set twice", 5, func(n int) time.Duration { return time.Duration(n/20) * time.Minute }, noServer, 2},
		{"there is one host", 1, func(n int) time.Duration { return time.Duration(n/30) * time.Minute }, noServer, 1},
		{"the clock of the log runs too fast", 5, func(n int) time.Duration { return time.Duration(n) * 400 * time.Millisecond }, noServer, 2},
		{"the clock of the log runs too fast, and there is one host", 1, func(n int) time.Duration { return time.Duration(n) * 2 * time.Second }, noServer, 14},
		{"the clock of the log runs too slowly", 5, func(n int) time.Duration { return time.Duration(n) * -400 * time.Millisecond }, noServer, 2},
		{"a server's clock runs too fast", 5, never, func(host, n int) time.Duration { return time.Duration(host/4*n) * time.Second }, 0},
		{"the clock drifts", 5, func(n int) time.Duration { return time.Duration(n) * 50 * time.Millisecond }, noServer, 0},
	} {
		var all []*report.Event
		for n := range 60 {
			host := n % test.hosts
			name := fmt.Sprintf("host%d.test", host)
			at := start.Add(time.Duration(n) * 10 * time.Second)
			e := &report.Event{Kind: report.EventStarted, Time: at.Add(test.clock(n)), Host: name, URL: "http://" + name + "/robots.txt", RequestKind: report.RequestRobots}
			end := cloned(e)
			end.Kind = report.EventAnswered
			end.Date = at.Add(test.server(host, n)).Truncate(time.Second)
			all = append(all, e, end)
		}
		dir := t.TempDir()
		forge(t, dir, all...)
		_, faults := verify(t, dir)
		jumps := 0
		for _, f := range faults {
			if strings.Contains(f, "those of the servers differ") {
				jumps++
			}
		}
		if jumps != test.want || len(faults) != jumps {
			t.Errorf("%s: %d jumps were found, want %d:\n%s", test.name, jumps, test.want, strings.Join(faults, "\n"))
		}
	}
}

func never(int) time.Duration         { return 0 }
func noServer(int, int) time.Duration { return 0 }
