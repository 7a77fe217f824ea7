// Package prom publishes what a collyrobots.Plugin does as metrics of Prometheus. The board of
// board.json, to be imported into Grafana, shows them.
//
//	robots, err := c.WithRobots()
//	...
//	metrics := prom.NewCollector(robots)
//	defer metrics.Close()
//	prometheus.MustRegister(metrics)
//
// No metric has a label by host. Several plugins go into one registry if a label tells them apart:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"crawl": "books"}, registry).MustRegister(metrics)
package prom

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/metrics/internal/figures"
)

// A Collector is a prometheus.Collector of one plugin. All methods may be called from any
// goroutine. Get one from NewCollector.
//
// Most metrics are read from Plugin.Stats when they are gathered, but only so often that this
// takes a fiftieth of one processor at most: with 100,000 hosts, once in a few seconds. The rest is
// counted from the plugin's events.
type Collector struct {
	sampler    *figures.Sampler
	sampled    []sampled
	counters   map[*figures.Figure]*prometheus.CounterVec
	histograms map[*figures.Figure]*prometheus.HistogramVec
	stop       func()
}

// A sampled metric is made anew each time.
type sampled struct {
	*figures.Figure
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector of p, which counts events from now on: call it before the crawl.
// Close ends that. Of a plugin that is closed it has the last counts of Stats, of one that is nil
// zeros.
//
// To register two of them without a label that tells them apart is a
// prometheus.AlreadyRegisteredError.
func NewCollector(p *collyrobots.Plugin) *Collector {
	c := &Collector{
		sampler:    figures.NewSampler(p),
		counters:   make(map[*figures.Figure]*prometheus.CounterVec),
		histograms: make(map[*figures.Figure]*prometheus.HistogramVec),
	}
	for _, f := range figures.All() {
		c.add(f)
	}
	c.stop = p.Listen(c.hear)
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
		c.sampled = append(c.sampled, sampled{f, prometheus.NewDesc(nameOf(f), f.Help, labels, nil), kind})
	case f.Kind == figures.Histogram:
		c.histograms[f] = prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: nameOf(f), Help: f.Help, Buckets: f.Buckets}, labels)
	default:
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: nameOf(f), Help: f.Help}, labels)
		for _, labels := range f.Series() { // the first increase of what is not there is no increase
			vec.WithLabelValues(labels[:len(f.Labels)]...)
		}
		c.counters[f] = vec
	}
}

// nameOf returns the name of a metric by Prometheus' conventions, which are also those by which
// names of OpenTelemetry are translated.
func nameOf(f *figures.Figure) string {
	name := strings.ReplaceAll(f.Name, ".", "_")
	name += map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio"}[f.Unit]
	if f.Kind == figures.Counter {
		name += "_total"
	}
	return name
}

// hear is the plugin's listener.
func (c *Collector) hear(e collyrobots.Event) {
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

// Close ends the listening to the plugin: nothing of c is left there. Unregister c as well. What
// counts events stands still from now on. Closing twice does no harm; the plugin stays open.
func (c *Collector) Close() { c.stop() }
