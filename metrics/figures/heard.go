package figures

import (
	"strconv"

	"github.com/collyrobots/collyrobots/report"
)

// These figures are counted by Hear.
var (
	Requests = &Figure{
		Name: "collyrobots.requests", Unit: "{request}", Labels: []Label{requestKind},
		Help: "Requests sent, by kind",
	}
	Gaps = &Figure{
		Name: "collyrobots.request.gap", Unit: "s", Kind: Histogram, Buckets: delayBuckets,
		Help: "Time between the starts of two successive requests to one host while a delay is in force",
	}
	Delays = &Figure{
		Name: "collyrobots.request.delay", Unit: "s", Kind: Histogram, Labels: []Label{source}, Buckets: delayBuckets,
		Help: "Delay in force when a request starts after another request to the same host, by source of the delay",
	}
	Responses = &Figure{
		Name: "collyrobots.responses", Unit: "{response}", Labels: []Label{requestKind, class},
		Help: "Completed requests, by kind and status class",
	}
	Durations = &Figure{
		Name: "collyrobots.response.duration", Unit: "s", Kind: Histogram, Labels: []Label{requestKind}, Buckets: durationBuckets,
		Help: "Time from the start of a request to the end of the response body",
	}
	Bytes = &Figure{
		Name: "collyrobots.response.size", Unit: "By", Labels: []Label{requestKind},
		Help: "Bytes read from response bodies",
	}
	Denials = &Figure{
		Name: "collyrobots.denials", Unit: "{request}", Labels: []Label{denial},
		Help: "Requests that were denied, by reason; in a dry run they were sent",
	}
	Slowdowns = &Figure{
		Name: "collyrobots.slowdowns", Unit: "{slowdown}", Labels: []Label{status},
		Help: "Times the crawl slowed down for a host because of a 429 or 503, by status",
	}
	Missed = &Figure{
		Name: "collyrobots.missed_events", Unit: "{event}",
		Help: "Events that were dropped because they came too fast, so that the metrics counted from events are too low",
	}
)

var heard = []*Figure{Requests, Gaps, Delays, Responses, Durations, Bytes, Denials, Slowdowns, Missed}

var (
	delayBuckets    = []float64{0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}
	durationBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
)

// Hear calls put for each counter that an event increases, and for each histogram that observes a
// value.
func Hear(e *report.Event, put func(f *Figure, value float64, labels Labels)) {
	switch e.Kind {
	case report.EventStarted:
		put(Requests, 1, Labels{string(e.RequestKind)})
		if e.Delay > 0 && e.Gap > 0 {
			put(Gaps, e.Gap.Seconds(), Labels{})
			put(Delays, e.Delay.Seconds(), Labels{string(e.Source)})
		}
	case report.EventAnswered:
		put(Responses, 1, Labels{string(e.RequestKind), classOf(e.Status)})
		put(Durations, e.Took.Seconds(), Labels{string(e.RequestKind)})
		put(Bytes, float64(e.Bytes), Labels{string(e.RequestKind)})
	case report.EventDenied:
		why := Other
		if e.Decision != nil {
			why = string(e.Decision.Reason)
		}
		put(Denials, 1, Labels{why})
	case report.EventSlowed:
		put(Slowdowns, 1, Labels{strconv.Itoa(e.Status)})
	case report.EventMissed:
		put(Missed, float64(e.Count), Labels{})
	}
}

// classOf returns the class of a status. A site may send any number of three digits.
func classOf(status int) string {
	switch {
	case status == 0:
		return "none"
	case status < 100 || status > 599:
		return Other
	}
	return strconv.Itoa(status/100) + "xx"
}
