package sitemap

import "time"

// An Entry is one location of a sitemap with its fields. Except for Loc, the zero value of a field
// means that the sitemap does not have the field or that its text cannot be parsed; see Unread.
type Entry struct {
	// Loc is an absolute http or https URL without a fragment. An absolute location is kept as it
	// was written, except that white space and markup are removed. A relative location has been
	// resolved against the URL of the sitemap.
	Loc string

	// LastMod is when the page was last changed, in UTC. If Index is set, it is when the sitemap
	// was last changed. A date without a time of day means midnight. A time without a zone is taken
	// as UTC.
	LastMod time.Time

	// ChangeFreq is "always", "hourly", "daily", "weekly", "monthly", "yearly" or "never".
	ChangeFreq string

	// Priority is between 0 and 1. It is also 0 if it is not known.
	Priority float64

	// Index reports whether Loc is the URL of another sitemap instead of a page.
	Index bool

	// Sitemap is the URL of the file that the entry was read from, after redirects. A [Reader] uses
	// the base that it was created with.
	Sitemap string

	// Root is the URL of the file at which the walk began, after redirects. Only [Walk] sets it.
	Root string

	// Unread holds the fields whose text could not be parsed. If a field had several such texts,
	// Unread has the first.
	Unread []Field

	Extensions
}

// A Field is a field of an entry as text.
type Field struct {
	Name string // "lastmod", "changefreq" or "priority"
	Text string
}
