package gate

import (
	"context"
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/hostname"
)

// A Mode says where a request is when it is admitted. What it holds there decides how it waits.
type Mode uint8

const (
	// InOnRequest is for a page in OnRequest, which holds nothing. It waits until its host lets it in,
	// and starts in InOnRequestHeaders.
	InOnRequest Mode = iota
	// InOnRequestHeaders is for a page just before it is sent, which holds a slot of a LimitRule. It
	// waits for its start. It is decided about again if a callback has changed it, or if another
	// robots.txt is in force.
	InOnRequestHeaders
	// OfClient is for a request of an http.Client or a Turn, which holds nothing. It waits until its
	// host lets it in, and then for its start.
	OfClient
	// OnWire is for a request that no hook has admitted as it is, such as a redirect. It may hold a
	// slot of a LimitRule, so it goes ahead of the pages that wait for its host.
	OnWire
	// InTurn is for a request that is sent in the turn of its carrier, so it does not wait.
	InTurn
)

var (
	// ErrReturned is the error of Admit for a page that Page.Returns takes back.
	ErrReturned = errors.New("collyrobots: the page waits in the urlstore.Store")
	// ErrFresh is the error of Admit for a page that is not requested because it is fresh.
	ErrFresh = errors.New("collyrobots: the page is fresh")
	// ErrRedirectWait reports that the host of a redirect of a collector accepts no requests for too
	// long, see pace.Host.IsAway. Such a redirect does not wait, because it holds a slot of a LimitRule.
	ErrRedirectWait = errors.New("collyrobots: the redirect would wait too long for its host")
)

// Admit decides whether q may be sent, and waits for its turn as the mode says. There are three steps:
//
//   - decide judges q by the robots.txt in force.
//   - enter waits until the host lets q in.
//   - start waits until q may start, just before it is sent.
//
// Each step that waits judges q again if its robots.txt has changed in the meantime. Otherwise q is
// judged once, and the shadows see each URL of q once. An error says why q is not sent: see check. It
// may also be ErrReturned or ErrFresh, or the cause that has ended ctx.
func (g *Gate) Admit(ctx context.Context, q *Request, m Mode) error {
	switch {
	case m == InOnRequestHeaders && q.StillRefused(q.header):
		return q.refusal
	case m == InOnRequestHeaders && q.stands(ctx):
		return g.start(ctx, q, false)
	case q.holdsSlot():
		return g.admitRedirect(ctx, q, m)
	}
	return g.admit(ctx, q, m)
}

// admit is Admit for a request that has to be judged.
func (g *Gate) admit(ctx context.Context, q *Request, m Mode) error {
	err := g.decide(ctx, q, m)
	if err != nil {
		return err
	}
	switch m {
	case InTurn:
		return nil
	case InOnRequest:
		if q.Cached != nil && q.Cached() { // a page that is not sent does not wait
			return nil
		}
		if q.isFresh(ctx) {
			return ErrFresh
		}
		return g.enter(ctx, q)
	case OfClient:
		err := g.enter(ctx, q)
		if err != nil {
			return err
		}
	default:
		q.recall(ctx, q.verdict.Settings)
	}
	return g.start(ctx, q, m != InOnRequestHeaders)
}

// admitRedirect is admit for a redirect of a collector. It fails with ErrRedirectWait if its host is
// away.
func (g *Gate) admitRedirect(ctx context.Context, q *Request, m Mode) error {
	away := g.Wire.Hosts.IsAway(q.now, hostname.Of(q.target.URL))
	if away && !g.IsKnown(ctx, q.now, q.target, q.fetcher(), false) {
		return ErrRedirectWait // robots.txt would wait as well
	}
	q.Ticket.GiveUpIfAway(ErrRedirectWait)
	defer q.Ticket.GiveUpIfAway(nil)
	return g.admit(ctx, q, m)
}

// holdsSlot reports whether q is a redirect of a collector, which holds a slot of a LimitRule while it
// waits.
func (q *Request) holdsSlot() bool { return q.redirect && q.entry != nil }

// decide checks q, and compares the verdict with those of the shadows if it is the first one on this
// URL. Where no hook does so, it logs a denial of a dry run.
func (g *Gate) decide(ctx context.Context, q *Request, m Mode) error {
	isPage := m == InOnRequest || m == InOnRequestHeaders
	mayReturn := m == InOnRequest && q.Returns != nil
	isPaused := g.Wire.Hosts.HasPauses() && g.tellPaused(ctx, q, m)
	if mayReturn && (isPaused || q.joinShared(ctx)) && q.Returns(q) {
		return ErrReturned // otherwise the pages of a large group could wait in memory for their robots.txt files
	}
	again := q.isJudged() && q.hasSameURL()
	err := g.check(ctx, q)
	if q.dry != nil && !isPage {
		g.WouldDeny(q.target.URL, q.dry)
	}
	if err == nil && mayReturn && q.Returns(q) {
		return ErrReturned
	}
	if g.Shadows.InUse() && !again && q.isJudged() && q.hasSameURL() {
		g.Shadows.Compare(ctx, q.now, &q.verdict, &q.target, q.fetcher())
	}
	return err
}

// tellPaused reports whether the host of q is paused. If robots.txt is not known, q waits for it before
// it waits for its host, so tellPaused sends the event of that wait.
func (g *Gate) tellPaused(ctx context.Context, q *Request, m Mode) bool {
	if m != InOnRequest && m != OfClient {
		return false
	}
	host := g.Wire.Hosts.At(q.now, hostname.Of(q.target.URL))
	if !host.IsPaused() {
		return false
	}
	q.Host = host
	if !g.IsKnown(ctx, q.now, q.target, q.fetcher(), false) && g.Report.TellWaiting(q.now, host, q.target.URL, q.IDs) && q.OnWait != nil {
		q.OnWait()
	}
	return true
}

// stands reports whether the verdict on q still decides, so that q need not be judged again.
func (q *Request) stands(ctx context.Context) bool {
	return q.isJudged() && q.refusal == nil && !q.retargeted && q.hasSameURL() && q.newest(ctx) == q.verdict.Policy
}

// enter waits until it is the turn of q with its host. While q waits it holds nothing. If
// robots.txt has expired by then, enter reads it again, which takes the turn. q stays at the front,
// and waits for the next turn.
func (g *Gate) enter(ctx context.Context, q *Request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if q.Host.MayEnter(&q.Ticket) {
		return nil
	}
	g.Wire.Join(ctx, q.Host, q.transport(), q.target.URL)
	g.endWaitIfDenied(q)
	g.Delays.LogLongWait(q.now, q.Host, q.verdict.Policy)
	if g.Report.TellWaiting(q.now, q.Host, q.target.URL, q.IDs) && q.OnWait != nil {
		q.OnWait()
	}
	wait := func() error { return g.awaitTurn(ctx, q) }
	return exchange.Await(wait, func() exchange.Standing { return q.standing(ctx) }, func() error { return g.check(ctx, q) })
}

// awaitTurn waits until it is the turn of q. If a limit of the host ends the wait and q may still be
// sent, because another page has given its place in the budget back, q waits again.
func (g *Gate) awaitTurn(ctx context.Context, q *Request) error {
	for {
		err := q.Host.Enter(ctx, &q.Ticket)
		q.now = time.Now()
		if err != errDenied {
			return err
		}
		err = g.check(ctx, q)
		if err != nil {
			return err
		}
	}
}

// start waits until q may start, and takes the time of the start. If robots.txt has expired by
// then, q first gives its turn back, because the file takes that turn. If direct is true, q goes on
// the wire as soon as it has started. Otherwise the controller calls charge when q goes on the wire,
// because a later callback may abort q. In a dry run, the hooks need the result earlier.
func (g *Gate) start(ctx context.Context, q *Request, direct bool) error {
	err := g.startAllowed(ctx, q, direct)
	if err != nil || !direct && !g.DryRun {
		return err
	}
	err = g.charge(q)
	if err != nil {
		q.GiveBack()
	}
	return err
}

// startAllowed is start without the limits of StopAfterRefusals and MaxPagesPerHost.
func (g *Gate) startAllowed(ctx context.Context, q *Request, direct bool) error {
	wait := func() error { return q.wait(ctx, direct) }
	look := func() exchange.Standing {
		s := q.standing(ctx)
		if s != exchange.Unread {
			return s
		}
		if q.verdict.Policy.MayServe(q.now) {
			return exchange.Same
		}
		q.GiveBack()
		return exchange.Unread
	}
	check := func() error {
		err := g.check(ctx, q)
		q.now = time.Now()
		return err
	}
	return exchange.Await(wait, look, check)
}
