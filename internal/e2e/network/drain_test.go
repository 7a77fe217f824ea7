package network

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestConnectionOfRobotsTxtWithoutRulesIsReused checks that the first page uses the connection of a
// robots.txt that has a short body and no rules. The plugin must not wait for a body that is long,
// has an unknown length or does not arrive.
func TestConnectionOfRobotsTxtWithoutRulesIsReused(t *testing.T) {
	kit.ForEachClient(t, testConnectionOfRobotsTxtWithoutRulesIsReused)
}

func testConnectionOfRobotsTxtWithoutRulesIsReused(t *testing.T, start kit.Starter) {
	text := func(status, length int) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Length", strconv.Itoa(length))
			out.WriteHeader(status)
			out.Write([]byte(strings.Repeat(".", length)))
		}
	}
	begun := func(length string) http.HandlerFunc {
		return func(out http.ResponseWriter, r *http.Request) {
			if length != "" {
				out.Header().Set("Content-Length", length)
			}
			out.WriteHeader(http.StatusNotFound)
			out.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		dials  int32
		took   time.Duration
	}{
		"404":             {answer: text(http.StatusNotFound, 100), dials: 1},
		"403":             {answer: text(http.StatusForbidden, 16<<10), dials: 1},
		"long":            {answer: text(http.StatusNotFound, 64<<10), dials: 2},
		"unknown length":  {answer: begun(""), dials: 2},
		"does not arrive": {answer: begun("100"), dials: 2, took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": tc.answer, "/": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil)
				c.Impolite = true // Verify takes a body that was not read for a missing response
				var dials atomic.Int32
				dial := c.Transport.DialContext
				c.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					return dial(ctx, network, address)
				}
				began := time.Now()
				kit.Must(t, c.Visit("http://a.test/"))
				if took := time.Since(began); dials.Load() != tc.dials || took != tc.took {
					t.Errorf("got %d connections in %v, want %d in %v", dials.Load(), took, tc.dials, tc.took)
				}
			})
		})
	}
}
