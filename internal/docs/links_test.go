package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinks checks that each link within the repository leads to an existing file and heading.
func TestLinks(t *testing.T) {
	links, toHeadings := 0, 0
	for _, page := range markdown(t) {
		for _, link := range linksIn(read(t, page)) {
			file, heading, _ := strings.Cut(link, "#")
			links++
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link)
				continue
			}
			if heading == "" {
				continue
			}
			toHeadings++
			if !headings(read(t, target))[heading] {
				t.Errorf("%s links to %s, which has no such heading", page, link)
			}
		}
	}
	if links < 30 || toHeadings < 5 {
		t.Errorf("only %d links were found, %d of them to headings", links, toHeadings)
	}
}

// TestEveryGuideIsFound checks that the list of guides has a link to each guide.
func TestEveryGuideIsFound(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		name := strings.TrimPrefix(page, "docs/")
		if name != page && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

func TestLinksAreFound(t *testing.T) {
	text := "[a](b.md), ![c\nd](e.svg) [f](https://example.com/) [g](#h)\n[i]: j.md\n```go\nx[0](y)\n```\n`[k](l)`\n"
	if got := strings.Join(linksIn(text), " "); got != "b.md e.svg #h j.md" {
		t.Errorf("links %s", got)
	}
	got := headings("# A `Name`, and more: 429?\n## B\n```sh\n# no heading\n```\n## B\n")
	if len(got) != 3 || !got["a-name-and-more-429"] || !got["b"] || !got["b-1"] {
		t.Errorf("headings %v", got)
	}
}

var (
	fences  = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	inline  = regexp.MustCompile(`(?s)\[[^\[\]]*\]\(([^()\s]+)\)`)
	defined = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
)

// linksIn returns the links of a page to files of the repository.
func linksIn(text string) (links []string) {
	text = code.ReplaceAllString(fences.ReplaceAllString(text, ""), "")
	for _, m := range append(inline.FindAllStringSubmatch(text, -1), defined.FindAllStringSubmatch(text, -1)...) {
		if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
			links = append(links, m[1])
		}
	}
	return links
}

// headings returns the names of the headings of a page, as they are written in links.
func headings(text string) map[string]bool {
	found := make(map[string]bool)
	for line := range strings.Lines(fences.ReplaceAllString(text, "")) {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading))
		if found[name] {
			name += "-1" // no page links to the third of three equal headings
		}
		found[name] = true
	}
	return found
}

// markdown returns the names of all Markdown files of the repository, and llms.txt.
func markdown(t *testing.T) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(repository), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, e.Name()):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"), name == "llms.txt":
			files = append(files, name)
		}
		return nil
	})
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	return files
}
