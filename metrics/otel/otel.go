// Package otel publishes what a collyrobots.Plugin does as metrics of OpenTelemetry.
//
//	robots, err := c.WithRobots()
//	...
//	metrics, err := otel.Register(provider.Meter("example.com/spider"), robots)
//	...
//	defer metrics.Unregister()
//
// No metric has an attribute by host. Several plugins go into one provider if their meters are told
// apart, by their name or an attribute:
//
//	provider.Meter("example.com/spider", metric.WithInstrumentationAttributes(attribute.String("crawl", "books")))
package otel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/internal/figures"
)

// Register makes the instruments of p on meter, and counts the plugin's events from now on: call it
// before the crawl. Unregister ends both: nothing is left at the plugin, but a provider goes on
// exporting the last values of what counts events. A second Unregister does no harm.
//
// Most metrics are read from Plugin.Stats when they are collected, but only so often that this
// takes a fiftieth of one processor at most: with 100,000 hosts, once in a few seconds. Of a plugin
// that is closed Stats has the last counts, of one that is nil zeros.
//
// It is an error if meter is nil, or cannot make an instrument. OpenTelemetry has none for a plugin
// that is registered twice with one meter: then what is counted is counted twice.
func Register(meter metric.Meter, p *collyrobots.Plugin) (metric.Registration, error) {
	if meter == nil {
		return nil, errors.New("otel: Register: no Meter")
	}
	m := &metrics{
		sampler:  figures.NewSampler(p),
		observed: make(map[*figures.Figure]metric.Float64Observable),
		added:    make(map[*figures.Figure]metric.Float64Counter),
		recorded: make(map[*figures.Figure]metric.Float64Histogram),
		options:  make(map[key]metric.MeasurementOption),
	}
	var observables []metric.Observable
	for _, f := range figures.All() {
		if err := m.add(meter, f); err != nil {
			return nil, fmt.Errorf("otel: Register: %s: %w", f.Name, err)
		}
		if instrument := m.observed[f]; instrument != nil {
			observables = append(observables, instrument)
		}
	}
	inner, err := meter.RegisterCallback(m.observe, observables...)
	if err != nil {
		return nil, fmt.Errorf("otel: Register: %w", err)
	}
	return &registration{inner, p.Listen(m.hear)}, nil
}

// A registration also ends the listening.
type registration struct {
	metric.Registration
	stop func()
}

// Unregister implements metric.Registration.
func (r *registration) Unregister() error {
	r.stop()
	return r.Registration.Unregister()
}

// metrics are the instruments of one plugin. Its maps are not changed after Register.
type metrics struct {
	sampler  *figures.Sampler
	observed map[*figures.Figure]metric.Float64Observable
	added    map[*figures.Figure]metric.Float64Counter
	recorded map[*figures.Figure]metric.Float64Histogram
	options  map[key]metric.MeasurementOption
}

// A key names a figure and the values of its labels.
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
func (m *metrics) hear(e collyrobots.Event) {
	figures.Hear(e, func(f *figures.Figure, value float64, labels figures.Labels) {
		if f.Kind == figures.Histogram {
			m.recorded[f].Record(context.Background(), value, m.options[key{f, labels}])
		} else {
			m.added[f].Add(context.Background(), value, m.options[key{f, labels}])
		}
	})
}

// observe is called when the metrics are read.
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
