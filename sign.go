package collyrobots

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// SignRequests signs every request with s, so that sites can verify who has sent it (Web Bot Auth).
// It is experimental; see package webbotauth.
//
// Each request gets a signature of its own just before it is written: pages, robots.txt, sitemaps,
// redirects, second attempts and requests of Transport. The signature is in the headers on the wire
// only. The program, Colly's cache and Retry do not see it. A request that is refused is not
// signed, for example one to a private address. A request that already has signature headers keeps
// them. If a request cannot be signed, it is sent without a signature, and a warning is logged
// once.
//
// The plugin does not sign requests of Acquire, because the program sends them. Call s.Sign there.
//
// A transport that is not an http.Transport gets a signed request. If it sends the request again by
// itself, it repeats the signature. If it follows redirects by itself, it sends the signature to
// the next site, which cannot verify it.
func SignRequests(s *webbotauth.Signer) Option {
	return option("SignRequests", func(c *config) {
		c.signer = s
		c.signWhenAsked = false
	}, signerFault("SignRequests", s))
}

// SignWhenAsked is like SignRequests, but signs only the requests to sites that ask for signatures
// with the header Accept-Signature of a response with status 403 or 429; see
// webbotauth.Signer.Asked. A request whose response with status 403 asks for a signature is sent
// again, once and in its turn, so robots.txt and the page are not lost. The program does not see
// the first response.
//
// The plugin remembers 10,000 such hosts. If there are more, it forgets one of them, which then has
// to ask again.
func SignWhenAsked(s *webbotauth.Signer) Option {
	return option("SignWhenAsked", func(c *config) {
		c.signer = s
		c.signWhenAsked = true
	}, signerFault("SignWhenAsked", s))
}

// signerFault returns the fault of a Signer, or nil.
func signerFault(option string, s *webbotauth.Signer) error {
	return faultIf(s.KeyID() == "", option, "the Signer is nil or was not made by webbotauth.NewSigner")
}

// maxAskedHosts is the maximum number of hosts in signatures.hosts.
const maxAskedHosts = 10_000

// A signatures signs the requests of one plugin. A nil *signatures signs none.
type signatures struct {
	signer    *webbotauth.Signer
	report    *reporter.Reporter
	whenAsked bool

	signed atomic.Int64 // report.SignatureStats.Signed
	failed atomic.Int64 // report.SignatureStats.Failed
	asks   atomic.Int64 // report.SignatureStats.Asked

	// mu protects hosts.
	mu    sync.Mutex
	hosts map[string]string // the hosts that have asked, and the nonce for the next request; "" if there is none
}

// newSignatures returns the signatures of a plugin. If whenAsked is true, it signs only the requests
// to hosts that have asked for it.
func newSignatures(signer *webbotauth.Signer, whenAsked bool, r *reporter.Reporter) *signatures {
	return &signatures{
		signer:    signer,
		report:    r,
		whenAsked: whenAsked,
		hosts:     make(map[string]string),
	}
}

// sign signs a request to a host, and reports whether it has done so. It does not sign ftp
// requests, which have no headers.
func (s *signatures) sign(host string, req *http.Request) bool {
	if !weburl.IsWeb(req.URL) {
		return false
	}
	nonce, signs := s.next(host)
	if !signs {
		return false
	}
	err := s.signer.SignNonce(req, nonce)
	if err != nil {
		s.failed.Add(1)
		s.report.Warn("a request cannot be signed and is sent without a signature", "url", req.URL.Redacted(), "error", err)
		return false
	}
	s.signed.Add(1)
	return true
}

// next reports whether the next request to a host is signed, and returns the nonce that the host
// has asked for, if any. The nonce is used once.
func (s *signatures) next(host string) (nonce string, signs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce, asked := s.hosts[host]
	switch {
	case asked && s.whenAsked:
		s.hosts[host] = ""
	case asked:
		delete(s.hosts, host)
	}
	return nonce, asked || !s.whenAsked
}

// ask records that a host has asked for signatures.
func (s *signatures) ask(host, nonce string) {
	s.asks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.hosts[host]
	if !known && len(s.hosts) >= maxAskedHosts {
		for other := range s.hosts {
			delete(s.hosts, other)
			break
		}
	}
	s.hosts[host] = nonce
}

// statistics returns the counts so far, or nil if no request is signed.
func (s *signatures) statistics() *report.SignatureStats {
	if s == nil {
		return nil
	}
	stats := &report.SignatureStats{
		Signed: int(s.signed.Load()),
		Failed: int(s.failed.Load()),
		Asked:  int(s.asks.Load()),
	}
	if s.whenAsked {
		s.mu.Lock()
		defer s.mu.Unlock()
		stats.Hosts = len(s.hosts)
	}
	return stats
}

// signature returns a function that signs the request of x, or nil if no request is signed.
func (x *exchange) signature() func(*http.Request) {
	s := x.wire.signatures
	if s == nil {
		return nil
	}
	return func(req *http.Request) {
		x.signed = s.sign(x.host.Name(), req)
		x.trace.setSigned(x.signed)
	}
}

// signsAgain records whether a response asks for a signature. It reports whether the request is
// sent again with a signature, which happens at most once. If it returns true, x has given its turn
// back.
func (x *exchange) signsAgain(resp *http.Response) bool {
	s := x.wire.signatures
	if s == nil {
		return false
	}
	nonce, asked := s.signer.Asked(resp)
	if !asked {
		return false
	}
	s.ask(x.host.Name(), nonce)
	rejected := x.signed && nonce == ""
	if x.asked || rejected || resp.StatusCode != http.StatusForbidden || !backend.Repeatable(resp.Request) {
		return false
	}
	if x.host.BusyFor(time.Now(), patience) {
		return false
	}
	x.asked = true
	x.endAttempt()
	return true
}

// Card returns what the options of the plugin say about the crawler, for a Signature Agent Card and
// a page for the owners of sites. The user agent is that of the first attached collector. The
// program adds the other fields, such as Name and Contacts.
//
// ObeysRobots is true if the crawl obeys the robots.txt of every host as RFC 9309 says, so it is
// false under DryRun, IgnoreRobotsWithPermission and every other dialect. Bot.Purpose has the
// labels of the option Purpose, such as "search, train-ai", also of those inside ForHosts.
func (p *Plugin) Card() webbotauth.Card {
	if p == nil || p.core == nil {
		return webbotauth.Card{}
	}
	userAgent := p.userAgent()
	s := p.judge.settings
	bot := webbotauth.Bot{
		UserAgent: userAgent,
		Trigger:   "crawler",
		Purpose:   s.purposes(),
		KnownURLs: []string{"/robots.txt"},
	}
	if s.tokens != nil || userAgent != "" {
		bot.ProductToken = s.productTokens(s.dialect, userAgent)[0]
	}
	if !p.judge.dryRun {
		bot.ObeysRobots = s.compliesEverywhere()
		bot.RateControl = "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without"
		if !bot.ObeysRobots {
			bot.RateControl = "status 429 or 503, with Retry-After or without"
		}
		bot.Rate = s.rate()
	}
	return webbotauth.Card{Bot: bot}
}

// purposes returns the labels of what the crawl is for on any host, or "" without the option
// Purpose.
func (s *settings) purposes() string {
	var all usage.Purpose
	for _, host := range s.all() {
		all |= host.purpose
	}
	return strings.ReplaceAll(all.String(), "|", ", ")
}

// compliesEverywhere reports whether the robots.txt of every host is obeyed as RFC 9309 says.
func (s *settings) compliesEverywhere() bool {
	for _, host := range s.all() {
		if host.ignoreRobots || host.dialect != dialect.RFC9309() {
			return false
		}
	}
	return true
}

// rate says how often a host is requested at most, or returns "" if no option limits that.
func (s *settings) rate() string {
	least := s.pace.MinDelay
	for _, host := range s.perHost {
		least = min(least, host.pace.MinDelay)
	}
	if least == 0 {
		return ""
	}
	return fmt.Sprintf("at most one request to a host every %v", least)
}
