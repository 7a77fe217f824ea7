package feed

import (
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/feed/resume"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A job is a file that has to be read.
type job struct {
	loc    string
	site   dialect.Authority // the site whose sitemap it is
	by     *url.URL          // the URL of the index that names the file; nil if robots.txt names it
	scope  *scope
	root   string    // the URL of the file that robots.txt names, after redirects; "" if it is this file
	depth  int64     // the number of indexes above it
	listed time.Time // the lastmod of the file in the index
	asked  time.Time // when the walk began to fetch it
	key    string
	level  resume.Level // how early it is read
	reread bool         // it is read only to learn its pages, although it has not changed
	guess  []string     // if not empty, no file names this one; the URLs to try, this one first
}

// wellKnownPaths are the usual paths of sitemaps that robots.txt does not name.
var wellKnownPaths = []string{"/sitemap.xml", "/sitemap_index.xml"}

// wellKnown returns the job that looks for a sitemap at these paths.
func wellKnown(site dialect.Authority, s *scope) job {
	j := job{site: site, scope: s}
	for _, path := range wellKnownPaths {
		j.guess = append(j.guess, site.String()+path)
	}
	j.loc = j.guess[0]
	return j
}

// A file is a sitemap that was requested. The goroutine that requests it sets the fields. When the
// file has arrived, it belongs to the walk.
type file struct {
	job
	keys     []string           // the keys under which the file is claimed
	checks   resume.Checkpoints // none without Resume
	tries    int                // how many more requests may follow a failed one
	time     time.Duration      // the time that is left for all requests
	base     *url.URL           // the URL after redirects; nil before the final response
	coding   string             // the Content-Encoding of the response, if it was not removed
	body     *spool             // nil if there was an error
	panicked any                // the value of a panic of Get
	err      error              // why there is no body; the walk also stores why the rest of the file is lost

	// These fields are set while the walk reads the file.
	entries    int  // the number of entries that were read
	broken     bool // a part of the file could not be read
	unreadable bool // the file is not a sitemap
}

// name returns the URL of a file for a log, without a password.
func (x *file) name() string {
	if x.base != nil {
		return x.base.String()
	}
	if u, err := url.Parse(x.loc); err == nil {
		return u.Redacted()
	}
	return "an invalid URL"
}

// child returns the job of a file that x names.
func (x *file) child(e *sitemap.Entry) job {
	return job{loc: e.Loc, site: x.site, by: x.base, scope: x.scope, root: x.root, depth: x.depth + 1, listed: e.LastMod}
}
