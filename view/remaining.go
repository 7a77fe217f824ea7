package view

import (
	"math"
	"time"
)

// remaining estimates when a part of the waiting pages of all hosts has started. It counts pages by
// the logarithm of the time until they start, so that it needs the same memory for any number.
type remaining struct {
	pages [remainingBuckets]float64
	total float64
}

const (
	remainingStep    = 1.1                    // the ratio of the bounds of two buckets
	remainingFirst   = 100 * time.Millisecond // the upper bound of the first bucket
	remainingBuckets = 270                    // enough for the longest Duration
)

// bucketOf returns the bucket of a time.
func bucketOf(d time.Duration) int {
	if d <= remainingFirst {
		return 0
	}
	return min(remainingBuckets-1, 1+int(math.Log(float64(d)/float64(remainingFirst))/math.Log(remainingStep)))
}

// upper returns the upper bound of a bucket.
func upper(bucket int) float64 {
	return float64(remainingFirst) * math.Pow(remainingStep, float64(bucket))
}

// add adds the n waiting pages of a host. The first starts after first, and the last after last.
func (r *remaining) add(first, last time.Duration, n int) {
	first = min(max(first, 0), last)
	r.total += float64(n)
	from, to := bucketOf(first), bucketOf(last)
	if from == to || n == 1 {
		r.pages[to] += float64(n)
		return
	}
	began := float64(first)
	for b := from; b <= to; b++ {
		end := min(upper(b), float64(last))
		r.pages[b] += float64(n) * (end - began) / float64(last-first)
		began = end
	}
}

// until returns the time until a part of the pages has started. The error is at most 10 %.
func (r *remaining) until(part float64) time.Duration {
	wanted := part * r.total
	sum := 0.0
	for b, n := range r.pages {
		sum += n
		if n > 0 && sum >= wanted-1e-9 {
			if upper(b) >= math.MaxInt64 {
				return math.MaxInt64
			}
			return time.Duration(upper(b))
		}
	}
	return 0
}
