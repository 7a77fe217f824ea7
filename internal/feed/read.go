package feed

import (
	"io"

	"github.com/collyrobots/collyrobots/sitemap"
)

// read reads a file that was received. It reports whether the walk continues.
func (w *walk) read(x *file) bool {
	defer x.body.Close()
	defer w.release(x, abandoned) // in case a callback of the program panics
	if x.root == "" {
		x.root = x.base.String()
		x.scope.addURL(x.root)
	}
	whole, more := w.entries(x)
	w.warnOutside(x)
	w.callRead(x)
	switch {
	case !whole:
		x.broken = true
		w.release(x, abandoned)
	case x.unreadable:
		w.release(x, failed)
	default:
		w.release(x, opened)
		w.spent.spend(func(s *spending) { s.read++ })
	}
	if w.Resume && w.NewestFirst {
		w.unfinished = append(w.unfinished, x)
	} else {
		x.checks.Finish(!x.broken, x.listed, x.asked)
	}
	return more
}

// entries processes the entries of a file. whole reports whether it has processed everything that
// this file can give, and more whether the walk continues.
func (w *walk) entries(x *file) (whole, more bool) {
	r := sitemap.NewReader(x.body.open(), x.base)
	r.Limits = w.Limits
	children := int64(0)
	for pos := 0; ; {
		e, err := r.Read()
		switch {
		case err == io.EOF:
			return true, true
		case w.ended():
			return false, false
		case err != nil:
			w.fault(x, err)
		case !e.Index && w.urls == w.limits.URLs:
			w.reachLimit(&sitemap.LimitError{Limit: "URLs", Max: w.urls})
			return false, false
		case !e.Index:
			w.urls++
			x.entries++
			if !w.page(x, e, pos) {
				return false, false
			}
			pos++
		case x.depth == w.limits.Depth:
			w.fault(x, limitMet(e.Sitemap, "Depth", x.depth))
			return false, true
		case children == w.limits.Children:
			w.fault(x, limitMet(e.Sitemap, "Children", children))
			return true, true
		default:
			children++
			x.entries++
			x.checks.SetIndex()
			w.enqueue(x.child(&e))
		}
	}
}

// limitMet returns the error for a file whose rest is skipped because of a limit.
func limitMet(url, limit string, max int64) error {
	return &sitemap.Error{Severity: sitemap.SeverityFile, URL: url, Err: &sitemap.LimitError{Limit: limit, Max: max}}
}
