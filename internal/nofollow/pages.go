package nofollow

import (
	"hash/maphash"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gocolly/colly/v2"
)

// Pages finds the page that has led to a request. It remembers only pages with links that must not
// be followed, and each only as long as a request that its callbacks have made may exist. The zero
// value is empty. All methods may be called from any goroutine.
//
// Colly gives a request no reference to the page whose callback has made it, but it passes the
// pointer Request.Ctx on. Therefore Add gives each page a Context of its own, which shares all
// values with the one before.
type Pages struct {
	count atomic.Int64 // the pages in byContext
	// byContext has a *page by its weak.Pointer[colly.Context].
	byContext sync.Map
}

// A page has links that must not be followed.
type page struct {
	url   string // without its password
	self  uint64 // the hash of its URL
	depth int
	all   bool                // no link may be followed
	links map[uint64]struct{} // the hashes of the links that must not be followed
}

// Add is called with each response, before the callbacks of the user. all says that no link of the
// page may be followed. isHTML says that the body is HTML, whose links have to be read. If there
// are links that must not be followed, Add calls withhold with their URLs, and the result when no
// callback of the page can visit them any more.
func (p *Pages) Add(r *colly.Response, all, isHTML bool, withhold func(urls []string) (release func())) {
	own := *r.Request.Ctx
	r.Request.Ctx = &own
	r.Ctx = &own
	found := &page{
		url:   r.Request.URL.Redacted(),
		self:  hashOf(r.Request.URL),
		depth: r.Request.Depth,
		all:   all,
		links: make(map[uint64]struct{}),
	}
	var urls []string
	if isHTML {
		urls = found.addLinks(r)
	}
	if !all && len(urls) == 0 {
		return
	}
	release := withhold(urls)
	w := weak.Make(&own)
	p.byContext.Store(w, found)
	p.count.Add(1)
	runtime.AddCleanup(&own, func(w weak.Pointer[colly.Context]) {
		p.byContext.Delete(w)
		p.count.Add(-1)
		release()
	}, w)
}

// Empty reports whether no page is remembered.
func (p *Pages) Empty() bool { return p.count.Load() == 0 }

// Origin returns the URL of the page if r follows one of its links that must not be followed.
// Otherwise it returns "". Only GET and HEAD follow a link. A retry of the page itself does not.
func (p *Pages) Origin(r *colly.Request) string {
	if p.Empty() || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	from := p.of(r.Ctx)
	if from == nil {
		return ""
	}
	link := hashOf(r.URL)
	isLink := r.Depth == from.depth+1 || r.Depth == 0 // Request.Visit, or Do of the result of Request.New
	if !isLink || r.Depth == from.depth && link == from.self {
		return ""
	}
	return from.refuses(link)
}

// OriginOf returns the URL of the page that r has requested if it has a link that must not be
// followed and leads to u. Otherwise it returns "".
func (p *Pages) OriginOf(r *colly.Request, u *url.URL) string {
	from := p.of(r.Ctx)
	if from == nil {
		return ""
	}
	return from.refuses(hashOf(u))
}

// of returns the page that has this Context, or nil.
func (p *Pages) of(ctx *colly.Context) *page {
	if p.Empty() || ctx == nil {
		return nil
	}
	found, ok := p.byContext.Load(weak.Make(ctx))
	if !ok {
		return nil
	}
	return found.(*page)
}

// refuses returns the URL of the page if the link must not be followed, and "" otherwise.
func (p *page) refuses(link uint64) string {
	_, listed := p.links[link]
	if p.all || listed {
		return p.url
	}
	return ""
}

// addLinks adds the links of an HTML page that must not be followed, and returns their URLs. A URL
// that another link of the page has without nofollow is not among them.
func (p *page) addLinks(r *colly.Response) (urls []string) {
	read := Read(r.Body)
	if !read.Nofollow && !p.all {
		return nil
	}
	base := colly.Request{URL: r.Request.URL}
	if read.Base != "" {
		u, err := url.Parse(base.AbsoluteURL(read.Base))
		if err == nil && u.IsAbs() {
			base.URL = u
		}
	}
	follow := make(map[uint64]struct{})
	links := make(map[string]uint64)
	for href, nofollow := range read.Links {
		u, err := url.Parse(base.AbsoluteURL(href)) // as Colly makes the URL of a request
		switch {
		case err != nil || !u.IsAbs():
		case nofollow || p.all:
			links[u.String()] = hashOf(u)
		default:
			follow[hashOf(u)] = struct{}{}
		}
	}
	for text, link := range links {
		if _, also := follow[link]; !also {
			urls = append(urls, text)
			p.links[link] = struct{}{}
		}
	}
	return urls
}

var seed = maphash.MakeSeed()

// hashOf returns the hash of a URL without its fragment.
func hashOf(u *url.URL) uint64 {
	page := *u
	page.Fragment = ""
	page.RawFragment = ""
	return maphash.String(seed, page.String())
}
