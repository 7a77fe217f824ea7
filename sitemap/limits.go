package sitemap

import (
	"cmp"
	"time"
)

// Limits bound what a sitemap may cost. A field that is 0 has its default, so
// that the zero value is the right choice for files from strangers; to lift a
// limit, set it high. A limit that is met is reported as a [*LimitError].
type Limits struct {
	Raw          int64         // octets read from the source, compressed or not; 50 MiB
	Decompressed int64         // octets that each layer of compression yields; 100 MiB
	Ratio        int64         // decompressed octets for each raw one, looked at beyond the first MiB; 200
	Tag          int64         // octets of a tag; 16 KiB
	Field        int64         // octets of the text of a field; 8 KiB
	Extensions   int64         // octets that the extensions of an entry take, about; 1 MiB
	Entries      int64         // entries of a file; 1,000,000
	Errors       int64         // errors of a file; 1,000,000
	Time         time.Duration // spent waiting for a file, without the time the consumer takes; 5 minutes

	// For walks only.
	Depth    int64 // indexes above a file; 3
	Children int64 // sitemaps that one index may name; 50,000
	Files    int64 // files of a walk; 100,000
	URLs     int64 // entries of a walk; 50,000,000
}

const (
	protocolEntries = 50_000   // of a file, says the protocol
	protocolSize    = 50 << 20 // octets of an uncompressed file, says the protocol
	maxLayers       = 3        // of gzip
	rootWithin      = 64 << 10 // octets that may precede the root
	ratioFrom       = 1 << 20  // octets that are not held against the ratio
)

// WithDefaults returns the limits that l stands for: a field that is 0 has its
// default, and none is so high that counting up to it would overflow.
func (l Limits) WithDefaults() Limits {
	const mib, kib = 1 << 20, 1 << 10
	or := func(v, def int64) int64 { return min(max(cmp.Or(v, def), 1), 1<<40) }
	return Limits{
		Raw:          or(l.Raw, 50*mib),
		Decompressed: or(l.Decompressed, 100*mib),
		Ratio:        or(l.Ratio, 200),
		Tag:          or(l.Tag, 16*kib),
		Field:        or(l.Field, 8*kib),
		Extensions:   or(l.Extensions, mib),
		Entries:      or(l.Entries, 1_000_000),
		Errors:       or(l.Errors, 1_000_000),
		Time:         max(cmp.Or(l.Time, 5*time.Minute), 1),
		Depth:        or(l.Depth, 3),
		Children:     or(l.Children, 50_000),
		Files:        or(l.Files, 100_000),
		URLs:         or(l.URLs, 50_000_000),
	}
}
