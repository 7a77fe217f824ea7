package collyrobots

import (
	"container/list"
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots/dialect"
)

// A turnstile lets the requests to one host through, one at a time and no closer than the host's delay.
//
// A page passes it twice. In OnRequest, where nothing is held, it stands in line for the host's one ticket and for the time of the
// next slot, without taking it (enter). In OnRequestHeaders, with Colly's LimitRule slot in hand, it takes the slot (send): the
// moment that counts. Waiting only in the second place would let a slow host's pages fill the slots that a fast host needs;
// waiting only in the first would let pages bunch up behind a busy slot and leave it together. Whatever else goes on the wire
// (redirect hops, robots.txt, sitemaps) takes a slot by send alone, ahead of the line: it may hold what the line waits for.
//
// Every waiter is a goroutine that exists anyway, and only the one whose turn comes next sleeps on a timer.
type turnstile struct {
	mu     sync.Mutex
	wishes [2]wish       // of robots.txt under http and under https: one host, one pace
	delay  time.Duration // in force: the largest wish, or the floor
	rate   *rate.Limiter // one token each delay, counted from the last start; nil: no delay
	lane   list.List     // of *waiter: requests that go on the wire now, first come first served
	line   list.List     // of *waiter: pages in OnRequest; the front one holds the ticket
	last   time.Time     // the last start
	stats  HostStats
}

// A wish is the crawl delay of one robots.txt, as written and as it is to be kept.
type wish struct{ written, kept time.Duration }

// A waiter is a goroutine that stands in the lane or in the line.
type waiter struct {
	wake   chan struct{}  // holds one "look again"
	page   *colly.Request // in the line: whose ticket this is
	leased time.Time      // when an unused ticket lapses; zero: not yet admitted
}

// minLease is how long a ticket stays with a page that was let through and is not yet on the wire, where the delay is
// shorter still.
const minLease = 100 * time.Millisecond

// ask notes the crawl delay that robots.txt of one scheme of the host asks for, as written and as it is to be kept, and
// lets the delay in force be the largest of what both schemes and the floor want. It counts from the last start. The answer
// tells whether anything changed.
func (t *turnstile) ask(scheme string, written, kept, floor time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.wishes[0]
	if scheme == "https" {
		w = &t.wishes[1]
	}
	if *w == (wish{written, kept}) {
		return false
	}
	*w = wish{written, kept}
	t.stats.CrawlDelay = max(t.wishes[0].written, t.wishes[1].written)
	t.keep(max(t.wishes[0].kept, t.wishes[1].kept, floor))
	return true
}

// keep puts a delay in force.
func (t *turnstile) keep(delay time.Duration) {
	if delay == t.delay {
		return
	}
	t.delay, t.rate = delay, nil
	if delay > 0 {
		// A fresh bucket is full. Draining it at the last start makes the next start wait for what is left of the delay.
		t.rate = rate.NewLimiter(rate.Every(delay), 1)
		if !t.last.IsZero() {
			t.rate.AllowN(t.last, 1)
		}
	}
	t.nudge()
}

// enforced returns the delay in force.
func (t *turnstile) enforced() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delay
}

// until returns how long after now the next start may be; 0 or less: it may be now.
func (t *turnstile) until(now time.Time) time.Duration {
	if t.rate == nil {
		return 0
	}
	r := t.rate.ReserveN(now, 1)
	defer r.CancelAt(now)
	return r.DelayFrom(now)
}

// grant takes the slot at now, if it is free.
func (t *turnstile) grant(now time.Time) bool {
	if t.rate != nil && !t.rate.AllowN(now, 1) {
		return false
	}
	if gap := now.Sub(t.last); t.rate != nil && !t.last.IsZero() && (t.stats.MinGap == 0 || gap < t.stats.MinGap) {
		t.stats.MinGap = gap
	}
	t.last = now
	t.stats.Requests++
	return true
}

// enter waits until page holds the host's ticket and the host may be asked. It takes no slot. If ctx ends first it returns the
// cause, and page holds nothing.
func (t *turnstile) enter(ctx context.Context, page *colly.Request) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	if t.rate == nil {
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
		// slot. In that case it will take its slot without a ticket, at the right time all the same.
		t.line.Remove(front)
	}
	if t.line.Front() != me || t.lane.Len() > 0 {
		return 0, false
	}
	if d := t.until(now); d > 0 {
		return d, false
	}
	me.Value.(*waiter).leased = now.Add(max(t.delay, minLease))
	t.nudge()
	return 0, true
}

// send waits for the host's next slot and takes it: the caller goes on the wire now. The ticket of page, if it has one, passes
// to the next in line; page is nil for what needs none. If ctx ends first it returns the cause, and the slot stays free.
func (t *turnstile) send(ctx context.Context, page *colly.Request) error {
	t.mu.Lock()
	if t.lane.Len() == 0 && t.grant(time.Now()) {
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
		if !t.grant(now) {
			return max(t.until(now), 1), false
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
	floor time.Duration // MinDelay: between two requests to one host, whatever it asks for
	mu    sync.Mutex
	hosts map[string]*turnstile // by host, with the port unless it is the default one
}

// host returns the turnstile of a host by its normal name.
func (p *pace) host(name string) *turnstile {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.hosts[name]
	if t == nil {
		t = &turnstile{stats: HostStats{Host: name}}
		t.keep(p.floor)
		p.hosts[name] = t
	}
	return t
}

// of returns the turnstile that a request to u must pass.
func (p *pace) of(u *url.URL) *turnstile { return p.host(hostName(u)) }

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
