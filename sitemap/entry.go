package sitemap

import "time"

// An Entry is one location of a sitemap and what the sitemap says about it.
// The zero value of every field but Loc means that the sitemap does not say,
// or says it in a way that cannot be read; see Unread.
type Entry struct {
	// Loc is an absolute http or https URL without a fragment. An absolute
	// location is kept as it was written, blanks and markup removed; a
	// relative one has been resolved against the URL of the sitemap.
	Loc string

	// LastMod is when the page or, if Index is set, the sitemap was last
	// changed, in UTC. A date without a time of day is its midnight, a time
	// without a zone is taken as UTC.
	LastMod time.Time

	// ChangeFreq is "always", "hourly", "daily", "weekly", "monthly",
	// "yearly" or "never".
	ChangeFreq string

	// Priority is between 0 and 1, and 0 also when it is not known.
	Priority float64

	// Index reports whether Loc is that of another sitemap, not of a page.
	Index bool

	// Sitemap is the URL of the file that the entry was read from, after
	// redirects. [Reader] takes it from its base.
	Sitemap string

	// Root is the URL, after redirects, of the file at which the walk began.
	// Only [Walk] sets it.
	Root string

	// Unread holds the first text of each field that was present and could
	// not be read.
	Unread []Field

	Extensions
}

// A Field is the text of a field, as the sitemap has it.
type Field struct {
	Name string // "lastmod", "changefreq", "priority"
	Text string
}
