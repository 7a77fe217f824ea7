package figures

import (
	"strconv"

	"github.com/collyrobots/collyrobots"
)

// The figures that Hear counts.
var (
	Requests = &Figure{
		Name: "collyrobots.requests", Unit: "{request}", Labels: []Label{requestKind},
		Help: "Requests that have gone on the wire, by kind",
	}
	Gaps = &Figure{
		Name: "collyrobots.request.gap", Unit: "s", Kind: Histogram, Buckets: delayBuckets,
		Help: "Time between the starts of two requests to one host while a delay is in force",
	}
	Delays = &Figure{
		Name: "collyrobots.request.delay", Unit: "s", Kind: Histogram, Labels: []Label{source}, Buckets: delayBuckets,
		Help: "Delay in force when a request starts after another one to its host, by where the delay comes from",
	}
	Responses = &Figure{
		Name: "collyrobots.responses", Unit: "{response}", Labels: []Label{requestKind, class},
		Help: "Requests that are over, by kind and the class of their status",
	}
	Durations = &Figure{
		Name: "collyrobots.response.duration", Unit: "s", Kind: Histogram, Labels: []Label{requestKind}, Buckets: durationBuckets,
		Help: "Time from the start of a request to the end of the body of its response",
	}
	Bytes = &Figure{
		Name: "collyrobots.response.size", Unit: "By", Labels: []Label{requestKind},
		Help: "Bytes of response bodies that were read",
	}
	Denials = &Figure{
		Name: "collyrobots.denials", Unit: "{request}", Labels: []Label{denial},
		Help: "Requests that were not sent, or would not have been in a dry run, by the reason",
	}
	Slowdowns = &Figure{
		Name: "collyrobots.slowdowns", Unit: "{slowdown}", Labels: []Label{status},
		Help: "Times a host has asked for less and is asked less often since, by the status of its answer",
	}
	Missed = &Figure{
		Name: "collyrobots.missed_events", Unit: "{event}",
		Help: "Events that came too fast to be counted: they are missing in what is counted by events",
	}
)

var heard = []*Figure{Requests, Gaps, Delays, Responses, Durations, Bytes, Denials, Slowdowns, Missed}

var (
	delayBuckets    = []float64{0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}
	durationBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
)

// Hear calls put with what an event adds to a counter, or with a value for a histogram.
func Hear(e collyrobots.Event, put func(f *Figure, value float64, labels Labels)) {
	switch e.Kind {
	case collyrobots.EventStarted:
		put(Requests, 1, Labels{string(e.RequestKind)})
		if e.Delay > 0 && e.Gap > 0 {
			put(Gaps, e.Gap.Seconds(), Labels{})
			put(Delays, e.Delay.Seconds(), Labels{string(e.Source)})
		}
	case collyrobots.EventAnswered:
		put(Responses, 1, Labels{string(e.RequestKind), classOf(e.Status)})
		put(Durations, e.Took.Seconds(), Labels{string(e.RequestKind)})
		put(Bytes, float64(e.Bytes), Labels{string(e.RequestKind)})
	case collyrobots.EventDenied:
		why := Other
		if e.Decision != nil {
			why = string(e.Decision.Reason)
		}
		put(Denials, 1, Labels{why})
	case collyrobots.EventSlowed:
		put(Slowdowns, 1, Labels{strconv.Itoa(e.Status)})
	case collyrobots.EventMissed:
		put(Missed, float64(e.Count), Labels{})
	}
}

// classOf returns the class of a status: a site may send any of three digits.
func classOf(status int) string {
	switch {
	case status == 0:
		return "none"
	case status < 100 || status > 599:
		return Other
	}
	return strconv.Itoa(status/100) + "xx"
}
