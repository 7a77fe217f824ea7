package hostqueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store/pacer"
)

// discard drops log records.
var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// A spider follows all links.
type spider struct {
	*colly.Collector
	queue  *Queue
	robots *collyrobots.Plugin
}

// newSpider returns a spider for a web. Its plugin is closed at the end of the test.
func newSpider(t testing.TB, web *robotstest.Web, q *Queue, opts ...collyrobots.Option) *spider {
	t.Helper()
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0 (+https://example.com/bot)"))
	c.WithTransport(web.Transport())
	robots, err := collyrobots.WithRobots(c, append([]collyrobots.Option{collyrobots.Logger(discard)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { robots.Close() })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.Follow(e.Request, e.Attr("href")) })
	return &spider{Collector: c, queue: q, robots: robots}
}

// run adds URLs and crawls until the end.
func (s *spider) run(t testing.TB, urls ...string) {
	t.Helper()
	if err := s.queue.Add(t.Context(), urls...); err != nil {
		t.Fatal(err)
	}
	if err := s.queue.Run(t.Context(), s.Collector, s.robots); err != nil {
		t.Fatal(err)
	}
}

// wantStats checks the numbers of a crawl that has ended.
func wantStats(t testing.TB, q *Queue, want Stats) {
	t.Helper()
	want.Known = want.Done + want.Denied + want.Failed
	got, err := q.Stats(t.Context())
	want.Processes = got.Processes
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// wantRequests checks the requests to a host, except those for robots.txt, in any order.
func wantRequests(t testing.TB, web *robotstest.Web, host string, want ...string) {
	t.Helper()
	got := web.Log(host).SortedURIs()
	got = slices.DeleteFunc(got, func(uri string) bool { return uri == "/robots.txt" })
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("requests to %s: %q, want %q", host, got, want)
	}
}

// manySites returns sites with some pages each, and the URLs of their start pages.
func manySites(hosts, pages int) (sites robotstest.Sites, starts []string) {
	sites = make(robotstest.Sites)
	for n := range hosts {
		host := fmt.Sprintf("host%d.test", n)
		sites[host] = robotstest.Pages(pages, "")
		starts = append(starts, "http://"+host+"/")
	}
	return sites, starts
}

// TestCrawl crawls a few hosts with two processes, and checks that each page is requested once and
// each delay is kept.
func TestCrawl(t *testing.T) {
	redises(t, func(t *testing.T, client *redis.Client) {
		sites := robotstest.Sites{"start.test": {"/": ""}}
		var links []string
		for n := range 10 {
			host := fmt.Sprintf("host%d.test", n)
			sites[host] = robotstest.Pages(10, "User-agent: *\nDisallow: /3\n")
			links = append(links, "http://"+host+"/", "http://"+strings.ToUpper(host)+":80/#top")
		}
		sites["start.test"]["/"] = robotstest.Page(links...)
		web := robotstest.New(t, sites)
		var all sync.WaitGroup
		for range 2 {
			s := newSpider(t, web, mustOpen(t, client, "test"), collyrobots.MinDelay(20*time.Millisecond))
			all.Go(func() { s.run(t, "http://start.test/") })
		}
		all.Wait()
		wantStats(t, mustOpen(t, client, "test"), Stats{Hosts: 11, Done: 1 + 10*10, Denied: 10})
		for n := range 10 {
			wantRequests(t, web, fmt.Sprintf("host%d.test", n), "/", "/0", "/1", "/2", "/4", "/5", "/6", "/7", "/8", "/9")
		}
	})
}

// TestNofollow checks that Follow does not record links that EnforceNofollow does not allow.
func TestNofollow(t *testing.T) {
	redises(t, func(t *testing.T, client *redis.Client) {
		web := robotstest.New(t, robotstest.Sites{"a.test": {
			"/":  `<a href="/1" rel="nofollow">1</a><a href="/2">2</a><a href="/3" rel="nofollow">3</a>`,
			"/2": `<a href="/1">1</a>`,
			"*":  robotstest.Page(),
		}})
		s := newSpider(t, web, mustOpen(t, client, "test"), collyrobots.EnforceNofollow(true))
		s.run(t, "http://a.test/")
		wantStats(t, s.queue, Stats{Hosts: 1, Done: 3})
		wantRequests(t, web, "a.test", "/", "/1", "/2")
		if n := s.robots.Stats().Decisions[report.ReasonNofollow]; n != 2 {
			t.Errorf("%d denials", n)
		}
	})
}

// TestShare checks that the hosts are shared evenly when a second process is started, and that the
// first process gets all of them when the second one has ended.
func TestShare(t *testing.T) {
	_, client := newMini(t)
	const hosts, delay = 40, 50 * time.Millisecond
	sites, starts := manySites(hosts, 400)
	web := robotstest.New(t, sites)
	var mu sync.Mutex
	last := make(map[string]int) // the process that has fetched the last page of a host
	start := func(process int) (end func()) {
		// DelayFromEnd makes the gaps in the log independent of how busy the machine is.
		s := newSpider(t, web, mustOpen(t, client, "test", Lease(3*time.Second)), collyrobots.MinDelay(delay), collyrobots.DelayFromEnd(true))
		s.OnResponse(func(r *colly.Response) {
			mu.Lock()
			defer mu.Unlock()
			last[r.Request.URL.Host] = process
		})
		if err := s.queue.Add(t.Context(), starts...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.queue.Run(ctx, s.Collector, s.robots) }()
		return func() {
			cancel()
			<-ended
		}
	}
	wait := func(least, most int) {
		waitFor(t, fmt.Sprintf("process 1 has %d to %d hosts", least, most), func() bool {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, process := range last {
				n += process
			}
			return len(last) == hosts && least <= n && n <= most
		})
	}
	end0 := start(0)
	defer end0()
	wait(0, 0)
	end1 := start(1)
	wait(hosts/2-2, hosts/2+2)
	end1()
	wait(0, 0)
	for host := range sites {
		if gap := web.Log(host).MinGap(); gap < delay-time.Millisecond { // Redis counts milliseconds
			t.Errorf("%s: two requests in %v, want at least %v\n%v", host, gap, delay, web.Log(host))
		}
	}
}

// TestRenewal checks that a page may take longer than the lease.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newBubbleMini(t)
		const lease = 300 * time.Millisecond
		var requests atomic.Int32
		web := robotstest.New(t, robotstest.Sites{"a.test": {"/": func(http.ResponseWriter, *http.Request) {
			if requests.Add(1) == 1 { // further requests are answered, so that the test ends
				time.Sleep(10 * lease)
			}
		}}})
		var all sync.WaitGroup
		for range 2 {
			s := newSpider(t, web, mustOpen(t, client, "test", Lease(lease)))
			all.Go(func() { s.run(t, "http://a.test/") })
		}
		all.Wait()
		wantRequests(t, web, "a.test", "/")
	})
}

// TestOwnHostIsDue lets the lease of a host end, by the clock of Redis, while the process fetches a
// page of the host and has places for more hosts. It does not fetch the page a second time.
func TestOwnHostIsDue(t *testing.T) {
	mini, client := newMini(t)
	now := time.Unix(1_999_999_999, 0)
	mini.SetTime(now)
	requested, answer := make(chan bool, 10), make(chan bool)
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {"/": func(http.ResponseWriter, *http.Request) {
			requested <- true
			<-answer
		}},
		"b.test": {"/": http.StatusServiceUnavailable}, // waits for a minute, so that the process has a place
	})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	const lease = 20 * time.Second
	s := newSpider(t, web, mustOpen(t, client, "test", Lease(lease)))
	err := s.queue.Add(t.Context(), "http://a.test/", "http://b.test/")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.queue.Run(ctx, s.Collector, s.robots) }()
	<-requested
	listed := keys("hostqueue:test:").listed()
	due := func(member string) float64 { return client.ZScore(t.Context(), listed, member).Val() }
	waitFor(t, "b.test is given back", func() bool { return due("0 b.test") == float64(now.Add(time.Minute).UnixMilli()) })
	now = now.Add(lease + time.Second)
	mini.SetTime(now)
	waitFor(t, "the host has a new lease", func() bool { return due("0 a.test") == float64(now.Add(lease).UnixMilli()) })
	cancel()
	select {
	case err := <-ended:
		t.Errorf("Run returned %v while a page was in progress", err)
	case <-requested:
		t.Error("the page was requested again")
	case <-time.After(200 * time.Millisecond):
	}
	release()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	wantRequests(t, web, "a.test", "/")
	if st, err := s.queue.Stats(t.Context()); err != nil || st.Done != 1 || st.Waiting != 1 || st.InProgress != 0 {
		t.Errorf("%+v, %v, want one page that is done and one that waits", st, err)
	}
}

// TestResults checks how pages end, how often they are requested, and what Failed has.
func TestResults(t *testing.T) {
	_, client := newMini(t)
	var flaky atomic.Int32
	web := robotstest.New(t, robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /denied\n",
			"/":           robotstest.Page("/404", "/500", "/flaky", "/denied", "/cut", "/filtered", "/panic", "/deep", "mailto:b@a.test", "#top", "/redirect"),
			"/404":        404,
			"/500":        500,
			"/flaky": func(w http.ResponseWriter, _ *http.Request) {
				if flaky.Add(1) < 3 {
					w.WriteHeader(http.StatusBadGateway)
				}
			},
			"/cut":      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"/panic":    "panic",
			"/deep":     robotstest.Page("/deeper"),
			"/deeper":   robotstest.Page("/deepest"),
			"/deepest":  "",
			"/redirect": robotstest.Redirect("/denied"),
		},
		"down.test": {"/robots.txt": 503},
	})
	q := mustOpen(t, client, "test", RetryPause(time.Millisecond), Logger(discard))
	s := newSpider(t, web, q)
	s.MaxDepth = 3
	s.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile("filtered")}
	s.OnResponse(func(r *colly.Response) {
		if string(r.Body) == "panic" {
			panic("a bug")
		}
	})
	s.run(t, "http://a.test/", "http://down.test/")
	// net/http repeats a request that was cut off on a connection that was used before.
	requests := web.Log("a.test").SortedURIs()
	counts := make(map[string]int)
	for _, uri := range requests {
		counts[uri]++
	}
	for uri, want := range map[string]int{
		"/": 1, "/404": 1, "/500": 3, "/flaky": 3, "/denied": 0, "/filtered": 0, "/panic": 3, "/deep": 1, "/deeper": 1, "/deepest": 0, "/redirect": 1,
	} {
		if counts[uri] != want {
			t.Errorf("%d requests for %s, want %d", counts[uri], uri, want)
		}
	}
	if counts["/cut"] < 3 {
		t.Errorf("%d requests for /cut, want at least 3", counts["/cut"])
	}
	// Done: /, /404, /flaky, /deep, /deeper. Denied: /denied, /filtered, /redirect.
	wantStats(t, q, Stats{Hosts: 2, Done: 5, Denied: 3, Failed: 4})
	failed := make(map[string]Failure)
	for f, err := range q.Failed(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		failed[f.URL] = f
	}
	for url, want := range map[string]Failure{
		"http://a.test/500":   {Status: 500, Err: "Internal Server Error"},
		"http://a.test/cut":   {Err: "EOF"},
		"http://a.test/panic": {Err: "panic in a callback: a bug"},
		"http://down.test/":   {Err: "robots.txt cannot be read"},
	} {
		if got := failed[url]; got.Status != want.Status || !strings.Contains(got.Err, want.Err) {
			t.Errorf("%s: %+v, want %+v", url, got, want)
		}
	}
}

// TestPauses checks the pauses before retries, which grow.
func TestPauses(t *testing.T) {
	v := &visit{run: &run{queue: &Queue{retryPause: time.Minute}, collector: colly.NewCollector()}, status: 500}
	v.page = page{url: "http://user:secret@a.test/", depth: 2}
	for attempts, want := range []ending{
		{page: "0 2 http://user:secret@a.test/", outcome: outcomeRetry, text: "1 2 http://user:secret@a.test/", pause: time.Minute},
		{page: "1 2 http://user:secret@a.test/", outcome: outcomeRetry, text: "2 2 http://user:secret@a.test/", pause: 10 * time.Minute},
		{page: "2 2 http://user:secret@a.test/", outcome: outcomeFailed, text: `{"url":"http://user:xxxxx@a.test/","status":500}`, pause: 100 * time.Minute},
	} {
		v.page.attempts = attempts
		if got := v.ending(nil); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestClassify checks the classes of results.
func TestClassify(t *testing.T) {
	disallowed := func(r report.Reason) error {
		return fmt.Errorf("Get: %w", &collyrobots.DeniedError{Decision: report.Decision{Reason: r}})
	}
	for _, test := range []struct {
		err    error
		status int
		want   class
	}{
		{nil, 200, done},
		{nil, 0, done}, // aborted in OnRequest
		{nil, 404, done},
		{errors.New("Not Found"), 404, done},
		{errors.New("broken XML"), 200, done},
		{nil, 503, failure},
		{errors.New("Too Many Requests"), 429, failure},
		{errors.New("Request Timeout"), 408, failure},
		{errors.New("Proxy Authentication Required"), 407, failure},
		{errors.New("Internal Server Error"), 500, failure},
		{io.ErrUnexpectedEOF, 0, failure},
		{collyrobots.ErrLeaseEnded, 0, failure},
		{collyrobots.ErrRedirectWait, 0, failure},
		{disallowed(report.ReasonRule), 0, denied},
		{disallowed(report.ReasonDelay), 0, denied},
		{disallowed(report.ReasonUnreachable), 0, failure},
		{disallowed(report.ReasonSiteDown), 0, failure},
		{&collyrobots.DeniedError{Decision: report.Decision{Reason: report.ReasonUnreachable, Option: "WhenForbidden"}}, 0, denied},
		{&collyrobots.DeniedError{Decision: report.Decision{Reason: report.ReasonUnreachable, Option: "WhenUnreachable"}}, 0, failure},
		{&report.PrivateNetworkError{}, 0, denied},
		{&report.ShardError{}, 0, denied},
		{colly.ErrForbiddenDomain, 0, denied},
		{colly.ErrForbiddenURL, 0, denied},
		{colly.ErrNoURLFiltersMatch, 0, denied},
		{colly.ErrMaxDepth, 0, denied},
		{fmt.Errorf("Get: %w", &report.PaceError{}), 0, unsent},
		{fmt.Errorf("Get: %w", context.Canceled), 0, unsent},
		{collyrobots.ErrClosed, 0, unsent},
		{colly.ErrMaxRequests, 0, unsent},
	} {
		if got := classify(test.err, test.status); got != test.want {
			t.Errorf("%v, status %d: class %d, want %d", test.err, test.status, got, test.want)
		}
	}
}

// TestLateFollow calls Follow when the page is done, and from other goroutines at about that time.
// Either the link is recorded or Follow returns ErrPageDone.
func TestLateFollow(t *testing.T) {
	_, client := newMini(t)
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/": "", "*": ""}})
	q := mustOpen(t, client, "test")
	s := newSpider(t, web, q)
	var late *colly.Request
	var recorded atomic.Int32
	var goroutines sync.WaitGroup
	s.OnScraped(func(r *colly.Response) {
		if r.Request.URL.Path != "/" {
			return
		}
		late = r.Request
		some := make(chan bool, 1)
		for n := range 4 {
			goroutines.Go(func() {
				for i := range 100_000 {
					err := q.Follow(r.Request, fmt.Sprintf("/%d/%d", n, i))
					if err == nil {
						recorded.Add(1)
						select {
						case some <- true:
						default:
						}
						continue
					}
					if !errors.Is(err, ErrPageDone) {
						t.Error(err)
					}
					return
				}
			})
		}
		<-some // the page ends while the goroutines call Follow
	})
	s.run(t, "http://a.test/")
	goroutines.Wait()
	if err := q.Follow(late, "/late"); !errors.Is(err, ErrPageDone) {
		t.Errorf("%v, want ErrPageDone", err)
	}
	wantStats(t, q, Stats{Hosts: 1, Done: 1 + int(recorded.Load())})
	t.Logf("%d links were in time", recorded.Load())
	if err := mustOpen(t, client, "other").Follow(late, "/"); !errors.Is(err, ErrNotRun) {
		t.Errorf("Follow of another crawl: %v, want ErrNotRun", err)
	}
}

// broken is a hook for go-redis that fails scripts whose text contains a word.
type broken struct {
	word string
	on   atomic.Bool
	hits atomic.Int32
}

func (b *broken) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b *broken) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b *broken) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if b.on.Load() && strings.Contains(fmt.Sprint(cmd.Args()), b.word) {
				b.hits.Add(1)
				err := errors.New("connection refused")
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// TestLinksFirst checks that a page is not done before its links are recorded.
func TestLinksFirst(t *testing.T) {
	_, client := newMini(t)
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(3, "")})
	q := mustOpen(t, client, "test", Logger(discard))
	if err := q.Add(t.Context(), "http://a.test/"); err != nil {
		t.Fatal(err)
	}
	b := &broken{word: "SADD"}
	b.on.Store(true)
	client.AddHook(b)
	s := newSpider(t, web, q)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(t.Context(), s.Collector, s.robots) }()
	waitFor(t, "links could not be recorded", func() bool { return b.hits.Load() > 1 })
	if s, err := q.Stats(t.Context()); err != nil || s.Done != 0 || s.InProgress != 1 {
		t.Errorf("%+v, %v, want the page in progress", s, err)
	}
	b.on.Store(false)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantStats(t, q, Stats{Hosts: 1, Done: 4})
	wantRequests(t, web, "a.test", "/", "/0", "/1", "/2")
}

// TestSlowHosts checks that hosts that are slow, throttle or do not answer take no place from other
// hosts.
func TestSlowHosts(t *testing.T) {
	_, client := newMini(t)
	sites := robotstest.Sites{
		"slow.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 3600\n"),
		"busy.test": {"/robots.txt": "", "*": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		"down.test": {"/robots.txt": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	}
	others, starts := manySites(20, 5)
	maps.Copy(sites, others)
	starts = append([]string{"http://busy.test/1", "http://busy.test/2", "http://down.test/"}, starts...)
	web := robotstest.New(t, sites)
	q := mustOpen(t, client, "test", Hosts(4))
	s := newSpider(t, web, q, collyrobots.ForHosts("slow.test", collyrobots.IgnoreRobots(collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}), collyrobots.MinDelay(time.Hour)))
	if err := q.Add(t.Context(), append([]string{"http://slow.test/"}, starts...)...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Context = ctx
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, s.Collector, s.robots) }()
	waitFor(t, "the fast hosts are done", func() bool {
		got, err := q.Stats(t.Context())
		return err == nil && got.Done == 20*6+1
	})
	waitFor(t, "the other hosts are given back", func() bool {
		due := client.ZRangeWithScores(t.Context(), q.keys.listed(), 0, -1).Val()
		return len(due) == 3 && due[0].Score > float64(time.Now().Add(30*time.Second).UnixMilli())
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// slow.test: 3 pages wait for an hour. busy.test: both pages wait. down.test: one page waits.
	if got, err := q.Stats(t.Context()); err != nil || got.Waiting != 6 || got.InProgress != 0 || got.Active != 3 || got.Processes != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	wantRequests(t, web, "slow.test", "/")
	wantRequests(t, web, "busy.test", "/1")
}

// A brokenPacer fails until it is repaired.
type brokenPacer struct {
	repaired atomic.Bool
	calls    atomic.Int32
}

func (p *brokenPacer) Acquire(context.Context, string, time.Duration) (pacer.Lease, error) {
	p.calls.Add(1)
	if !p.repaired.Load() {
		return nil, errors.New("broken")
	}
	return freeLease{}, nil
}

// A freeLease never expires.
type freeLease struct{}

func (freeLease) Deadline() time.Time                    { return time.Time{} }
func (freeLease) Valid() bool                            { return true }
func (freeLease) Release(bool, time.Duration, time.Time) {}

// TestUnsent checks that a page that could not be sent for a reason that is not the page's waits
// again, and that its host is given back for a while.
func TestUnsent(t *testing.T) {
	_, client := newMini(t)
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/": "page"}})
	q := mustOpen(t, client, "test", RetryPause(time.Hour))
	p := new(brokenPacer)
	s := newSpider(t, web, q, collyrobots.SharedPace(p), collyrobots.MinDelay(time.Millisecond))
	if err := q.Add(t.Context(), "http://a.test/"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- q.Run(t.Context(), s.Collector, s.robots) }()
	waitFor(t, "the host is given back", func() bool {
		tried := p.calls.Load() > 0
		got, err := q.Stats(t.Context())
		return err == nil && tried && got.Waiting == 1 && got.InProgress == 0
	})
	p.repaired.Store(true)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantStats(t, q, Stats{Hosts: 1, Done: 1})
	wantRequests(t, web, "a.test", "/")
}

// TestStop checks that Run gives back its hosts and pages when its context ends.
func TestStop(t *testing.T) {
	_, client := newMini(t)
	sites, starts := manySites(10, 30)
	web := robotstest.New(t, sites)
	q := mustOpen(t, client, "test")
	if err := q.Add(t.Context(), starts...); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	for _, end := range []string{"the context of Run", "the context of the collector", "Close", "MaxRequests"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newSpider(t, web, q, collyrobots.MinDelay(300*time.Millisecond))
		want := cause
		run := ctx
		var pages atomic.Int32
		s.OnResponse(func(*colly.Response) {
			if pages.Add(1) != 10 {
				return
			}
			switch end {
			case "Close":
				go s.robots.Close()
			default:
				cancel(cause)
			}
		})
		switch end {
		case "the context of the collector":
			s.Context = ctx
			run = t.Context()
		case "Close":
			want = collyrobots.ErrClosed
		case "MaxRequests":
			s.MaxRequests = 5
			want = colly.ErrMaxRequests
		}
		if err := q.Run(run, s.Collector, s.robots); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", end, err, want)
		}
		cancel(nil)
		got, err := q.Stats(t.Context())
		if err != nil || got.InProgress != 0 || got.Active != 10 || got.Processes != 0 || got.Known != got.Waiting+got.Done || got.Failed+got.Denied != 0 {
			t.Errorf("%s: %+v, %v", end, got, err)
		}
		due := client.ZRangeWithScores(t.Context(), q.keys.listed(), -1, -1).Val()
		if late := due[0].Score - float64(time.Now().UnixMilli()); late > 1000 {
			t.Errorf("%s: the last host is due in %v ms", end, late)
		}
	}
	s := newSpider(t, web, q)
	s.run(t)
	wantStats(t, q, Stats{Hosts: 10, Done: 310})
}

// TestLost checks that Run returns ErrLost when Redis has lost the crawl, and that the crawl can
// begin again.
func TestLost(t *testing.T) {
	mini, client := newMini(t)
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(20, "")})
	for _, reopen := range []bool{false, true} {
		s := newSpider(t, web, mustOpen(t, client, "test", Logger(discard)), collyrobots.MinDelay(50*time.Millisecond))
		var once sync.Once
		s.OnScraped(func(*colly.Response) {
			once.Do(func() {
				mini.FlushAll()
				if reopen {
					mustOpen(t, client, "test")
				}
			})
		})
		if err := s.queue.Add(t.Context(), "http://a.test/"); err != nil {
			t.Fatal(err)
		}
		if err := s.queue.Run(t.Context(), s.Collector, s.robots); !errors.Is(err, ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
		again := newSpider(t, web, mustOpen(t, client, "test"))
		again.run(t, "http://a.test/")
		wantStats(t, again.queue, Stats{Hosts: 1, Done: 21})
		mini.FlushAll()
	}
}
