package feed

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A sample holds the hashes of some pages of a file that is done. It is stored so that the file
// need not be read again: if another file shares none of these pages, the two files have few pages
// in common, if any. The sample of a small file has all of its pages.
type sample []uint64

// sampleSize is how many pages a sample has: those with the smallest hashes.
const sampleSize = 256

// stableHash returns a hash of a URL that is the same in every run. It is FNV-1a with a final
// mixing step, so that hashes can be compared by size.
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

// cut keeps only the smallest hashes, in order.
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

// samples are the samples of the files that a walk has skipped because they are done and unchanged.
type samples struct {
	files map[uint64]*job // by the hash of a page
	below uint64          // only smaller hashes are kept
}

// mostSamples is how many hashes are kept. When there are more, fewer pages of large files are
// known.
const mostSamples = 1 << 18

// add adds the stored sample of a file.
func (s *samples) add(j *job, stored []byte) {
	if s.files == nil {
		s.files = make(map[uint64]*job)
		s.below = math.MaxUint64
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

// remove removes the sample of a file.
func (s *samples) remove(j *job) {
	for h, file := range s.files {
		if file == j {
			delete(s.files, h)
		}
	}
}

// sharedBy returns the files that were skipped and that share pages with x, and removes their
// samples.
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
