package sitemap

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"
	"net/url"
	"strings"
)

// An Opener fetches a sitemap. It follows redirects and returns the body of a
// successful answer, which must fail once ctx is done, as those of net/http
// do, and the URL that it came from. A walk calls it for one file at a time,
// though other bodies may be open, and closes each body.
type Opener func(ctx context.Context, loc string) (body io.ReadCloser, finalURL string, err error)

// A Walker walks sitemaps with settings of its own. The zero value walks as
// [Walk] does.
type Walker struct {
	Limits     Limits
	Extensions bool // read the extensions of each entry, as Reader.Extensions
}

// Walk walks with the default [Limits]; see [Walker.Walk].
func Walk(ctx context.Context, root string, open Opener) iter.Seq2[Entry, error] {
	return Walker{}.Walk(ctx, root, open)
}

// Walk returns the pages that the sitemap at root lists, itself or, if it is
// an index, through the sitemaps it names. These are read one after the other,
// each while its index is still open, and none of them twice. Errors are
// [*Error] and come with a zero Entry; the loop may go on after each. The walk
// ends early if ctx is done, which is its last error, if a limit of the walk
// is met, or if the loop ends; whichever it is, all bodies are closed then.
func (w Walker) Walk(ctx context.Context, root string, open Opener) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		k := walk{
			ctx: ctx, open: open, yield: yield,
			limits: w.Limits.WithDefaults(), extensions: w.Extensions,
			seen: make(map[urlKey]bool),
		}
		k.file(root, 0)
	}
}

// A walk is the state of one walk. Its methods report whether it goes on.
type walk struct {
	ctx        context.Context
	open       Opener
	yield      func(Entry, error) bool
	limits     Limits
	extensions bool
	root       string // after redirects
	seen       map[urlKey]bool
	files      int64
	urls       int64
}

// fail yields the error for a file.
func (k *walk) fail(loc string, err error) bool {
	return k.yield(Entry{}, &Error{Scope: ScopeFile, URL: loc, Err: err})
}

// file reads the sitemap at loc, which is depth indexes away from the root.
func (k *walk) file(loc string, depth int64) bool {
	if err := k.ctx.Err(); err != nil {
		k.fail(loc, err)
		return false
	}
	if k.files++; k.files > k.limits.Files {
		k.fail(loc, &LimitError{"Files", k.limits.Files})
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
	r.Limits, r.Extensions = k.limits, k.extensions
	r.watch, r.url = watch, final
	return k.entries(r, depth)
}

// fetch opens a file on its clock.
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

// entries yields what a file holds and descends into what it names.
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
			return k.fail(r.url, &LimitError{"Children", children})
		case depth == k.limits.Depth:
			return k.fail(r.url, &LimitError{"Depth", depth})
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

// page yields a page.
func (k *walk) page(e Entry) bool {
	if k.urls++; k.urls > k.limits.URLs {
		k.fail(e.Sitemap, &LimitError{"URLs", k.limits.URLs})
		return false
	}
	e.Root = k.root
	return k.yield(e, nil)
}

// child reads the sitemap that an index names, unless that was done before.
func (k *walk) child(e Entry, index *Reader, depth int64) bool {
	if k.seen[keyOf(e.Loc)] {
		err := index.fault(ScopeEntry, index.at, "loc", e.Loc, ErrVisited)
		return k.yield(Entry{}, err)
	}
	return k.file(e.Loc, depth)
}

// A urlKey stands for a URL in the set of those visited, whatever its length.
type urlKey [16]byte

// keyOf returns the same key for ways of writing the same URL.
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

// normalEscapes writes escapes in upper case and unreserved characters
// without (RFC 3986, section 6.2.2).
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
