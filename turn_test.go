package collyrobots_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// request returns a GET request.
func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	return req
}

// newTurns returns a plugin that requests robots.txt from web.
func newTurns(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) *collyrobots.Plugin {
	t.Helper()
	next := web.Transport()
	t.Cleanup(next.CloseIdleConnections)
	p, _ := newRobots(t, web, append(opts, collyrobots.HTTPClient(&http.Client{Transport: next}))...)
	return p
}

// Acquire waits for the turn of each request, and denies what robots.txt disallows.
func TestAcquire(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nDisallow: /3\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
		p := newTurns(t, web)
		began := time.Now()
		var got []string
		for i := range 5 {
			url := fmt.Sprintf("http://a.test/%d", i)
			turn, err := p.Acquire(t.Context(), request(t, url))
			if denied := errors.Is(err, colly.ErrRobotsTxtBlocked); denied != (i == 3) || denied && !strings.Contains(err.Error(), url) {
				t.Errorf("%s: got error %v", url, err)
			}
			got = append(got, fmt.Sprint(time.Since(began)))
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

// A host has one turn at a time. A Turn that is never ended expires.
func TestATurnThatIsNeverEndedExpires(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
		p := newTurns(t, web)
		_, err := p.Acquire(t.Context(), request(t, "http://a.test/1"))
		must(t, err)
		began := time.Now()
		turn, err := p.Acquire(t.Context(), request(t, "http://a.test/2"))
		must(t, err)
		if took := time.Since(began); took <= 2*time.Second || took > time.Hour {
			t.Errorf("the second turn came after %v", took)
		}
		turn.End()
	})
}

// The next turn begins when the last one has ended, but not before the delay has passed.
func TestEndGivesThePlaceBack(t *testing.T) {
	for _, held := range []time.Duration{0, time.Second, 2 * time.Second, 5 * time.Second} {
		t.Run(held.String(), func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 2\n")}, func(t *testing.T, web *robotstest.Web) {
				p := newTurns(t, web)
				first, err := p.Acquire(t.Context(), request(t, "http://a.test/1"))
				must(t, err)
				began := time.Now()
				time.AfterFunc(held, func() {
					first.End()
					first.End()
					first.Answered(http.StatusTooManyRequests, nil) // has no effect after End
				})
				second, err := p.Acquire(t.Context(), request(t, "http://a.test/2"))
				must(t, err)
				if took, want := time.Since(began), max(held, 2*time.Second); took != want {
					t.Errorf("the second turn came after %v, want %v", took, want)
				}
				second.End()
			})
		})
	}
}

// Answered slows the host down on 429 and 503, and keeps a Retry-After.
func TestAnsweredSlowsDown(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header http.Header
		want   time.Duration
	}{
		"200":                  {status: 200},
		"redirect":             {status: 302},
		"429":                  {status: 429, want: time.Second},
		"429 with Retry-After": {status: 429, header: http.Header{"Retry-After": {"30"}}, want: 30 * time.Second},
		"503 with Retry-After": {status: 503, header: http.Header{"Retry-After": {"30"}}, want: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
				p := newTurns(t, web)
				turn, err := p.Acquire(t.Context(), request(t, "http://a.test/1"))
				must(t, err)
				began := time.Now()
				turn.Answered(test.status, test.header)
				turn.End()
				next, err := p.Acquire(t.Context(), request(t, "http://a.test/2"))
				must(t, err)
				next.End()
				if took := time.Since(began); took != test.want {
					t.Errorf("the next turn came after %v, want %v", took, test.want)
				}
			})
		})
	}
}

// A turn of a redirect is guarded like a redirect that the plugin follows.
func TestAcquireForARedirect(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, ""), "10.0.0.1": robotstest.Pages(9, "")}, func(t *testing.T, web *robotstest.Web) {
		p := newTurns(t, web)
		first := request(t, "http://a.test/1")
		turn, err := p.Acquire(t.Context(), first)
		must(t, err)
		turn.Answered(http.StatusFound, nil)
		turn.End()
		next := request(t, "http://10.0.0.1/2")
		next.Response = &http.Response{Request: first}
		_, err = p.Acquire(t.Context(), next)
		if private := (*collyrobots.PrivateNetworkError)(nil); !errors.As(err, &private) {
			t.Errorf("got error %v", err)
		}
		turn, err = p.Acquire(t.Context(), request(t, "http://10.0.0.1/2"))
		must(t, err)
		turn.End()
	})
}

// The wait for a turn ends with the context, and with Close. Then the host is free for others.
func TestTheWaitForATurnEnds(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 60\n")}, func(t *testing.T, web *robotstest.Web) {
		p := newTurns(t, web)
		cause := errors.New("the user has left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, cause)
		defer cancel()
		began := time.Now()
		_, err := p.Acquire(ctx, request(t, "http://a.test/1"))
		if took := time.Since(began); !errors.Is(err, cause) || took != 10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		time.AfterFunc(10*time.Second, func() { p.Close() })
		_, err = p.Acquire(t.Context(), request(t, "http://a.test/2"))
		if took := time.Since(began); !errors.Is(err, collyrobots.ErrClosed) || took != 20*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		_, err = p.Acquire(t.Context(), request(t, "http://a.test/3"))
		if !errors.Is(err, collyrobots.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Other schemes have no turns, and a nil Turn can be used.
func TestTurnsOfOtherSchemes(t *testing.T) {
	p, err := collyrobots.New()
	must(t, err)
	defer p.Close()
	turn, err := p.Acquire(t.Context(), request(t, "data:text/plain,hello"))
	must(t, err)
	for _, turn := range []*collyrobots.Turn{turn, nil} {
		turn.Answered(http.StatusTooManyRequests, nil)
		turn.End()
	}
	_, err = new(collyrobots.Plugin).Acquire(t.Context(), request(t, "http://a.test/"))
	if err == nil {
		t.Error("a zero Plugin returned no error")
	}
}

// Many goroutines may acquire turns and end them.
func TestTurnsOfManyGoroutines(t *testing.T) {
	inBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		p := newTurns(t, web)
		began := time.Now()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				turn, err := p.Acquire(t.Context(), request(t, "http://a.test/1"))
				if err != nil {
					t.Error(err)
				}
				for range 2 {
					group.Go(func() { turn.Answered(http.StatusOK, nil); turn.End() })
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took != 50*time.Second {
			t.Errorf("50 turns took %v", took)
		}
	})
}
