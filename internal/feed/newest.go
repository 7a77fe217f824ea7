package feed

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/collyrobots/collyrobots/sitemap"
)

// newest keeps the newest pages of a walk, at most so many. Its zero value keeps none.
type newest struct {
	most   int
	pages  byAge
	number int                 // of the pages that were added
	passed map[uint64]struct{} // of pages that turned out to be done after they were added
}

// spare is how many pages are kept beyond MaxURLs, in place of those that the crawl refuses.
const spare = 4096

// byAge is a heap with the oldest page on top; of equally old ones, the one that was added last.
type byAge []numbered

type numbered struct {
	page
	number int
}

func (b byAge) Len() int           { return len(b) }
func (b byAge) Less(i, j int) bool { return compareAge(b[i], b[j]) > 0 }
func (b byAge) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byAge) Push(p any)        { *b = append(*b, p.(numbered)) }
func (b *byAge) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// compareAge orders pages as they are handed on.
func compareAge(a, b numbered) int {
	return cmp.Or(cmp.Compare(a.mark.Age, b.mark.Age), cmp.Compare(a.number, b.number))
}

// future is later than any lastmod that is meant, in unix seconds.
const future = 1 << 40

// ageOf returns where an entry belongs among the newest, as no less than 0: what has no lastmod comes
// last.
func ageOf(e *sitemap.Entry) int64 {
	if e.LastMod.IsZero() {
		return math.MaxInt64
	}
	return max(0, future-e.LastMod.Unix())
}

// add keeps a page, and drops the oldest if there are too many.
func (n *newest) add(p page) {
	n.number++
	x := numbered{p, n.number}
	if len(n.pages) < n.most {
		heap.Push(&n.pages, x)
		return
	}
	if compareAge(x, n.pages[0]) < 0 {
		x, n.pages[0] = n.pages[0], x
		heap.Fix(&n.pages, 0)
	}
	drop(x.check)
}

// drop notes that not all pages of a file are handed on.
func drop(c *checkpoint) {
	if c != nil {
		c.dropped = true
	}
}

// pass notes that a page is done which may have been added, since another file lists it too.
func (n *newest) pass(hash uint64) {
	if n.most == 0 {
		return
	}
	if n.passed == nil {
		n.passed = make(map[uint64]struct{})
	}
	n.passed[hash] = struct{}{}
}

// hand hands the newest pages on, when all sitemaps have been read.
func (n *newest) hand(w *walk) {
	slices.SortFunc(n.pages, compareAge)
	for i := range n.pages {
		p := &n.pages[i].page
		if _, ok := n.passed[p.hash]; ok {
			continue
		}
		if w.ended() || !w.give(p) {
			for _, p := range n.pages[i:] {
				drop(p.check)
			}
			return
		}
	}
}
