package house

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each fact has one place in the documentation, and other places link to it. The tests of this file
// find the repetitions that a machine can find: the same words. A page may repeat the default that it
// departs from, in a sentence with the word default.

const (
	// sameInGuides is how many words in a row no two passages of the guides may have in common.
	// With 8, the test would also find ordinary phrases, such as those in the table of docs/reference/findings.md.
	sameInGuides = 9
	// sameInComment is the number for a guide and a comment. A comment is a contract and may have the
	// words of the guide, but not explain the same thing in the same sentences.
	sameInComment = 16
)

// A passage is a paragraph, a list item, a heading or a cell of a table.
type passage struct {
	file  string
	words []string
}

// TestNothingIsSaidTwice checks that no passage of the guides repeats another one.
func TestNothingIsSaidTwice(t *testing.T) {
	guides := passagesOfGuides(t)
	if len(guides) < 1500 {
		t.Fatalf("found only %d passages", len(guides))
	}
	for _, fault := range repetitions(guides, guides, sameInGuides) {
		t.Errorf("%s: say it in one of them, and link to it from the other", fault)
	}
}

// TestCommentsDoNotRepeatGuides checks that no comment has a sentence of a guide.
func TestCommentsDoNotRepeatGuides(t *testing.T) {
	var comments []passage
	for name := range importsBelow(t, ".", false) {
		for _, comment := range parse(t, name).Comments {
			for paragraph := range strings.SplitSeq(comment.Text(), "\n\n") {
				comments = append(comments, passage{file: name, words: wordsOf(paragraph)})
			}
		}
	}
	for _, fault := range repetitions(passagesOfGuides(t), comments, sameInComment) {
		t.Errorf("%s: a comment is a short contract, and the guide explains it", fault)
	}
}

// TestRepetitionsAreFound checks that the tests above find repetitions, and only in prose.
func TestRepetitionsAreFound(t *testing.T) {
	const first = "# Title\n\nA host without a [delay](x.md#y) is crawled\nat `full` speed, as\n\n    far as one line of code may be repeated\n"
	const second = "- By default, a host without a delay is crawled at full speed.\n- Here a host without a delay is crawled at full speed.\n- far as one line of code may be repeated\n" +
		"\n| far as one line of code | may be repeated |\n|---|---|\n```\nhere a host without a delay is crawled\n```\n"
	guides := slices.Concat(passagesIn("a.md", first), passagesIn("b.md", second))
	want := []string{`a.md and b.md have the words "a host without a delay is crawled"`}
	if got := repetitions(guides, guides, 7); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// repetitions returns the first run of n words in each of the passages that is also in another
// passage, or in another place of the same passage. known are the passages to compare with.
func repetitions(known, passages []passage, n int) (found []string) {
	type place struct {
		passage *passage
		at      int
	}
	runs := make(map[string]place)
	for i := range known {
		for at := range len(known[i].words) - n + 1 {
			run := strings.Join(known[i].words[at:at+n], " ")
			if _, ok := runs[run]; !ok {
				runs[run] = place{passage: &known[i], at: at}
			}
		}
	}
	for i := range passages {
		for at := range len(passages[i].words) - n + 1 {
			run := strings.Join(passages[i].words[at:at+n], " ")
			first, ok := runs[run]
			if ok && first != (place{passage: &passages[i], at: at}) {
				found = append(found, fmt.Sprintf("%s and %s have the words %q", first.passage.file, passages[i].file, run))
				break
			}
		}
	}
	return found
}

// passagesOfGuides returns the passages of the documents for users.
func passagesOfGuides(t *testing.T) (all []passage) {
	t.Helper()
	var names []string
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		must(t, err)
		names = append(names, found...)
	}
	names = append(names, "README.md", "llms.txt", ".github/SECURITY.md", "conformance/README.md", "examples/README.md",
		"internal/benchmarks/README.md", "internal/benchmarks/scale.md")
	for _, name := range names {
		all = append(all, passagesIn(filepath.ToSlash(name), textOf(t, name))...)
	}
	return all
}

var (
	fencedCode = regexp.MustCompile("(?ms)^```.*?^```$")
	tableHead  = regexp.MustCompile(`(?m)^\|.*\n\|[-:| ]+\|$`)
	begins     = regexp.MustCompile(`^\s*([-*#|]|\d+\.) ?`)                      // a list item, a heading or a row of a table
	defaults   = regexp.MustCompile(`(?i)([^.]|\.\S)*\bdefaults?\b([^.]|\.\S)*`) // a sentence that states a default
)

// passagesIn returns the passages of a document, without code, the head rows of tables, and the
// sentences that state a default.
func passagesIn(name, text string) (all []passage) {
	text = tableHead.ReplaceAllString(fencedCode.ReplaceAllString(text, ""), "")
	passages := []string{""}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "    ") { // code
			line = "\n"
		}
		if strings.TrimSpace(line) == "" || begins.MatchString(line) {
			passages = append(passages, "")
		}
		if strings.HasPrefix(line, "|") {
			line = strings.ReplaceAll(line, "<br>", "|")
			passages = append(passages, strings.Split(line, "|")...)
			continue
		}
		passages[len(passages)-1] += line
	}
	for _, p := range passages {
		for _, part := range defaults.Split(p, -1) {
			all = append(all, passage{file: name, words: wordsOf(part)})
		}
	}
	return all
}

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	word       = regexp.MustCompile(`[\pL\pN_](?:[^\s|]*[\pL\pN_])?`)
)

// wordsOf returns the words of a text in lower case, without punctuation and the targets of links.
func wordsOf(text string) []string {
	return word.FindAllString(strings.ToLower(linkTarget.ReplaceAllString(text, "]")), -1)
}
