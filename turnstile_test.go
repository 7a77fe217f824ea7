package collyrobots

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
)

// paced returns a turnstile with a delay in force.
func paced(delay time.Duration) *turnstile {
	t := &turnstile{limiter: limiter{rules: &pacing{}}}
	t.heed(time.Now(), "http", wish{delay, delay})
	return t
}

// wants lets robots.txt ask for a delay.
func (t *turnstile) wants(delay time.Duration) { t.heed(time.Now(), "http", wish{delay, delay}) }

// once sends one request and ends it at once.
func once(ctx context.Context, host *turnstile, page *colly.Request) error {
	u := new(url.URL)
	defer host.ended(u)
	return host.send(ctx, page, u)
}

// A transcript notes who did what at which instant of a bubble.
type transcript struct {
	start time.Time
	mu    sync.Mutex
	lines []string
}

func newTranscript() *transcript { return &transcript{start: time.Now()} }

func (s *transcript) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%v %s", time.Since(s.start), fmt.Sprintf(format, args...)))
}

func (s *transcript) check(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.lines, "\n"); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

// pass takes page through both stages.
func pass(ctx context.Context, host *turnstile, page *colly.Request) error {
	if err := host.enter(ctx, page); err != nil {
		return err
	}
	return once(ctx, host, page)
}

func TestPagesStartADelayApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(300*time.Millisecond), newTranscript()
		for i := range 4 {
			go func() {
				if err := pass(t.Context(), host, new(colly.Request)); err != nil {
					t.Error(err)
				}
				log.note("page %d", i)
			}()
			synctest.Wait() // one after the other into the line
		}
		time.Sleep(2 * time.Second)
		log.check(t, `
0s page 0
300ms page 1
600ms page 2
900ms page 3`)
	})
}

func TestDelayCountsFromTheLastStartWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Second), newTranscript()
		for _, idle := range []time.Duration{0, 100 * time.Millisecond, 5 * time.Second, 999 * time.Millisecond} {
			time.Sleep(idle)
			pass(t.Context(), host, new(colly.Request))
			log.note("after %v", idle)
		}
		log.check(t, `
0s after 0s
1s after 100ms
6s after 5s
7s after 999ms`)
	})
}

func TestFirstPageWaitsForTheDelaySinceRobotsTxt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(0), newTranscript()
		once(t.Context(), host, nil)
		log.note("robots.txt")
		time.Sleep(200 * time.Millisecond)
		host.wants(time.Second)
		pass(t.Context(), host, new(colly.Request))
		log.note("page")
		log.check(t, `
0s robots.txt
1s page`)
	})
}

func TestHTTPAndHTTPSOfAHostShareTheLargerDelay(t *testing.T) {
	host := &turnstile{limiter: limiter{rules: &pacing{minDelay: 1}}}
	for _, step := range []struct {
		scheme      string
		asked, want time.Duration
	}{
		{"http", 2, 2}, {"https", 5, 5}, {"http", 3, 5}, {"https", 0, 3}, {"http", 0, 1},
	} {
		host.heed(time.Time{}, step.scheme, wish{step.asked, step.asked})
		if host.delay != step.want {
			t.Errorf("after %s asks for %d: delay %d, want %d", step.scheme, step.asked, host.delay, step.want)
		}
	}
}

func TestHopsAndRobotsTxtGoBeforeTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Second), newTranscript()
		pass(t.Context(), host, new(colly.Request))
		for i := range 2 {
			go func() { pass(t.Context(), host, new(colly.Request)); log.note("page %d", i) }()
			synctest.Wait()
		}
		for i := range 2 {
			go func() { once(t.Context(), host, nil); log.note("hop %d", i) }()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		log.check(t, `
1s hop 0
2s hop 1
3s page 0
4s page 1`)
	})
}

// A page that holds the ticket waits in OnRequestHeaders for another host's LimitRule slot. Its host's other pages must not
// pile up there too.
func TestOnlyOnePageIsLetThroughBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Second), newTranscript()
		first, second := new(colly.Request), new(colly.Request)
		host.enter(t.Context(), first)
		log.note("first in")
		go func() { host.enter(t.Context(), second); log.note("second in") }()
		time.Sleep(900 * time.Millisecond)
		once(t.Context(), host, first)
		log.note("first sent")
		time.Sleep(5 * time.Second)
		log.check(t, `
0s first in
900ms first sent
1.9s second in`)
	})
}

func TestAnUnusedTicketLapsesAfterOneDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Second), newTranscript()
		aborted, late := new(colly.Request), new(colly.Request)
		host.enter(t.Context(), aborted) // a later OnRequest callback aborts it: no hook will tell
		go func() { host.enter(t.Context(), late); log.note("next in") }()
		time.Sleep(5 * time.Second)
		host.release(aborted) // too late to matter
		once(t.Context(), host, late)
		log.note("next sent")
		log.check(t, `
1s next in
5s next sent`)
	})
}

func TestAReleasedTicketCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Second), newTranscript()
		cached := new(colly.Request)
		host.enter(t.Context(), cached)
		go func() { pass(t.Context(), host, new(colly.Request)); log.note("next sent") }()
		time.Sleep(10 * time.Millisecond)
		host.release(cached) // it came from CacheDir
		host.release(cached)
		synctest.Wait()
		log.check(t, `10ms next sent`)
	})
}

func TestDelayChangesForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Hour), newTranscript()
		pass(t.Context(), host, new(colly.Request))
		for i := range 3 {
			go func() { pass(t.Context(), host, new(colly.Request)); log.note("page %d", i) }()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		host.wants(2 * time.Second) // shorter: the last start is long ago
		time.Sleep(time.Second)
		host.wants(4 * time.Second) // longer
		time.Sleep(5 * time.Second)
		host.wants(0) // none
		synctest.Wait()
		log.check(t, `
10s page 0
14s page 1
16s page 2`)
	})
}

func TestAnEndedContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, log := paced(time.Hour), newTranscript()
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		once(ctx, host, nil)
		for range 500 {
			go func() {
				if err := host.enter(ctx, new(colly.Request)); err != cause {
					t.Errorf("enter: %v, want the context's cause", err)
				}
			}()
		}
		go func() {
			if err := once(ctx, host, nil); err != cause {
				t.Errorf("send: %v, want the context's cause", err)
			}
		}()
		time.Sleep(time.Second)
		cancel(cause)
		synctest.Wait()
		log.note("line %d, lane %d", host.line.Len(), host.lane.Len())
		if err := host.enter(ctx, new(colly.Request)); err != cause {
			t.Errorf("enter after the end: %v, want the context's cause", err)
		}
		host.wants(0)
		if err := pass(t.Context(), host, new(colly.Request)); err != nil {
			t.Errorf("another collector: %v", err)
		}
		log.check(t, `1s line 0, lane 0`)
	})
}

func TestMinGapIsMeasuredUnderADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := paced(0)
		once(t.Context(), host, nil)
		once(t.Context(), host, nil) // no delay: no gap
		host.wants(time.Second)
		for _, idle := range []time.Duration{0, 3 * time.Second, 0} {
			time.Sleep(idle)
			once(t.Context(), host, nil)
		}
		if got := host.stats; got.Requests != 5 || got.MinGap != time.Second {
			t.Errorf("%d requests, smallest gap %v; want 5 and 1s", got.Requests, got.MinGap)
		}
	})
}

// Odd delays must neither let a request through early nor spin: the bucket counts in floating point, good to a nanosecond.
func TestDelaysOfAnyLengthAreExact(t *testing.T) {
	for _, delay := range []time.Duration{1, 7, 333_333_333, 1_000_000_007, 10*time.Hour + 1, 90 * 24 * time.Hour} {
		t.Run(delay.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := paced(delay)
				once(t.Context(), host, nil)
				last := time.Now()
				for range 50 {
					pass(t.Context(), host, new(colly.Request))
					if gap := time.Since(last); gap < delay-1 || gap > delay+1 {
						t.Fatalf("gap %v, want %v", gap, delay)
					}
					last = time.Now()
				}
			})
		})
	}
}
