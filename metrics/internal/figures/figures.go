// Package figures is what packages prom and otel publish of a plugin: one list for both, so that a
// figure means the same in every system. It knows Plugin.Stats and Plugin.Listen and no system of
// metrics, nor how names are written there.
//
// No figure is told apart by host: a crawl meets more of them than such a system can keep. Every
// label has a few values, which are all known beforehand.
package figures

import "github.com/collyrobots/collyrobots"

// A Kind is what may be done with the values of a Figure.
type Kind int

const (
	Counter   Kind = iota // only grows
	Level                 // rises and falls, and the sum of several processes is a figure, too
	Gauge                 // rises and falls; a sum would mean nothing
	Histogram             // how often which values were seen
)

// A Figure is one thing that is measured.
type Figure struct {
	Name    string // in words with dots between them, without the unit: "collyrobots.request.gap"
	Help    string // a sentence, without a full stop
	Unit    string // "s", "By", "1" for a ratio, or in braces what is counted: "{page}"
	Kind    Kind
	Labels  []Label   // what tells its values apart, at most two
	Buckets []float64 // of a Histogram: their upper bounds

	// Read returns the value for that of the only label, "" where there is none. It reports whether
	// there is one yet. nil: the figure is counted by Hear.
	Read func(s *Sample, label string) (value float64, ok bool)
}

// A Label has a name, and all values that it can have.
type Label struct {
	Name   string
	Values []string
}

// Labels are the values of a figure's labels, "" for those that it does not have.
type Labels [2]string

// Series returns all labels that values of f can have.
func (f *Figure) Series() []Labels {
	series := []Labels{{}}
	for i, label := range f.Labels {
		var longer []Labels
		for _, labels := range series {
			for _, labels[i] = range label.Values {
				longer = append(longer, labels)
			}
		}
		series = longer
	}
	return series
}

// Other is the reason of a denial that robots.txt is not the reason of.
const Other = "other"

var (
	requestKind = Label{"request_kind", texts([]collyrobots.RequestKind{
		collyrobots.RequestPage, collyrobots.RequestRedirect, collyrobots.RequestRobots, collyrobots.RequestSitemap, collyrobots.RequestRetry,
	})}
	class        = Label{"class", []string{"1xx", "2xx", "3xx", "4xx", "5xx", Other, "none"}}
	status       = Label{"status", []string{"429", "503"}}
	reason       = Label{"reason", texts(reasons)}
	denial       = Label{"reason", append(texts(reasons), Other)}
	robotsStatus = Label{"robots_status", texts([]collyrobots.RobotsStatus{
		collyrobots.RobotsRules, collyrobots.RobotsNone, collyrobots.RobotsUnreachable, collyrobots.RobotsSiteDown,
	})}
	source = Label{"source", texts([]collyrobots.DelaySource{
		collyrobots.SourceCrawlDelay, collyrobots.SourceMinDelay, collyrobots.SourceBackOff, collyrobots.SourceRetryAfter,
	})}
	file  = Label{"outcome", []string{"opened", "failed", "unchanged"}}
	entry = Label{"outcome", []string{
		"fed", "resumed", "old", "dropped", "out_of_scope", "duplicate", "denied", "refused", "given_up",
	}}
)

var reasons = []collyrobots.Reason{
	collyrobots.ReasonRule, collyrobots.ReasonNoRule, collyrobots.ReasonNoRobots, collyrobots.ReasonUnreachable,
	collyrobots.ReasonSiteDown, collyrobots.ReasonDelay, collyrobots.ReasonIgnored,
}

func texts[S ~string](codes []S) []string {
	texts := make([]string, len(codes))
	for i, code := range codes {
		texts[i] = string(code)
	}
	return texts
}

// All returns every figure: those that have Read, and those that Hear counts.
func All() []*Figure { return append(append([]*Figure{}, sampled...), heard...) }
