package collyrobots

import (
	"container/heap"
	"slices"

	"github.com/collyrobots/collyrobots/sitemap"
)

// newest keeps the newest entries of a walk, at most so many. Its zero value keeps none.
type newest struct {
	most    int
	entries byAge
}

// byAge is a heap with the oldest entry on top.
type byAge []sitemap.Entry

func (b byAge) Len() int           { return len(b) }
func (b byAge) Less(i, j int) bool { return b[i].LastMod.Before(b[j].LastMod) }
func (b byAge) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byAge) Push(e any)        { *b = append(*b, e.(sitemap.Entry)) }
func (b *byAge) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// add keeps an entry, and drops the oldest if there are too many.
func (n *newest) add(e sitemap.Entry) {
	if len(n.entries) < n.most {
		heap.Push(&n.entries, e)
	} else if n.entries[0].LastMod.Before(e.LastMod) {
		n.entries[0] = e
		heap.Fix(&n.entries, 0)
	}
}

// hand gives the entries on, the newest first.
func (n *newest) hand(f *feeder, l *link) {
	slices.SortFunc(n.entries, func(a, b sitemap.Entry) int { return b.LastMod.Compare(a.LastMod) })
	for _, e := range n.entries {
		if l.c.Context.Err() != nil || !f.take(l, e, nil) {
			return
		}
	}
}
