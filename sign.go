package collyrobots

import (
	"github.com/collyrobots/collyrobots/webbotauth"
)

// SignRequests signs every request with s, so that sites can verify who has sent it (Web Bot Auth).
// If s.WhenAsked is set, only the requests to sites that ask for signatures are signed. The default
// is to sign no request. The option follows drafts; see package webbotauth.
//
// The plugin signs pages, robots.txt, sitemaps, redirects, retries and requests of Transport. It
// does not sign requests of Acquire, because the program sends them: call s.Sign there. A request
// that cannot be signed is sent without a signature, and a warning is logged. New returns an
// OptionError if s was not made by webbotauth.NewSigner. See docs/identity.md.
func SignRequests(s *webbotauth.Signer) Option {
	return option("SignRequests", func(c *config) { c.signer = s },
		faultIf(s.KeyID() == "", "SignRequests", "the Signer is nil or was not made by webbotauth.NewSigner")).with(omitted)
}

// Card returns what the options of the plugin say about the crawler, for a Signature Agent Card and
// a page for the owners of sites. The user agent is that of the first attached collector. The
// program adds the other fields, such as Name and Contacts.
//
// ObeysRobots is true if the crawl obeys the robots.txt of every host as RFC 9309 says, so it is
// false under DryRun, IgnoreRobots and every other dialect. Bot.Purpose has the
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
