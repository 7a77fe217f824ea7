package feed

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/internal/redact"
)

// An Outcome says how a file, an entry or a page ended. Each outcome is counted; see [Feed.Count].
type Outcome uint8

const (
	Files          Outcome = 1 + iota // sitemaps and indexes that were opened
	FilesFailed                       // requested files that were disallowed, missing, or not a sitemap
	FilesCut                          // opened files whose rest was lost, by a fault or a limit
	FilesUnchanged                    // files skipped by Resume
	Entries                           // page entries that were read
	Resumed                           // entries skipped by Resume, because an earlier run has finished them
	Fed                               // pages that were handed on and taken
	Old                               // entries skipped by Since
	Dropped                           // entries skipped by Keep
	OutOfScope                        // entries of hosts that are not in the scope of the sitemap
	Duplicate                         // entries that were already listed elsewhere
	Denied                            // pages disallowed by robots.txt
	Refused                           // pages that the crawl did not take
	GivenUp                           // pages that have failed too often to be tried again
	Errors                            // entries, files and parts of files that could not be read
	numOutcomes
)

// keptExamples is how many URLs are kept for each outcome that drops pages.
const keptExamples = 3

// outcomes counts the outcomes of a feed.
type outcomes struct {
	counts     [numOutcomes]atomic.Int64
	examplesMu sync.Mutex // protects examples
	examples   [numOutcomes][]string
}

// Count returns the number of times an outcome has occurred so far.
func (o *outcomes) Count(what Outcome) int { return int(o.counts[what].Load()) }

// Examples returns the first few URLs of entries that were dropped with an outcome.
func (o *outcomes) Examples(what Outcome) []string {
	o.examplesMu.Lock()
	defer o.examplesMu.Unlock()
	return slices.Clone(o.examples[what])
}

func (o *outcomes) count(what Outcome) { o.counts[what].Add(1) }

// drop counts an entry that is not fed, and keeps its URL if it is one of the first.
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
