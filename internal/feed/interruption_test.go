package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// A mortal is a store of a process that may die. Afterwards no write reaches the store.
type mortal struct {
	store.Store
	mu   sync.Mutex
	dead bool
}

func (m *mortal) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil
	}
	return m.Store.Update(ctx, key, ttl, f)
}

// die ends the process. It reports whether the process was alive.
func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// A trial is a crawl that is interrupted, followed by one with the same store that is not
// interrupted.
type trial struct {
	options Options
	async   bool
	kill    bool          // the process is killed; otherwise the context ends
	after   time.Duration // the time after which the crawl is interrupted
	pull    bool          // the crawl uses Pages instead of Run
	lives   int           // the number of runs so far

	files map[string]any
	sites []Site // in the order of the visits
	// pages has the kind of each page: "", "slow", "denied", "old", "dropped", "failing",
	// "refused", "later"
	pages map[string]string
}

// newTrial returns a trial of some sites.
func newTrial(r *rand.Rand) *trial {
	t := &trial{
		async: r.IntN(3) > 0, kill: r.IntN(2) > 0, pull: r.IntN(6) == 0,
		after: time.Duration(r.Int64N(int64(3 * time.Second))),
		files: make(map[string]any), pages: make(map[string]string),
		options: Options{
			Window: []int{1, 2, 3, 8, 64}[r.IntN(5)], Resume: true, Since: time.Date(1998, 1, 1, 0, 0, 0, 0, time.UTC),
			Keep:  func(e sitemap.Entry) bool { return !strings.Contains(e.Loc, "dropped") },
			Scope: []Scope{ScopeHost, ScopeWWW}[r.IntN(2)],
		},
	}
	if r.IntN(4) == 0 {
		t.options.NewestFirst = true
		t.options.MaxURLs = 100_000
	}
	for i := range 1 + r.IntN(3) {
		t.addSite(r, fmt.Sprintf("s%d.test", i))
	}
	return t
}

// addSite adds sites whose robots.txt files name the same sitemaps: a host, the same host with
// "www.", and a site that submits its pages there.
func (t *trial) addSite(r *rand.Rand, host string) {
	site, hosts := "http://"+host, []string{host}
	for _, also := range []string{"www." + host, "else-" + host} {
		if r.IntN(4) == 0 {
			hosts = append(hosts, also)
		}
	}
	kinds := []string{"", "", "", "", "slow", "denied", "old", "dropped", "failing", "refused", "later"}
	var all []string
	for i := range 1 + r.IntN(120) {
		kind := kinds[r.IntN(len(kinds))]
		loc := fmt.Sprint([]string{"http://", "https://"}[r.IntN(2)], hosts[r.IntN(len(hosts))], "/", kind, i)
		t.pages[loc] = kind
		date := []string{"", fmt.Sprintf("1999-01-%02d ", 1+r.IntN(9))}[r.IntN(2)]
		if kind == "old" {
			date = "1997-01-01 "
		}
		all = append(all, date+loc)
	}
	var children []string
	for i := range 1 + r.IntN(5) {
		child := fmt.Sprintf("%s/map%d.xml", site, i)
		var part []string
		for _, loc := range all {
			if r.IntN(3) == 0 || i == 0 && r.IntN(2) == 0 {
				part = append(part, loc) // a page may be in several files or in none
			}
		}
		t.files[child] = urlset(part...)
		if r.IntN(2) == 0 {
			child = "1999-05-01 " + child
		}
		children = append(children, child)
	}
	t.files[site+"/index.xml"] = index(children...)
	rest := site + "/rest.xml"
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	t.files[rest] = urlset(all...)
	roots := []string{site + "/index.xml", rest}
	if r.IntN(2) == 0 {
		slices.Reverse(roots)
	}
	for _, host := range hosts {
		t.sites = append(t.sites, Site{authority("http://" + host), roots})
		if r.IntN(3) == 0 {
			t.sites = append(t.sites, Site{authority("https://" + host), roots}) // has the same robots.txt
		}
	}
}

// A life is one run of a trial.
type life struct {
	*world
	mortal *mortal
	begun  map[string]int
	done   map[string]bool
	failed map[string]bool
}

func (t *trial) live(ctx context.Context, records store.Store, r *rand.Rand) *life {
	l := &life{
		world:  newWorld(t.files),
		mortal: &mortal{Store: records},
		begun:  make(map[string]int),
		done:   make(map[string]bool),
		failed: make(map[string]bool),
	}
	l.async = t.async
	seed := r.Uint64()
	l.get = func(ctx context.Context, u *url.URL) error {
		return sleep(ctx, time.Duration(seed%50)*time.Millisecond)
	}
	first := t.lives == 0
	t.lives++
	r.Shuffle(len(t.sites), func(i, j int) { t.sites[i], t.sites[j] = t.sites[j], t.sites[i] })
	l.allow = func(u *url.URL) (bool, Result) {
		if first && strings.Contains(u.Path, "later") { // the robots.txt of the page is not available yet
			return false, Failed
		}
		return !strings.Contains(u.Path, "denied"), Done
	}
	l.take = func(e sitemap.Entry) bool { return t.pages[e.Loc] != "refused" }
	l.visit = func(e sitemap.Entry) Result { return t.visit(ctx, l, e) }
	o := t.options
	o.Store = l.mortal
	l.start(o)
	return l
}

// visit runs a page, which takes some time.
func (t *trial) visit(ctx context.Context, l *life, e sitemap.Entry) Result {
	alive := func(f func()) bool {
		l.mortal.mu.Lock()
		defer l.mortal.mu.Unlock()
		if !l.mortal.dead {
			f()
		}
		return !l.mortal.dead
	}
	if !alive(func() { l.begun[e.Loc]++ }) {
		return Unfinished
	}
	d := 10 * time.Millisecond
	if t.pages[e.Loc] == "slow" {
		d = 700 * time.Millisecond
	}
	if sleep(ctx, d) != nil {
		return Unfinished
	}
	if t.pages[e.Loc] == "failing" {
		alive(func() { l.failed[e.Loc] = true })
		return Failed
	}
	alive(func() { l.done[e.Loc] = true })
	return Done
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run crawls all sites.
func (l *life) run(ctx context.Context, t *trial) {
	if t.pull {
		for p, err := range l.feed.Pages(ctx, l, slices.Values(t.sites)) {
			if err == nil {
				p.Done(l.pulled(p.Entry))
			}
		}
		return
	}
	for _, s := range t.sites {
		l.feed.Offer(s.Authority, s.Sitemaps)
	}
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() { l.feed.Run(ctx, l) })
	}
	runs.Wait()
	l.pages.Wait()
}

func (l *life) pulled(e sitemap.Entry) Result {
	if !l.take(e) {
		return Done
	}
	return l.visit(e)
}

// wanted returns the pages that must be visited.
func (t *trial) wanted() map[string]string {
	want := make(map[string]string)
	for loc, kind := range t.pages {
		if kind == "" || kind == "slow" || kind == "failing" || kind == "later" {
			want[loc] = kind
		}
	}
	return want
}

func TestResumeIsExact(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	repeated, lost := 0, 0
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			x := newTrial(r)
			records := store.NewMemory()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := x.live(ctx, records, r)
			time.AfterFunc(x.after, func() {
				if x.kill {
					first.mortal.die()
				}
				cancel()
			})
			first.run(ctx, x)
			second := x.live(t.Context(), records, r)
			second.run(t.Context(), x)
			n, m := x.compare(t, seed, first, second)
			repeated += n
			lost += m
		})
	}
	t.Logf("%d rounds: %d pages lost, %d repeated", rounds, lost, repeated)
}

// TestFilesOfTwoSitesAreReadInOrder checks two sites that name the same files: a host under http
// and https, or with and without "www.". The files that were done are read first, even if the walk
// of one site waits for a file.
func TestFilesOfTwoSitesAreReadInOrder(t *testing.T) {
	for _, other := range []string{"https://a.test", "http://www.a.test"} {
		t.Run(other, func(t *testing.T) { testFilesOfTwoSites(t, "http://a.test", other) })
	}
}

func testFilesOfTwoSites(t *testing.T, sites ...string) {
	synctest.Test(t, func(t *testing.T) {
		x := &trial{async: true, options: Options{Resume: true, Scope: ScopeWWW}, files: map[string]any{
			"http://a.test/index.xml": index("http://a.test/1.xml"),
			"http://a.test/1.xml":     urlset("http://a.test/page"),
		}}
		names := []string{"http://a.test/index.xml", "http://a.test/rest.xml"}
		records, r := store.NewMemory(), rand.New(rand.NewPCG(1, 1))
		x.live(t.Context(), records, r).crawl(t.Context(), "http://a.test", names...)
		x.files["http://a.test/rest.xml"] = urlset("http://a.test/page", "http://a.test/new")
		second := x.live(t.Context(), records, r)
		second.get = func(ctx context.Context, u *url.URL) error {
			if u.Path == "/index.xml" {
				return sleep(ctx, time.Second/2)
			}
			return nil
		}
		var runs sync.WaitGroup
		for _, site := range sites {
			second.feed.Offer(authority(site), names)
			runs.Go(func() { second.feed.Run(t.Context(), second) })
		}
		runs.Wait()
		second.pages.Wait()
		second.want(t, "visits", second.visits(), "a.test/new")
	})
}

// TestOtherSitesNameTheFileInTheNextRun checks that pages that were fed for one site are also done
// for other sites that name the same file, for each host that they may list pages of.
func TestOtherSitesNameTheFileInTheNextRun(t *testing.T) {
	const file = "http://www.a.test/map.xml"
	files, s := map[string]any{file: urlset("http://www.a.test/1", "http://a.test/2", "http://www.a.test/3", "http://b.test/4")}, store.NewMemory()
	for _, run := range []struct{ site, visits string }{
		{"http://a.test", "a.test/2 www.a.test/1 www.a.test/3"},
		{"http://www.a.test", ""},
		{"http://b.test", "b.test/4"},
		{"http://a.test", ""},
	} {
		w := newWorld(files).start(Options{Store: s, Resume: true})
		w.crawl(t.Context(), run.site, file)
		w.want(t, run.site, w.visits(), run.visits)
	}
}

// TestResumeOfASitemapThatRedirects checks a sitemap that redirects to another host. The pages of
// that host are also done in the next run.
func TestResumeOfASitemapThatRedirects(t *testing.T) {
	files, s := map[string]any{
		"http://a.test/map.xml": "-> http://www.a.test/map.xml", "http://www.a.test/map.xml": urlset("http://www.a.test/1", "http://a.test/2"),
	}, store.NewMemory()
	for _, visits := range []string{"a.test/2 www.a.test/1", ""} {
		w := newWorld(files).start(Options{Store: s, Resume: true})
		w.crawl(t.Context(), "http://a.test", "http://a.test/map.xml")
		w.want(t, "visits", w.visits(), visits)
	}
}

// compare checks that two runs together visit the pages that one uninterrupted run would visit.
func (x *trial) compare(t *testing.T, seed int, first, second *life) (repeated, lost int) {
	for loc, kind := range x.wanted() {
		switch {
		case kind == "failing":
			if second.begun[loc] != 1 {
				t.Errorf("seed %d: %s, which fails, was tried %d times by the second run", seed, loc, second.begun[loc])
			}
		case !first.done[loc] && !second.done[loc]:
			lost++
			t.Errorf("seed %d: %s is lost; %s", seed, loc, x)
		case first.begun[loc] > 0 && second.begun[loc] > 0:
			repeated++
		}
		if first.begun[loc] > 1 || second.begun[loc] > 1 {
			t.Errorf("seed %d: %s was visited %d times, and then %d times", seed, loc, first.begun[loc], second.begun[loc])
		}
	}
	if repeated > x.options.Window {
		t.Errorf("seed %d: %d pages were fetched twice; %s", seed, repeated, x)
	}
	return repeated, lost
}

func (x *trial) String() string {
	return fmt.Sprintf("async %v, kill %v, pull %v, after %v, window %d, newest first %v, %v of %v", x.async, x.kill, x.pull, x.after, x.options.Window, x.options.NewestFirst, x.options.Scope, x.sites)
}
