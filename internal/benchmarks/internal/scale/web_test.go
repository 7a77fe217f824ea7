package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// corpusDir contains real robots.txt files. Their authors are other people, so the files are not in
// the repository.
const corpusDir = "../../../../../shared/corpus"

// TestCrawlDelaysOfTheCorpus checks the numbers in crawlDelays.
func TestCrawlDelaysOfTheCorpus(t *testing.T) {
	names, _ := filepath.Glob(filepath.Join(corpusDir, "*__*"))
	if len(names) == 0 {
		t.Skip("the corpus of real robots.txt files is missing")
	}
	counts := make(map[time.Duration]int)
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		delay, _ := dialect.RFC9309().Parse(body).Group("ExampleBot").CrawlDelay()
		counts[delay]++
	}
	if len(names) != corpusFiles || len(counts) != len(crawlDelays) {
		t.Errorf("%d files with %d delays, want %d with %d", len(names), len(counts), corpusFiles, len(crawlDelays))
	}
	for _, d := range crawlDelays {
		if counts[d.delay] != d.files {
			t.Errorf("%d files ask for %v, want %d", counts[d.delay], d.delay, d.files)
		}
	}
}

// TestDocumentation checks that benchmarks/scale.md has the numbers of the simulation.
func TestDocumentation(t *testing.T) {
	guide, err := os.ReadFile("../../scale.md")
	if err != nil {
		t.Fatal(err)
	}
	asks := 0
	for _, d := range crawlDelays[1:] {
		asks += d.files
	}
	for _, want := range []string{
		fmt.Sprintf("%d of %d real robots.txt files", asks, corpusFiles),
		fmt.Sprintf("median %v, mean %v", strings.Replace(medianResponse.String(), "ms", " ms", 1), strings.Replace(meanResponse.Round(time.Millisecond).String(), "ms", " ms", 1)),
		fmt.Sprintf("n^-%v of the hosts", tail),
	} {
		if !strings.Contains(string(guide), want) {
			t.Errorf("benchmarks/scale.md does not say %q", want)
		}
	}
}
