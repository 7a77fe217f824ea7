package lint

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// useless has the kinds that say that a rule has no effect.
var useless = []string{"duplicate-rule", "contradiction", "shadowed-rule", "redundant-rule", "allow-without-effect"}

var newline = regexp.MustCompile(`\r\n|\r|\n`)

// TestGenerated checks by brute force each finding of these kinds in generated files with many similar
// rules: a useless rule, a difference between dialects, a blocked resource and a disallowed sitemap.
func TestGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	counts := make(map[string]int)
	rounds := 500
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		confirm(t, generate(r), dialect.All(), counts)
		if t.Failed() {
			return
		}
	}
	t.Logf("confirmed findings: %v", counts)
	for _, id := range append(useless, "dialects-differ") {
		if counts[id] < rounds/40 {
			t.Errorf("%s: %d findings, want at least %d", id, counts[id], rounds/40)
		}
	}
}

// generate returns a file with a few groups of similar rules.
func generate(r *rand.Rand) string {
	parts := []string{"/a", "/a", "/b", "a", "b", "*", "*", "/", "?", "?a", "=", ".css", "%61", "%2F", "$", "é", "/index.html", "robots.txt"}
	agents := []string{"*", "*", "Foo", "Foo-Bar", "FooBar/1.0", "Bar", "Yandex", "YandexBot", "Foo Bar", "* x"}
	keys := []string{"Disallow: ", "Disallow: ", "Disallow: ", "Allow: ", "Allow: ", "disalow: "}
	var b strings.Builder
	for range 1 + r.IntN(3) {
		for range 1 + r.IntN(2) {
			b.WriteString("User-agent: " + agents[r.IntN(len(agents))] + "\n")
		}
		for range r.IntN(6) {
			pattern := "/"
			if r.IntN(6) == 0 {
				pattern = "*"
			}
			for range r.IntN(4) {
				pattern += parts[r.IntN(len(parts))]
			}
			if r.IntN(20) == 0 {
				pattern = ""
			}
			if r.IntN(15) == 0 {
				b.WriteString("Crawl-delay: 1\n")
			}
			b.WriteString(keys[r.IntN(len(keys))] + pattern + "\n")
		}
		if r.IntN(2) == 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// confirm lints a file in each dialect alone and in all together, and checks the findings. It
// counts them by their IDs.
func confirm(t *testing.T, file string, dialects []dialect.Dialect, counts map[string]int) {
	t.Helper()
	for _, d := range dialects {
		w := newWitness(file, d)
		for _, f := range Lint([]byte(file), Options{Dialects: []dialect.Dialect{d}}) {
			counts[f.ID]++
			switch {
			case f.Line == 0: // there are more findings
			case slices.Contains(useless, f.ID):
				w.remove(t, f)
			case f.ID == "blocked-resource" || f.ID == "sitemap-disallowed":
				w.denied(t, f)
			}
		}
	}
	for _, f := range Lint([]byte(file), Options{Dialects: dialects}) {
		if f.ID != "dialects-differ" {
			continue
		}
		counts[f.ID]++
		if !differ(file, f) {
			t.Errorf("%q: %+v: the dialects decide in the same way", file, f)
		}
	}
}

// A witness has the verdicts of one dialect about many targets.
type witness struct {
	dialect dialect.Dialect
	lines   []string // with the removed lines
	agents  []string
	targets []string
	want    string
}

func newWitness(file string, d dialect.Dialect) *witness {
	l := &linter{lines: linesOf([]byte(file))}
	w := &witness{dialect: d, lines: newline.Split(file, -1)}
	w.agents = append([]string{"", "unheard-of"}, l.crawlers(false)...)
	w.agents = append(w.agents, strings.Join(l.crawlers(false), "|"))
	if len(w.agents) > 60 {
		w.agents = append(w.agents[:58:58], w.agents[len(w.agents)-2:]...)
	}
	for i, line := range l.lines {
		if line.key != "allow" && line.key != "disallow" || i > 400 && i%9 > 0 {
			continue
		}
		body := strings.TrimSuffix(line.value, "$")
		for _, insert := range []string{"", "x", "/a", "?a", "%2Fa", ".css"} {
			target := strings.ReplaceAll(body, "*", insert)
			w.targets = append(w.targets, target, target+insert+"b", target+"/", target+"?"+insert)
		}
	}
	slices.Sort(w.targets)
	w.targets = slices.Compact(w.targets)
	w.want = w.verdicts()
	return w
}

// verdicts returns a byte for each verdict.
func (w *witness) verdicts() string {
	rules := w.dialect.Parse([]byte(strings.Join(w.lines, "\n")))
	var b strings.Builder
	for _, agent := range w.agents {
		var tokens []string
		if agent != "" {
			tokens = []string{agent}
		}
		group := rules.Group(tokens...)
		for _, target := range w.targets {
			b.WriteString(map[bool]string{true: "y", false: "n"}[group.Decide(target).Allowed])
		}
	}
	return b.String()
}

// remove replaces the rule of a finding by a rule that restricts nothing. No verdict must change,
// also if the rules of the findings before are removed.
func (w *witness) remove(t *testing.T, f Finding) {
	t.Helper()
	before := slices.Clone(w.lines)
	w.lines[f.Line-1] = "Disallow:"
	if w.dialect == dialect.Yandex() {
		w.lines[f.Line-1] = "Allow:" // an empty Disallow would allow everything
	}
	got := w.verdicts()
	if got == w.want {
		return
	}
	for i := range got {
		if got[i] != w.want[i] {
			t.Errorf("%s: %q: %+v\nchanges the verdict about %s for %q", w.dialect, strings.Join(before, "\n"), f, w.targets[i%len(w.targets)], w.agents[i/len(w.targets)])
			return
		}
	}
}

// denied checks that the URL of a finding is denied to a crawler that may request the start page.
func (w *witness) denied(t *testing.T, f Finding) {
	t.Helper()
	rules := w.dialect.Parse([]byte(strings.Join(w.lines, "\n")))
	for _, agent := range []string{"unheard-of", "Googlebot"} {
		group := rules.Group(agent)
		if group.Decide("/").Allowed && !group.DecideURL(parse(f.URL)).Allowed {
			return
		}
	}
	t.Errorf("%s: %+v is not denied", w.dialect, f)
}

// differ reports whether the dialects decide differently about the URL of a finding.
func differ(file string, f Finding) bool {
	l := &linter{lines: linesOf([]byte(file))}
	for _, name := range append([]string{"unheard-of"}, l.crawlers(true)...) {
		verdicts := make(map[bool]bool)
		for _, d := range dialect.All() {
			group := d.Parse([]byte(file)).Group(name)
			verdicts[group.DecideURL(parse(f.URL)).Allowed] = true
		}
		if len(verdicts) == 2 {
			return true
		}
	}
	return false
}
