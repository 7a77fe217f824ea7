package clients

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// Acquire waits for the turn of each request, and denies what robots.txt disallows.
func TestAcquire(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /3\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web)
		began := time.Now()
		var got []string
		for i := range 5 {
			url := fmt.Sprintf("http://a.test/%d", i)
			turn, err := p.Acquire(t.Context(), kit.NewRequest(t, url))
			if denied := kit.IsDenial(err); denied != (i == 3) || denied && !strings.Contains(err.Error(), url) {
				t.Errorf("%s: got error %v", url, err)
			}
			got = append(got, fmt.Sprint(time.Since(began)))
			if d := turn.Decision(); err == nil && (d.URL != url || !d.Allowed || d.Delay != 2*time.Second || d.Reason != report.ReasonNoRule) {
				t.Errorf("%s: decision %+v", url, d)
			}
			turn.Answered(http.StatusOK, nil)
			turn.End()
		}
		if want := "2s 4s 6s 6s 8s"; strings.Join(got, " ") != want {
			t.Errorf("got turns at %v, want %s", got, want)
		}
		s := p.Stats().Totals
		if s.Requests != 5 || s.Pages != 4 || s.Denied != 1 {
			t.Errorf("got %+v, want 5 requests, 4 pages, 1 denied", s)
		}
	})
}

// TestFailed checks what follows from the error of a Turn: whether the request counts, also for
// MaxPagesPerHost and AdaptiveDelay, whether it is a refusal, and when the next one may start.
func TestFailed(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		unsent  bool
		refused bool
		after   time.Duration // from the start of the request to Failed
	}{
		"nil":                   {},
		"reset":                 {err: &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, refused: true},
		"reset, wrapped":        {err: fmt.Errorf("net::ERR_CONNECTION_RESET: %w", syscall.ECONNRESET), refused: true, after: 9 * time.Second},
		"reset, late":           {err: syscall.ECONNRESET, after: 11 * time.Second},
		"reset while dialing":   {err: &net.OpError{Op: "dial", Err: syscall.ECONNRESET}, unsent: true},
		"connection refused":    {err: syscall.ECONNREFUSED, unsent: true},
		"connection refused 2":  {err: &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, unsent: true},
		"no such host":          {err: &net.DNSError{IsNotFound: true}, unsent: true},
		"timeout":               {err: context.DeadlineExceeded, after: 5 * time.Second},
		"timeout while dialing": {err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, unsent: true, after: 5 * time.Second},
		"canceled":              {err: context.Canceled, after: time.Second},
		"not sent":              {err: fmt.Errorf("the tab was closed: %w", collyrobots.ErrNotSent), unsent: true},
		"another":               {err: errors.New("net::ERR_HTTP2_PROTOCOL_ERROR")},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
				var events []*collyrobots.Event
				p := kit.NewTurns(t, web, collyrobots.MaxPagesPerHost(1), collyrobots.StopAfterRefusals(9), collyrobots.AdaptiveDelay(0.5))
				p.Listen(func(e *collyrobots.Event) {
					if e.RequestKind == report.RequestPage {
						events = append(events, e)
					}
				})
				turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/1"))
				kit.Must(t, err)
				before := kit.HostStats(t, p, "a.test")
				time.Sleep(test.after)
				turn.Failed(test.err)
				turn.Failed(syscall.ECONNRESET) // has no effect
				turn.End()
				s := kit.HostStats(t, p, "a.test")
				if want := map[bool]int{false: 2, true: 1}[test.unsent]; s.Requests != want || s.Pages != 0 {
					t.Errorf("got %d requests and %d pages, want %d and 0", s.Requests, s.Pages, want)
				}
				if refused := s.Refusals == 1; refused != test.refused || s.Refusals > 1 {
					t.Errorf("got %d refusals", s.Refusals)
				}
				if slower := s.ResponseTime > before.ResponseTime; slower != (!test.unsent && test.after > 0) {
					t.Errorf("the response time was %v, and is %v", before.ResponseTime, s.ResponseTime)
				}
				if canceled := s.Ended == report.EndingCanceled; canceled != (name == "canceled") {
					t.Errorf("got ending %q", s.Ended)
				}
				began := time.Now()
				next, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/2"))
				if denied := kit.IsDenial(err); denied == test.unsent || err != nil && !denied {
					t.Errorf("the next page got error %v", err)
				}
				if took, want := time.Since(began), max(0, 2*time.Second-test.after); test.unsent && took != want {
					t.Errorf("the next page waited %v, want %v", took, want)
				}
				next.End()
				kit.Must(t, p.Close()) // waits until the events are delivered
				if len(events) < 2 || events[0].Kind != report.EventStarted || events[1].Kind != report.EventAnswered ||
					events[1].Status != 0 || events[1].Took != test.after || !errors.Is(events[1].Err, test.err) {
					t.Errorf("got events %v", events)
				}
			})
		})
	}
}

// TestFailedStopsAHost checks that resets stop a host, and that a probe that was not sent leaves
// the next page to be the probe.
func TestFailedStopsAHost(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web, collyrobots.StopAfterRefusals(2))
		fail := func(failure error) error {
			turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/1"))
			turn.Failed(failure)
			return err
		}
		kit.Must(t, fail(syscall.ECONNRESET))
		kit.Must(t, fail(syscall.ECONNRESET))
		if err := fail(nil); !kit.IsDenial(err) {
			t.Errorf("after two resets: got error %v", err)
		}
		time.Sleep(time.Hour)
		kit.Must(t, fail(syscall.ECONNREFUSED)) // a probe
		kit.Must(t, fail(syscall.ECONNRESET))   // the next one
		if err := fail(nil); !kit.IsDenial(err) {
			t.Errorf("after the probe: got error %v", err)
		}
	})
}

// Other schemes have no turns, and a nil Turn can be used.
func TestTurnsOfOtherSchemes(t *testing.T) {
	p, err := collyrobots.New()
	kit.Must(t, err)
	defer p.Close()
	turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "data:text/plain,hello"))
	kit.Must(t, err)
	for _, turn := range []*collyrobots.Turn{turn, nil} {
		turn.Answered(http.StatusTooManyRequests, nil)
		turn.End()
	}
	_, err = new(collyrobots.Plugin).Acquire(t.Context(), kit.NewRequest(t, "http://a.test/"))
	if err == nil {
		t.Error("a zero Plugin returned no error")
	}
}
