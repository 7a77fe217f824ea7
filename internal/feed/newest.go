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
	number int                // of the pages that were added
	passed map[uint64]bool    // pages that are done, by hash
	also   map[uint64][]place // where else pages are that were added
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

// ageOf returns where an entry belongs among the newest, as no less than 0: what has no lastmod
// comes last.
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
	x.check.drop()
}

// pass notes that a page is done, which another file may list too.
func (n *newest) pass(hash uint64) {
	if n.most == 0 {
		return
	}
	if n.passed == nil {
		n.passed = make(map[uint64]bool)
	}
	n.passed[hash] = true
}

// join notes that a page that may have been added is also at m in the file of c.
func (n *newest) join(hash uint64, c *checkpoint, m mark) {
	if c == nil {
		return
	}
	if n.also == nil {
		n.also = make(map[uint64][]place)
	}
	n.also[hash] = append(n.also[hash], place{c, m})
}

// hand hands the newest pages on, when all sitemaps have been read.
func (n *newest) hand(w *walk) {
	slices.SortFunc(n.pages, compareAge)
	more := true
	for i := range n.pages {
		p := &n.pages[i].page
		if n.passed[p.hash] {
			continue
		}
		if more = more && !w.ended() && w.give(p); !more {
			p.check.drop()
			continue
		}
		n.pass(p.hash)
		for _, also := range n.also[p.hash] {
			w.keeper.join(p.hash, also.checkpoint, also.mark)
		}
	}
	for hash, places := range n.also {
		if n.passed[hash] {
			continue
		}
		for _, p := range places {
			p.checkpoint.drop()
			p.checkpoint.leave(p.mark, 0)
		}
	}
}
