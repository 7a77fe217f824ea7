package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naiveMatches reports whether a draft matches a target. It tries every position of every piece.
func naiveMatches(d Draft, target string) bool {
	anchored := d.Kind&Anchored != 0
	if d.Kind&Wild == 0 {
		return strings.HasPrefix(target, d.Text) && (!anchored || target == d.Text)
	}
	first, second, _ := strings.Cut(d.Text, "\n")
	forms := [2][]string{strings.Split(first, "*"), strings.Split(first, "*")}
	if d.Kind&TwoForms != 0 {
		forms[1] = strings.Split(second, "*")
	}
	query := len(target)
	if i := strings.IndexByte(target, '?'); i >= 0 {
		query = i + 1
	}
	var matches func(k, pos int) bool // the pieces from k on match somewhere in target[pos:]
	matches = func(k, pos int) bool {
		if k == len(forms[0]) {
			return !anchored || pos == len(target)
		}
		for at := pos; at <= len(target) && (k > 0 || at == 0); at++ {
			if p := forms[0][k]; strings.HasPrefix(target[at:], p) && matches(k+1, at+len(p)) {
				return true
			}
			if p := forms[1][k]; at >= query && strings.HasPrefix(target[at:], p) && matches(k+1, at+len(p)) {
				return true
			}
		}
		return false
	}
	return matches(0, 0)
}

// countsAsAllow reports whether a draft wins against a Disallow of the same rank.
func countsAsAllow(d Draft) bool { return d.Allow || d.Pattern == "" && d.Rank > 0 }

// naiveFind returns the rule that decides.
func naiveFind(drafts []Draft, target string) Rule {
	best := Draft{}
	for _, d := range drafts {
		wins := d.Rank > best.Rank || d.Rank == best.Rank && countsAsAllow(d) && !countsAsAllow(best)
		if naiveMatches(d, target) && (best.Line == 0 || wins) {
			best = d
		}
	}
	return best.Rule
}

func isLower(part string) bool {
	for i := range len(part) {
		if 'A' <= part[i] && part[i] <= 'Z' {
			return false
		}
	}
	return true
}

// lower returns s in lower case. It only changes ASCII letters, so that any bytes are a target.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// check compares Find with the naive implementation. In this test, the normal form of a target is
// in lower case.
func check(t *testing.T, l *List, drafts []Draft, target string) {
	t.Helper()
	want := naiveFind(drafts, lower(target))
	if n := min(len(target), l.Reach()); isLower(target[:n]) {
		got, ok := l.Find(target, n, isLower)
		switch {
		case ok && got != want:
			t.Fatalf("%q, %+v: %+v, want %+v", target, drafts, got, want)
		case !ok && isLower(target):
			t.Fatalf("%q, %+v: Find returns false for a target in normal form", target, drafts)
		}
	}
	target = lower(target)
	if got, ok := l.Find(target, len(target), isLower); got != want || !ok {
		t.Fatalf("%q, %+v: %+v %v, want %+v", target, drafts, got, ok, want)
	}
}

// generate returns a text of a rule, or a target, that is made of the given pieces.
func generate(r *rand.Rand, pieces []string) string {
	text := "/"
	for range r.IntN(7) {
		text += pieces[r.IntN(len(pieces))]
	}
	return text
}

var (
	textPieces   = []string{"a", "ab", "b", "/", "/", "*", "*", "?", "=", "%2f", "%3f", "section", "longer/path/"}
	targetPieces = []string{"a", "ab", "b", "/", "/", "A", "?", "=", "%2f", "%2F", "%3f", "section", "longer/path/"}
)

func generateDraft(r *rand.Rand, line int) Draft {
	text := strings.TrimRight(generate(r, textPieces), "*")
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	if r.IntN(10) == 0 {
		text = ""
	}
	d := Draft{
		Rule: Rule{Allow: r.IntN(2) == 0, Line: uint32(line), Pattern: text + "!"},
		Text: text,
		Rank: uint32(r.IntN(8)),
	}
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		d.Pattern = "written " + text
	case 4:
		d.Pattern = ""
	}
	if r.IntN(4) == 0 {
		d.Kind |= Anchored
	}
	if star := strings.IndexByte(text, '*'); star >= 0 {
		d.Kind |= Wild
		if second := strings.ReplaceAll(text[star:], "%2f", "/"); second != text[star:] {
			d.Text += "\n" + text[:star] + second
			d.Kind |= TwoForms
		}
	}
	return d
}

// TestFind compares lists of few and of many rules with the naive implementation.
func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 2026))
	for _, size := range []struct{ lists, rules, targets int }{{2000, 10, 20}, {40, 300, 100}} {
		if testing.Short() {
			size.lists /= 10
		}
		for range size.lists {
			var drafts []Draft
			for i := range r.IntN(size.rules) {
				drafts = append(drafts, generateDraft(r, i+1))
			}
			l := New(drafts, "extra")
			if l.Extra() != "extra" || l.Len() != len(drafts) {
				t.Fatalf("extra text %q and %d rules of %d", l.Extra(), l.Len(), len(drafts))
			}
			for range size.targets {
				check(t, &l, drafts, generate(r, targetPieces))
			}
		}
	}
}

// FuzzFind compares a list with one more rule, which is short or has an index.
func FuzzFind(f *testing.F) {
	f.Add("/a*b", "/axb", uint64(1), true)
	f.Add("/shop/*sort=*&", "/shop/x?sort=a&", uint64(2), false)
	f.Add("*%2f", "/a?/", uint64(3), true)
	f.Add("", "0", uint64(23), false) // a rule without a pattern has the rank of another one
	f.Fuzz(func(t *testing.T, text, target string, seed uint64, anchored bool) {
		if len(text) > 50 || len(target) > 100 || strings.Contains(text+target, "\n") || strings.Contains(text, "**") {
			return
		}
		d := Draft{Rule: Rule{Line: 1, Pattern: text}, Text: lower(strings.TrimRight(text, "*")), Rank: 4}
		if anchored {
			d.Kind |= Anchored
		}
		if strings.Contains(d.Text, "*") {
			d.Kind |= Wild
		}
		drafts := []Draft{d}
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range r.IntN(2 * indexFrom) {
			drafts = append(drafts, generateDraft(r, i+2))
		}
		l := New(drafts, "")
		check(t, &l, drafts, "/"+target)
	})
}

func TestZeroList(t *testing.T) {
	var l List
	if r, ok := l.Find("/", 1, isLower); r != (Rule{}) || !ok || l.Extra() != "" || l.Len() != 0 {
		t.Errorf("%+v %v, extra text %q, %d rules", r, ok, l.Extra(), l.Len())
	}
}

// numbered returns n drafts with the texts that a format makes of their numbers.
func numbered(n int, format string, kind Kind) []Draft {
	drafts := make([]Draft, n)
	for i := range drafts {
		text := fmt.Sprintf(format, i)
		drafts[i] = Draft{Rule: Rule{Line: uint32(i + 1), Pattern: text}, Text: text, Kind: kind, Rank: uint32(len(text))}
	}
	return drafts
}

// TestSharedHeads checks that each of very many rules with the same head is found.
func TestSharedHeads(t *testing.T) {
	for _, n := range []int{2, 5, 100, 5000} {
		l := New(numbered(n, "/shop/*a*%d", Wild|Anchored), "")
		for _, i := range []int{0, n / 2, n - 1} {
			target := fmt.Sprintf("/shop/xaab%d", i)
			if r, _ := l.Find(target, len(target), isLower); r.Line == 0 {
				t.Errorf("rule %d of %d is not found", i, n)
			}
		}
		if r, _ := l.Find("/shop/xaab", len("/shop/xaab"), isLower); r.Line != 0 {
			t.Errorf("%d rules: %+v", n, r)
		}
	}
}

// TestSplitRules checks which rules are found by their heads. For the others, a search looks at all
// bytes of a target.
func TestSplitRules(t *testing.T) {
	for _, test := range []struct {
		format string
		kind   Kind
		byHead bool
	}{
		{"/section%d/", 0, true},
		{"/%d", 0, true},
		{"/section%d/*sort=", Wild, true},
		{"/section/*sort=%d", Wild, false},
		{"/*sort=%d", Wild, false},
		{"*%d", Wild, false},
		{"/" + strings.Repeat("long", 16) + "%d/*x", Wild, false},
	} {
		for _, n := range []int{30, 1000, 10_000} {
			l := New(numbered(n, test.format, test.kind), "")
			byHead, byText := splitRules(&l)
			if test.byHead && len(byText) > 0 || !test.byHead && len(byHead) > 0 {
				t.Errorf("%d rules %s: %d are found by their heads, %d by their texts", n, test.format, len(byHead), len(byText))
			}
			if whole := l.Reach() > 1000; whole == test.byHead {
				t.Errorf("%d rules %s: Reach returns %d", n, test.format, l.Reach())
			}
		}
	}
}

// TestProbes checks that the probe of a rule is the byte of its head that distinguishes it from the
// other rules.
func TestProbes(t *testing.T) {
	for _, test := range []struct {
		heads []string
		want  []int
	}{
		{[]string{"/only"}, []int{4}},
		{[]string{"/a/x/", "/b/x/", "/c/x/"}, []int{1, 1, 1}},
		{[]string{"/admin/", "/login/", "/search"}, []int{3, 3, 6}},
		{[]string{"/aa", "/ab", "/ba"}, []int{2, 2, 1}},
		{[]string{"/same", "/same"}, []int{4, 4}},
	} {
		for i, head := range test.heads {
			if got := rarestByte(head, test.heads); got != test.want[i] {
				t.Errorf("%q of %q: byte %d, want %d", head, test.heads, got, test.want[i])
			}
		}
	}
}

// TestLimits checks the largest values that a packed rule can hold.
func TestLimits(t *testing.T) {
	const most = 1<<24 - 1
	text := "/" + strings.Repeat("a", 1<<20)
	l := New([]Draft{
		{Rule: Rule{Line: most, Pattern: "/p"}, Text: text, Rank: most},
		{Rule: Rule{Allow: true, Line: 1, Pattern: "/"}, Text: "/", Rank: most - 1},
	}, "")
	var lines []uint32
	for _, target := range []string{text, "/b"} {
		r, _ := l.Find(target, len(target), isLower)
		lines = append(lines, r.Line)
	}
	if want := []uint32{most, 1}; !slices.Equal(lines, want) {
		t.Errorf("lines %d, want %d", lines, want)
	}
}

// TestNoAllocation checks that Find does not allocate.
func TestNoAllocation(t *testing.T) {
	for _, n := range []int{9, 1000} {
		l := New(append(numbered(n, "/section%d/*sort=", Wild), numbered(n, "/a/*b*%d", Wild)...), "")
		for _, target := range []string{"/section7/?sort=1", "/section7/?Sort=1", "/none", "/a/b/8"} {
			if got := testing.AllocsPerRun(100, func() { l.Find(target, min(len(target), l.Reach()), isLower) }); got != 0 {
				t.Errorf("%d rules, %s: %v allocations", n, target, got)
			}
		}
	}
}
