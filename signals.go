package collyrobots

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/arrivals"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/metatags"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/usage"
)

// Purpose declares what the crawl is for: one or several of usage.Search, usage.AIUse and
// usage.TrainAI. It is experimental; see package usage.
//
// Stats.Usage then counts the pages by what their owners say about their use. Only EnforceUsage
// denies pages. What TDMRep files say counts only with the option TDMRep.
//
// Purpose may be given inside ForHosts. It has no effect under IgnoreRobotsWithPermission.
func Purpose(p ...usage.Purpose) Option {
	var all usage.Purpose
	for _, one := range p {
		all |= one
	}
	const known = usage.Search | usage.AIUse | usage.TrainAI
	return hostOption("Purpose", func(s *hostSettings) { s.purpose = all },
		faultIf(all == 0, "Purpose", "names no purpose"),
		faultIf(all&^known != 0, "Purpose", "%v is not a purpose of package usage", all))
}

// EnforceUsage denies a page with report.ReasonUsage if its owner disallows the Purpose of the crawl. It
// needs the option Purpose. If Purpose names several uses, the page is denied if one of them is
// disallowed. A use is not disallowed if nothing is known about it. It is experimental; see package
// usage.
//
// EnforceUsage knows what robots.txt says and, with the option TDMRep, the TDMRep file. What the response says, in its
// headers or in HTML, is not known before the page is fetched. Such a page reaches the callbacks of
// the spider. They must call Plugin.Usage and discard the page if it disallows the use.
//
// EnforceUsage does not affect the requests for robots.txt, sitemaps and TDMRep files. EnforceUsage
// may be given inside ForHosts.
func EnforceUsage() Option {
	return hostOption("EnforceUsage", func(s *hostSettings) { s.enforceUsage = true })
}

// TDMRep requests the TDMRep file of each site, /.well-known/tdmrep.json, before the first page of
// the site, and adds what it says to Decision.Usage, Plugin.Usage and the preferences that
// EnforceUsage enforces. By default, only TDMRep headers and meta elements are read. It is
// experimental; see package usage.
//
// The request keeps the delay of the host and obeys robots.txt, so the first page starts one delay
// later. The result is kept for a day. In a survey of a million domains, 37 had the file. TDMRep
// may be given inside ForHosts. It has no effect under IgnoreRobotsWithPermission.
func TDMRep() Option {
	return hostOption("TDMRep", func(s *hostSettings) { s.tdmRep = true })
}

// usageFaults returns a fault for each EnforceUsage without a Purpose.
func (c *config) usageFaults() (faults []error) {
	missing := fault("EnforceUsage", "needs the option Purpose")
	if c.settings.enforceUsage && c.settings.purpose == 0 {
		return []error{missing}
	}
	for _, h := range c.perHost {
		if h.enforceUsage && h.purpose == 0 {
			faults = append(faults, insideForHosts(h.pattern, missing))
		}
	}
	return faults
}

// A usageRule is the rule of the option EnforceUsage. It denies pages whose owner disallows the
// purpose of the crawl.
type usageRule struct{}

// usageDisallowed is the denial of a usageRule.
var usageDisallowed = &denial{reason: report.ReasonUsage}

func (usageRule) judge(_ time.Time, c candidate) *denial {
	s := c.settings
	if !s.enforceUsage || s.ignoreRobots || c.isFile {
		return nil
	}
	p := preferencesFor(c.url, usage.Sources{Robots: c.policy.Usage(), TDMFile: c.tdm})
	if p.Of(s.purpose).Preference != usage.Disallowed {
		return nil
	}
	return usageDisallowed
}

// preferences returns the preferences for u that are known before it is fetched, without the hashes
// of their sources. Only a page that may be crawled has preferences.
func (v *verdict) preferences(u *url.URL) usage.Preferences {
	if !v.rule.Allowed && v.reason != report.ReasonUsage {
		return usage.Preferences{}
	}
	return preferencesFor(u, v.sources())
}

// preferencesFor returns the preferences for u in some sources, without the hashes of the sources.
func preferencesFor(u *url.URL, s usage.Sources) usage.Preferences {
	if s.Robots == nil && s.TDMFile == nil {
		return usage.Preferences{}
	}
	p := s.Terms(u).Preferences
	p.Search.Hash = ""
	p.AIUse.Hash = ""
	p.TrainAI.Hash = ""
	return p
}

// sources returns the sources of preferences that are known before a page is fetched.
func (v *verdict) sources() usage.Sources {
	return usage.Sources{Robots: v.policy.Usage(), TDMFile: v.tdm}
}

// Usage returns what is known about the use of the content of r: the preferences in robots.txt, in
// the TDMRep file, in the headers of the response, and in the meta elements of its HTML. The TDMRep
// file is known only with the option TDMRep. Usage may be called in every callback that has a
// response, also if the response comes from CacheDir. It sends no requests and may be called from
// any goroutine. It is experimental; see package usage.
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
	v, known := p.judge.uses.find(r.URL)
	if !known {
		var err error
		v, err = p.verdictNow(r)
		if err != nil {
			return usage.Sources{}
		}
	}
	if !v.rule.Allowed {
		return usage.Sources{}
	}
	s := v.sources()
	s.RobotsHash = v.policy.Sum()
	return s
}

// verdictNow returns the verdict on r by the files that are known now.
func (p *Plugin) verdictNow(r *colly.Request) (verdict, error) {
	var header http.Header
	if r.Headers != nil {
		header = *r.Headers
	}
	_, _, f := p.own(context.Background())
	return p.judge.recall(targetOf(r.URL, r.Host, header), f)
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

// recordUse counts a page that v allows, and keeps v for Plugin.Usage.
func (j *judge) recordUse(v verdict, resp *http.Response) {
	u := resp.Request.URL
	s := v.sources()
	if !v.rule.Allowed { // in a dry run
		s = usage.Sources{}
	}
	s.Header = resp.Header
	j.uses.add(u, v, s.Terms(u).Preferences)
}

// uses keeps the counts of Stats.Usage, and the verdicts on recent pages for Plugin.Usage.
type uses struct {
	// mu protects the fields below it.
	mu     sync.Mutex
	stats  *report.UsageStats // nil if no page with a Purpose was fetched
	recent map[*url.URL]verdict
	order  []*url.URL // the keys of recent
	oldest int        // the index in order that is replaced next, if there are maxRecent keys
}

// maxRecent is the number of responses whose verdicts are kept for Plugin.Usage.
const maxRecent = 4096

// add counts a page, and keeps the verdict on it.
func (s *uses) add(u *url.URL, v verdict, p usage.Preferences) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats == nil {
		s.stats = new(report.UsageStats)
		s.recent = make(map[*url.URL]verdict)
	}
	countUse(&s.stats.Search, p.Search)
	countUse(&s.stats.AIUse, p.AIUse)
	countUse(&s.stats.TrainAI, p.TrainAI)
	_, known := s.recent[u]
	s.recent[u] = v
	switch {
	case known:
	case len(s.order) < maxRecent:
		s.order = append(s.order, u)
	default:
		delete(s.recent, s.order[s.oldest])
		s.order[s.oldest] = u
		s.oldest = (s.oldest + 1) % maxRecent
	}
}

// find returns the verdict on a page that was requested with this URL.
func (s *uses) find(u *url.URL) (v verdict, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, known = s.recent[u]
	return v, known
}

// statistics returns the counts so far, or nil if there are none.
func (s *uses) statistics() *report.UsageStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats == nil {
		return nil
	}
	stats := *s.stats
	return &stats
}

// countUse counts one page.
func countUse(c *report.UsageCounts, s usage.Statement) {
	switch s.Preference {
	case usage.Allowed:
		c.Allowed++
	case usage.Disallowed:
		c.Disallowed++
	default:
		c.Unknown++
	}
}

// tdmFiles are the TDMRep files of the crawled sites. A file is requested when the first page of a
// site is judged, and when it has expired. The other pages of the site wait for it.
type tdmFiles struct {
	// mu protects the fields below it, and each tdmSite.
	mu    sync.Mutex
	sites map[dialect.Authority]*tdmSite
	size  int // the sum of the sizes of sites
}

// A tdmSite is the TDMRep file of a site. It is protected by tdmFiles.mu.
type tdmSite struct {
	tdmCopy
	reading chan struct{} // closed when the file was read; nil if it is not being read
}

// A tdmCopy is a TDMRep file as it was last read.
type tdmCopy struct {
	file    *usage.TDMFile // nil if the site declares nothing
	size    int            // of the file in bytes
	expires time.Time
}

const (
	tdmLife      = 24 * time.Hour   // how long a file is kept, or the fact that there is none
	tdmRetry     = time.Hour        // pause after a request without a useful response
	tdmPatience  = 30 * time.Second // the timeout of one request
	maxTDMFile   = 500 << 10        // bytes; a longer file declares nothing
	maxTDMSites  = 10_000           // sites whose files are kept
	maxTDMSizes  = 32 << 20         // bytes of all files that are kept
	tdmRedirects = 5                // the number of redirects that are followed
	tdmName      = "tdmrep.json"    // Source.Name
)

var errTDMUnread = errors.New("the TDMRep file was not read")

// findTDM sets the TDMRep file of the site of t in v, if the option TDMRep is set. If f allows it,
// findTDM requests a file that is not known or has expired.
func (j *judge) findTDM(ctx context.Context, v *verdict, t target, f exchange.Fetcher) (err error) {
	a := v.policy.Authority
	if !v.settings.tdmRep || !weburl.IsWeb(t.url) || policy.IsVirtual(a) {
		return nil
	}
	if !f.ReadsTDM {
		v.tdm = j.tdm.last(a)
		return nil
	}
	for {
		file, known, reading := j.tdm.claim(a, time.Now())
		if known {
			v.tdm = file
			return nil
		}
		v.waited = true
		if reading == nil {
			v.tdm, err = j.readClaimedTDM(ctx, a, t.userAgent, f)
			return err
		}
		select {
		case <-reading:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// claim returns the file of a site if it is known and has not expired. Otherwise the caller must
// wait until reading is closed or, if reading is nil, read the file and call put.
func (fs *tdmFiles) claim(a dialect.Authority, now time.Time) (file *usage.TDMFile, known bool, reading <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.sites[a]
	switch {
	case s == nil:
		if fs.sites == nil {
			fs.sites = make(map[dialect.Authority]*tdmSite)
		}
		fs.sites[a] = &tdmSite{reading: make(chan struct{})}
		return nil, false, nil
	case s.reading != nil:
		return nil, false, s.reading
	case now.Before(s.expires):
		return s.file, true, nil
	}
	s.reading = make(chan struct{})
	return nil, false, nil
}

// last returns the file of a site as it was last read, or nil if it was not read.
func (fs *tdmFiles) last(a dialect.Authority) *usage.TDMFile {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if s := fs.sites[a]; s != nil {
		return s.file
	}
	return nil
}

// put stores c and wakes the callers that wait for it. If err is not nil, the file was not read,
// and the next caller of claim must read it.
func (fs *tdmFiles) put(a dialect.Authority, c tdmCopy, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	s := fs.sites[a]
	close(s.reading)
	s.reading = nil
	if err != nil {
		return
	}
	fs.size += c.size - s.size
	s.tdmCopy = c
	for other, kept := range fs.sites {
		if len(fs.sites) <= maxTDMSites && fs.size <= maxTDMSizes {
			break
		}
		if kept.reading == nil && kept != s {
			fs.size -= kept.size
			delete(fs.sites, other)
		}
	}
}

// readClaimedTDM reads the TDMRep file of a site that the caller has claimed. It calls put also if a
// transport ends the goroutine, because other pages wait for the file.
func (j *judge) readClaimedTDM(ctx context.Context, a dialect.Authority, userAgent string, f exchange.Fetcher) (*usage.TDMFile, error) {
	c, err := tdmCopy{}, errTDMUnread
	defer func() { j.tdm.put(a, c, err) }()
	c, err = j.readTDM(ctx, a, userAgent, f)
	return c.file, err
}

// readTDM requests the TDMRep file of a site. If there is no useful response, it returns the last
// copy. The error is the cause that ended ctx, or ErrClosed.
func (j *judge) readTDM(ctx context.Context, a dialect.Authority, userAgent string, f exchange.Fetcher) (tdmCopy, error) {
	ctx, release := j.policies.until(policy.WithValues(ctx, ctx))
	defer release()
	u := &url.URL{Scheme: a.Scheme, Host: a.Host, Path: usage.TDMRepPath}
	body, err := j.requestTDM(ctx, u, userAgent, f)
	if err != nil && ctx.Err() != nil {
		return tdmCopy{}, context.Cause(ctx)
	}
	if errors.Is(err, ErrClosed) {
		return tdmCopy{}, ErrClosed
	}
	now := time.Now()
	denied := (*tdmDenial)(nil)
	absent := (*tdmError)(nil)
	switch {
	case err == nil:
		return tdmCopyOf(body, now, func(err error) { j.logNoTDM(u, err) }), nil
	case errors.As(err, &denied):
		return tdmCopy{expires: denied.until}, nil
	case errors.As(err, &absent) && absent.final:
		j.logNoTDM(u, err)
		return tdmCopy{expires: now.Add(tdmLife)}, nil
	}
	j.logNoTDM(u, err)
	return tdmCopy{file: j.tdm.last(a), expires: now.Add(tdmRetry)}, nil
}

func (j *judge) logNoTDM(u *url.URL, err error) {
	j.report.Log.Debug("no TDMRep file", "url", u.Redacted(), "error", err)
}

// tdmCopyOf returns the copy of a file that was read at now. If the file is malformed, tdmCopyOf
// calls malformed, and the copy declares nothing.
func tdmCopyOf(body []byte, now time.Time, malformed func(error)) tdmCopy {
	sum := sha256.Sum256(body)
	from := usage.Source{Name: tdmName, Hash: hex.EncodeToString(sum[:len(sum)/2])}
	file, err := usage.ParseTDMFile(body, from)
	if err != nil {
		malformed(err)
		return tdmCopy{expires: now.Add(tdmLife)}
	}
	return tdmCopy{file: file, size: len(body), expires: now.Add(tdmLife)}
}

// A tdmError says why a response has no TDMRep file.
type tdmError struct {
	reason string
	final  bool // the response shows that the site has no usable file
}

func (e *tdmError) Error() string { return e.reason }

// A tdmDenial is the error for a TDMRep file that a robots.txt denies.
type tdmDenial struct {
	until time.Time // when the robots.txt expires
}

func (*tdmDenial) Error() string { return "robots.txt denies the TDMRep file" }

// requestTDM requests the TDMRep file at u and follows its redirects. Each of them is judged by the
// robots.txt of its own site, which gets no header of the page if it is another one. A panic of the transport becomes an error, as for robots.txt.
func (j *judge) requestTDM(ctx context.Context, u *url.URL, userAgent string, f exchange.Fetcher) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &policy.PanicError{Value: v}
		}
	}()
	from := exchange.Lead{Kind: report.RequestTDM, Origin: f.From, Client: f.Client}
	site := u.Host
	for redirects := 0; ; redirects++ {
		resp, err := j.getTDM(ctx, u, userAgent, from, f)
		if err != nil {
			return nil, err
		}
		location := resp.Header.Get("Location")
		if !exchange.IsRedirect(resp.StatusCode) || location == "" {
			return bodyOfTDM(resp)
		}
		discardTDM(resp)
		next, err := u.Parse(location)
		if err != nil || !weburl.IsWeb(next) || next.Host == "" || redirects == tdmRedirects {
			return nil, &tdmError{reason: "redirect that is not followed", final: true}
		}
		from.Host = hostname.Of(u)
		from.Payer = cmp.Or(from.Payer, site)
		next.User = nil
		if !policy.SameSite(u, next) {
			f.Header = nil // the credentials in it are not for another site, nor for the robots.txt there
		}
		u = next
	}
}

// getTDM requests u once and follows no redirect.
func (j *judge) getTDM(ctx context.Context, u *url.URL, userAgent string, from exchange.Lead, f exchange.Fetcher) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if userAgent != "" {
		req.Header.Set("User-Agent", userAgent)
	}
	check := func(by exchange.Origin) (verdict, error) {
		f.From = by
		return j.judgeTDM(ctx, target{url: u, userAgent: userAgent, isFile: true}, f)
	}
	resp, _, err := j.sendOwn(req, tdmPatience, from, check)
	return resp, err
}

// judgeTDM returns the verdict about a request for a TDMRep file. The error is a *tdmDenial if
// robots.txt denies it.
func (j *judge) judgeTDM(ctx context.Context, t target, f exchange.Fetcher) (verdict, error) {
	v, err := j.verdict(ctx, time.Now(), t, f, nil)
	if err != nil {
		return v, err
	}
	switch {
	case v.reason == report.ReasonRefused:
		return v, &tdmError{reason: "the host refuses requests"}
	case !v.rule.Allowed:
		return v, &tdmDenial{until: v.policy.Expires()}
	}
	return v, nil
}

// bodyOfTDM reads and closes the body of a response that is not a redirect. The error is a
// *tdmError or a read error.
func bodyOfTDM(resp *http.Response) ([]byte, error) {
	defer discardTDM(resp)
	if resp.StatusCode != http.StatusOK {
		temporary := resp.StatusCode >= 500 || exchange.Throttled(resp) || resp.StatusCode == http.StatusRequestTimeout
		return nil, &tdmError{reason: fmt.Sprintf("status %d", resp.StatusCode), final: !temporary}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTDMFile+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxTDMFile {
		return nil, &tdmError{reason: fmt.Sprintf("more than %d bytes", maxTDMFile), final: true}
	}
	return body, nil
}

// discardTDM closes the body of a response. It reads a short one to its end, so that the first page
// of the site can use the same connection.
func discardTDM(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, exchange.MaxRedirectBody)
	resp.Body.Close()
}

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
	now := time.Now()
	host := p.limiter.Hosts.At(now, a.Host)
	v := nofollowVerdict(now, host, p.settings.of(host.Name()), a, from)
	return enforceNow(p.judge, &v, u)
}

// tagsOf returns the rules that apply to a page. If html is true, it also reads the meta elements.
func (c *core) tagsOf(r *colly.Response, html bool) robotstags.Tags {
	var sent http.Header
	if r.Request.Headers != nil {
		sent = *r.Request.Headers
	}
	bots := c.settings.of(hostname.Of(r.Request.URL)).tokens
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
	enforce := h.settings.of(hostname.Of(r.Request.URL)).enforceTags
	html := enforce && isHTML(headerOf(r), r.Body)
	if coding := unreadCoding(headerOf(r)); html && coding != "" {
		h.report.Warn("a page has a content coding that Colly does not decode, so its robots tags and links are not read; request only gzip under EnforceRobotsTags",
			"url", r.Request.URL.Redacted(), "coding", coding)
	}
	tags := h.tagsOf(r, html)
	if len(tags) > 0 {
		h.tagCounts.add(tags)
		h.report.TellTags(r.Request.URL, tags, reporter.IDs{Collector: h.c.ID, Request: r.Request.ID})
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
		h.report.Log.Error("the collector's storage cannot record a visit", "url", r.URL.Redacted(), "error", err)
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
