// Package figures lists the metrics of a plugin that packages prom and otel publish. Because both
// use the same list, a metric means the same in every system. The package reads Plugin.Stats and
// listens with Plugin.Listen; it does not depend on a metrics system or its naming rules.
//
// No metric has a label for the host, because a crawl has more hosts than a metrics system can
// store. Each label has a few values, which are known in advance.
package figures

import (
	"github.com/collyrobots/collyrobots/report"
)

// A Kind is the type of a Figure.
type Kind int

const (
	Counter   Kind = iota // only increases
	Level                 // increases and decreases; values of several processes can be added
	Gauge                 // increases and decreases; values of several processes cannot be added
	Histogram             // the distribution of values
)

// A Figure is one metric.
type Figure struct {
	Name    string // words separated by dots, without the unit: "collyrobots.request.gap"
	Help    string // a description without a full stop
	Unit    string // "s", "By", "1" for a ratio, or the counted thing in braces: "{page}"
	Kind    Kind
	Labels  []Label   // at most two
	Buckets []float64 // the upper bounds of the buckets of a Histogram

	// Read returns the value for a value of the only label, or for "" if the figure has no labels.
	// It reports whether there is a value yet. Read is nil if Hear counts the figure.
	Read func(s *Sample, label string) (value float64, ok bool)
}

// A Label is a name and all its possible values.
type Label struct {
	Name   string
	Values []string
}

// Labels are the values of a figure's labels. Values of missing labels are "".
type Labels [2]string

// Series returns all combinations of the label values of f.
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

// Other is the reason of a denial that was not caused by robots.txt.
const Other = "other"

var (
	requestKind = Label{"request_kind", texts([]report.RequestKind{
		report.RequestPage, report.RequestRedirect, report.RequestRobots, report.RequestSitemap, report.RequestTDM,
		report.RequestRetry,
	})}
	class        = Label{"class", []string{"1xx", "2xx", "3xx", "4xx", "5xx", Other, "none"}}
	status       = Label{"status", []string{"429", "503"}}
	reason       = Label{"reason", texts(report.Reasons())}
	denial       = Label{"reason", append(texts(report.Reasons()), Other)}
	robotsStatus = Label{"robots_status", texts([]report.RobotsStatus{
		report.RobotsRules, report.RobotsNone, report.RobotsUnreachable, report.RobotsSiteDown,
		report.RobotsWalled,
	})}
	source = Label{"source", texts([]report.DelaySource{
		report.SourceCrawlDelay, report.SourceRequestRate, report.SourceVisitTime,
		report.SourceHours, report.SourceMinDelay, report.SourceAdaptive, report.SourceBackOff,
		report.SourceRetryAfter, report.SourceMaxRate, report.SourcePaused,
	})}
	pageState = Label{"state", []string{"waiting", "out", "done", "denied", "failed", "over_budget", "unrecorded"}}
	use       = Label{"use", []string{"search", "ai-use", "train-ai"}}
	rule      = Label{"rule", []string{"noindex", "nofollow"}}

	file  = Label{"outcome", []string{"opened", "failed", "unchanged"}}
	entry = Label{"outcome", []string{
		"fed", "resumed", "old", "dropped", "out_of_scope", "duplicate", "denied", "refused", "given_up",
	}}
	signature = Label{"outcome", []string{"signed", "failed"}}
)

func texts[S ~string](codes []S) []string {
	texts := make([]string, len(codes))
	for i, code := range codes {
		texts[i] = string(code)
	}
	return texts
}

// All returns every figure, both those that have Read and those that Hear counts.
func All() []*Figure { return append(append([]*Figure{}, sampled...), heard...) }
