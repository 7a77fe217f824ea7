package denial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestStoreHangs checks that the crawl continues without a store that does not answer, for example
// a database behind a broken network, that this is logged, and that the crawl ends.
func TestStoreHangs(t *testing.T) {
	site := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /2\nSitemap: http://a.test/map.xml", "/map.xml": robotstest.Sitemap("http://a.test/1", "http://a.test/2"), "*": robotstest.Page()}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.Store(hangingStore{}), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true}))
		c.BadStore = true
		began := time.Now()
		kit.Must(t, c.Visit("http://a.test/0"))
		c.Wait()
		if err := c.Robots.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v, want the errors of the Store", err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("the crawl took %v", took)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /0 /map.xml /1")
		for _, what := range []string{"action=reading", "action=updating", "sitemap record cannot be used", "sitemap record cannot be written"} {
			if !strings.Contains(c.Logged.String(), what) {
				t.Errorf("the log does not have %q:\n%s", what, c.Logged)
			}
		}
	})
}

// A hangingStore is a store whose calls return when their context ends.
type hangingStore struct{ store.Store }

func (hangingStore) Get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hangingStore) Update(ctx context.Context, _ string, _ time.Duration, _ func([]byte) ([]byte, error)) error {
	<-ctx.Done()
	return ctx.Err()
}
