package audit

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed site.html
var sitePage string

var siteTemplate = template.Must(template.New("site").Funcs(template.FuncMap{"stamp": stamp}).Parse(sitePage))

// WriteHTML writes the report as a page without external resources, with a chart of the gaps.
func (s *SiteReport) WriteHTML(w io.Writer) error {
	return siteTemplate.Execute(w, struct {
		*SiteReport
		Chart  chart
		Limits string
	}{s, s.chart(), limits})
}

// A chart has the coordinates of the gaps in an SVG image.
type chart struct {
	Dots  []dot
	Delay string // the points of the line of the delay in force
	Top   time.Duration
}

type dot struct {
	X, Y  float64
	Short bool // shorter than the delay
	Title string
}

// The size of the chart.
const (
	chartWidth  = 900.0
	chartHeight = 240.0
)

// chart returns the chart of the gaps. Gaps of more than four times the longest delay are at the
// top.
func (s *SiteReport) chart() (c chart) {
	for _, g := range s.Gaps {
		c.Top = max(c.Top, 4*g.Delay)
	}
	if c.Top == 0 {
		for _, g := range s.Gaps {
			c.Top = max(c.Top, g.Gap)
		}
	}
	if c.Top == 0 || len(s.Gaps) == 0 {
		return chart{}
	}
	span := max(s.Last.Sub(s.First), 1)
	y := func(d time.Duration) float64 { return chartHeight * (1 - min(float64(d)/float64(c.Top), 1)) }
	var line strings.Builder
	for _, g := range s.Gaps {
		x := chartWidth * float64(g.Time.Sub(s.First)) / float64(span)
		c.Dots = append(c.Dots, dot{X: x, Y: y(g.Gap), Short: g.Gap < g.Delay-tolerance, Title: fmt.Sprintf("%s: %v after the request before, delay %v", stamp(g.Time), g.Gap.Round(time.Millisecond), g.Delay)})
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y(g.Delay))
	}
	c.Delay = line.String()
	return c
}
