package denial

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// nameOf returns the name of the error that ended a request, or "" if it is none of those that the
// root package names.
func nameOf(err error) string {
	var (
		denied  *collyrobots.DeniedError
		private *collyrobots.PrivateNetworkError
		shard   *collyrobots.ShardError
		pace    *collyrobots.PaceError
		url     *collyrobots.URLError
	)
	switch {
	case errors.As(err, &denied):
		return "DeniedError"
	case errors.As(err, &private):
		return "PrivateNetworkError"
	case errors.As(err, &shard):
		return "ShardError"
	case errors.As(err, &pace):
		return "PaceError"
	case errors.As(err, &url):
		return "URLError"
	case errors.Is(err, collyrobots.ErrClosed):
		return "ErrClosed"
	}
	return ""
}

// TestOneSwitchNamesTheErrorsOfRequests lets requests of collectors and of clients end with each error
// that stops a request, and finds all of them with one switch.
func TestOneSwitchNamesTheErrorsOfRequests(t *testing.T) {
	kit.ForEachClient(t, testOneSwitch)
}

func testOneSwitch(t *testing.T, start kit.Starter) {
	for _, tc := range []struct {
		want  string
		opts  []collyrobots.Option
		url   string
		close bool
	}{
		{want: "DeniedError", url: "http://a.test/closed"},
		{want: "PrivateNetworkError", url: "http://a.test/private"},
		{want: "ShardError", opts: []collyrobots.Option{collyrobots.ShardByHost(1000, 0)}, url: "http://a.test/"},
		{want: "PaceError", opts: []collyrobots.Option{collyrobots.SharedPace(brokenPacer{})}, url: "http://a.test/"},
		{want: "URLError", url: "http://a.test/port"},
		{want: "ErrClosed", url: "http://a.test/", close: true},
	} {
		t.Run(tc.want, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {
				"/robots.txt": "User-agent: *\nDisallow: /closed",
				"/private":    robotstest.Redirect("http://10.0.0.1/"),
				"/port":       robotstest.Redirect("http://b.test:99999/"),
			}}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, tc.opts...)
				if tc.close {
					kit.Must(t, c.Robots.Close())
				}
				err := c.Visit(tc.url)
				if got := nameOf(err); got != tc.want {
					t.Errorf("the switch finds %q in %v, want %s", got, err, tc.want)
				}
			})
		})
	}
}

// A brokenPacer is a Pacer that always fails.
type brokenPacer struct{}

func (brokenPacer) Acquire(context.Context, string, time.Duration) (pacer.Lease, error) {
	return nil, errors.New("no connection")
}
