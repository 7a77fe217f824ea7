// Package sitemap reads sitemaps of every format that the sitemap protocol
// names, as a stream and within limits: an [io.Reader] goes in, entries come
// out. It fetches nothing; [Walk], which descends into sitemap indexes, is
// given a function that does.
//
// The protocol is that of sitemaps.org ("Sitemaps XML format", "Other Sitemap
// formats"). A sitemap is one of
//
//	urlset        url elements, each with loc, lastmod, changefreq, priority
//	sitemapindex  sitemap elements, each with loc, lastmod
//	text          one URL a line, perhaps below a heading
//	rss           RSS 2.0: items, each with link or a permanent guid, pubDate
//	rdf:RDF       RSS 1.0: items, each with link, dc:date
//	feed          Atom 0.3 or 1.0: entries, each with a link that has no rel
//	              or rel="alternate", modified or updated
//
// and is known by its root, or by the URL it begins with, never by its name
// or by what a server says of it. Real files are often not what they should
// be. The rest of this text says what is made of them.
//
// # Octets
//
// Up to three layers of gzip are removed wherever their magic octets are met.
// A byte order mark or the pattern of NULs shows UTF-16. Otherwise the XML
// declaration is believed, unless its label is unknown or cannot be true, and
// UTF-8 is the default.
//
// # Structure
//
// Whatever stands before the root is passed over, up to 64 KiB: marks,
// blanks, the warnings of a program, a DOCTYPE. A document without a known
// root is no sitemap. Reading stops at the end tag of the root.
//
// Names are compared without their namespace and case. Elements without a
// prefix and those with the prefix of the root are the sitemap's own; all
// others are extensions and never hold the location of an entry:
//
//	<url><image:image><image:loc>https://example.com/a.png</image:loc></image:image></url>
//
// has no location, with or without these prefixes. A field ends at the next
// tag, whichever it is; comments and processing instructions in it are removed
// and CDATA sections unpacked. Each loc is an entry, also if its url has
// several, or no end, or there is no url. Neither entities nor anything else
// that a document declares is ever used or fetched.
//
// # Locations
//
// The character references of HTML that end in a semicolon are decoded; an
// ampersand by itself stands for itself. Blanks around a location are
// removed, as are line breaks and tabs in it with the indentation after
// them, and the fragment. Relative locations are resolved against the URL
// that the sitemap was fetched from. What is then no http or https URL with
// a host, has octets that are no text, or is longer than the limit, is
// dropped.
//
// Whether the page may be listed by this sitemap is for the caller to judge;
// Entry.Sitemap and Entry.Root say where it was found.
//
// # Dates
//
// A date is a W3C datetime, from "2024" to fractions of a second with a
// zone, or one of RFC 822. A blank for the T, a missing zone (UTC), a zone
// without its colon or without a time, a month or day of one digit and
// 24:00:00 are understood, too.
//
// # Errors
//
// An [*Error] is about a field, an entry or the file, and costs no more than
// that: a date that cannot be read never loses the location beside it, and of
// a document that is cut or damaged all whole entries are given before the
// error is. A location that is cut itself is not given.
//
// # Limits
//
// [Limits] are on by default. They bound what a document may cost, in octets
// before and after decompression, in how many times larger decompression may
// make them, and in time, so that neither a gzip bomb nor a server that sends
// an octet a second does harm. The memory that is needed does not depend on
// the size of the document.
package sitemap
