// Package robotsotel publishes metrics and traces of a collyrobots.Plugin through OpenTelemetry.
//
//	robots, err := c.WithRobots()
//	...
//	stop, err := robotsotel.Register(provider.Meter("example.com/spider"), robots)
//	...
//	defer stop()
//
// For traces, see Trace.
//
// No metric has an attribute for the host. To use several plugins with one provider, distinguish
// their meters by name or by an attribute:
//
//	provider.Meter("example.com/spider", metric.WithInstrumentationAttributes(attribute.String("crawl", "books")))
package robotsotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/collyrobots/collyrobots/metrics/figures"
	"github.com/collyrobots/collyrobots/report"
)

// Register creates the instruments for a crawl on meter, and counts its events from now on. Call it
// before the crawl starts. stop ends both and removes all references from the plugin; a
// provider continues to export the last values of the metrics that are counted from events. It is
// safe to call stop more than once.
//
// Most metrics are read from Plugin.Stats when they are collected. This uses at most a fiftieth of
// one processor: with 100,000 hosts, Stats is read only once in a few seconds. If the plugin
// is closed, the metrics have the final values of Stats. If source is nil, they are zero.
//
// Register returns an error if meter is nil or cannot create an instrument. OpenTelemetry does not
// report an error if a plugin is registered twice with one meter; the metrics that are counted from
// events are then counted twice.
func Register(meter metric.Meter, source report.Source) (stop func(), err error) {
	if meter == nil {
		return nil, errors.New("robotsotel: Register: meter is nil")
	}
	m := &metrics{
		sampler:  figures.NewSampler(source),
		observed: make(map[*figures.Figure]metric.Float64Observable),
		added:    make(map[*figures.Figure]metric.Float64Counter),
		recorded: make(map[*figures.Figure]metric.Float64Histogram),
		options:  make(map[key]metric.MeasurementOption),
	}
	var observables []metric.Observable
	for _, f := range figures.All() {
		if err := m.add(meter, f); err != nil {
			return nil, fmt.Errorf("robotsotel: Register: %s: %w", f.Name, err)
		}
		if instrument := m.observed[f]; instrument != nil {
			observables = append(observables, instrument)
		}
	}
	registration, err := meter.RegisterCallback(m.observe, observables...)
	if err != nil {
		return nil, fmt.Errorf("robotsotel: Register: %w", err)
	}
	unlisten := figures.Listen(source, m.hear)
	return func() {
		unlisten()
		registration.Unregister() // of the SDK, it returns nil
	}, nil
}

// metrics holds the instruments for one plugin. Its maps are not changed after Register.
type metrics struct {
	sampler  *figures.Sampler
	observed map[*figures.Figure]metric.Float64Observable
	added    map[*figures.Figure]metric.Float64Counter
	recorded map[*figures.Figure]metric.Float64Histogram
	options  map[key]metric.MeasurementOption
}

// A key is a figure with the values of its labels.
type key struct {
	figure *figures.Figure
	labels figures.Labels
}

func (m *metrics) add(meter metric.Meter, f *figures.Figure) (err error) {
	help, unit := metric.WithDescription(f.Help), metric.WithUnit(f.Unit)
	switch {
	case f.Read == nil && f.Kind == figures.Histogram:
		m.recorded[f], err = meter.Float64Histogram(f.Name, help, unit, metric.WithExplicitBucketBoundaries(f.Buckets...))
	case f.Read == nil:
		m.added[f], err = meter.Float64Counter(f.Name, help, unit)
	case f.Kind == figures.Counter:
		m.observed[f], err = meter.Float64ObservableCounter(f.Name, help, unit)
	case f.Kind == figures.Level:
		m.observed[f], err = meter.Float64ObservableUpDownCounter(f.Name, help, unit)
	default:
		m.observed[f], err = meter.Float64ObservableGauge(f.Name, help, unit)
	}
	for _, labels := range f.Series() {
		var attributes []attribute.KeyValue
		for i, label := range f.Labels {
			attributes = append(attributes, attribute.String("collyrobots."+label.Name, labels[i]))
		}
		m.options[key{f, labels}] = metric.WithAttributeSet(attribute.NewSet(attributes...))
	}
	return err
}

// hear is the plugin's listener.
func (m *metrics) hear(e *report.Event) {
	figures.Hear(e, func(f *figures.Figure, value float64, labels figures.Labels) {
		if f.Kind == figures.Histogram {
			m.recorded[f].Record(context.Background(), value, m.options[key{f, labels}])
		} else {
			m.added[f].Add(context.Background(), value, m.options[key{f, labels}])
		}
	})
}

// observe is the callback that OpenTelemetry calls when it collects the metrics.
func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	sample := m.sampler.Read()
	for f, instrument := range m.observed {
		for _, labels := range f.Series() {
			if value, ok := f.Read(sample, labels[0]); ok {
				o.ObserveFloat64(instrument, value, m.options[key{f, labels}])
			}
		}
	}
	return nil
}
