package feed

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/collyrobots/collyrobots/sitemap"
)

// newest keeps the newest pages of a walk, at most so many. Its zero value keeps none.
//
// A page that several files list is kept once, at its newest date. So when it is handed on, no
// checkpoint has moved past one of its other places.
type newest struct {
	most   int
	pages  byAge
	number int                  // of the places that were added
	kept   map[uint64]*numbered // pages, by hash
}

// spare is how many pages are kept beyond MaxURLs, in place of those that the crawl refuses.
const spare = 4096

// byAge is a heap with the oldest page on top; of equally old ones, the one that was added last.
type byAge []*numbered

// A numbered page is one that is kept.
type numbered struct {
	page
	number int
	index  int     // in the heap
	also   []place // where else it is listed
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

// compareAge orders pages as they are handed on.
func compareAge(a, b *numbered) int {
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

// add keeps a page that is not kept, and drops the oldest if there are too many.
func (n *newest) add(p page) {
	if n.kept == nil {
		n.kept = make(map[uint64]*numbered)
	}
	n.number++
	x := &numbered{page: p, number: n.number}
	n.kept[p.hash] = x
	heap.Push(&n.pages, x)
	if len(n.pages) > n.most {
		oldest := heap.Pop(&n.pages).(*numbered)
		delete(n.kept, oldest.hash)
		oldest.drop()
	}
}

// join notes where else a page is listed. It reports whether the page is kept.
func (n *newest) join(p *page) bool {
	x := n.kept[p.hash]
	if x == nil {
		return false
	}
	n.number++
	again := x.again || p.again
	other := place{p.check, p.mark}
	if p.mark.Age < x.mark.Age {
		other = place{x.check, x.mark}
		x.page, x.number = *p, n.number
		heap.Fix(&n.pages, x.index)
	}
	x.again = again
	if other.checkpoint != nil {
		x.also = append(x.also, other)
	}
	return true
}

// drop notes that the page was not kept until it could be handed on.
func (x *numbered) drop() {
	x.check.drop()
	for _, p := range x.also {
		p.checkpoint.drop()
	}
}

// hand hands the newest pages on, when all sitemaps have been read.
func (n *newest) hand(w *walk) {
	slices.SortFunc(n.pages, compareAge)
	more := true
	for _, x := range n.pages {
		if more = more && !w.ended(); !more {
			x.drop()
			continue
		}
		if w.claim(&x.page) {
			more = w.give(&x.page)
		} else {
			w.drop(Duplicate, x.entry.Loc)
			w.keeper.join(x.hash, x.check, x.mark)
		}
		for _, p := range x.also {
			w.keeper.join(x.hash, p.checkpoint, p.mark)
		}
	}
}
