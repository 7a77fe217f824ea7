package collyrobots

import (
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/backend"
)

// warn says once what is wired in a way that its user would not want.
func (p *Plugin) warn(what string, args ...any) {
	if _, said := p.warned.LoadOrStore(what, true); !said {
		p.config.log.Warn("collyrobots: "+what, args...)
	}
}

// selfCheck looks, at a collector's first request, for what is wired wrongly.
func (l *link) selfCheck() {
	p := l.plugin
	if !l.c.IgnoreRobotsTxt {
		p.warn("Colly's built-in robots.txt check was turned on after Attach: it denies and fails what the dialect allows; leave IgnoreRobotsTxt true")
	}
	if n, err := backend.Callbacks(l.c, backend.OnRequest); err == nil && n > l.callbacks {
		p.warn("OnRequest callbacks were registered after Attach: a request that they abort costs its host one delay, one that they change is judged twice", "callbacks", n-l.callbacks)
	}
	for _, r := range p.config.regimes() {
		for _, token := range r.tokens {
			if err := r.dialect.CheckToken(token); err != nil {
				p.warn("no group of a robots.txt can ever match this ProductToken: the groups for * apply", "error", err)
			}
		}
	}
}

// checkAgent notices a user agent that changes during the crawl, and with it a name that nobody has set.
func (p *Plugin) checkAgent(now string) {
	if first := p.readers.firstAgent(); first != now && p.config.tokens == nil && dialect.ProductToken(first) != dialect.ProductToken(now) {
		p.warn("the user agent changes during the crawl and no ProductToken is set: robots.txt is read for the first one", "first", first, "now", now)
	}
}
