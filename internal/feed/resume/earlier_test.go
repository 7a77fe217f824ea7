package resume

import (
	"math/rand/v2"
	"testing"

	"github.com/collyrobots/collyrobots/internal/feed/hashset"
)

// The time of a page is exact for up to mostEarlier runs, and never too late for more.
func TestEarlier(t *testing.T) {
	for _, runs := range []int{1, mostEarlier, 3 * mostEarlier} {
		e := &earlier{pages: hashset.New(1 << 20)}
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(runs) {
			e.add(uint64(i), int64(1000+i))
			e.add(uint64(i), int64(1000+i))
		}
		for i := range runs {
			after, ok := e.fetched(uint64(i))
			if !ok || !e.has(uint64(i)) || after > int64(1000+i) || runs <= mostEarlier && after != int64(1000+i) {
				t.Errorf("%d runs: page %d was fetched after %d, %v", runs, i, after, ok)
			}
		}
		if e.has(uint64(runs)) {
			t.Errorf("%d runs: a page was fetched that was not added", runs)
		}
	}
	e := &earlier{pages: hashset.New(100)}
	e.add(1, 1000)
	e.add(1, 3000)
	e.add(1, 2000)
	if after, _ := e.fetched(1); after != 3000 {
		t.Errorf("a page that three runs have fetched was fetched after %d", after)
	}
}
