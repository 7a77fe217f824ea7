package resume

import (
	"encoding/binary"
	"math"
	"slices"
)

// A sample holds the hashes of some pages of a file. The sample of a file that is done is stored,
// so that the file need not be read again: if another file lists none of these pages, the two files
// have few pages in common, if any. The sample of a small file has all of its pages.
type sample []uint64

// sampleSize is how many pages a sample has. It has those with the smallest hashes.
const sampleSize = 256

// stableHash returns a hash of a URL that is the same in every run. It is FNV-1a with a final
// mixing step, so that the smallest hashes are a random choice.
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
	*s = append(*s, h)
	if len(*s) == 4*sampleSize {
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

// Samples find the files that list a page, among the files that were not read because they are done
// and unchanged. They know only some pages of each file. The zero value is ready for use. A value
// of F identifies a file.
type Samples[F comparable] struct {
	files map[uint64]F // by the hash of a page
	below uint64       // only smaller hashes are kept
}

// mostSamples is how many hashes are kept. If there are more, fewer pages of each file are known.
const mostSamples = 1 << 18

// Add adds a file with its Checkpoints.
func (s *Samples[F]) Add(file F, cs Checkpoints) {
	if s.files == nil {
		s.files = make(map[uint64]F)
		s.below = math.MaxUint64
	}
	for _, c := range cs {
		for stored := c.record.Sample; len(stored) >= 8; stored = stored[8:] {
			if h := binary.BigEndian.Uint64(stored); h < s.below {
				s.files[h] = file
			}
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

// IsEmpty reports whether there are no files.
func (s *Samples[F]) IsEmpty() bool { return len(s.files) == 0 }

// Take returns the file that lists a page, and removes the file.
func (s *Samples[F]) Take(loc string) (file F, found bool) {
	file, found = s.files[stableHash(loc)]
	if found {
		for h, f := range s.files {
			if f == file {
				delete(s.files, h)
			}
		}
	}
	return file, found
}
