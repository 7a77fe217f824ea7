package politeness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestWaitsMeet draws several waits for each crawl: a delay, a rate, hours, a group of hosts, leases,
// redirects, and responses with a Retry-After. No page may be lost, and the access log must show that
// each wait is kept.
func TestWaitsMeet(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWaits(rand.New(rand.NewPCG(seed, 44)))
			kit.InBubble(t, w.sites(), w.crawl)
		})
	}
}

// waits are the waits of a crawl. A wait of zero or false is not there.
type waits struct {
	delay    time.Duration
	perStart time.Duration // the time per request of all hosts
	burst    int
	hours    bool // from 00:05 to 00:20
	group    bool // all hosts have one pace
	shared   bool // a second plugin crawls the same pages, and they share the pace
	jitter   float64
	inFlight int
	busy     map[string]time.Duration // the Retry-After of the first response, by host and path

	mu     sync.Mutex
	pauses []pause
}

// A pause is what a Retry-After asks for.
type pause struct {
	host     string
	from, to time.Time
}

const (
	waitingHosts = 4
	waitingPages = 12
)

func newWaits(r *rand.Rand) *waits {
	w := &waits{
		delay:    time.Duration(r.IntN(4)) * 7 * time.Second,
		hours:    r.IntN(3) == 0,
		group:    r.IntN(3) == 0,
		shared:   r.IntN(3) == 0,
		jitter:   float64(r.IntN(2)) / 2,
		inFlight: 1 + r.IntN(3),
		busy:     make(map[string]time.Duration),
	}
	if r.IntN(2) == 0 {
		w.perStart = time.Duration(1+r.IntN(10)) * time.Second
		w.burst = 1 + r.IntN(3)
	}
	for h := range waitingHosts {
		for p := range waitingPages {
			if r.IntN(4) == 0 {
				w.busy[fmt.Sprintf("h%d.shop.test/end/%d", h, p)] = time.Duration(1+r.IntN(20)) * time.Second
			}
		}
	}
	return w
}

// sites returns hosts whose pages redirect within the host, to https, and to the next host.
func (w *waits) sites() robotstest.Sites {
	sites := robotstest.Sites{}
	for h := range waitingHosts {
		host := fmt.Sprintf("h%d.shop.test", h)
		next := fmt.Sprintf("h%d.shop.test", (h+1)%waitingHosts)
		sites[host] = robotstest.Site{"/robots.txt": kit.NoDenys, "*": http.HandlerFunc(w.answer)}
		for p := range waitingPages {
			end := fmt.Sprint("/end/", p)
			to := []string{end, "https://" + host + end, "http://" + next + end, "https://" + next + end}
			sites[host][fmt.Sprint("/", p)] = robotstest.Redirect(to[p%len(to)])
		}
	}
	return sites
}

// answer answers the first request of a busy page with a Retry-After, except shortly before the hours
// end, because RetryThrottled does not wait until the next day.
func (w *waits) answer(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	page := r.Host + r.URL.Path
	after := w.busy[page]
	if after == 0 || w.hours && now.UTC().Minute() >= 15 {
		fmt.Fprint(rw, "page")
		return
	}
	delete(w.busy, page)
	w.pauses = append(w.pauses, pause{host: r.Host, from: now, to: now.Add(after)})
	rw.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	rw.WriteHeader(http.StatusTooManyRequests)
}

func (w *waits) options(t *testing.T) []collyrobots.Option {
	opts := []collyrobots.Option{
		collyrobots.MinDelay(w.delay),
		collyrobots.Jitter(w.jitter),
		collyrobots.MaxInFlightPerHost(w.inFlight),
		collyrobots.RetryThrottled(1),
		collyrobots.MaxBackOff(time.Minute),
	}
	if w.perStart > 0 {
		opts = append(opts, collyrobots.MaxRate(rate.Every(w.perStart), w.burst))
	}
	if w.hours {
		opts = append(opts, collyrobots.CrawlHours("00:05", "00:20", time.UTC))
	}
	if w.group {
		opts = append(opts, collyrobots.PaceBy(collyrobots.ByDomain))
	}
	if w.shared {
		opts = append(opts, collyrobots.SharedPace(kit.Shared(t)))
	}
	return opts
}

// crawl requests each page once, two thirds of them with a collector and the others with a client, and
// checks the access log.
func (w *waits) crawl(t *testing.T, web *robotstest.Web) {
	opts := w.options(t)
	crawls := []*kit.Crawl{kit.Start(t, web, kit.Async, opts...)}
	if w.shared {
		crawls = append(crawls, kit.Start(t, web, kit.Async, opts...))
	}
	const n = waitingHosts * waitingPages
	for _, c := range crawls {
		c.Impolite = w.group // Verify does not know that hosts have one pace
		for i := range n {
			if i == n*2/3 {
				c.Client = &http.Client{Transport: c.Robots.Transport(c.Transport)}
			}
			c.Visit(fmt.Sprintf("http://h%d.shop.test/%d", i%waitingHosts, i/waitingHosts))
		}
	}
	for _, c := range crawls {
		c.Wait()
		if len(c.Pages) != n || len(c.Errs) > 0 {
			t.Errorf("%d of %d pages, errors %v", len(c.Pages), n, firstOf(c.Errs))
		}
	}
	w.check(t, web.Log(""))
	if t.Failed() {
		t.Logf("delay %v, one in %v, burst %d, hours %t, group %t, shared %t, jitter %v, in flight %d",
			w.delay, w.perStart, w.burst, w.hours, w.group, w.shared, w.jitter, w.inFlight)
	}
}

// check compares the access log with the waits.
func (w *waits) check(t *testing.T, log robotstest.Log) {
	last := make(map[string]time.Time) // the last start of each host or group
	for i, r := range log {
		pace := r.Host
		if w.group {
			pace = "shop.test"
		}
		isRobots := r.URI == "/robots.txt"
		gap := r.Time.Sub(last[pace])
		if gap < w.delay && !isRobots {
			t.Errorf("%s%s came after %v, want %v", r.Host, r.URI, gap, w.delay)
		}
		last[pace] = r.Time
		if w.perStart > 0 && !w.shared && i >= w.burst {
			if took := r.Time.Sub(log[i-w.burst].Time); took < w.perStart-time.Millisecond {
				t.Errorf("%d requests in %v, want one in %v", w.burst+1, took, w.perStart)
			}
		}
		if minute := r.Time.UTC().Hour()*60 + r.Time.UTC().Minute(); w.hours && !isRobots && (minute < 5 || minute >= 20) {
			t.Errorf("%s%s came at %s", r.Host, r.URI, r.Time.UTC())
		}
		for _, p := range w.pauses {
			if r.Host == p.host && r.Time.After(p.from) && r.Time.Before(p.to) && !isRobots {
				t.Errorf("%s%s came %v before the end of a Retry-After", r.Host, r.URI, p.to.Sub(r.Time))
			}
		}
	}
}
