package compare

import (
	"crypto/ed25519"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// choice is an option and how rarely it is drawn: once in the given number of draws.
type choice struct {
	rarely int
	option func(d draw) collyrobots.Option
}

// hostChoices are the options that may be given inside ForHosts.
var hostChoices = []choice{
	{6, func(d draw) collyrobots.Option { return collyrobots.Dialect(pick(d, dialect.All()...)) }},
	{5, func(d draw) collyrobots.Option {
		return collyrobots.ProductToken(some(d, 1+d.IntN(2), tokens[1:]...)...)
	}},
	{3, func(d draw) collyrobots.Option {
		return collyrobots.MinDelay(d.between(50*time.Millisecond, 3*time.Second))
	}},
	{8, func(d draw) collyrobots.Option {
		return collyrobots.MaxCrawlDelay(d.between(200*time.Millisecond, 4*time.Second))
	}},
	{10, func(d draw) collyrobots.Option {
		return collyrobots.SkipCrawlDelayAbove(d.between(500*time.Millisecond, 6*time.Second))
	}},
	{5, func(draw) collyrobots.Option { return collyrobots.HonorDelays(true) }},
	{14, func(d draw) collyrobots.Option {
		return collyrobots.CrawlHours(pick(d, "22:00", "00:00", "12:30"), pick(d, "06:00", "13:00", "23:59"), time.UTC)
	}},
	{8, func(d draw) collyrobots.Option { return collyrobots.AdaptiveDelay(pick(d, 0.5, 1, 4)) }},
	{7, func(draw) collyrobots.Option { return collyrobots.DelayFromEnd(true) }},
	{6, func(d draw) collyrobots.Option { return collyrobots.MaxInFlightPerHost(1 + d.IntN(3)) }},
	{8, func(d draw) collyrobots.Option {
		return collyrobots.MaxBackOff(pick(d, 0, time.Second, 20*time.Second))
	}},
	{4, func(d draw) collyrobots.Option { return collyrobots.RetryThrottled(d.IntN(4)) }},
	{5, func(d draw) collyrobots.Option { return collyrobots.StopAfterRefusals(d.IntN(4)) }},
	{4, func(d draw) collyrobots.Option { return collyrobots.MaxPagesPerHost(d.IntN(12)) }},
	{5, func(d draw) collyrobots.Option {
		return collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: d.in(3), OnUnchanged: d.unchanged})
	}},
	{7, func(d draw) collyrobots.Option {
		return collyrobots.PaceBy(pick(d, collyrobots.ByDomain, collyrobots.ByAddress, collyrobots.ByHost))
	}},
	{12, func(d draw) collyrobots.Option {
		return collyrobots.WhenUnreachable(pick(d, collyrobots.AllowAll, collyrobots.DenyAll))
	}},
	{12, func(d draw) collyrobots.Option {
		return collyrobots.WhenForbidden(pick(d, collyrobots.AllowAll, collyrobots.DenyAll))
	}},
	{4, func(d draw) collyrobots.Option {
		return collyrobots.Purpose(some(d, 1+d.IntN(2), usage.Search, usage.AIUse, usage.TrainAI)...)
	}},
	{10, func(draw) collyrobots.Option { return collyrobots.EnforceUsage(true) }},
	{8, func(draw) collyrobots.Option { return collyrobots.TDMRep(true) }},
	{5, func(draw) collyrobots.Option { return collyrobots.EnforceNofollow(true) }},
	{30, func(d draw) collyrobots.Option {
		return collyrobots.IgnoreRobots(collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Now().Add(pick(d, time.Minute, 1000*time.Hour))})
	}},
}

// crawlChoices are options that apply to a whole crawl.
var crawlChoices = []choice{
	{15, func(draw) collyrobots.Option { return collyrobots.DryRun(true) }},
	{8, func(d draw) collyrobots.Option {
		return collyrobots.Shadow(some(d, 1+d.IntN(2), dialect.RFC9309(), dialect.Google(), dialect.Yandex(), dialect.Seznam(), dialect.Original1994())...)
	}},
	{8, func(draw) collyrobots.Option { return collyrobots.PrivateNetworks(collyrobots.AllowAll) }},
	{5, func(d draw) collyrobots.Option { return collyrobots.SignRequests(signer(d)) }},
	{3, func(d draw) collyrobots.Option { return collyrobots.FollowSitemaps(feed(d)) }},
}

// newerChoices are options that were added later. They are drawn with random numbers of their own, so
// that the rest of the crawl of a seed stays the same.
var newerChoices = []choice{
	{6, func(d draw) collyrobots.Option {
		return collyrobots.MaxRate(pick[rate.Limit](d, 0, 0.5, 2, 20), 1+d.IntN(5))
	}},
}

// randomChoices are newer options whose effect is random. They are drawn if that is fixed.
var randomChoices = []choice{
	{10, func(draw) collyrobots.Option { return collyrobots.Polite() }},
	{5, func(d draw) collyrobots.Option { return collyrobots.Jitter(pick(d, 0, 0.25, 1)) }},
}

// newer draws some of the newer options.
func (w *world) newer() []collyrobots.Option {
	d := draw{Rand: rand.New(rand.NewPCG(w.seed, 34))}
	opts := drawn(d, newerChoices, 1)
	if w.busy {
		opts = append(opts, drawn(d, randomChoices, 1)...)
	}
	return opts
}

// signer draws a signer of requests.
func signer(d draw) *webbotauth.Signer {
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	s, err := webbotauth.NewSigner(key, "https://bot.test/.well-known/http-message-signatures-directory", pick(d, webbotauth.Draft, webbotauth.Cloudflare))
	if err != nil {
		s, err = webbotauth.NewSigner(key, "https://bot.test", webbotauth.Cloudflare)
	}
	if err != nil {
		panic(err)
	}
	s.WhenAsked = d.in(2)
	return s
}

// feed draws how the sitemaps of a crawl are followed.
func feed(d draw) collyrobots.Feed {
	f := collyrobots.Feed{
		Window:    d.IntN(4),
		MaxURLs:   pick(d, 0, 0, 5),
		Scope:     pick(d, collyrobots.ScopeHost, collyrobots.ScopeHost, collyrobots.ScopeAny),
		WellKnown: d.in(3),
		Resume:    d.in(4),
	}
	if d.in(5) {
		f.Since = time.Date(1999, 6, 1, 0, 0, 0, 0, time.UTC)
	}
	if f.MaxURLs > 0 && d.in(2) {
		f.NewestFirst = true
	}
	if d.in(5) {
		f.Keep = func(e sitemap.Entry) bool { return !strings.HasSuffix(e.Loc, "4") }
	}
	return f
}

// drawn draws some of the options. more makes all of them rarer.
func drawn(d draw, choices []choice, more int) (opts []collyrobots.Option) {
	for _, c := range choices {
		if d.in(c.rarely * more) {
			opts = append(opts, c.option(d))
		}
	}
	return opts
}

// options draws the options of a plugin, without those that record what it does.
func (w *world) options(d draw) []collyrobots.Option {
	d.unchanged = func(r *colly.Request) { w.rec.add("unchanged", "%s %s", r.Method, r.URL) }
	opts := drawn(d, hostChoices, pick(d, 1, 2, 5))
	opts = append(opts, drawn(d, crawlChoices, 1)...)
	for range d.IntN(3) {
		if d.in(2) {
			continue
		}
		pattern := pick(d, "*", "*.shop.test", "h?.test", pick(d, w.hosts...).name, "*:80*")
		var inner []collyrobots.HostOption
		for _, o := range drawn(d, hostChoices, 2) {
			inner = append(inner, o.(collyrobots.HostOption))
		}
		if d.in(6) {
			inner = append(inner, collyrobots.RobotsTxt([]byte(w.body(d, w.hosts[0]))))
		}
		opts = append(opts, collyrobots.ForHosts(pattern, inner...))
	}
	if d.in(60) { // New reports the faults
		opts = append(opts, collyrobots.MinDelay(-1), collyrobots.ForHosts("http://x", collyrobots.MaxPagesPerHost(-2)), collyrobots.EnforceUsage(true))
	}
	return append(w.newer(), opts...)
}

// reporting returns the options that record what a plugin does.
func (s *spider) reporting(d draw, again bool) []collyrobots.Option {
	rec, name := s.rec, s.name
	opts := []collyrobots.Option{
		collyrobots.Logger(slog.New(logHandler{rec: rec, source: name + " log"})),
		collyrobots.OnDenied(func(r *colly.Request, err error) {
			rec.add(name+" denied", "%s %s depth %d: %s", r.Method, r.URL, r.Depth, faultOf(err))
			if again && s.first("denied", r.URL.String()) {
				time.Sleep(time.Second + fine("denied", r.URL.String()))
				r.Retry()
			}
		}),
	}
	listen := func(e *collyrobots.Event) { rec.event(name+" event", e) }
	if d.in(2) {
		return append(opts, collyrobots.OnEveryEvent(listen))
	}
	return append(opts, collyrobots.OnEvent(listen))
}

// first reports whether it is called with these values for the first time.
func (s *spider) first(what, url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := what + " " + url
	s.times[key]++
	return s.times[key] == 1
}

// A brokenTransport fails some requests before they reach the network. It also hides the transport
// from the plugin.
type brokenTransport struct {
	next http.RoundTripper
	fail func(r *http.Request) error
}

func (t brokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.fail(r); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}
