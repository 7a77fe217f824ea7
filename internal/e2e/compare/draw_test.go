package compare

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/gocolly/colly/v2"
)

// A draw makes the random choices of a crawl before it begins. Choices during a crawl use chance,
// because they must not depend on the order of goroutines.
type draw struct {
	*rand.Rand
	unchanged func(*colly.Request) // the OnUnchanged of the options that are drawn
}

// in reports true once in n draws.
func (d draw) in(n int) bool { return d.IntN(n) == 0 }

// between returns a duration in [least, most).
func (d draw) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64(most-least)))
}

// pick returns one of the values.
func pick[T any](d draw, of ...T) T { return of[d.IntN(len(of))] }

// some returns n values, in random order.
func some[T any](d draw, n int, of ...T) (all []T) {
	for _, i := range d.Perm(len(of))[:min(n, len(of))] {
		all = append(all, of[i])
	}
	return all
}

// hashOf returns a number that depends on the values only.
func hashOf(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, of...)
	x := h.Sum64() // the low bits of FNV differ little for similar texts
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

// chance reports true for one in n lists of values.
func chance(n uint64, of ...any) bool { return hashOf(of...)%n == 0 }

// fine returns a time below a millisecond that depends on the values only. It is added to each
// pause, so that different things do not happen at the same instant.
func fine(of ...any) time.Duration { return time.Duration(1 + hashOf(of...)%999_983) }
