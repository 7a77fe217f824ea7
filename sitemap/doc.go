// Package sitemap reads sitemaps of every format that the sitemap protocol
// names, as a stream and within limits: an [io.Reader] goes in, entries come
// out. It fetches nothing; [Walk] is given a function that does.
package sitemap
