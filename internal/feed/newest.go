package feed

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/sitemap"
)

// newest keeps the newest pages of a walk, at most a fixed number. Its zero value keeps none.
//
// A page that several files list is kept once, at its newest date. Therefore no checkpoint has
// moved past any place of the page when it is handed on.
type newest struct {
	limit  int // the largest number of pages
	pages  byAge
	number int                  // the number of the last place that was added
	kept   map[uint64]*numbered // the pages that are kept, by hash
}

// extraNewest is how many pages are kept in addition to MaxURLs. They replace pages that the crawl
// refuses.
const extraNewest = 4096

// byAge is a heap with the oldest page on top. Of pages with the same age, the one that was added
// last is on top.
type byAge []*numbered

// A numbered page is a page that newest keeps.
type numbered struct {
	page
	number int            // orders pages with the same age
	index  int            // the index in the heap
	also   []resume.Place // the other places where the page is listed
}

func (b byAge) Len() int           { return len(b) }
func (b byAge) Less(i, j int) bool { return compareAge(b[i], b[j]) > 0 }
func (b byAge) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].index, b[j].index = i, j
}
func (b *byAge) Push(p any) {
	x := p.(*numbered)
	x.index = len(*b)
	*b = append(*b, x)
}
func (b *byAge) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// compareAge compares pages by the order of their delivery.
func compareAge(a, b *numbered) int {
	return cmp.Or(cmp.Compare(a.at.Mark.Age, b.at.Mark.Age), cmp.Compare(a.number, b.number))
}

// future is a time in Unix seconds that is later than any realistic lastmod.
const future = 1 << 40

// ageOf returns the age of an entry for the order of newest; it is never negative. An entry without
// lastmod comes last.
func ageOf(e *sitemap.Entry) int64 {
	if e.LastMod.IsZero() {
		return math.MaxInt64
	}
	return max(0, future-e.LastMod.Unix())
}

// add keeps a page that is not kept yet. If there are then too many pages, it drops the oldest.
func (n *newest) add(p page) {
	if n.kept == nil {
		n.kept = make(map[uint64]*numbered)
	}
	n.number++
	x := &numbered{page: p, number: n.number}
	n.kept[p.hash] = x
	heap.Push(&n.pages, x)
	if len(n.pages) > n.limit {
		oldest := heap.Pop(&n.pages).(*numbered)
		delete(n.kept, oldest.hash)
		oldest.drop()
	}
}

// has reports whether the page with this hash is kept.
func (n *newest) has(hash uint64) bool { return n.kept[hash] != nil }

// join records another place of a page. It reports whether the page is kept.
func (n *newest) join(p *page) bool {
	x := n.kept[p.hash]
	if x == nil {
		return false
	}
	n.number++
	again := x.again || p.again
	other := p.at
	if p.at.Mark.Age < x.at.Mark.Age {
		other = x.at
		x.page = *p
		x.number = n.number
		heap.Fix(&n.pages, x.index)
	}
	x.again = again
	if other.Checkpoint != nil {
		x.also = append(x.also, other)
	}
	return true
}

// drop records in the checkpoints that the page could not be kept until it could be handed on.
func (x *numbered) drop() {
	x.at.Drop()
	for _, at := range x.also {
		at.Drop()
	}
}

// sorted returns the pages that are kept, in the order of their delivery.
func (n *newest) sorted() []*numbered {
	slices.SortFunc(n.pages, compareAge)
	return n.pages
}
