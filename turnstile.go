package collyrobots

import (
	"container/list"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// A turnstile lets the requests to one host through, one after the other, when its limiter says so.
//
// A page passes it twice. In OnRequest, where nothing is held, it stands in line for the host's one ticket and for the time of the
// next start, without taking it (enter). In OnRequestHeaders, with Colly's LimitRule slot in hand, it starts (send): the
// moment that counts. Waiting only in the second place would let a slow host's pages fill the slots that a fast host needs;
// waiting only in the first would let pages bunch up behind a busy slot and leave it together. Whatever else goes on the wire
// (redirect hops, robots.txt, sitemaps) starts by send alone, ahead of the line: it may hold what the line waits for.
//
// Every waiter is a goroutine that exists anyway, and only the one whose turn comes next sleeps on a timer.
type turnstile struct {
	mu sync.Mutex
	limiter
	lane    list.List // of *waiter: requests that go on the wire now, first come first served
	line    list.List // of *waiter: pages in OnRequest; the front one holds the ticket
	touched time.Time // guarded by pace.mu: when it was last looked up
}

// A waiter is a goroutine that stands in the lane or in the line.
type waiter struct {
	wake   chan struct{}  // holds one "look again"
	page   *colly.Request // in the line: whose ticket this is
	leased time.Time      // when an unused ticket lapses; zero: not yet admitted
}

// minLease is how long a ticket stays with a page that was let through and is not yet on the wire, where the delay is
// shorter still.
const minLease = 100 * time.Millisecond

// heed notes what a robots.txt asks for. It tells whether that is new.
func (t *turnstile) heed(now time.Time, scheme string, w wish) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.ask(now, scheme, w)
	if changed {
		t.nudge()
	}
	return changed
}

// enter waits until page holds the host's ticket and the host may be asked. Where nothing is to be waited for there are no
// tickets. If ctx ends first it returns the cause, and page holds nothing.
func (t *turnstile) enter(ctx context.Context, page *colly.Request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	if t.unpaced() {
		t.mu.Unlock()
		return nil
	}
	w := &waiter{wake: make(chan struct{}, 1), page: page}
	me := t.line.PushBack(w)
	t.mu.Unlock()
	return t.wait(ctx, w, &t.line, me, func(now time.Time) (time.Duration, bool) { return t.admit(now, me) })
}

// admit decides for a page in the line: in, or look again after a while (0: when woken).
func (t *turnstile) admit(now time.Time, me *list.Element) (time.Duration, bool) {
	if front := t.line.Front(); front != me && front.Next() == me {
		ticket := front.Value.(*waiter)
		if ticket.leased.IsZero() {
			return 0, false
		}
		if left := ticket.leased.Sub(now); left > 0 {
			return left, false
		}
		// Its page was let through and never sent: a later OnRequest callback aborted it, or it still waits for a LimitRule
		// slot. In that case it will start without a ticket, at the right time all the same.
		t.line.Remove(front)
	}
	if t.line.Front() != me || t.lane.Len() > 0 {
		return 0, false
	}
	if d, ok := t.ready(now); !ok {
		return d, false
	}
	me.Value.(*waiter).leased = now.Add(max(t.delay, minLease))
	t.nudge()
	return 0, true
}

// send waits until the request for u may start, and starts it: the caller goes on the wire now, and calls ended afterwards. The
// ticket of page, if it has one, passes to the next in line; page is nil for what needs none. If ctx ends first it returns
// the cause, and nothing has started.
func (t *turnstile) send(ctx context.Context, page *colly.Request, u *url.URL) error {
	t.mu.Lock()
	if t.lane.Len() == 0 && t.start(time.Now(), u, page == nil) {
		t.giveBack(page)
		t.mu.Unlock()
		return nil
	}
	w := &waiter{wake: make(chan struct{}, 1)}
	me := t.lane.PushBack(w)
	t.mu.Unlock()
	err := t.wait(ctx, w, &t.lane, me, func(now time.Time) (time.Duration, bool) {
		if t.lane.Front() != me {
			return 0, false
		}
		if !t.start(now, u, page == nil) {
			d, _ := t.ready(now)
			return d, false
		}
		t.lane.Remove(me)
		return 0, true
	})
	t.release(page)
	return err
}

// wait asks turn until it says yes, sleeping as long as it says, or until woken. When ctx ends, the waiter leaves its list.
func (t *turnstile) wait(ctx context.Context, w *waiter, in *list.List, me *list.Element, turn func(now time.Time) (time.Duration, bool)) error {
	for {
		t.mu.Lock()
		d, ok := turn(time.Now())
		t.mu.Unlock()
		if ok {
			return nil
		}
		if !w.sleep(ctx, d) {
			t.mu.Lock()
			in.Remove(me)
			t.nudge()
			t.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// sleep returns after d (0: never), when woken, or with false when ctx ends.
func (w *waiter) sleep(ctx context.Context, d time.Duration) bool {
	var elapsed <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		elapsed = timer.C
	}
	select {
	case <-elapsed:
	case <-w.wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// release gives back the ticket of page, if it has one: the page was sent, came from a cache, or was given up.
func (t *turnstile) release(page *colly.Request) {
	t.mu.Lock()
	t.giveBack(page)
	t.mu.Unlock()
}

func (t *turnstile) giveBack(page *colly.Request) {
	if front := t.line.Front(); page != nil && front != nil && front.Value.(*waiter).page == page {
		t.line.Remove(front)
	}
	t.nudge()
}

// ended notes that the request for u has left the wire: its body was read, or it failed.
func (t *turnstile) ended(u *url.URL) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end(time.Now(), u) {
		t.nudge()
	}
}

// launched notes that u reached the transport. It tells whether u is that of a request which was started, and not changed since.
func (t *turnstile) launched(u *url.URL) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.flights[u]
	if f == nil || f.url != *u {
		return false
	}
	f.onWire = true
	return true
}

// busyFor tells whether the host cannot be asked within d.
func (t *turnstile) busyFor(d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait, ok := t.ready(time.Now())
	return !ok && wait > d
}

// complained tells whether an answer with status 429 or 503 slows the host down.
func (t *turnstile) complained(u *url.URL, header http.Header) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slower := t.throttle(time.Now(), u, header, rand.Float64())
	t.nudge()
	return slower
}

// nudge makes those look again whose turn it may be now: the first of the lane, and the first two of the line.
func (t *turnstile) nudge() {
	for _, e := range [...]*list.Element{t.lane.Front(), t.line.Front(), second(&t.line)} {
		if e == nil {
			continue
		}
		select {
		case e.Value.(*waiter).wake <- struct{}{}:
		default:
		}
	}
}

func second(l *list.List) *list.Element {
	if front := l.Front(); front != nil {
		return front.Next()
	}
	return nil
}

// A pace is the turnstiles of all hosts.
type pace struct {
	rules     func(host string) *pacing
	mu        sync.Mutex
	hosts     map[string]*turnstile // by host, with the port unless it is the default one
	sweepAt   int                   // how many hosts make it worth looking for idle ones
	forgotten HostStats             // sum of those swept
}

// manyHosts is how many hosts are kept without a look whether they are still needed, and longAgo how long one must not have been looked
// up to be forgotten: nobody holds it then.
const (
	manyHosts = 1 << 17
	longAgo   = 10 * time.Minute
)

func newPace(rules func(host string) *pacing) pace {
	return pace{rules: rules, hosts: make(map[string]*turnstile), sweepAt: manyHosts}
}

// of returns the turnstile that a request to u must pass.
func (p *pace) of(u *url.URL) *turnstile { return p.at(time.Now(), u) }

func (p *pace) at(now time.Time, u *url.URL) *turnstile {
	name := hostName(u)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.hosts[name]
	if t == nil {
		if len(p.hosts) >= p.sweepAt {
			p.sweep(now)
		}
		t = &turnstile{limiter: limiter{rules: p.rules(name), stats: HostStats{Host: name}}}
		t.settle(now)
		p.hosts[name] = t
	}
	t.touched = now
	return t
}

// sweep forgets the hosts that nobody has asked for in a while and that may be asked at any time.
func (p *pace) sweep(now time.Time) {
	for name, t := range p.hosts {
		if now.Sub(t.touched) < longAgo {
			continue
		}
		t.mu.Lock()
		if t.idle(now) && t.lane.Len() == 0 && t.line.Len() == 0 {
			p.forgotten.add(t.stats)
			delete(p.hosts, name)
		}
		t.mu.Unlock()
	}
	p.sweepAt = max(manyHosts, 2*len(p.hosts))
}

// hostName returns the name of u's host, with the port unless it is the scheme's own. Names that are normal already, as those of all URLs
// that Colly makes are, cost nothing.
func hostName(u *url.URL) string {
	for i := range len(u.Host) {
		if c := u.Host[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
			if robots, err := dialect.Locate(u); err == nil {
				return robots.Host
			}
			break
		}
	}
	return u.Host
}
