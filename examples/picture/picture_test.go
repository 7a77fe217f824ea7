package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPicture draws two crawls, and compares the marks in the picture with the access logs.
func TestPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panels := []panel{{title: "a < b"}, {title: "b"}}
		for i := range panels {
			web := robotstest.New(t, sites())
			log, err := crawl(web, i == 1)
			if err != nil {
				t.Fatal(err)
			}
			panels[i].log = log
			if i == 1 {
				robotstest.Verify(t, web, dialect.RFC9309())
			}
		}
		drawn := parse(t, draw(panels))
		if len(drawn) != len(panels) || drawn[0].title != "a < b" {
			t.Fatalf("%d panels, the first %q", len(drawn), drawn[0].title)
		}
		for i, d := range drawn {
			if len(d.rows) != len(hosts) {
				t.Fatalf("panel %d has %d rows", i, len(d.rows))
			}
			for j, row := range d.rows {
				var want []string
				for _, r := range panels[i].of(hosts[j].name) {
					want = append(want, fmt.Sprintf("%.3f s %s", r.Elapsed.Seconds(), r.URI))
				}
				slices.Sort(want)
				slices.Sort(row.marks)
				if row.host != hosts[j].name || !slices.Equal(row.marks, want) {
					t.Errorf("panel %d, %s: drawn\n%q, the log of %s has\n%q", i, row.host, row.marks, hosts[j].name, want)
				}
			}
		}
		check(t, drawn, true)
	})
}

// TestPictureOfREADME checks that the picture in docs/ is consistent and has the style of this
// program, and that README.md describes it.
func TestPictureOfREADME(t *testing.T) {
	text, err := os.ReadFile("../../docs/starts.svg")
	if err != nil {
		t.Fatal(err)
	}
	drawn := parse(t, string(text))
	if len(drawn) != 2 {
		t.Fatalf("%d panels", len(drawn))
	}
	if !strings.Contains(string(text), style) {
		t.Error("docs/starts.svg has another style; to update it, run go run ./examples/picture -o docs/starts.svg")
	}
	check(t, drawn, true)
	var requests, denied int
	var last float64
	for _, row := range drawn[0].rows {
		requests += len(row.marks)
		denied += row.denied
		last = max(last, row.at[len(row.at)-1])
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := fmt.Sprintf("Colly alone sends all %d requests within half a second, %s of them", requests, map[int]string{4: "four"}[denied])
	if !strings.Contains(string(readme), words) || last > 0.5 {
		t.Errorf("README.md does not contain %q; the last request is after %.3f s", words, last)
	}
}

// check compares the numbers of the panels with their marks. The first panel is of bare Colly and
// the second of the plugin. If exact, the crawl was not slowed down by a busy machine, and check
// also compares the gaps with the delays.
func check(t *testing.T, drawn []drawnPanel, exact bool) {
	t.Helper()
	for i, d := range drawn {
		for j, row := range d.rows {
			delay := map[int]float64{1: 1, 2: 2}[j]
			gap := math.Inf(1)
			for k := 1; k < len(row.at); k++ {
				gap = min(gap, row.at[k]-row.at[k-1])
			}
			var counted, denied int
			var smallest float64
			if _, err := fmt.Sscanf(row.counts, "%d requests, %d disallowed smallest gap %f s", &counted, &denied, &smallest); err != nil {
				t.Fatalf("panel %d, %s: %q: %v", i, row.host, row.counts, err)
			}
			if counted != len(row.marks) || counted < 4 || denied != row.denied || math.Abs(gap-smallest) > 0.0011 {
				t.Errorf("panel %d, %s says %q; it has %d marks, %d of them disallowed, and a smallest gap of %.3f s", i, row.host, row.counts, len(row.marks), row.denied, gap)
			}
			alone := i == 0
			if alone == (denied == 0) {
				t.Errorf("panel %d, %s: %q, want disallowed requests only without the plugin", i, row.host, row.counts)
			}
			if exact && (!alone && smallest < delay*0.8 || alone && smallest > 0.5) {
				t.Errorf("panel %d, %s: %q, want the delay only with the plugin", i, row.host, row.counts)
			}
		}
	}
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("the test waits for real delays")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "starts.svg")
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-o", file}, &stdout, &stderr); status != 0 || stdout.Len()+stderr.Len() > 0 {
		t.Fatalf("exit status %d, %s%s", status, &stdout, &stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check(t, parse(t, string(text)), false)
}

func TestMistakes(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-x": 2, "docs/starts.svg": 2} {
		var stdout, stderr bytes.Buffer
		if status := run([]string{args}, &stdout, &stderr); status != want || stdout.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%s: exit status %d, %s%s", args, status, &stdout, &stderr)
		}
	}
}

// A drawnPanel is a panel that was read from a picture.
type drawnPanel struct {
	title string
	rows  []drawnRow
}

type drawnRow struct {
	host   string
	counts string    // the text after the marks
	marks  []string  // the titles of the marks
	at     []float64 // the times of the marks in seconds, sorted
	denied int
}

// An element is an element of an SVG document.
type element struct {
	XMLName  xml.Name
	Class    string    `xml:"class,attr"`
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// parse reads a picture. The test fails if it is not well-formed XML.
func parse(t *testing.T, svg string) (panels []drawnPanel) {
	t.Helper()
	var document element
	if err := xml.Unmarshal([]byte(svg), &document); err != nil {
		t.Fatal(err)
	}
	if document.XMLName != (xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}) {
		t.Fatalf("a document of %v", document.XMLName)
	}
	for _, e := range document.Children {
		if e.Class == "panel" {
			panels = append(panels, parsePanel(t, e))
		}
	}
	return panels
}

func parsePanel(t *testing.T, e element) (p drawnPanel) {
	t.Helper()
	p.title = e.Children[0].Text
	for _, e := range e.Children {
		if e.Class != "host" {
			continue
		}
		row := drawnRow{host: e.Children[0].Text}
		for _, e := range e.Children {
			switch e.Class {
			case "count":
				row.counts = e.Text
			case "small count":
				row.counts += " " + e.Text
			case "denied", "page", "robots":
				title := e.Children[0].Text
				var at float64
				if _, err := fmt.Sscanf(title, "%f s", &at); err != nil {
					t.Fatalf("%q: %v", title, err)
				}
				row.marks = append(row.marks, title)
				row.at = append(row.at, at)
				if e.Class == "denied" {
					row.denied++
				}
			}
		}
		slices.Sort(row.at)
		p.rows = append(p.rows, row)
	}
	return p
}
