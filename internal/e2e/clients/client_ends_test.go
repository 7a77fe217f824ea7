package clients

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
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
