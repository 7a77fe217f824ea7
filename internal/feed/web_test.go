package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
)

// A web is a set of hosts whose sitemaps list pages of each other. When a page of a host is
// visited, the host is offered, as in a crawl, and Run is called when the page is done.
type web struct {
	*world
	roots map[string][]string
}

func newWeb(r *rand.Rand, hosts int) *web {
	w := &web{newWorld(make(map[string]any)), make(map[string][]string)}
	host := func() string { return fmt.Sprintf("http://h%d.test", r.IntN(hosts)) }
	for i := range hosts {
		site := fmt.Sprintf("http://h%d.test", i)
		locs := []string{fmt.Sprintf("http://h%d.test/", (i+1)%hosts)} // so that all hosts are found
		for range r.IntN(6) {
			locs = append(locs, fmt.Sprint(host(), "/", r.IntN(3)))
		}
		w.files[site+"/map.xml"] = urlset(locs...)
		w.files[site+"/index.xml"] = index(site+"/map.xml", host()+"/map.xml", host()+"/index.xml")
		w.roots[site] = []string{site + "/index.xml"}
		if r.IntN(3) == 0 {
			w.roots[site] = append(w.roots[site], host()+"/map.xml", host()+"/index.xml")
		}
	}
	return w
}

// page visits a page from outside the feed.
func (w *web) page(ctx context.Context, loc string) {
	u, err := url.Parse(loc)
	if err != nil {
		panic(err)
	}
	site := "http://" + u.Host
	w.feed.Offer(authority(site), w.roots[site])
	time.Sleep(time.Millisecond)
	w.feed.Run(ctx, w)
}

// TestNoWebHangs checks that no crawl waits for itself, in whatever way the sites name each other.
// The test fails if all goroutines of a bubble wait.
func TestNoWebHangs(t *testing.T) {
	for seed := range 5 {
		for _, window := range []int{1, 2, 64} {
			for _, async := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(seed), 2))
					w := newWeb(r, 100)
					w.async = async
					done := make(chan struct{})
					w.visit = func(e sitemap.Entry) Result { time.Sleep(time.Millisecond); return Done }
					w.after = func(e sitemap.Entry) { w.page(t.Context(), e.Loc) }
					if nested := r.IntN(2) == 0; nested {
						w.visit, w.after = func(e sitemap.Entry) Result { w.page(t.Context(), e.Loc); return Done }, nil
						if async { // a callback that visits with another, synchronous collector
							w.visit = func(e sitemap.Entry) Result { w.nest(t.Context(), e.Loc); return Done }
						}
					}
					w.start(Options{Window: window, Scope: ScopeAny})
					w.take = func(sitemap.Entry) bool {
						w.feed.mu.Lock()
						defer w.feed.mu.Unlock()
						if w.feed.walks > max(leastWalks, window) || !async && w.feed.walks > 1 {
							t.Errorf("seed %d, window %d, async %v: %d walks run", seed, window, async, w.feed.walks)
						}
						return true
					}
					go func() {
						defer close(done)
						w.page(t.Context(), "http://h0.test/")
						w.pages.Wait()
					}()
					<-done
					met := make(map[string]bool)
					for _, loc := range w.visited {
						u, _ := url.Parse(loc)
						met[u.Host] = true
					}
					if len(met) != 100 {
						t.Errorf("seed %d, window %d, async %v: %d of 100 hosts were met", seed, window, async, len(met))
					}
					if n := w.feed.waiting.Load(); n != 0 || w.feed.walks != 0 {
						t.Errorf("seed %d, window %d, async %v: %d sites are pending, %d walks run", seed, window, async, n, w.feed.walks)
					}
				})
			}
		}
	}
}

// nest is like page with another collector that runs its pages at once.
func (w *web) nest(ctx context.Context, loc string) {
	u, _ := url.Parse(loc)
	site := "http://" + u.Host
	w.feed.Offer(authority(site), w.roots[site])
	time.Sleep(time.Millisecond)
	w.feed.Run(ctx, inner{w})
}

// inner is a Crawl without slots over the same world.
type inner struct{ *web }

func (i inner) Slots() *Slots { return nil }

func (i inner) Visit(_ dialect.Authority, e sitemap.Entry, done func(Result)) bool {
	i.note(e)
	i.nest(context.Background(), e.Loc)
	done(Done)
	return true
}
