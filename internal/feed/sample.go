package feed

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A sample is some of the pages of a file that is done, by hash, which is kept so that the file
// need not be read again: a file that shares none of them with it has few pages in common with it,
// if any. All pages of a small file are in its sample.
type sample []uint64

// sampleSize is how many pages a sample has: those with the smallest hashes.
const sampleSize = 256

// stableHash returns a hash of a URL that is the same in every run (FNV-1a, with its octets mixed
// well enough to compare hashes by size).
func stableHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// add adds a page.
func (s *sample) add(loc string) {
	h := stableHash(loc)
	if len(*s) >= sampleSize && h > (*s)[sampleSize-1] {
		return
	}
	if *s = append(*s, h); len(*s) == 4*sampleSize {
		s.cut()
	}
}

// cut leaves the smallest hashes, in order.
func (s *sample) cut() {
	slices.Sort(*s)
	*s = slices.Compact(*s)
	*s = (*s)[:min(len(*s), sampleSize)]
}

// encode returns the sample as it is stored.
func (s *sample) encode() []byte {
	s.cut()
	b := make([]byte, 0, 8*len(*s))
	for _, h := range *s {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

// samples are those of the files that a walk has left out, as they are done and unchanged.
type samples struct {
	files map[uint64]*job // by hash of a page
	below uint64          // hashes are kept that are less
}

// mostSamples bounds how many hashes are kept. Beyond, large files are less well known.
const mostSamples = 1 << 18

// add adds what is stored of a file.
func (s *samples) add(j *job, stored []byte) {
	if s.files == nil {
		s.files, s.below = make(map[uint64]*job), math.MaxUint64
	}
	for ; len(stored) >= 8; stored = stored[8:] {
		if h := binary.BigEndian.Uint64(stored); h < s.below {
			s.files[h] = j
		}
	}
	for len(s.files) > mostSamples {
		s.below /= 2
		for h := range s.files {
			if h >= s.below {
				delete(s.files, h)
			}
		}
	}
}

// remove forgets a file.
func (s *samples) remove(j *job) {
	for h, file := range s.files {
		if file == j {
			delete(s.files, h)
		}
	}
}

// sharedBy returns the files that have been left out and share pages with one that is at hand, and
// forgets them.
func (w *walk) sharedBy(x *file) []job {
	if len(x.checks) == 0 || x.checks.again() || len(w.samples.files) == 0 {
		return nil
	}
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = w.Limits
	var shared []job
	for e, err := range r.All() {
		if err != nil || e.Index {
			continue
		}
		if j := w.samples.files[stableHash(e.Loc)]; j != nil {
			shared = append(shared, *j)
			w.samples.remove(j)
		}
	}
	return shared
}
