// Package sitemap reads sitemaps in every format that the sitemap protocol names. A [Reader] turns
// an [io.Reader] into a stream of entries and enforces [Limits]. The package does not fetch
// anything: [Walk], which descends into sitemap indexes, takes a function that does.
//
// The protocol is the one of sitemaps.org ("Sitemaps XML format", "Other Sitemap formats"). A
// sitemap has one of these formats:
//
//	urlset        url elements, each with loc, lastmod, changefreq, priority
//	sitemapindex  sitemap elements, each with loc, lastmod
//	text          one URL per line, optionally after a heading
//	rss           RSS 2.0: items, each with link or a permanent guid, pubDate
//	rdf:RDF       RSS 1.0: items, each with link, dc:date
//	feed          Atom 0.3 or 1.0: entries, each with a link that has no rel
//	              or rel="alternate", modified or updated
//
// The package detects the format from the root element, or from the URL that a text begins with. It
// never uses the name of the file or the Content-Type header. Real files often violate the
// protocol. The following sections say how the package reads them.
//
// # Bytes
//
// Up to three layers of gzip are removed. A layer is recognized by its magic bytes. The encoding is
// UTF-16 if the document begins with the byte order mark of UTF-16 or if there is a NUL beside the
// first character. Otherwise the XML declaration decides, unless its label is unknown or cannot be
// correct. The default is UTF-8.
//
// # Structure
//
// Up to 64 KiB before the root are skipped, whatever they contain: byte order marks, white space,
// the warnings of a program, a DOCTYPE. A document without a known root is not a sitemap. Reading
// stops at the end tag of the root.
//
// Names are compared without their namespace, and case is ignored. Elements without a prefix and
// elements with the prefix of the root belong to the sitemap itself. All other elements are
// extensions and never hold the location of an entry. For example,
//
//	<url><image:image><image:loc>https://example.com/a.png</image:loc></image:image></url>
//
// has no location, with or without these prefixes. A field ends at the next tag, regardless of its
// name. Comments and processing instructions in a field are removed, and CDATA sections are
// unpacked. Each loc is an entry, even if its url element has several, if the url element has no
// end tag, or if there is no url element. Entities and other declarations of a document are never
// used or fetched.
//
// # Locations
//
// Character references of HTML are decoded if they end in a semicolon. An ampersand that does not
// begin such a reference stands for itself. White space around a location is removed. Line breaks
// and tabs within a location are removed together with the indentation that follows them. The
// fragment is also removed. Relative locations are resolved against the URL that the sitemap was
// fetched from. A location is dropped if the result is not an http or https URL with a host, if it
// has bytes that are invalid in the encoding of the document, or if it is longer than the limit.
//
// The package does not judge whether a sitemap may list a page. The caller can do that:
// Entry.Sitemap and Entry.Root say where the entry was found.
//
// # Dates
//
// A date is a W3C datetime, from "2024" to fractions of a second with a zone, or a date of RFC 822.
// These deviations are also accepted: a space instead of the T, a missing zone (UTC is used), a
// zone without its colon, a zone without a time, a month or day of one digit, and 24:00:00.
//
// # Errors
//
// The [Severity] of an [*Error] says how much is lost: nothing, a field, an entry or the file. A
// date that cannot be parsed never loses the location beside it. If a document is cut short or
// damaged, all complete entries are returned before the error. A location that is itself cut short
// is not returned.
//
// # Limits
//
// [Limits] are on by default. They bound the bytes of a document before and after decompression,
// the ratio of the two, and the time. A gzip bomb or a server that sends one byte per second
// therefore does no harm. The memory that a Reader needs does not depend on the size of the
// document.
package sitemap
