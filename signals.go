package collyrobots

import (
	"context"
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
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/metatags"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/usage"
)

// Purpose declares what the crawl is for: one or several of usage.Search, usage.AIUse and
// usage.TrainAI. Stats.Usage then counts the pages by what their owners say about their use. Only
// EnforceUsage denies pages. By default, the purpose is not known. It follows drafts; see package
// usage.
//
// Purpose has no effect under IgnoreRobots. New returns an OptionError if there is no
// purpose, or an unknown one. See docs/usage.md.
func Purpose(p ...usage.Purpose) HostOption {
	var all usage.Purpose
	for _, one := range p {
		all |= one
	}
	const known = usage.Search | usage.AIUse | usage.TrainAI
	return HostOption{hostOption("Purpose", func(s *judge.HostSettings) { s.Purpose = all },
		faultIf(all == 0, "Purpose", "names no purpose"),
		faultIf(all&^known != 0, "Purpose", "%v is not a purpose of package usage", all)).with(all)}
}

// EnforceUsage denies a page with report.ReasonUsage if its owner disallows one of the uses that
// Purpose names. A use is not disallowed if nothing is known about it. By default, or if on is
// false, preferences have no effect. New returns an OptionError without the option Purpose. It
// follows drafts; see package usage.
//
// EnforceUsage knows what robots.txt says and, with the option TDMRep, the TDMRep file. It does not
// know what a response says, in its headers or in HTML, so the callbacks of the spider must call
// Plugin.Usage and discard a page that disallows the use. See docs/usage.md.
func EnforceUsage(on bool) HostOption {
	return flag("EnforceUsage", on, func(s *judge.HostSettings) { s.EnforceUsage = on })
}

// TDMRep requests the TDMRep file of each site, /.well-known/tdmrep.json, before the first page of
// the site, and adds what it says to Decision.Usage, Plugin.Usage and the preferences that
// EnforceUsage enforces. By default, or if on is false, only TDMRep headers and meta elements are
// read. It follows drafts; see package usage.
//
// The request keeps the delay of the host and obeys robots.txt, so the first page starts one delay
// later. The result is kept for a day. See docs/usage.md.
func TDMRep(on bool) HostOption {
	return flag("TDMRep", on, func(s *judge.HostSettings) { s.TDMRep = on })
}

// WithPurpose returns a context that makes Check, Acquire and the requests of Transport deny a page
// with report.ReasonUsage if its owner disallows one of the uses in p. It needs no option, and adds to
// the options Purpose and EnforceUsage. It is for programs whose requests have different purposes. It
// follows drafts; see package usage.
func WithPurpose(ctx context.Context, p usage.Purpose) context.Context {
	return judge.WithPurpose(ctx, p)
}

// Usage returns what is known about the use of the content of r: the preferences in robots.txt, in
// the TDMRep file, in the headers of the response, and in the meta elements of its HTML. The TDMRep
// file is known only with the option TDMRep. Usage may be called in every callback that has a
// response, also if the response comes from CacheDir. It sends no requests and may be called from
// any goroutine. It follows drafts; see package usage.
//
// If a Purpose is set, Usage uses the robots.txt that was in force when r was requested. Without a
// Purpose, or if more than 4,096 responses have arrived since then, it uses the current one. If
// that robots.txt denies r, it says nothing about the use of r.
//
// Usage evaluates the sources in each call. It returns the zero Terms if r is nil or has no
// Request.
func (p *Plugin) Usage(r *colly.Response) usage.Terms {
	if p == nil || p.core == nil || r == nil || r.Request == nil || r.Request.URL == nil {
		return usage.Terms{}
	}
	s := p.sourcesOf(r.Request)
	s.Status = r.StatusCode
	if r.Headers != nil {
		s.Header = *r.Headers
	}
	if isHTML(s.Header, r.Body) {
		s.Meta = metatags.Read(r.Body).Content
	}
	return s.Terms(r.Request.URL)
}

// sourcesOf returns the files that were in force when r was requested or, if that is not known, the
// ones that are in force now.
func (p *Plugin) sourcesOf(r *colly.Request) usage.Sources {
	v, known := p.judge.Uses.Find(r.URL)
	if !known {
		var err error
		v, err = p.verdictNow(r)
		if err != nil {
			return usage.Sources{}
		}
	}
	return sourcesIn(v)
}

// sourcesIn returns the files that a verdict has used. There are none if it denies the page.
func sourcesIn(v judge.Verdict) usage.Sources {
	if !v.Rule.Allowed {
		return usage.Sources{}
	}
	s := v.Sources()
	s.RobotsHash = v.Policy.Sum()
	return s
}

// verdictNow returns the verdict on r by the files that are known now.
func (p *Plugin) verdictNow(r *colly.Request) (judge.Verdict, error) {
	var header http.Header
	if r.Headers != nil {
		header = *r.Headers
	}
	_, _, f := p.own(context.Background())
	return p.judge.Recall(judge.TargetOf(r.URL, r.Host, header), f)
}

// isHTML reports whether a response is an HTML page. Like Colly, it looks at the body if there is
// no Content-Type.
func isHTML(h http.Header, body []byte) bool {
	kind := h.Get("Content-Type")
	if kind == "" {
		kind = http.DetectContentType(body)
	}
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	kind = strings.TrimSpace(kind)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// EnforceNofollow obeys nofollow: a link is denied with report.ReasonNofollow if it has
// rel=nofollow, or if its page has the rule nofollow or none, in a header or in a meta element. By
// default, or if on is false, such links are visited. The other rules, such as noindex, are up to
// the program: see RobotsTags.
//
// A request follows a link if a callback of the page makes it with Request.Visit, or with
// Request.New and Do. All other requests are allowed; see CheckLink. Call Collector.SetStorage
// before Attach: otherwise Colly marks a denied link as visited. See docs/robots-tags.md.
func EnforceNofollow(on bool) HostOption {
	return flag("EnforceNofollow", on, func(s *judge.HostSettings) { s.EnforceNofollow = on })
}

// RobotsTags returns the rules that a site has sent with a page for this crawler, such as noindex:
// those in the headers X-Robots-Tag and Robots-Tag and, if the page is HTML, in its meta elements.
// The name of the crawler is that of the option ProductToken or, without it, the product token in
// the User-Agent of the request. RobotsTags returns nil if r is nil or has no rules. The rules of
// redirects do not count.
//
// RobotsTags parses the headers and the head of the page in each call. It may be called from any
// goroutine. One of its sources is a draft; see package robotstags.
func (p *Plugin) RobotsTags(r *colly.Response) robotstags.Tags {
	if p == nil || p.core == nil || r == nil || r.Request == nil {
		return nil
	}
	return p.tagsOf(r, isHTML(headerOf(r), r.Body))
}

// CheckLink reports whether a link may be followed under EnforceNofollow. page is the request of
// the page, and href may be relative to it. CheckLink is for programs that do not pass links to
// Request.Visit, which checks them itself:
//
//	if err := robots.CheckLink(e.Request, e.Attr("href")); err == nil {
//		q.AddURL(e.Request.AbsoluteURL(e.Attr("href")))
//	}
//
// If the link must not be followed, the error is a *DeniedError with report.ReasonNofollow. It is
// counted and reported as an Event, like the denial of a request. If href is not a URL, the error
// says so. Without the option, and in a dry run, CheckLink returns nil for every URL.
func (p *Plugin) CheckLink(page *colly.Request, href string) error {
	if err := p.usable(); err != nil {
		return err
	}
	if page == nil || page.URL == nil {
		return ErrNilRequest
	}
	u, err := url.Parse(page.AbsoluteURL(href))
	if err != nil || u.Host == "" {
		return errors.New("collyrobots: CheckLink: the link is not a URL with a host")
	}
	from := p.links.OriginOf(page, u)
	if from == "" || p.judge.DryRun {
		return nil
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return err
	}
	now := time.Now()
	host := p.judge.Wire.Hosts.At(now, a.Host)
	v := judge.NofollowVerdict(now, host, p.judge.Settings.Of(host.Name()), a, from)
	return public(p.judge.EnforceNow(&v, u))
}

// tagsOf returns the rules that apply to a page. If html is true, it also reads the meta elements.
func (c *core) tagsOf(r *colly.Response, html bool) robotstags.Tags {
	var sent http.Header
	if r.Request.Headers != nil {
		sent = *r.Request.Headers
	}
	bots := c.judge.Settings.Of(hostname.Of(r.Request.URL)).Tokens
	if bots == nil {
		bots = []string{dialect.TokenOf(judge.UserAgentOf(sent))}
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
// followed. If the option EnforceNofollow is set for any host, it is called for each page, before
// the callbacks of the user. Otherwise it is called only for pages with rules in headers.
func (h *hooks) readTags(r *colly.Response) {
	if h.retired() || h.revalidating.isUnchanged(r) {
		return
	}
	enforce := h.judge.Settings.Of(hostname.Of(r.Request.URL)).EnforceNofollow
	html := enforce && isHTML(headerOf(r), r.Body)
	if coding := unreadCoding(headerOf(r)); html && coding != "" {
		h.judge.Report.Warn("a page has a content coding that Colly does not decode, so its robots tags and links are not read; request only gzip under EnforceNofollow",
			"url", r.Request.URL.Redacted(), "coding", coding)
	}
	tags := h.tagsOf(r, html)
	if len(tags) > 0 {
		h.tagCounts.add(tags)
		h.judge.Report.TellTags(r.Request.URL, tags, reporter.IDs{Collector: h.c.ID, Request: r.Request.ID})
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
// EnforceNofollow is set for any host. With Frontier, the storage is already wrapped.
func (h *hooks) watchStorage() {
	if h.frontier != nil || !h.enforcesTags {
		return
	}
	h.handle.ReplaceStorage(func(s storage.Storage) storage.Storage {
		h.visits = h.untracked.Wrap(s)
		return h.visits
	})
}

// withhold keeps the collector from marking links with nofollow as visited, because another page
// may have a link to the same URL without it. A dry run visits all links.
func (h *hooks) withhold(urls []string) (release func()) {
	if h.judge.DryRun || h.c.AllowURLRevisit {
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
	if h.judge.DryRun || h.c.AllowURLRevisit {
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
		h.judge.Report.Log.Error("the collector's storage cannot record a visit", "url", r.URL.Redacted(), "error", err)
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
