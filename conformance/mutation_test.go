package conformance_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutation is a fault that is put into a copy of package dialect, or of package match, which has
// its patterns.
type mutation struct {
	name string
	file string // in the folder dialect
	old  string // occurs once in the file
	new  string
}

var mutations = []mutation{
	// Lines.
	{"CR LF is not one line end", "lines.go", "if end > 0 && line[end-1] == '\\r' {", "if end < 0 {"},
	{"CR LF counts twice in a file with a bare CR", "lines.go", "return text[:i], text[i+2:]", "return text[:i], text[i+1:]"},
	{"CR alone does not end a line", "lines.go", "if i+1 == len(text) || text[i+1] != '\\n' {\n\t\t\treturn true", "if i+1 == len(text) || text[i+1] != '\\n' {\n\t\t\treturn false"},
	{"a byte order mark is not skipped", "lines.go", "if n == len(mark) || lenient {", "if n < 0 {"},
	{"a comment belongs to the value", "line.go", "if i := strings.IndexByte(value, '#'); i >= 0 {", "if i := strings.IndexByte(value, '#'); i > len(value) {"},
	{"a tab after a value is not removed", "line.go", "(s[len(s)-1] == ' ' || s[len(s)-1] == '\\t')", "(s[len(s)-1] == ' ' || s[len(s)-1] == ' ')"},
	{"a tab before a key is not removed", "line.go", "(s[0] == ' ' || s[0] == '\\t')", "(s[0] == ' ' || s[0] == ' ')"},
	{"Google: three words need no colon", "line.go", "strings.ContainsAny(trimLeft(words[i:]), \" \\t\")", "len(words) < 0"},
	{"Google: a typo is not accepted", "key.go", "spell(\"disalow\", disallowLine)", "spell(\"disalow\", otherLine)"},
	{"the last line needs a line end", "lines.go", "if end < 0 {\n\t\treturn text, \"\"", "if end < 0 {\n\t\treturn \"\", \"\""},

	// Groups.
	{"a rule before the first group belongs to it", "parse.go", "case !p.open:", "case p.v == nil:"},
	{"a rule does not end a run of User-agent lines", "dialect.go", "case allowLine, disallowLine, gapLine:\n\t\treturn true", "case gapLine:\n\t\treturn true"},
	{"groups with the same name are not combined", "compile.go", "!named && ours(value)", "!named && c.name == \"\" && ours(value)"},
	{"the group of * is combined with the named group", "group.go", "v.naming.rank(value, tokens) == best", "v.naming.rank(value, tokens) <= rankOfAll"},
	{"a name matches its beginning", "names.go", "if name != \"\" && equalFold(name, token) {", "if name != \"\" && len(name) <= len(token) && hasFold(token, name) {"},
	{"the case of names matters", "names.go", "return len(a) == len(b) && hasFold(a, b)", "return a == b"},
	{"Google: digits belong to a name", "names.go", "func isTokenByte(c byte) bool { return isLetter(c) ||", "func isTokenByte(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' ||"},
	{"Coc Coc: parents of a name do not match", "names.go", "ok = i >= 0", "ok = i < -1"},
	{"Coc Coc: Crawl-delay does not end a run of User-agent lines", "dialect.go", "return v.delayEndsRun", "return v == nil"},
	{"1994: a part of the name does not match", "names.go", "containsFold(token, name)", "equalFold(token, name)"},
	{"1994: a blank line does not end a record", "parse.go", "case p.v.records && trimLeft(line) == \"\":", "case p.v.records && line == \"#\":"},

	{"Yandex: each beginning of a name matches", "names.go", "len(family) <= len(name) && len(name) < len(token) && hasFold(name, family) &&", "len(name) < len(token) && len(family) > 0 &&"},
	{"Yandex: the rule * has no length", "pattern.go", "return max(1, rank-uint32(special))", "return rank - uint32(special)"},
	{"Seznam: a Request-rate makes no record", "parse.go", "p.ruled = true // a Crawl-delay, a Request-rate or a Visit-time", "p.ruled = p.ruled || rec.kind != rateLine"},
	{"Google: the hex digits of a pattern keep their case", "../internal/match/normal.go", "case isEscape(s[i:]):\n\t\t\tdst = append(dst, '%', upperHex(s[i+1]), upperHex(s[i+2]))", "case isEscape(s[i:]):\n\t\t\tdst = append(dst, '%', s[i+1], s[i+2])"},
	{"a line that ends at the size limit is dropped", "lines.go", "if rest == '\\n' || rest == '\\r' {", "if rest == 0 {"},
	{"a lone percent sign matches an escape of $", "../internal/match/normal.go", "dst = append(dst, c|0x80)", "dst = AppendEscape(dst, c)"},
	{"Yandex: the name Yandex does not match", "dialect.go", "naming: yandexNames", "naming: wholeToken"},

	// Rules.
	{"Yandex: an empty Disallow is not Allow: /", "dialect.go", "disallowNone: true, ", ""},
	{"Yandex: a large file is read in part", "dialect.go", "cleanParams: true, limited: true,", "cleanParams: true,"},
	{"Seznam: Allow is ignored", "dialect.go", "name: \"seznam\", records: true,", "name: \"seznam\", records: true, onlyDisallow: true,"},
	{"Seznam: * and $ stand for themselves", "dialect.go", "delayEndsRun: true, rates: true,", "delayEndsRun: true, rates: true, plain: true,"},
	{"Disallow wins a tie", "../internal/match/match.go", "if !d.Allow && (", "if d.Allow && ("},
	{"the shortest pattern wins", "../internal/match/match.go", "uint64(1<<rankBits-1-d.Rank) << 1", "uint64(d.Rank) << 1"},
	{"the first rule of the file wins", "../internal/match/match.go", "key := uint64(1<<rankBits-1-d.Rank) << 1", "key := uint64(0)"},
	{"the anchor does not count in the length", "../internal/match/pattern.go", "d.Rank = uint32(len(pattern) - len(body) + counted)", "d.Rank = uint32(counted)"},
	{"an empty Disallow denies", "decide.go", "Allowed: r.Allow || r.Pattern == \"\"", "Allowed: r.Allow"},
	{"/robots.txt is not always allowed", "dialect.go", "slashFirst: true, openRobots: true,", "slashFirst: true,"},
	{"Google: an index file does not allow its directory", "compile.go", "if c.v.indexFile && rule.Allow {", "if c.v == nil {"},

	// Matching.
	{"a final $ has no effect", "../internal/match/pattern.go", "d.Kind |= Anchored", "d.Kind |= 0"},
	{"the end is not compared after a wildcard", "../internal/match/wildcard.go", "return strings.HasSuffix(s, text)", "return strings.Contains(s, text)"},
	{"parts around a wildcard may overlap", "../internal/match/wildcard.go", "s = s[at+i:]", "s = s[at:]"},
	{"a wildcard matches nothing but the empty text", "../internal/match/wildcard.go", "return strings.Contains(s, text)", "return strings.HasPrefix(s, text)"},
	{"an anchored literal matches longer paths", "../internal/match/match.go", "(!toEnd || len(target) == len(text))", "(!toEnd || len(target) >= len(text))"},
	{"rules with wildcards are not asked if another rule matches", "../internal/match/index.go", "if ok {", "if ok && i == l.count {"},
	{"of many rules with wildcards, those with a gram are not found", "../internal/match/wilds.go", "if len(w.entries) > 0 {", "if len(w.entries) < 0 {"},

	// Encoding.
	{"escapes of unreserved bytes are not decoded", "../internal/match/normal.go", "case class == unreserved, !escaped && keeps(class, pattern):", "case !escaped && keeps(class, pattern):"},
	{"an escaped slash equals a slash", "../internal/match/normal.go", "case class == queryReserved && inQuery:", "case class == queryReserved:"},
	{"reserved bytes in the query differ from their escapes", "../internal/match/normal.go", "case class == queryReserved && inQuery:", "case class == queryReserved && inQuery && !escaped:"},
	{"Google: bytes that are not ASCII are not escaped", "../internal/match/normal.go", "case c >= 0x80:", "case c == 0xff:"},
	{"an escaped star is a wildcard", "../internal/match/normal.go", "return class < rarelyEscaped && (class != starOrDollar || pattern)", "return class < rarelyEscaped"},

	// Delays, sitemaps, parameters, schedules, sizes.
	{"Coc Coc: the delay has no limit", "delay.go", "case written > 10*time.Second:", "case written < 0:"},
	{"a delay that is not a number is zero seconds more", "delay.go", "if c < '0' || c > '9' {\n\t\t\treturn -1", "if c < '0' || c > '9' {\n\t\t\treturn time.Second"},
	{"Google: a relative sitemap is accepted", "parse.go", "p.v.fullSitemaps && !isAbsolute(value)", "p.v == nil"},
	{"Clean-param: the path has no effect", "clean.go", "if c[i].matches(path) {", "if path != \"\" {"},
	{"Clean-param: the path is compared whole", "clean.go", "if !strings.HasPrefix(path, first) {", "if !wild && path != first || wild && !strings.HasPrefix(path, first) {"},
	{"Clean-param: * in a path stands for itself", "clean.go", "strings.Cut(p.Path, \"*\")", "strings.Cut(p.Path, \"?\")"},
	{"Clean-param: the text after a * has no effect", "clean.go", "if i < 0 {\n\t\t\treturn false", "if i < 0 {\n\t\t\treturn true"},
	{"Clean-param: only the first parameter of a line counts", "clean.go", "names = append(names, c[i].Names...)", "names = append(names, c[i].Names[0])"},
	{"Clean-param: only the first line counts", "clean.go", "for i := range c {", "for i := range c[:1] {"},
	{"Clean-param: only the last line that matches counts", "clean.go", "names = append(names, c[i].Names...)", "names = c[i].Names"},
	{"Clean-param: the case of names does not matter", "clean.go", "name, _, _ := strings.Cut(param, \"=\")", "name, _, _ := strings.Cut(strings.ToLower(param), \"=\")\n\t\tnames = strings.Split(strings.ToLower(strings.Join(names, \"&\")), \"&\")"},
	{"Clean-param: a name matches its beginning", "clean.go", "!slices.Contains(names, name) &&", "!strings.HasPrefix(name, names[0]) &&"},
	{"Clean-param: a line in a group is ignored", "parse.go", "case rec.kind == cleanLine && !p.v.cleanParams:", "case rec.kind == cleanLine && (!p.v.cleanParams || p.open):"},
	{"Clean-param: a line before the first group is ignored", "parse.go", "case rec.kind == cleanLine && !p.v.cleanParams:", "case rec.kind == cleanLine && (!p.v.cleanParams || !p.open):"},
	{"Clean-param: all dialects have it", "parse.go", "case rec.kind == cleanLine && !p.v.cleanParams:", "case rec.kind == cleanLine && p.v == nil:"},
	{"Clean-param: Yandex does not have it", "dialect.go", "cleanParams: true, limited: true,", "limited: true,"},
	{"Request-rate: the hours have no effect", "schedule.go", "if r.Window.Contains(t) && r.Delay > rate.Delay {", "if r.Delay > rate.Delay {"},
	{"Request-rate: the hours end one minute early", "schedule.go", "To: min(last+time.Minute, day)", "To: min(last, day)"},
	{"Request-rate: the hours begin one minute late", "schedule.go", "w = Window{From: first,", "w = Window{From: first + time.Minute,"},
	{"Request-rate: the hours have no end", "schedule.go", "return w.From <= now && now < w.To", "return w.From <= now"},
	{"Request-rate: the hours have no beginning", "schedule.go", "return w.From <= now && now < w.To", "return now < w.To"},
	{"Request-rate: hours that span midnight are empty", "schedule.go", "return w.From <= now || now < w.To", "return w.From <= now && now < w.To"},
	{"Request-rate: hours that span midnight are the whole day", "schedule.go", "return w.From <= now || now < w.To", "return true"},
	{"Request-rate: only the first line counts", "schedule.go", "for _, r := range s.Rates {", "for _, r := range s.Rates[:1] {"},
	{"Request-rate: the number of documents has no effect", "schedule.go", "spread(length, unit, count)", "spread(length, unit, min(count, 1))"},
	{"Request-rate: a time without a unit is in minutes", "schedule.go", "unit := time.Second", "unit := time.Minute"},
	{"Request-rate: minutes are read as seconds", "schedule.go", "return time.Minute", "return time.Second"},
	{"Request-rate: days are read as hours", "schedule.go", "return day\n", "return time.Hour\n"},
	{"Request-rate: that of another group applies", "compile.go", "if named {\n\t\t\tc.schedule =", "if named || len(c.pending) > 0 {\n\t\t\tc.schedule ="},
	{"Request-rate: all dialects have it", "schedule.go", "if !g.dialect.variant().rates {", "if g.dialect.variant() == nil {"},
	{"Visit-time: Seznam has it", "schedule.go", "if s == nil || len(s.Rates) == 0 {\n\t\treturn nil\n\t}\n\ts.Visits = nil\n", ""},
	{"a file is read up to 100 KiB", "lines.go", "const SizeLimit = 500 << 10", "const SizeLimit = 100 << 10"},
	{"a file is read without a limit", "lines.go", "if len(body) <= SizeLimit {", "if len(body) >= 0 {"},
}

// mutationsEnv is the environment variable that makes TestMutations try all mutations.
const mutationsEnv = "COLLYROBOTS_MUTATIONS"

// TestMutations checks that the scored cases of the suite find faults: it puts one fault after the
// other into a copy of package dialect and runs the suite on the copy. This takes some seconds for
// each, so only a few are tried unless the environment variable COLLYROBOTS_MUTATIONS is set.
func TestMutations(t *testing.T) {
	all := os.Getenv(mutationsEnv) != ""
	for i, m := range mutations {
		source, err := os.ReadFile(filepath.Join("..", "dialect", filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: %s contains the text %d times, want once: %s", m.name, m.file, n, m.old)
			continue
		}
		if !all && (testing.Short() || i%20 != 3) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			out := runMutated(t, m, strings.Replace(string(source), m.old, m.new, 1))
			if !strings.Contains(out, "--- FAIL: TestOwnReaders/scored") {
				t.Errorf("the suite did not find the fault:\n%s", out)
			}
		})
	}
	if len(mutations) < 30 {
		t.Errorf("%d mutations, want at least 30", len(mutations))
	}
}

// runMutated runs the suite on package dialect with another source of one file. It returns the
// output.
func runMutated(t *testing.T, m mutation, source string) string {
	t.Helper()
	dir := t.TempDir()
	mutated := filepath.Join(dir, "mutated.go")
	original, err := filepath.Abs(filepath.Join("..", "dialect", filepath.FromSlash(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, mutated, source)
	write(t, filepath.Join(dir, "overlay.json"), string(overlay))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=60s", "-overlay", filepath.Join(dir, "overlay.json"), "-run", "TestOwnReaders/scored", ".")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "build failed") {
		return string(out)
	}
	t.Fatalf("the mutated source does not compile:\n%s", out)
	return ""
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
