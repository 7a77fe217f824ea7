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

// TestPicture draws two crawls in a bubble, and finds in the picture what the access logs have.
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

// TestThePictureOfTheREADME holds the picture that is in docs/ to itself, and to what this program
// draws.
func TestThePictureOfTheREADME(t *testing.T) {
	text, err := os.ReadFile("../../docs/starts.svg")
	if err != nil {
		t.Fatal(err)
	}
	drawn := parse(t, string(text))
	if len(drawn) != 2 {
		t.Fatalf("%d panels", len(drawn))
	}
	if !strings.Contains(string(text), style) {
		t.Error("docs/starts.svg has another style: make it anew, go run ./examples/picture -o docs/starts.svg")
	}
	check(t, drawn, true)
	requests, denied, last := 0, 0, 0.0
	for _, row := range drawn[0].rows {
		requests, denied, last = requests+len(row.marks), denied+row.denied, max(last, row.at[len(row.at)-1])
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	words := fmt.Sprintf("Colly alone sends all %d requests within half a second, %s of them", requests, map[int]string{4: "four"}[denied])
	if !strings.Contains(string(readme), words) || last > 0.5 {
		t.Errorf("README.md does not say %q; the last is after %.3f s", words, last)
	}
}

// check compares the numbers of the panels with their marks. The first panel is of bare Colly and the
// second of the plugin. If exact, the crawl was not slowed down by a busy machine, and check also
// compares the gaps with the delays.
func check(t *testing.T, drawn []drawnPanel, exact bool) {
	t.Helper()
	for i, d := range drawn {
		for j, row := range d.rows {
			asked := map[int]float64{1: 1, 2: 2}[j]
			gap := math.Inf(1)
			for k := 1; k < len(row.at); k++ {
				gap = min(gap, row.at[k]-row.at[k-1])
			}
			counted, denied, smallest := 0, 0, 0.0
			if _, err := fmt.Sscanf(row.counts, "%d requests, %d disallowed smallest gap %f s", &counted, &denied, &smallest); err != nil {
				t.Fatalf("panel %d, %s: %q: %v", i, row.host, row.counts, err)
			}
			if counted != len(row.marks) || counted < 4 || denied != row.denied || math.Abs(gap-smallest) > 0.0011 {
				t.Errorf("panel %d, %s says %q; it has %d marks, %d of them disallowed, and a smallest gap of %.3f s", i, row.host, row.counts, len(row.marks), row.denied, gap)
			}
			alone := i == 0
			if alone == (denied == 0) {
				t.Errorf("panel %d, %s: %q does not show what the plugin is for", i, row.host, row.counts)
			}
			if exact && (!alone && smallest < asked*0.8 || alone && smallest > 0.5) {
				t.Errorf("panel %d, %s: %q does not show the delay", i, row.host, row.counts)
			}
		}
	}
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("keeps real delays")
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

// What a picture shows.
type drawnPanel struct {
	title string
	rows  []drawnRow
}

type drawnRow struct {
	host   string
	counts string    // what is written behind the marks
	marks  []string  // as their titles say
	at     []float64 // when they were, in seconds, in order
	denied int
}

// An element is one of an SVG document.
type element struct {
	XMLName  xml.Name
	Class    string    `xml:"class,attr"`
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// parse reads a picture; what is not well-formed XML fails the test.
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
				row.marks, row.at = append(row.marks, title), append(row.at, at)
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
