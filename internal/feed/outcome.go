package feed

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// An Outcome is what became of a file, of an entry or of a page. Each is counted; see [Feed.Count].
type Outcome uint8

const (
	Files          Outcome = 1 + iota // sitemaps and indexes opened
	FilesFailed                       // of those asked for: disallowed, not there, no sitemap
	FilesCut                          // of those opened: ended early, or by a limit, after what could be read
	FilesUnchanged                    // left out by Resume
	Entries                           // page entries read
	Resumed                           // entries skipped by Resume: dealt with by an earlier run
	Fed                               // pages handed on and taken
	Old                               // entries skipped by Since
	Dropped                           // entries skipped by Keep
	OutOfScope                        // entries of sites that the sitemap may not speak for
	Duplicate                         // entries that were listed before
	Denied                            // pages disallowed by robots.txt
	Refused                           // pages not taken by the crawl
	GivenUp                           // pages that have failed as often as they are tried
	Errors                            // entries, files and parts of files that could not be read
	numOutcomes
)

// keptExamples is how many URLs are kept for each outcome that drops pages.
const keptExamples = 3

// outcomes count.
type outcomes struct {
	counts     [numOutcomes]atomic.Int64
	examplesMu sync.Mutex
	examples   [numOutcomes][]string
}

// Count returns how often an outcome was seen so far.
func (o *outcomes) Count(what Outcome) int { return int(o.counts[what].Load()) }

// Examples returns the first few URLs of entries that were dropped under an outcome.
func (o *outcomes) Examples(what Outcome) []string {
	o.examplesMu.Lock()
	defer o.examplesMu.Unlock()
	return slices.Clone(o.examples[what])
}

func (o *outcomes) count(what Outcome) { o.counts[what].Add(1) }

// drop counts an entry that is not fed.
func (o *outcomes) drop(what Outcome, loc string) {
	if o.counts[what].Add(1) > keptExamples {
		return
	}
	o.examplesMu.Lock()
	defer o.examplesMu.Unlock()
	if len(o.examples[what]) < keptExamples {
		o.examples[what] = append(o.examples[what], redact.Text(loc))
	}
}
