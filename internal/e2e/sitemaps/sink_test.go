package sitemaps

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// A slowStore takes a second for each write. When dead is set, the process is killed: no write
// reaches the store any more.
type slowStore struct {
	store.Store
	dead bool
}

func (s *slowStore) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	time.Sleep(time.Second)
	if s.dead {
		return nil
	}
	return s.Store.Update(ctx, key, ttl, f)
}

// TestKillWithFastSink checks that after a kill, a Sink gets at most 10,000 pages again, however slow
// the Store is, and that it gets each page.
func TestKillWithFastSink(t *testing.T) {
	const pages = 25_000
	synctest.Test(t, func(t *testing.T) {
		site := robotstest.Pages(1, kit.NoDenys+"Sitemap: http://a.test/map.xml")
		var locs []string
		for i := range pages {
			locs = append(locs, fmt.Sprint("http://a.test/", i))
		}
		site["/map.xml"] = robotstest.Sitemap(locs...)
		web := robotstest.New(t, robotstest.Sites{"a.test": site})
		records := store.NewMemory()
		got := make(map[string]bool)
		again := 0
		for _, killedAt := range []int{pages - 1, 0} {
			disk := &slowStore{Store: records}
			n := 0
			sink := func(_ context.Context, e sitemap.Entry) error {
				n++
				disk.dead = disk.dead || n == killedAt
				if disk.dead {
					return nil
				}
				if got[e.Loc] {
					again++
				}
				got[e.Loc] = true
				return nil
			}
			c := kit.Start(t, web, nil, collyrobots.Store(disk), collyrobots.FollowSitemaps(collyrobots.Feed{Resume: true, Sink: sink}))
			c.Visit("http://a.test/")
			kit.Must(t, c.Robots.Close())
		}
		if len(got) != pages || again == 0 || again > 10_000 {
			t.Errorf("the Sink got %d pages, and %d of them again; want %d, and at most 10,000", len(got), again, pages)
		}
	})
}
