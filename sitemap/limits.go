package sitemap

import (
	"cmp"
	"time"
)

// Limits bound the resources that reading a sitemap may use. A field that is zero has the default
// that its comment names last. The zero value of Limits is therefore a good choice for files from
// untrusted sources. To lift a limit, set it to a high value. If a limit is exceeded, the error is
// a [*LimitError].
type Limits struct {
	Raw          int64         // bytes read from the source, compressed or not; 50 MiB
	Decompressed int64         // bytes that each layer of compression yields; 100 MiB
	Ratio        int64         // decompressed bytes per raw byte, checked after the first MiB; 200
	Tag          int64         // bytes of a tag; 16 KiB
	Field        int64         // bytes of the text of a field; 8 KiB
	Extensions   int64         // approximate size of the extensions of an entry in bytes; 1 MiB
	Entries      int64         // entries of a file; 1,000,000
	Errors       int64         // errors of a file; 1,000,000
	Time         time.Duration // time spent waiting for a file, without the consumer's time; 5 minutes

	// These limits apply to walks only.
	Depth    int64 // indexes above a file; 3
	Children int64 // sitemaps that one index may name; 50,000
	Files    int64 // files of a walk; 100,000
	URLs     int64 // entries of a walk; 50,000,000
}

const (
	protocolEntries = 50_000   // entries that the protocol allows in a file
	protocolSize    = 50 << 20 // bytes that the protocol allows in an uncompressed file
	maxLayers       = 3        // layers of gzip that are removed
	rootWithin      = 64 << 10 // bytes that may precede the root
	ratioFrom       = 1 << 20  // decompressed bytes above which the ratio is checked
)

// WithDefaults returns l with each zero field replaced by its default. It also raises negative
// limits to 1 and reduces very high limits, so that counting up to them cannot overflow.
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
