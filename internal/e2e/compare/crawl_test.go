package compare

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// crawl draws a crawl, runs it in a bubble, and returns its record. busy says whether a host may
// refuse pages several times.
func crawl(t *testing.T, seed uint64, busy bool) (text string) {
	synctest.Test(t, func(t *testing.T) {
		d := draw{Rand: rand.New(rand.NewPCG(seed, 33))}
		rec := newRecord()
		time.Sleep(pick(d, 0, 0, d.between(0, 24*time.Hour))) // for the options and lines about times of day
		w := newWorld(d, seed, rec, busy)
		web := robotstest.New(t, w.sites())
		resolve(t, seed)
		c := &crawling{t: t, d: d, world: w, web: web, store: &fileStore{rec: rec, values: make(map[string]fileValue)}}
		c.pacer = &sharedPacer{rec: rec, hosts: make(map[string]*pacedHost), ttl: pick(d, 31_234_567*time.Microsecond, 5_432_111*time.Microsecond), failed: downtime(d)}
		c.run()
		web.Close()
		w.log(web)
		text = rec.String()
	})
	return text
}

// downtime draws when the Pacer fails.
func downtime(d draw) func(time.Time) bool {
	if !d.in(5) {
		return func(time.Time) bool { return false }
	}
	from := time.Now().Add(d.between(time.Second, time.Minute))
	to := from.Add(d.between(time.Second, 10*time.Second))
	return func(at time.Time) bool { return at.After(from) && at.Before(to) }
}

// A crawling is a crawl in a world.
type crawling struct {
	t     *testing.T
	d     draw
	world *world
	web   *robotstest.Web
	store *fileStore
	pacer *sharedPacer
}

// A spider is a program with one plugin.
type spider struct {
	*crawling
	rec        *record
	name       string
	robots     *collyrobots.Plugin
	collectors []*colly.Collector
	transport  http.RoundTripper
	pages      *pageStore // nil without the option Frontier
	running    sync.WaitGroup
	retries    int
	visits     int // the most visits of callbacks

	mu    sync.Mutex
	times map[string]int // how often something has happened
}

// run runs one or two programs at the same time, and possibly once more afterwards.
func (c *crawling) run() {
	d := c.d
	programs := pick(d, 1, 1, 1, 2)
	withPages := d.in(3)
	shared := d.in(4) || programs == 2 && d.in(2)
	stored := d.in(4) || shared && d.in(2)
	sharded := programs == 2 && d.in(3)
	stores := make([]*pageStore, programs)
	opts := c.world.options(d)
	if stored {
		opts = append(opts, collyrobots.Store(c.store))
	}
	for generation := range pick(d, 1, 1, 1, 2) {
		var running sync.WaitGroup
		for i := range programs {
			s := &spider{crawling: c, rec: c.world.rec, name: fmt.Sprintf("%d.%d", generation, i), times: make(map[string]int)}
			mine := opts[:len(opts):len(opts)]
			if shared {
				mine = append(mine, collyrobots.SharedPace(remotePacer{pacer: c.pacer, name: s.name}))
			}
			if sharded {
				mine = append(mine, collyrobots.ShardByHost(2, i))
			}
			if withPages {
				stores[i] = c.pageStore(stores[i], s.name)
				s.pages = stores[i]
				mine = append(mine, collyrobots.Frontier(stores[i]))
			}
			if !s.build(d, mine) {
				continue
			}
			crawl := s.plan(d)
			running.Go(crawl)
		}
		running.Wait()
		time.Sleep(d.between(0, 3*time.Hour))
	}
}

// pageStore returns the store of the next run after a run with the store before.
func (c *crawling) pageStore(before *pageStore, name string) *pageStore {
	if before == nil {
		return newPageStore(c.world.rec, name+" store")
	}
	return before.reopen()
}

// build creates the plugin and the collectors of a program. It reports false if the options have
// faults.
func (s *spider) build(d draw, opts []collyrobots.Option) bool {
	s.transport = s.newTransport(d)
	opts = append(opts, s.reporting(d, d.in(3))...)
	if d.in(5) {
		opts = append(opts, collyrobots.RobotsClient(&http.Client{Transport: s.web.Transport(), Timeout: pick(d, 0, 20*time.Second)}))
	}
	robots, err := collyrobots.New(opts...)
	if err != nil {
		s.rec.add(s.name, "New: %s", faultOf(err))
		return false
	}
	s.robots = robots
	s.retries = d.IntN(3)
	s.visits = 10 + d.IntN(60)
	attachFirst := d.in(2)
	for i := range pick(d, 1, 1, 2, 3) {
		c := s.newCollector(d, i)
		s.collectors = append(s.collectors, c)
		s.rec.know(c)
	}
	attach := func() {
		for _, c := range s.collectors {
			must(s.t, robots.Attach(c))
		}
	}
	if attachFirst {
		attach()
	}
	for i, c := range s.collectors {
		s.callbacks(d, i, c)
	}
	if !attachFirst {
		attach()
	}
	return true
}

// newTransport draws the transport of a program.
func (s *spider) newTransport(d draw) http.RoundTripper {
	t := s.web.Transport()
	if d.in(6) {
		t.DisableKeepAlives = true
	}
	if d.in(8) {
		t.ResponseHeaderTimeout = 14_321 * time.Millisecond // no part of another time limit
	}
	if d.in(10) {
		t.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: pick(d, s.world.proxies...)})
	}
	if !d.in(6) {
		return t
	}
	seed, times := s.world.seed, new(sync.Map)
	return brokenTransport{t, func(r *http.Request) error {
		n, _ := times.LoadOrStore(r.URL.String(), new(int))
		*n.(*int)++
		time.Sleep(fine("transport", r.URL.String(), *n.(*int)))
		switch hashOf(seed, r.URL.String(), *n.(*int)) % 15 {
		case 0:
			return &net.OpError{Op: "read", Err: syscall.ECONNRESET}
		case 1:
			return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		case 2:
			return &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
		}
		return nil
	}}
}

// newCollector draws a collector.
func (s *spider) newCollector(d draw, i int) *colly.Collector {
	var c *colly.Collector
	if i > 0 && d.in(2) {
		c = s.collectors[0].Clone()
	} else {
		c = colly.NewCollector()
		c.UserAgent = pick(d, "ExampleBot/1.0", "ExampleBot/1.0", "OtherBot/2 (+https://bot.test)", "Mozilla/5.0 (compatible; ThirdBot/1.0)")
		c.WithTransport(s.transport)
	}
	if i > 0 && d.in(2) {
		c.UserAgent = pick(d, "OtherBot/1.0", "ThirdBot/3", "")
	}
	c.Async = !d.in(3)
	c.CheckHead = d.in(5) && !c.Async // otherwise both requests of a page begin at the same instant
	c.ParseHTTPErrorResponse = d.in(6)
	c.MaxDepth = pick(d, 0, 0, 2, 3)
	c.MaxRequests = pick[uint32](d, 0, 0, 0, 0, 30)
	if d.in(6) {
		c.AllowURLRevisit = true
		c.MaxDepth = 3
	}
	if d.in(10) {
		c.CacheDir = s.t.TempDir()
	}
	if d.in(10) {
		c.MaxBodySize = 600
	}
	if d.in(8) {
		c.AllowedDomains = []string{"h0.test", "a.shop.test", "h4.test"}
	}
	if d.in(10) {
		c.TraceHTTP = true
	}
	c.SetRequestTimeout(pick(d, 10*time.Second, 10*time.Second, 30*time.Second, 0))
	if d.in(10) {
		ctx, cancel := context.WithTimeout(context.Background(), d.between(5*time.Second, 2*time.Minute))
		s.t.Cleanup(cancel)
		c.Context = ctx
	}
	s.limits(d, c)
	s.setProxy(d, c)
	return c
}

// limits draws the LimitRules of a collector.
func (s *spider) limits(d draw, c *colly.Collector) {
	if !d.in(3) {
		return
	}
	glob := pick(d, "*", "*", "*.test", "h0.test")
	must(s.t, c.Limit(&colly.LimitRule{DomainGlob: glob, Parallelism: 1 + d.IntN(4), Delay: pick(d, 0, 0, 333*time.Millisecond)}))
}

// setProxy draws the proxies of a collector.
func (s *spider) setProxy(d draw, c *colly.Collector) {
	if _, hidden := s.transport.(brokenTransport); hidden {
		return
	}
	switch d.IntN(20) {
	case 0, 1:
		must(s.t, c.SetProxy(pick(d, "http://proxy.test:3128", "http://user:secret@proxy.test:3128", "http://gone.test:3128")))
	case 2, 3:
		next, err := proxy.RoundRobinProxySwitcher("http://proxy.test:3128", "http://proxy2.test:3128", pick(d, "http://proxy.test:3128", "http://gone.test:3128"))
		must(s.t, err)
		c.SetProxyFunc(next)
	}
}

// callbacks registers callbacks that record their calls and visit links.
func (s *spider) callbacks(d draw, i int, c *colly.Collector) {
	seed, rec := s.world.seed, s.rec
	source := fmt.Sprintf("%s.%d", s.name, i)
	aborts, later, credentials, slow := d.in(4), d.in(4), d.in(6), d.in(5)
	visitsInHeaders := d.in(10) && c.Async // otherwise the visit could wait for its own slot of a LimitRule
	retry := s.retries
	c.OnRequest(func(r *colly.Request) {
		rec.add(source, "OnRequest %s %s depth %d aborted %v waited %q", r.Method, r.URL, r.Depth, r.IsAbort(), r.Ctx.Get(collyrobots.CtxWaited))
		if credentials && chance(3, seed, "credentials", r.URL.String()) {
			r.Headers.Set("Authorization", "Bearer secret")
			r.Headers.Set("Cookie", "session=secret")
		}
		if slow {
			time.Sleep(30*time.Millisecond + fine(source, "slow", r.URL.String()))
		}
		if aborts && chance(9, seed, "abort", r.URL.String()) {
			r.Abort()
		}
	})
	c.OnRequestHeaders(func(r *colly.Request) {
		rec.add(source, "OnRequestHeaders %s %s", r.Method, r.URL)
		if aborts && chance(15, seed, "abort headers", r.URL.String()) {
			r.Abort()
		}
	})
	c.OnResponseHeaders(func(r *colly.Response) {
		rec.add(source, "OnResponseHeaders %s %s %d", r.Request.Method, r.Request.URL, r.StatusCode)
		if aborts && chance(15, seed, "abort response", r.Request.URL.String()) {
			r.Request.Abort()
		}
		if visitsInHeaders && chance(4, seed, "visit", r.Request.URL.String()) {
			s.visit(source, r.Request, paths[hashOf(seed, r.Request.URL.String())%uint64(len(paths))])
		}
	})
	c.OnResponse(func(r *colly.Response) {
		rec.add(source, "OnResponse %s %s %d, %d bytes, sitemap %q %q, tags %s, usage %s, by %q", r.Request.Method, r.Request.URL, r.StatusCode, len(r.Body),
			r.Ctx.Get(collyrobots.CtxSitemap), r.Ctx.Get(collyrobots.CtxLastMod), encoded(s.robots.RobotsTags(r)), encoded(s.robots.Usage(r)), r.Request.ProxyURL)
		if slow {
			time.Sleep(700*time.Millisecond + fine(source, "response", r.Request.URL.String()))
		}
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		to := e.Attr("href")
		if later && chance(5, seed, "may", to) {
			rec.add(source, "CheckLink %s: %s", to, faultOf(s.robots.CheckLink(e.Request, to)))
		}
		if other := s.collectors[hashOf(seed, to)%uint64(len(s.collectors))]; other != c && later && other.Async {
			s.record(source, "Visit by another collector", to, func() error { return other.Visit(e.Request.AbsoluteURL(to)) })
			return
		}
		s.visit(source, e.Request, to)
	})
	c.OnError(func(r *colly.Response, err error) {
		rec.add(source, "OnError %s %s %d: %s", r.Request.Method, r.Request.URL, r.StatusCode, faultOf(err))
		for n := range retry {
			if s.first(fmt.Sprint("retry ", n), r.Request.URL.String()) {
				time.Sleep(time.Duration(n)*time.Second + fine(source, "retry", n, r.Request.URL.String()))
				rec.add(source, "Retry %s: %s", r.Request.URL, faultOf(r.Request.Retry()))
				return
			}
		}
	})
	c.OnScraped(func(r *colly.Response) { rec.add(source, "OnScraped %s", r.Request.URL) })
}

// visit visits a link of a page.
func (s *spider) visit(source string, r *colly.Request, to string) {
	s.record(source, "Visit of a link", to, func() error {
		switch hashOf(s.world.seed, "how", to) % 20 {
		case 0:
			return r.Post(to, map[string]string{"a": "1"})
		}
		return r.Visit(to)
	})
}

// record records a visit of a callback. After many visits it does nothing.
func (s *spider) record(source, what, to string, visit func() error) {
	s.mu.Lock()
	s.times["visits"]++
	n := s.times["visits"]
	s.mu.Unlock()
	if n > s.visits {
		return
	}
	time.Sleep(fine(source, to, n))
	err := visit()
	s.rec.add(source, "%s %s: %s", what, to, faultOf(err))
}

// plan draws what a program does, and returns a function that does it.
func (s *spider) plan(d draw) func() {
	var begin []func()
	for i, c := range s.collectors {
		begin = append(begin, s.visits1(d, i, c))
	}
	for range pick(d, 0, 0, 1, 2) {
		begin = append(begin, s.client(d))
	}
	if d.in(5) {
		begin = append(begin, s.turns(d))
	}
	if d.in(8) {
		begin = append(begin, s.listing(d))
	}
	samples := d.IntN(4)
	end := time.Duration(0)
	if d.in(6) {
		end = d.between(time.Second, 3*time.Minute)
	}
	return func() {
		for _, f := range begin {
			s.running.Go(f)
		}
		s.watch(samples)
		s.finish(end)
	}
}

// visits1 draws the first visits of a collector.
func (s *spider) visits1(d draw, i int, c *colly.Collector) func() {
	var urls []string
	for range 1 + d.IntN(8) {
		urls = append(urls, s.world.anywhere(d))
	}
	begin := d.between(time.Millisecond, 2*time.Second)
	gap := pick(d, time.Millisecond, time.Millisecond, 400*time.Millisecond, 5*time.Second)
	source := fmt.Sprintf("%s.%d", s.name, i)
	return func() {
		time.Sleep(begin)
		for n, u := range urls {
			time.Sleep(gap + fine(source, n, u))
			err := s.request(c, u)
			s.rec.add(source, "Visit %s: %s", u, faultOf(err))
		}
		c.Wait()
		s.rec.add(source, "Wait")
	}
}

// request requests a page in one of the ways that Colly has.
func (s *spider) request(c *colly.Collector, u string) error {
	switch hashOf(s.world.seed, "request", u) % 16 {
	case 0:
		return c.Head(u)
	case 1:
		return c.PostRaw(u, []byte("text"))
	case 2:
		return c.Request("GET", u, nil, nil, http.Header{"Accept-Language": {"de"}, "Host": {"h3.test"}})
	case 3:
		return c.Request("PUT", u, strings.NewReader("body"), nil, nil)
	}
	return c.Visit(u)
}

// client draws the requests of an http.Client.
func (s *spider) client(d draw) func() {
	client := &http.Client{Transport: s.robots.Transport(s.newTransport(d)), Timeout: pick(d, 0, 0, 20*time.Second)}
	agent := pick(d, "ExampleBot/1.0", "OtherBot/1.0", "")
	var urls []string
	for range 1 + d.IntN(6) {
		urls = append(urls, s.world.anywhere(d))
	}
	begin := d.between(time.Millisecond, 5*time.Second)
	abandon := d.IntN(3)
	limit := pick(d, patience, patience, 8*time.Second)
	source := s.name + " client"
	return func() {
		time.Sleep(begin)
		for n, u := range urls {
			time.Sleep(20*time.Millisecond + fine(source, n, u))
			ctx, cancel := context.WithTimeout(context.Background(), limit+fine(source, "limit", u))
			r, err := http.NewRequestWithContext(ctx, "GET", u, nil)
			if err != nil {
				cancel()
				continue
			}
			if agent != "" {
				r.Header.Set("User-Agent", agent)
			}
			resp, err := client.Do(r)
			if err != nil {
				s.rec.add(source, "GET %s: %s", u, faultOf(err))
				cancel()
				continue
			}
			size := int64(-1)
			if abandon != 1 || n%2 == 0 {
				size, err = io.Copy(io.Discard, resp.Body)
			}
			if abandon != 2 || n%2 == 0 {
				resp.Body.Close()
			}
			s.rec.add(source, "GET %s: %d from %s, %d bytes, %s", u, resp.StatusCode, resp.Request.URL, size, faultOf(err))
			cancel()
			resp.Body.Close()
		}
	}
}

// turns draws requests that the program sends itself.
func (s *spider) turns(d draw) func() {
	var urls []string
	for range 1 + d.IntN(6) {
		urls = append(urls, s.world.urlOf(d, pick(d, s.world.hosts...)))
	}
	begin := d.between(time.Millisecond, 5*time.Second)
	source := s.name + " turn"
	return func() {
		time.Sleep(begin)
		for n, u := range urls {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			r, err := http.NewRequestWithContext(ctx, "GET", u, nil)
			if err != nil {
				cancel()
				continue
			}
			turn, err := s.robots.Acquire(ctx, r)
			s.rec.add(source, "Acquire %s: %s", u, faultOf(err))
			if err != nil {
				cancel()
				continue
			}
			time.Sleep(300*time.Millisecond + fine(source, n, u))
			switch hashOf(s.world.seed, "turn", u) % 5 {
			case 0:
				turn.Failed(syscall.ECONNRESET)
			case 1:
				turn.Failed(collyrobots.ErrNotSent)
			case 2:
				turn.Answered(403, http.Header{})
				turn.End()
			default:
				turn.Answered(200, http.Header{"Content-Type": {"text/html"}})
				time.Sleep(100*time.Millisecond + fine(source, "end", n, u))
				turn.End()
			}
			cancel()
		}
	}
}

// listing draws a loop over the pages of sitemaps.
func (s *spider) listing(d draw) func() {
	f := feed(d)
	f.Resume, f.Window = false, 0
	site := s.world.urlOf(d, pick(d, s.world.hosts...))
	most := 3 + d.IntN(10)
	return func() {
		time.Sleep(time.Second + fine(s.name, "pages"))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for e, err := range s.robots.Pages(ctx, f, site) {
			s.rec.add(s.name+" pages", "%s: %s", encoded(e), faultOf(err))
			time.Sleep(50*time.Millisecond + fine(s.name, "page", e.Loc))
			most--
			if most == 0 {
				break
			}
		}
	}
}

// watch records Stats and decisions during the crawl.
func (s *spider) watch(samples int) {
	s.running.Go(func() {
		for n := range samples {
			time.Sleep(time.Duration(1<<(2*n))*time.Second + fine(s.name, "watch", n))
			s.look()
		}
	})
}

// look records Stats and some decisions.
func (s *spider) look() {
	s.rec.stats(s.name, s.robots.Stats())
	for i, h := range s.world.hosts {
		u := "http://" + h.name + paths[(i*7)%len(paths)]
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		decision, err := s.robots.Check(ctx, u)
		cancel()
		s.rec.add(s.name+" check", "%s: %s %s", u, encoded(decision), faultOf(err))
		time.Sleep(fine(s.name, "look", i))
	}
}

// patience is how long a client waits. It is no multiple of a delay.
const patience = time.Hour + 123_456_789*time.Nanosecond

// longest is the longest time that a crawl may take.
const longest = 30 * 24 * time.Hour

// finish waits until a program has ended, or ends it after a time if that is not 0.
func (s *spider) finish(after time.Duration) {
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		for range s.collectors { // they visit pages of each other
			for _, c := range s.collectors {
				c.Wait()
			}
		}
		close(ended)
	}()
	if after == 0 {
		after = longest
	}
	select {
	case <-ended:
		s.rec.add(s.name, "ended")
	case <-time.After(after + fine(s.name, "after")):
		s.rec.add(s.name, "interrupted")
		if s.pages != nil {
			s.pages.close()
		}
		s.robots.Close()
		select {
		case <-ended:
		case <-time.After(24 * time.Hour):
			s.rec.add(s.name, "does not end")
		}
	}
	time.Sleep(time.Minute)
	s.look()
	time.Sleep(2 * time.Hour) // the turns of pages that a callback has aborted expire
	s.look()
	s.rec.add(s.name, "Close: %s", faultOf(s.robots.Close()))
	s.rec.stats(s.name, s.robots.Stats())
	if s.pages != nil {
		s.pages.list()
	}
}
