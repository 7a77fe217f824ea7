package collyrobots

import (
	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/reporter"
)

// checkOnce calls selfCheck the first time. It does not use a sync.Once, because other requests
// would wait while selfCheck logs.
func (h *hooks) checkOnce(r *colly.Request) {
	if !h.checked.Load() && h.checked.CompareAndSwap(false, true) {
		selfCheck(h, judge.UserAgentOf(*r.Headers))
	}
}

// selfCheck is called at the first request of a collector. It warns of settings that are probably
// mistakes. UserAgent is that of the request.
func selfCheck(h *hooks, userAgent string) {
	if h.bubbled != inBubble() {
		panic(errBubble) // otherwise the request would wait forever
	}
	if h.debugger.Load() == nil {
		h.debugger.Store(h.debuggers.add(h.handle, h.judge.Report)) // it was set after Attach
	}
	if !h.c.IgnoreRobotsTxt {
		h.judge.Report.Warn("Colly's built-in robots.txt check was turned on after Attach: it denies and fails what the dialect allows; leave IgnoreRobotsTxt true")
	}
	if n := h.laterCallbacks(); n > 0 {
		h.judge.Report.Warn("OnRequest callbacks were registered after Attach: a request that they abort costs its host one delay, one that they change is judged twice", "count", n)
	}
	for _, s := range h.judge.Settings.All() {
		checkTokens(h.judge.Report, s, userAgent)
	}
	switch {
	case h.frontier != nil:
		checkFrontier(h)
	case h.visits != nil && !h.judge.DryRun && !h.c.AllowURLRevisit && h.handle.Storage() != storage.Storage(h.visits):
		h.judge.Report.Warn("SetStorage was called after Attach, so EnforceNofollow cannot keep links with nofollow from counting as visited: " +
			"they are not requested when another page has them without nofollow; call it before Attach")
	}
}

// checkFrontier warns of settings of a collector that do not go well with the option Frontier.
func checkFrontier(h *hooks) {
	switch {
	case h.c.AllowURLRevisit:
		h.judge.Report.Warn("AllowURLRevisit is set, so Frontier does not see visits in time: if the process is killed, links of the pages that are under way may be lost")
	case h.handle.Storage() != storage.Storage(h.visits):
		h.judge.Report.Warn("SetStorage was called after Attach, so Frontier does not see visits in time: if the process is killed, links of the pages that are under way may be lost; call it before Attach")
	}
	if h.c.MaxRequests > 0 {
		h.judge.Report.Warn("MaxRequests counts a page that has waited in the urlstore.Store of Frontier at least three times; use a limit of the urlstore.Store", "limit", h.c.MaxRequests)
	}
}

// checkTokens warns of a name of the crawler that no User-agent line can match.
func checkTokens(r *reporter.Reporter, s *judge.HostSettings, userAgent string) {
	for _, token := range s.ProductTokens(s.Dialect, userAgent) {
		if token == "" {
			continue // there is another warning for a user agent without a name
		}
		err := s.Dialect.CheckToken(token)
		if err != nil {
			r.Warn("no User-agent line can match the crawler's name, so only the groups for * of each robots.txt apply: set ProductToken to another name", "error", err)
		}
	}
}
