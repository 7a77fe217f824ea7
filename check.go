package collyrobots

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
)

// Check returns the decision about a GET of rawURL. If necessary, it fetches robots.txt and, with
// the option TDMRep, the TDMRep file. It does not wait for anything else. It uses the client and the
// user agent of the first attached collector. If no collector exists any longer, it uses
// http.DefaultClient and the user agent that robots.txt was last read for. Like Colly, Check escapes
// a percent sign that does not begin an escape, such as in /100%.
//
// Check returns an error if rawURL is not an http, https or ftp URL, and if ctx ends. If robots.txt
// must not be fetched, the error is a *ShardError or a *PaceError, and after Close it is ErrClosed.
// A robots.txt that cannot be read is a Decision and not an error. WithUserAgent sets another user
// agent.
func (p *Plugin) Check(ctx context.Context, rawURL string) (Decision, error) {
	ctx, t, f, err := p.ask(ctx, "Check", rawURL)
	if err != nil {
		return Decision{}, err
	}
	f.ReadsTDM = true
	v, err := p.judge.Verdict(ctx, time.Now(), t, f, nil)
	if err != nil {
		return Decision{}, err
	}
	return v.Decision(t.URL), nil
}

// Robots returns the robots.txt in force for the site of rawURL, as Check reads it: with the same client
// and user agent, and with the same errors. If the file has expired, or was never read, Robots fetches
// it. Robots also fetches it if its text is no longer known: without the option Store, the plugin keeps
// texts only from the first call of Robots on, up to 64 MB.
//
// The text and the rules are for reading. Check decides about a URL, because the options, the status of
// the response and redirects also count.
func (p *Plugin) Robots(ctx context.Context, rawURL string) (report.Robots, error) {
	ctx, t, f, err := p.ask(ctx, "Robots", rawURL)
	if err != nil {
		return report.Robots{}, err
	}
	return p.judge.Robots(ctx, t, f)
}

// ask returns what a question of the program about rawURL needs. op is the name of the method.
func (p *Plugin) ask(ctx context.Context, op, rawURL string) (context.Context, judge.Target, exchange.Fetcher, error) {
	fail := func(err error) (context.Context, judge.Target, exchange.Fetcher, error) {
		return ctx, judge.Target{}, exchange.Fetcher{}, err
	}
	if err := p.usable(); err != nil {
		return fail(err)
	}
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return fail(fmt.Errorf("collyrobots: %s: %w", op, redact.ParseError(err)))
	}
	if u.Scheme == "" {
		return fail(fmt.Errorf("collyrobots: %s: %q: missing scheme, write it as https://%s", op, u.Redacted(), strings.TrimLeft(u.Redacted(), "/")))
	}
	if !judge.HasRobots(u) {
		return fail(fmt.Errorf("collyrobots: %s: %q is not an http, https or ftp URL", op, u.Redacted()))
	}
	ctx, userAgent, f := p.own(ctx)
	return ctx, judge.Target{URL: u, UserAgent: userAgent, Purpose: judge.PurposeOf(ctx)}, f, nil
}

// own returns the context, the user agent and the fetcher of the plugin's own requests. The context
// also has the values of the collector's context, which a transport may need.
func (p *Plugin) own(ctx context.Context) (_ context.Context, userAgent string, f exchange.Fetcher) {
	set, _ := ctx.Value(userAgentKey{}).(string)
	if h := p.first(); h != nil {
		return policy.WithValues(ctx, h.c.Context), cmp.Or(set, h.c.UserAgent), exchange.Fetcher{Wire: p.judge.Wire, Client: h}
	}
	userAgent = cmp.Or(set, p.judge.Policies.LastUserAgent(), judge.DefaultUserAgent)
	return ctx, userAgent, exchange.Fetcher{Wire: p.judge.Wire, Client: exchange.SeamClient{}}
}

// WithUserAgent returns a context that makes Check and Pages decide about a crawler with this user
// agent, which they also send. It is for programs whose crawlers are not collectors. It has no
// effect on Acquire, which takes the user agent from the request.
func WithUserAgent(ctx context.Context, userAgent string) context.Context {
	return context.WithValue(ctx, userAgentKey{}, userAgent)
}

// userAgentKey is the key of the user agent in a context of WithUserAgent.
type userAgentKey struct{}
