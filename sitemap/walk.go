package sitemap

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"
	"net/url"
	"strings"
)

// An Opener fetches a sitemap. It follows redirects and returns the body of a successful response
// and the URL that the body came from. Reads of the body must fail once ctx is done, as they do in
// net/http. A walk calls the Opener for one file at a time, although the bodies of the indexes
// above it are still open. The walk closes each body.
type Opener func(ctx context.Context, loc string) (body io.ReadCloser, finalURL string, err error)

// A Walker walks sitemaps with the given settings. The zero value is equivalent to [Walk].
type Walker struct {
	Limits     Limits
	Extensions bool // read the extensions of each entry, like Reader.Extensions
}

// Walk walks a sitemap with the default [Limits] and without extensions; see [Walker.Walk].
func Walk(ctx context.Context, root string, open Opener) iter.Seq2[Entry, error] {
	return Walker{}.Walk(ctx, root, open)
}

// Walk returns an iterator over the pages that the sitemap at root lists. If the sitemap is an
// index, these are the pages of the sitemaps that the index names. Walk reads these sitemaps one
// after the other while the index is still open, and it reads none of them twice.
//
// Each error is an [*Error] and comes with a zero Entry. The loop may continue after an error. The
// walk ends early if ctx is done, if Limits.Files or Limits.URLs is exceeded, or if the loop ends.
// If ctx is done, the last error wraps the error of ctx. In all cases, all bodies are closed when
// the walk ends.
func (w Walker) Walk(ctx context.Context, root string, open Opener) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		k := walk{
			ctx:        ctx,
			open:       open,
			yield:      yield,
			limits:     w.Limits.WithDefaults(),
			extensions: w.Extensions,
			seen:       make(map[urlKey]bool),
		}
		k.file(root, 0)
	}
}

// A walk is the state of one walk. Its methods report whether the walk continues.
type walk struct {
	ctx        context.Context
	open       Opener
	yield      func(Entry, error) bool
	limits     Limits
	extensions bool
	root       string          // URL of the root after redirects
	seen       map[urlKey]bool // the URLs of all sitemaps read, before and after redirects
	files      int64
	urls       int64
}

// fail yields an error with SeverityFile for the sitemap at loc.
func (k *walk) fail(loc string, err error) bool {
	return k.yield(Entry{}, &Error{Severity: SeverityFile, URL: loc, Err: err})
}

// file reads the sitemap at loc. The depth is the number of indexes above that sitemap.
func (k *walk) file(loc string, depth int64) bool {
	if err := k.ctx.Err(); err != nil {
		k.fail(loc, err)
		return false
	}
	k.files++
	if k.files > k.limits.Files {
		k.fail(loc, &LimitError{Limit: "Files", Max: k.limits.Files})
		return false
	}
	k.seen[keyOf(loc)] = true
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	watch := stopwatch{limit: k.limits.Time, abort: cancel}
	body, final, err := k.fetch(ctx, &watch, loc)
	if body != nil {
		defer body.Close()
	}
	if err != nil {
		return k.fail(loc, err) && k.ctx.Err() == nil
	}
	if depth == 0 {
		k.root = final
	} else if key := keyOf(final); key != keyOf(loc) && k.seen[key] {
		return k.fail(loc, ErrVisited)
	}
	k.seen[keyOf(final)] = true
	base, _ := url.Parse(final)
	r := NewReader(body, base)
	r.Limits = k.limits
	r.Extensions = k.extensions
	r.watch = watch
	r.url = final
	return k.entries(r, depth)
}

// fetch calls the Opener and adds the time that it takes to watch. It may return a body together
// with an error.
func (k *walk) fetch(ctx context.Context, watch *stopwatch, loc string) (body io.ReadCloser, final string, err error) {
	late := watch.run(func() { body, final, err = k.open(ctx, loc) })
	if done := k.ctx.Err(); done != nil {
		err = done
	} else if late != nil {
		err = late
	}
	if final == "" {
		final = loc
	}
	return body, final, err
}

// entries yields the pages and errors of a file and descends into the sitemaps that it names.
func (k *walk) entries(r *Reader, depth int64) bool {
	children := int64(0)
	for e, err := range r.All() {
		if ctxErr := k.ctx.Err(); ctxErr != nil {
			k.fail(r.url, ctxErr)
			return false
		}
		ok := true
		switch {
		case err != nil:
			ok = k.yield(Entry{}, err)
		case !e.Index:
			ok = k.page(e)
		case children == k.limits.Children:
			return k.fail(r.url, &LimitError{Limit: "Children", Max: children})
		case depth == k.limits.Depth:
			return k.fail(r.url, &LimitError{Limit: "Depth", Max: depth})
		default:
			children++
			ok = k.child(e, r, depth+1)
		}
		if !ok {
			return false
		}
	}
	return true
}

// page yields a page, unless the walk has yielded as many as Limits.URLs allows.
func (k *walk) page(e Entry) bool {
	k.urls++
	if k.urls > k.limits.URLs {
		k.fail(e.Sitemap, &LimitError{Limit: "URLs", Max: k.limits.URLs})
		return false
	}
	e.Root = k.root
	return k.yield(e, nil)
}

// child reads a sitemap that an index names. If the walk has already read it, child yields
// ErrVisited instead.
func (k *walk) child(e Entry, index *Reader, depth int64) bool {
	if k.seen[keyOf(e.Loc)] {
		err := index.fault(SeverityEntry, index.at, "loc", e.Loc, ErrVisited)
		return k.yield(Entry{}, err)
	}
	return k.file(e.Loc, depth)
}

// A urlKey is the hash of a URL. It bounds the memory for each visited URL, whatever the length of
// the URL.
type urlKey [16]byte

// keyOf returns the key of a URL. Different spellings of the same URL have the same key.
func keyOf(raw string) urlKey {
	if u, err := url.Parse(raw); err == nil {
		u.Host = strings.ToLower(u.Host)
		port := u.Port()
		if u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
			u.Host = u.Host[:len(u.Host)-len(port)-1]
		}
		path := normalEscapes(u.EscapedPath())
		if path == "" {
			path = "/"
		}
		raw = u.Scheme + "://" + u.User.String() + "@" + u.Host + path + "?" + normalEscapes(u.RawQuery)
	}
	sum := sha256.Sum256([]byte(raw))
	return urlKey(sum[:16])
}

// normalEscapes returns s with its percent-encoding normalized (RFC 3986, section 6.2.2):
// unreserved characters are decoded and all other escapes are in upper case.
func normalEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			b = append(b, s[i])
			continue
		}
		if c := unhex(s[i+1])<<4 | unhex(s[i+2]); isHost(c) || c == '_' || c == '~' {
			b = append(b, c)
		} else {
			b = append(b, strings.ToUpper(s[i:i+3])...)
		}
		i += 2
	}
	return string(b)
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return lower(c) - 'a' + 10
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
