// Package robotsprom publishes metrics of a collyrobots.Plugin for Prometheus. The file board.json
// contains a Grafana board that shows them.
//
//	robots, err := c.WithRobots()
//	...
//	metrics := robotsprom.NewCollector(robots)
//	defer metrics.Close()
//	prometheus.MustRegister(metrics)
//
// No metric has a label for the host. To register several plugins with one registry, add a label
// that distinguishes them:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"crawl": "books"}, registry).MustRegister(metrics)
package robotsprom

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/collyrobots/collyrobots/metrics/figures"
	"github.com/collyrobots/collyrobots/report"
)

// A Collector is a prometheus.Collector for one plugin. Its methods are safe for concurrent use.
// Create a Collector with NewCollector.
//
// Most metrics are read from Plugin.Stats when they are gathered. This uses at most a fiftieth of
// one processor: with 100,000 hosts, Stats is read only once in a few seconds. The other metrics
// are counted from the plugin's events.
type Collector struct {
	sampler    *figures.Sampler
	sampled    []sampled
	counters   map[*figures.Figure]*prometheus.CounterVec
	histograms map[*figures.Figure]*prometheus.HistogramVec
	stop       func()
}

// A sampled metric is created for each call of Collect.
type sampled struct {
	*figures.Figure
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector for a crawl, which is usually a *collyrobots.Plugin. It counts
// the events of the crawl from now until Close, so call it before the crawl starts. If the plugin
// is closed, the metrics have the final values of Stats. If source is nil, they are zero.
//
// Registering two Collectors without a label that distinguishes them returns a
// prometheus.AlreadyRegisteredError.
func NewCollector(source report.Source) *Collector {
	c := &Collector{
		sampler:    figures.NewSampler(source),
		counters:   make(map[*figures.Figure]*prometheus.CounterVec),
		histograms: make(map[*figures.Figure]*prometheus.HistogramVec),
	}
	for _, f := range figures.All() {
		c.add(f)
	}
	c.stop = figures.Listen(source, c.hear)
	return c
}

func (c *Collector) add(f *figures.Figure) {
	var labels []string
	for _, label := range f.Labels {
		labels = append(labels, label.Name)
	}
	switch {
	case f.Read != nil:
		kind := prometheus.GaugeValue
		if f.Kind == figures.Counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(nameOf(f), f.Help, labels, nil)
		c.sampled = append(c.sampled, sampled{Figure: f, desc: desc, kind: kind})
	case f.Kind == figures.Histogram:
		c.histograms[f] = prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: nameOf(f), Help: f.Help, Buckets: f.Buckets}, labels)
	default:
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: nameOf(f), Help: f.Help}, labels)
		for _, labels := range f.Series() { // rate misses the first increase of a series that did not exist before
			vec.WithLabelValues(labels[:len(f.Labels)]...)
		}
		c.counters[f] = vec
	}
}

// nameOf returns the name of a metric according to the conventions of Prometheus. The OpenTelemetry
// name is translated to the same name.
func nameOf(f *figures.Figure) string {
	name := strings.ReplaceAll(f.Name, ".", "_")
	name += map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio"}[f.Unit]
	if f.Kind == figures.Counter {
		name += "_total"
	}
	return name
}

// hear is the plugin's listener.
func (c *Collector) hear(e *report.Event) {
	figures.Hear(e, func(f *figures.Figure, value float64, labels figures.Labels) {
		values := labels[:len(f.Labels)]
		if f.Kind == figures.Histogram {
			c.histograms[f].WithLabelValues(values...).Observe(value)
		} else {
			c.counters[f].WithLabelValues(values...).Add(value)
		}
	})
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range c.sampled {
		descs <- m.desc
	}
	for _, vec := range c.counters {
		vec.Describe(descs)
	}
	for _, vec := range c.histograms {
		vec.Describe(descs)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	sample := c.sampler.Read()
	for _, m := range c.sampled {
		for _, labels := range m.Series() {
			if value, ok := m.Read(sample, labels[0]); ok {
				metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels[:len(m.Labels)]...)
			}
		}
	}
	for _, vec := range c.counters {
		vec.Collect(metrics)
	}
	for _, vec := range c.histograms {
		vec.Collect(metrics)
	}
}

// Close stops listening to the plugin and removes all references to c from it. Also unregister c.
// The metrics that are counted from events no longer change after Close. The plugin stays open. It
// is safe to call Close more than once.
func (c *Collector) Close() { c.stop() }
