package view

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// BenchmarkHear measures the work of the listener for one page, which starts and is answered.
func BenchmarkHear(b *testing.B) {
	r, i := newRecorder(), 0
	for b.Loop() {
		e := started("a.test", time.Duration(i)*time.Millisecond, 0)
		r.hear(e)
		e.Kind, e.Status = report.EventAnswered, 200
		r.hear(e)
		i++
	}
}

// BenchmarkMessage measures one message of a stream with fifty hosts that have ten new dots each.
func BenchmarkMessage(b *testing.B) {
	h := New(nil, Options{})
	q := question{sort: "left", n: rows}
	hosts := picker{question: q, now: then}
	for i := range rows {
		hosts.add(report.HostStats{Host: fmt.Sprintf("h%d.test", i), Delay: time.Second, Waiting: i, HostCounts: report.HostCounts{GapOverDelay: 1}})
	}
	var told cursor
	at := time.Duration(0)
	for b.Loop() {
		for i := range 10 * rows {
			at += 10 * time.Millisecond
			h.recorder.hear(started(hosts.best[i%rows].Host, at, time.Second))
		}
		h.sampler.keep(q, &sample{hosts: hosts, at: then, until: time.Now().Add(time.Hour)})
		if _, err := json.Marshal(h.stateFor(q, &told)); err != nil {
			b.Fatal(err)
		}
	}
}
