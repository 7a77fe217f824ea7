package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A stage is a site where a request of a client is in one stage after 25 seconds.
type stage struct {
	site robotstest.Site
	path string
	dial bool // the second dial hangs
	body bool // the headers are there
	wire bool // the request is on the wire
}

var stages = map[string]stage{
	"robots.txt":  {site: robotstest.Site{"/robots.txt": kit.Hang}, path: "/1"},
	"the host":    {site: robotstest.Pages(3, "User-agent: *\nCrawl-delay: 60\n"), path: "/1"},
	"a redirect":  {site: robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\n", "/1": robotstest.Redirect("/2"), "/2": robotstest.Redirect("/3"), "/3": 200}, path: "/1"},
	"Retry-After": {site: robotstest.Site{"/robots.txt": "User-agent: *\nCrawl-delay: 20\n", "/1": busyFor("60")}, path: "/1"},
	"the dial":    {site: robotstest.Pages(3, ""), path: "/1", dial: true, wire: true},
	"the headers": {site: robotstest.Site{"/robots.txt": "", "/1": kit.Hang}, path: "/1", wire: true},
	"the body":    {site: robotstest.Site{"/robots.txt": "", "/1": halfOfPage}, path: "/1", body: true, wire: true},
}

// busyFor returns a handler that answers with status 429.
func busyFor(seconds string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// halfOfPage is a handler that sends the beginning of a body and then hangs.
func halfOfPage(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, "half")
	w.(http.Flusher).Flush()
	kit.Hang(w, r)
}

// get requests the page of a stage and returns the error of the request or of reading its body.
func (s stage) get(ctx context.Context, t *testing.T, client *http.Client) error {
	resp, err := client.Do(kit.NewRequest(t, "http://a.test"+s.path).WithContext(ctx))
	if !s.body {
		return err
	}
	kit.Must(t, err)
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

// newStage returns a client on the site of a stage.
func newStage(t *testing.T, web *robotstest.Web, name string) (*collyrobots.Plugin, *http.Client) {
	p, client := kit.NewRobots(t, web, collyrobots.RetryThrottled(2))
	if !stages[name].dial {
		return p, client
	}
	next := web.Transport()
	next.DisableKeepAlives = true
	dial := next.DialContext
	var dials atomic.Int32
	next.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return dial(ctx, network, address)
	}
	client.Transport = p.Transport(next)
	return p, client
}

// TestContextOfClientEndsEachStage checks that the end of its context ends a request at once in
// each stage, and that the error is the cause.
func TestContextOfClientEndsEachStage(t *testing.T) {
	cause := errors.New("the user has left")
	for name, test := range stages {
		for kind, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 25*time.Second)
			},
			"cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(25*time.Second, func() { cancel(cause) })
				return ctx, func() { cancel(nil) }
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": test.site}, func(t *testing.T, web *robotstest.Web) {
					_, client := newStage(t, web, name)
					ctx, cancel := end(t.Context())
					defer cancel()
					began := time.Now()
					err := test.get(ctx, t, client)
					want := cause
					if kind == "deadline" {
						want = context.DeadlineExceeded
					}
					if took := time.Since(began); took != 25*time.Second || !errors.Is(err, want) {
						t.Errorf("after %v: %v", took, err)
					}
				})
			})
		}
	}
}

// TestCloseEndsEachStageBeforeTheWire checks that Close ends requests that wait with ErrClosed, and
// leaves those that are on the wire.
func TestCloseEndsEachStageBeforeTheWire(t *testing.T) {
	for name, test := range stages {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": test.site}, func(t *testing.T, web *robotstest.Web) {
				p, client := newStage(t, web, name)
				time.AfterFunc(25*time.Second, func() { p.Close() })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := test.get(ctx, t, client)
				want := collyrobots.ErrClosed
				length := 25 * time.Second
				if test.wire {
					want = context.DeadlineExceeded
					length = time.Minute
				}
				if took := time.Since(began); took != length || !errors.Is(err, want) {
					t.Errorf("after %v: %v", took, err)
				}
				_, err = kit.Get(client, "http://a.test/2")
				if !errors.Is(err, collyrobots.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

// TestBrokenTransportOfClient checks that a transport that fails, panics or breaks its contract has
// the same result as without the plugin, and that the next request keeps the delay.
func TestBrokenTransportOfClient(t *testing.T) {
	refused := errors.New("refused")
	transports := map[string]kit.RoundTripper{
		"fails": func(*http.Request) (*http.Response, error) { return nil, refused },
		"hangs": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
	}
	maps.Copy(transports, kit.BrokenTransports)
	for name, rt := range transports {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(4, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
				whole := web.Transport()
				defer whole.CloseIdleConnections()
				next := kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
					if req.URL.Path == "/1" {
						return rt(req)
					}
					return whole.RoundTrip(req)
				})
				visit := func(client *http.Client) (text string) {
					defer func() {
						if r := recover(); r != nil {
							text = fmt.Sprint("panic ", r)
						}
					}()
					ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
					defer cancel()
					resp, err := client.Do(kit.NewRequest(t, "http://a.test/1").WithContext(ctx))
					if err != nil {
						return err.Error()
					}
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					return fmt.Sprint(resp.StatusCode, string(body), err)
				}
				want := visit(&http.Client{Transport: next})
				web.Reset()
				p, client := kit.NewRobots(t, web)
				client.Transport = p.Transport(next)
				_, err := kit.Get(client, "http://a.test/0")
				kit.Must(t, err)
				got := visit(client)
				got = strings.ReplaceAll(got, "*collyrobots.roundTripper", "kit.RoundTripper")
				if got != want {
					t.Errorf("got %s, without the plugin %s", got, want)
				}
				_, err = kit.Get(client, "http://a.test/2")
				kit.Must(t, err)
				kit.WantURIs(t, web, "a.test", "/robots.txt /0 /2")
				log := web.Log("a.test")
				if gap := log[2].Time.Sub(log[1].Time); gap < 10*time.Second {
					t.Errorf("/2 was requested %v after /0, want two delays at least:\n%s", gap, log)
				}
			})
		})
	}
}

// TestOptionsOfClients checks DryRun, IgnoreRobotsWithPermission and ShardByHost for the requests
// of a client.
func TestOptionsOfClients(t *testing.T) {
	for name, test := range map[string]struct {
		option collyrobots.Option
		want   string
		errs   int
	}{
		"DryRun":                     {collyrobots.DryRun(), "/robots.txt /0 /1 /2", 0},
		"IgnoreRobotsWithPermission": {collyrobots.IgnoreRobotsWithPermission(), "/0 /1 /2", 0},
		"other shard":                {otherShard("http://a.test/"), "", 3},
		"MinDelay":                   {collyrobots.MinDelay(time.Second), "/robots.txt /0 /2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nDisallow: /1\n")}, func(t *testing.T, web *robotstest.Web) {
				_, client := kit.NewRobots(t, web, test.option)
				errs := 0
				for i := range 3 {
					_, err := kit.Get(client, fmt.Sprint("http://a.test/", i))
					if err != nil {
						errs++
					}
				}
				kit.WantURIs(t, web, "a.test", test.want)
				if errs != test.errs {
					t.Errorf("%d requests failed, want %d", errs, test.errs)
				}
			})
		})
	}
}

// TestRequestDeniedWhenItIsSentAgain checks that net/http does not send a request again after its
// connection was dropped if a newer robots.txt denies it.
func TestRequestDeniedWhenItIsSentAgain(t *testing.T) {
	var closed atomic.Bool
	robots := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if closed.Load() {
			io.WriteString(w, "User-agent: *\nDisallow: /1\n")
			return
		}
		io.WriteString(w, "User-agent: *\nCrawl-delay: 70\n")
	}
	dropOnce := func(w http.ResponseWriter, r *http.Request) {
		if !closed.Swap(true) {
			kit.Drop(w, r)
		}
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "/0": 200, "/1": dropOnce}}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web)
		_, err := kit.Get(client, "http://a.test/0")
		kit.Must(t, err)
		_, err = kit.Get(client, "http://a.test/1")
		denied := (*collyrobots.DisallowedError)(nil)
		outer := (*url.Error)(nil)
		if !errors.As(err, &denied) || !errors.As(err, &outer) || !errors.Is(err, colly.ErrRobotsTxtBlocked) {
			t.Errorf("got error %v", err)
		}
		if n := strings.Count(kit.URIsOf(web.Log("a.test")), "/1"); n != 1 {
			t.Errorf("/1 was requested %d times:\n%s", n, web.Log("a.test"))
		}
	})
}

// TestLeaseOfClientEnds checks that the body of a response fails with ErrLeaseEnded when its lease
// expires, and that other processes then use the host.
func TestLeaseOfClientEnds(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/0": halfOfPage, "*": 200}}, func(t *testing.T, web *robotstest.Web) {
		sharing := kit.Shared(t)
		_, one := kit.NewRobots(t, web, collyrobots.SharedPace(sharing))
		_, two := kit.NewRobots(t, web, collyrobots.SharedPace(sharing))
		resp, err := one.Get("http://a.test/0")
		kit.Must(t, err)
		defer resp.Body.Close()
		_, err = kit.Get(two, "http://a.test/1")
		kit.Must(t, err)
		_, err = io.ReadAll(resp.Body)
		if !errors.Is(err, collyrobots.ErrLeaseEnded) {
			t.Errorf("got error %v, want ErrLeaseEnded", err)
		}
		_, err = kit.Get(one, "http://a.test/2")
		kit.Must(t, err)
		if gap := web.Log("a.test").MinGap(); gap < time.Second {
			t.Errorf("two requests within %v:\n%s", gap, web.Log("a.test"))
		}
	})
}

// TestOneRobotsTxtForClientsAndCollectors checks that robots.txt is requested once if a collector,
// two clients and turns need it at the same time.
func TestOneRobotsTxtForClientsAndCollectors(t *testing.T) {
	robots := func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(2 * time.Second) // after three seconds each client would request the file by itself
		io.WriteString(w, "User-agent: *\nCrawl-delay: 1\n")
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "*": 200}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		var group sync.WaitGroup
		for i := range 2 {
			client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
			c.Visit(fmt.Sprint("http://a.test/", i))
			group.Go(func() {
				_, err := kit.Get(client, fmt.Sprint("http://a.test/", 2+i))
				if err != nil {
					t.Error(err)
				}
			})
			group.Go(func() {
				turn, err := c.Robots.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/"))
				if err != nil {
					t.Error(err)
				}
				turn.End()
			})
			synctest.Wait()
		}
		group.Wait()
		c.Wait()
		if log := web.Log("a.test"); len(log) != 5 || strings.Count(kit.URIsOf(log), "robots") != 1 || log.MinGap() < time.Second {
			t.Errorf("got requests\n%s\nand errors %v", log, c.Errs)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}
