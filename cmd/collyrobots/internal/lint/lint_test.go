package lint

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func parse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// TestHostile checks that the work for a hostile file is bounded, and that the file is reported as
// too complex. Without the bound, each of these files takes hours.
func TestHostile(t *testing.T) {
	var wilds, agents, pairs, stars strings.Builder
	wilds.WriteString("User-agent: *\n")
	stars.WriteString("User-agent: *\n")
	for i := 0; wilds.Len() < 600_000; i++ {
		fmt.Fprintf(&wilds, "Disallow: /*%d*a*b*c*%d\nAllow: /*%d*a\n", i%7, i, i)
		fmt.Fprintf(&agents, "User-agent: a%d\n", i)
		fmt.Fprintf(&pairs, "User-agent: b%d\nDisallow: /%d\nAllow: /*%d\n", i, i, i)
	}
	for i := 0; stars.Len() < 600_000; i++ {
		fmt.Fprintf(&stars, "Disallow: /%s%d\n", strings.Repeat("*a", 250), i)
	}
	agents.WriteString("Disallow: /\n")
	for name, file := range map[string]string{"wildcards": wilds.String(), "names": agents.String(), "groups": pairs.String(), "long": stars.String()} {
		start := time.Now()
		findings := Lint([]byte(file), Options{Dialects: dialect.All()})
		t.Logf("%s: %d bytes, %d findings in %v", name, len(file), len(findings), time.Since(start))
		if len(findings) > len(kinds)*(maxOfKind+1) || !slices.ContainsFunc(findings, func(f Finding) bool { return f.ID == "not-compared" }) {
			t.Errorf("%s: %d findings, want fewer, and not-compared", name, len(findings))
		}
	}
}

// TestSignalOfPath checks that the path of a Content-Signal or a Content-Usage line is not taken
// for a label, and that the faults of the list after it are found.
func TestSignalOfPath(t *testing.T) {
	for line, want := range map[string]string{
		"Content-Signal: /blog/ ai-train=no, search=yes": "",
		"Content-Signal: /blog/\tai-train=no":            "",
		"Content-Signal: /a=b,c use=reference":           "",
		"Content-Usage: /blog/ train-ai=n":               "",
		"Content-Signal: /blog/ train-ai=no":             "usage-unknown-label",
		"Content-Signal: /blog/ ai-train=n, search=yes":  "usage-value",
	} {
		var got []string
		for _, f := range Lint([]byte("User-agent: *\n"+line+"\nDisallow: /a\n"), Options{Dialects: []dialect.Dialect{dialect.RFC9309()}}) {
			if strings.HasPrefix(f.ID, "usage-") {
				got = append(got, f.ID)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: got %q, want %q", line, s, want)
		}
	}
}

// TestLinesOfBareCR checks that a line ends at CR, as in the dialects, and not only at LF.
func TestLinesOfBareCR(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		file := strings.Join([]string{"User-agent: *", "Disallow: /a", "", "Disallow: /b\x00"}, end)
		for _, f := range Lint([]byte(file), Options{}) {
			if f.ID == "nul-byte" && f.Line != 4 {
				t.Errorf("%q: line %d, want 4", file, f.Line)
			}
		}
	}
}

// TestForeignKeys checks that keys of other systems are notes.
func TestForeignKeys(t *testing.T) {
	file := "User-agent: *\nDomain: example.com\nRevisit-after: 7 days\nHost: example.com\nNoindex: /x\nDisallow: /a\n"
	var notes []int
	for _, f := range Lint([]byte(file), Options{Dialects: dialect.All()}) {
		if f.ID != "foreign-key" || f.Severity != Note {
			t.Errorf("%+v", f)
		}
		notes = append(notes, f.Line)
	}
	if want := []int{2, 3, 4, 5}; !slices.Equal(notes, want) {
		t.Errorf("notes about the lines %v, want %v", notes, want)
	}
}
