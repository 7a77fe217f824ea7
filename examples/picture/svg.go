package main

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

// A panel shows one crawl, with a row for each host. All panels have the same time axis.
type panel struct {
	title string
	log   robotstest.Log
}

// of returns the requests to a host.
func (p panel) of(host string) (log robotstest.Log) {
	for _, r := range p.log {
		if r.Host == host {
			log = append(log, r)
		}
	}
	return log
}

// These are lengths in the picture, in pixels at its natural size.
const (
	width       = 860
	left        = 210 // the left end of the time axis, after the names of the hosts
	right       = 650 // the right end of the time axis, before the counts
	titleHeight = 34
	rowHeight   = 46
	axisHeight  = 40
	panelHeight = titleHeight + rowHeight*3 + axisHeight
)

// style has colours for light and for dark pages. The picture has its own background.
const style = `
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.small { font-size: 11px; fill: #59636e }
.ground { fill: #ffffff; stroke: #d1d9e0 }
.axis { stroke: #d1d9e0 }
.page { stroke: #0969da; stroke-width: 2 }
.robots { fill: none; stroke: #0969da; stroke-width: 1.5 }
.denied { stroke: #cf222e; stroke-width: 2; fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.ground { fill: #0d1117; stroke: #3d444d }
.axis { stroke: #3d444d }
.page { stroke: #4493f8 }
.robots { stroke: #4493f8 }
.denied { stroke: #f85149 }
}
`

// draw returns the panels as an SVG document. Each panel is below the one before it.
func draw(panels []panel) string {
	end := time.Second
	for _, p := range panels {
		for _, r := range p.log {
			end = max(end, (r.Elapsed + time.Second - 1).Truncate(time.Second))
		}
	}
	var b strings.Builder
	height := len(panels)*panelHeight + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">`+"\n", width, height)
	fmt.Fprintf(&b, "<title>When each request of a spider arrived, without and with collyrobots</title>\n<style>%s</style>\n", style)
	fmt.Fprintf(&b, `<rect class="ground" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", width-1, height-1)
	for i, p := range panels {
		p.draw(&b, i*panelHeight, end)
	}
	legend(&b, height-16)
	b.WriteString("</svg>\n")
	return b.String()
}

// draw writes the panel. It begins at top, and its time axis ends at end.
func (p panel) draw(b *strings.Builder, top int, end time.Duration) {
	fmt.Fprintf(b, `<g class="panel"><text class="title" x="16" y="%d">%s</text>`+"\n", top+24, html.EscapeString(p.title))
	at := func(t time.Duration) float64 {
		return left + float64(right-left)*t.Seconds()/end.Seconds()
	}
	bottom := top + titleHeight + rowHeight*len(hosts)
	for s := range int(end/time.Second) + 1 {
		x := at(time.Duration(s) * time.Second)
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, top+titleHeight, x, bottom)
		fmt.Fprintf(b, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%d s</text>`+"\n", x, bottom+16, s)
	}
	for i, h := range hosts {
		y := top + titleHeight + i*rowHeight + rowHeight/2
		log := p.of(h.name)
		fmt.Fprintf(b, `<g class="host"><text x="16" y="%d">%s</text>`, y-2, h.name)
		fmt.Fprintf(b, `<text class="small" x="16" y="%d">%s</text>`+"\n", y+13, html.EscapeString(strings.ReplaceAll(h.rules, "\n", ", ")))
		var denied robotstest.Log
		for _, r := range log {
			if isDenied(h.rules, r) {
				denied = append(denied, r)
				continue
			}
			mark(b, r, at(r.Elapsed), y, false)
		}
		for _, r := range denied { // on top of the others
			mark(b, r, at(r.Elapsed), y, true)
		}
		first, second := counts(log, len(denied))
		fmt.Fprintf(b, `<text class="count" x="%d" y="%d">%s</text>`, right+16, y-2, first)
		fmt.Fprintf(b, `<text class="small count" x="%d" y="%d">%s</text></g>`+"\n", right+16, y+13, second)
	}
	b.WriteString("</g>\n")
}

// counts returns two lines with the numbers of a host.
func counts(log robotstest.Log, denied int) (first, second string) {
	first = fmt.Sprintf("%d requests, %d disallowed", len(log), denied)
	if len(log) < 2 {
		return first, ""
	}
	return first, fmt.Sprintf("smallest gap %.3f s", log.MinGap().Seconds())
}

// mark draws one request: a ring for a robots.txt, a stroke for a page, and a longer stroke for a
// disallowed page.
func mark(b *strings.Builder, r robotstest.Request, x float64, y int, denied bool) {
	title := fmt.Sprintf("<title>%.3f s %s</title>", r.Elapsed.Seconds(), html.EscapeString(r.URI))
	switch {
	case denied:
		fmt.Fprintf(b, `<path class="denied" d="M%.1f %dv26">%s</path>`+"\n", x, y-9, title)
	case r.URI == "/robots.txt":
		fmt.Fprintf(b, `<circle class="robots" cx="%.1f" cy="%d" r="4">%s</circle>`+"\n", x, y, title)
	default:
		fmt.Fprintf(b, `<path class="page" d="M%.1f %dv18">%s</path>`+"\n", x, y-9, title)
	}
}

// legend writes the meanings of the marks.
func legend(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<circle class="robots legend" cx="22" cy="%d" r="4"/><text class="small" x="34" y="%d">robots.txt</text>`, y-4, y)
	fmt.Fprintf(b, `<path class="page legend" d="M112 %dv18"/><text class="small" x="122" y="%d">a page</text>`, y-13, y)
	fmt.Fprintf(b, `<path class="denied legend" d="M182 %dv26"/><text class="small" x="192" y="%d">a page that robots.txt disallows</text>`, y-17, y)
	fmt.Fprintf(b, `<text class="small" x="%d" y="%d" text-anchor="end">each mark: when a request reached its host</text>`+"\n", width-16, y)
}
