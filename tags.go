package collyrobots

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
)

// EnforceRobotsTags obeys nofollow. Links are denied with report.ReasonNofollow if their page has the rule
// nofollow or none, or if they have rel=nofollow. The rules are those of RobotsTags, in the
// response headers and in the meta elements of the page. Inside ForHosts, the option applies to the
// links on the pages of these hosts.
//
// A request follows a link if a callback of the page makes it with Request.Visit, or with
// Request.New and Do. If the page has the rule nofollow, every such request is denied, even if it
// is for an image, because the plugin cannot know where the program found the URL. Otherwise
// rel=nofollow counts on the elements a and area. A URL is requested if this page or another one
// also has a link to it without nofollow. Fragments make no difference.
//
// The plugin does not know the page of other requests and allows them: those of Collector.Visit, of
// sitemaps and of colly/queue, and requests with a method other than GET and HEAD. A program that
// visits links in such a way can call MayFollow. Check does not consider links either.
//
// Call Collector.SetStorage before Attach. Otherwise Colly marks a link with nofollow as visited, so
// that it is not requested when another page has it without nofollow. A warning is logged.
//
// The plugin does not apply noindex and nosnippet. The program gets them from RobotsTags.
//
// With the option, the plugin parses every HTML page before the callbacks of OnResponse are called.
// It cannot read a page that OnResponse decodes, because the program has asked for a content coding
// such as br, and logs a warning.
// Each page gets its own colly.Context, which shares its values with that of the request before. If
// a link is denied, its host gets no request for it, not even for robots.txt.
func EnforceRobotsTags() Option {
	return hostOption("EnforceRobotsTags", func(s *hostSettings) { s.enforceTags = true })
}

// RobotsTags returns the rules that a site has sent with a page for this crawler, such as noindex:
// those in the headers X-Robots-Tag and Robots-Tag and, if the page is HTML, in its meta elements.
// The name of the crawler is that of the option ProductToken or, without it, the product token in
// the User-Agent of the request. RobotsTags returns nil if r is nil or has no rules. The rules of
// redirects do not count.
//
// RobotsTags parses the headers and the head of the page in each call. It may be called from any
// goroutine. It is experimental, because one of its sources is a draft; see package robotstags.
func (p *Plugin) RobotsTags(r *colly.Response) robotstags.Tags {
	if p == nil || p.core == nil || r == nil || r.Request == nil {
		return nil
	}
	return p.tagsOf(r, isHTML(headerOf(r), r.Body))
}

// MayFollow reports whether a link may be followed under EnforceRobotsTags. page is the request of
// the page, and href may be relative to it. MayFollow is for programs that do not pass links to
// Request.Visit, which checks them itself:
//
//	if err := robots.MayFollow(e.Request, e.Attr("href")); err == nil {
//		q.AddURL(e.Request.AbsoluteURL(e.Attr("href")))
//	}
//
// If the link must not be followed, the error is a *DisallowedError with report.ReasonNofollow. It is
// counted and reported as an Event, like the denial of a request. If href is not a URL, the error
// says so. Without the option, and in a dry run, MayFollow returns nil for every URL.
func (p *Plugin) MayFollow(page *colly.Request, href string) error {
	if err := p.usable(); err != nil {
		return err
	}
	if page == nil || page.URL == nil {
		return ErrNilRequest
	}
	u, err := url.Parse(page.AbsoluteURL(href))
	if err != nil || u.Host == "" {
		return errors.New("collyrobots: MayFollow: the link is not a URL with a host")
	}
	from := p.links.OriginOf(page, u)
	if from == "" || p.dryRun {
		return nil
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return err
	}
	host := p.limiter.hosts.At(time.Now(), a.Host)
	v := nofollowVerdict(host, p.settings.of(host.Name()), a, from)
	denied := &DisallowedError{Decision: v.decision(u)}
	p.countDenied(host, denied, numbers{})
	return denied
}

// tagsOf returns the rules that apply to a page. If html is true, it also reads the meta elements.
func (c *core) tagsOf(r *colly.Response, html bool) robotstags.Tags {
	var sent http.Header
	if r.Request.Headers != nil {
		sent = *r.Request.Headers
	}
	bots := c.settings.of(hostOf(r.Request.URL)).tokens
	if bots == nil {
		bots = []string{dialect.ProductToken(userAgentOf(sent))}
	}
	tags := robotstags.FromHeader(headerOf(r), bots...)
	if html {
		tags = append(tags, robotstags.FromHTML(r.Body, bots...)...)
	}
	return tags
}

// headerOf returns the header of a response, which may be nil.
func headerOf(r *colly.Response) http.Header {
	if r.Headers == nil {
		return nil
	}
	return *r.Headers
}

// A tagCounts counts pages with rules.
type tagCounts struct{ pages, noIndex, noFollow atomic.Int64 }

// add counts a page with these rules.
func (c *tagCounts) add(tags robotstags.Tags) {
	c.pages.Add(1)
	if tags.NoIndex() {
		c.noIndex.Add(1)
	}
	if tags.NoFollow() {
		c.noFollow.Add(1)
	}
}

// statistics returns the counts so far.
func (c *tagCounts) statistics() report.RobotsTagStats {
	return report.RobotsTagStats{
		Pages:    int(c.pages.Load()),
		NoIndex:  int(c.noIndex.Load()),
		NoFollow: int(c.noFollow.Load()),
	}
}

// readTags counts and reports the rules of a page, and remembers the links that must not be
// followed. If the option EnforceRobotsTags is set for any host, it is called for each page, before
// the callbacks of the user. Otherwise it is called only for pages with rules in headers.
func (h *hooks) readTags(r *colly.Response) {
	if h.retired() || h.isUnchanged(r) {
		return
	}
	enforce := h.settings.of(hostOf(r.Request.URL)).enforceTags
	html := enforce && isHTML(headerOf(r), r.Body)
	if coding := unreadCoding(headerOf(r)); html && coding != "" {
		h.report.warn("a page has a content coding that Colly does not decode, so its robots tags and links are not read; request only gzip under EnforceRobotsTags",
			"url", r.Request.URL.Redacted(), "coding", coding)
	}
	tags := h.tagsOf(r, html)
	if len(tags) > 0 {
		h.tagCounts.add(tags)
		h.report.tellTags(r, tags, numbers{collector: h.c.ID, request: r.Request.ID})
	}
	if h.enforcesTags {
		h.links.Add(r, enforce && tags.NoFollow(), html, h.withhold)
	}
}

// unreadCoding returns the content coding of a page whose body is still encoded in OnResponse, or ""
// if there is none. This happens if the program asks for such a coding itself. Colly decodes gzip.
func unreadCoding(header http.Header) string {
	coding := strings.ToLower(strings.TrimSpace(header.Get("Content-Encoding")))
	switch coding {
	case "br", "zstd", "deflate", "compress":
		return coding
	}
	return ""
}

// hasTagHeaders reports whether a response has rules in its headers.
func hasTagHeaders(r *colly.Response) bool { return robotstags.HasHeader(headerOf(r)) }

// watchStorage wraps the storage of the collector for withhold and decideVisit, if the option
// EnforceRobotsTags is set for any host. With Frontier, the storage is already wrapped.
func (h *hooks) watchStorage() error {
	if h.frontier != nil || !h.enforcesTags {
		return nil
	}
	return h.handle.ReplaceStorage(func(s storage.Storage) storage.Storage {
		h.visits = h.untracked.Wrap(s)
		return h.visits
	})
}

// withhold keeps the collector from marking links with nofollow as visited, because another page
// may have a link to the same URL without it. A dry run visits all links.
func (h *hooks) withhold(urls []string) (release func()) {
	if h.dryRun || h.c.AllowURLRevisit {
		return func() {}
	}
	hashes := make([]uint64, len(urls))
	for i, u := range urls {
		hashes[i] = arrivals.HashOfURL(u)
	}
	return h.visits.Withhold(hashes)
}

// decideVisit tells the storage whether r, which the collector has accepted, is allowed or follows
// a link with nofollow. It aborts r if the collector has accepted another request for the same URL
// at the same time. With Frontier, the urlstore.Store finds such duplicates itself.
func (h *hooks) decideVisit(r *colly.Request) {
	if h.dryRun || h.c.AllowURLRevisit {
		return
	}
	allowed := h.links.Origin(r) == ""
	if allowed && !h.visits.Withholds() {
		return
	}
	hash, ok := arrivals.HashOf(r)
	if !ok {
		return
	}
	duplicate, err := h.visits.Decide(hash, allowed)
	if err != nil {
		h.report.log.Error("the collector's storage cannot record a visit", "url", r.URL.Redacted(), "error", err)
	}
	if duplicate && h.frontier == nil {
		r.Abort()
	}
}

// newUntracked returns Visits that only wrap storages and do not track visits.
func newUntracked() *arrivals.Visits {
	v := arrivals.New(nil)
	v.Close()
	return v
}
