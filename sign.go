package collyrobots

import (
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
	s := p.judge.Settings
	bot := webbotauth.Bot{
		UserAgent: userAgent,
		Trigger:   "crawler",
		Purpose:   s.Purposes(),
		KnownURLs: []string{"/robots.txt"},
	}
	if s.Tokens != nil || userAgent != "" {
		bot.ProductToken = s.ProductTokens(s.Dialect, userAgent)[0]
	}
	if !p.judge.DryRun {
		bot.ObeysRobots = s.CompliesEverywhere()
		bot.RateControl = "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without"
		if !bot.ObeysRobots {
			bot.RateControl = "status 429 or 503, with Retry-After or without"
		}
		bot.Rate = s.Rate()
	}
	return webbotauth.Card{Bot: bot}
}
