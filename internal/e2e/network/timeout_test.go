package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
)

// isTimeout reports whether programs recognize err as a timeout of net/http.
func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.As(err, &timeout) && timeout.Timeout() && os.IsTimeout(err) &&
		errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestTimeoutErrorIsThatOfNetHTTP checks that the error of a timeout is the same as without the
// plugin.
func TestTimeoutErrorIsThatOfNetHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			kit.Hang(out, r)
		}
	}))
	defer server.Close()
	withPlugin := collyrobots.NewCollector()
	robots, err := withPlugin.WithRobots()
	kit.Must(t, err)
	defer robots.Close()
	_, err = robots.Check(t.Context(), server.URL)
	kit.Must(t, err)
	var errs []string
	for _, c := range []*colly.Collector{colly.NewCollector(), withPlugin.Collector} {
		c.WithTransport(server.Client().Transport)
		c.SetRequestTimeout(50 * time.Millisecond)
		err := c.Visit(server.URL)
		if err == nil || !isTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		errs = append(errs, fmt.Sprint(err))
	}
	if errs[0] != errs[1] {
		t.Errorf("with the plugin got    %s\nwithout the plugin got %s", errs[1], errs[0])
	}
}
