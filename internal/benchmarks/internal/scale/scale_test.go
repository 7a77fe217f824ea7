package scale

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

var (
	hosts = flag.Int("hosts", 10_000, "number of hosts of the larger crawl; the smaller crawl has a tenth")
	seed  = flag.Uint64("seed", 1, "seed of the simulated web and of the response times")
)

const (
	slots  = 1000                   // the largest number of requests that a process has in flight
	window = 10 * time.Minute       // the simulated time
	trip   = 500 * time.Microsecond // a round trip between a process and Redis, including the script
)

// A way is a setup of processes.
type way struct {
	name    string
	workers int  // the number of processes
	shared  bool // SharedPace: the processes share their pace through leases
	split   bool // ShardByHost: each host belongs to one process
}

var ways = []way{
	{name: "one process", workers: 1, split: true},
	{name: "ShardByHost", workers: 10, split: true},
	{name: "SharedPace, one queue", workers: 10, shared: true},
	{name: "SharedPace and ShardByHost", workers: 10, shared: true, split: true},
	{name: "ShardByHost", workers: 100, split: true},
	{name: "SharedPace, one queue", workers: 100, shared: true},
	{name: "SharedPace and ShardByHost", workers: 100, shared: true, split: true},
}

// A cell is a crawl of one web in one way. A part of the crawl is simulated.
type cell struct {
	way
	hosts   int
	part    int           // one in part is simulated: of the processes, or of the hosts and slots
	allowed int           // the number of requests that the delays of the simulated hosts allow
	room    time.Duration // the total time of all simulated slots
	known   int           // the number of hosts in the pace of one process
	result  Result
	cluster [len(clusters)]float64 // see crawl.busiest
}

// clusters are numbers of masters in a Redis cluster.
var clusters = [...]int{3, 6, 12}

// TestScale prints how many pages per second different numbers of processes fetch. It checks that
// the simulation keeps all limits.
func TestScale(t *testing.T) {
	var cells []*cell
	for _, n := range []int{*hosts / 10, *hosts} {
		for _, w := range ways {
			cells = append(cells, &cell{way: w, hosts: n})
		}
	}
	each(cells, func(c *cell) { c.run() })
	pages := table("hosts", "setup", "processes", "pages/s", "limit by delays", "limit by slots", "of the lower limit", "idle slots", "median gap over the delay", "hosts in the pace of a process")
	redis := table("hosts", "setup", "processes", "commands/s", "per request", "refused", "busiest of 3", "of 6", "of 12")
	for _, c := range cells {
		c.check(t)
		c.print(pages, redis)
	}
	t.Logf("%v of a crawl, %d slots for each process\n%s\nRedis\n%s", window, slots, pages, redis)
}

// run simulates a part of the crawl.
func (c *cell) run() {
	web := Web{c.hosts, *seed}
	perProcess := slots
	leased := time.Duration(0)
	if c.shared {
		leased = trip
	}
	var shares [][]share
	if c.split {
		c.part = c.workers
		shares = byHost(web, c.workers)[:1]
	} else {
		c.part = 2 * c.workers
		web.Hosts /= c.part
		perProcess /= c.part
		shares = byPage(web, c.workers)
	}
	seen := make(map[int32]bool)
	for _, s := range shares {
		for _, x := range s {
			if !seen[x.host] {
				seen[x.host] = true
				c.allowed += web.allowed(int(x.host), window)
			}
		}
	}
	x := newCrawl(web, shares, perProcess, leased)
	x.run(window)
	c.room = time.Duration(perProcess*len(shares)) * window
	c.result = x.result
	for range x.processes[0].hosts.All() {
		c.known++
	}
	if !c.split {
		c.known *= c.part
	}
	if c.shared {
		for i, n := range clusters {
			c.cluster[i] = x.busiest(n)
		}
	}
}

// check checks that the simulation keeps all limits.
func (c *cell) check(t *testing.T) {
	t.Helper()
	r := c.result
	if r.Short > 0 || len(r.Gaps) == 0 {
		t.Errorf("%v: %d of %d gaps are shorter than the delay", c, r.Short, len(r.Gaps))
	}
	if r.Requests > c.allowed || r.Pages == 0 {
		t.Errorf("%v: %d requests and %d pages, but the delays allow %d requests", c, r.Requests, r.Pages, c.allowed)
	}
	if r.Busy > c.room {
		t.Errorf("%v: slots were used for %v, want at most %v", c, r.Busy, c.room)
	}
	if granted := r.Commands - r.Refused; c.shared && (granted > 2*r.Requests+slots*c.workers || granted < r.Requests) {
		t.Errorf("%v: %d commands for %d requests, and %d refused commands", c, granted, r.Requests, r.Refused)
	}
}

func (c *cell) String() string {
	return fmt.Sprintf("%s, %d hosts, %d processes", c.name, c.hosts, c.workers)
}

// print adds the cell to the tables.
func (c *cell) print(pages, redis *rows) {
	r := c.result
	seconds := window.Seconds()
	delays := float64(c.allowed*c.part) / seconds
	room := float64(slots*c.workers) / meanResponse.Seconds()
	rate := float64(r.Requests*c.part) / seconds
	pages.add(c.hosts, c.name, c.workers, rate*float64(r.Pages)/float64(r.Requests), delays, room,
		percent(rate/min(delays, room)), percent(1-float64(r.Busy)/float64(c.room)), percent(float64(median(r.Gaps))-1), c.known)
	if c.shared {
		redis.add(c.hosts, c.name, c.workers, float64(r.Commands*c.part)/seconds, fmt.Sprintf("%.2f", float64(r.Commands)/float64(r.Requests)),
			percent(float64(r.Refused)/float64(r.Commands)), percent(c.cluster[0]), percent(c.cluster[1]), percent(c.cluster[2]))
	}
}

// TestScaleWeb prints the properties of the simulated web, and how evenly ShardByHost divides it.
func TestScaleWeb(t *testing.T) {
	web := Web{*hosts, *seed}
	var pages, delayed, large, most int
	for host := range web.Hosts {
		n := web.pages(host)
		pages += n
		most = max(most, n)
		if web.crawlDelay(host) > 0 {
			delayed++
		}
		if n > 1000 {
			large++
		}
	}
	part := func(n int) string { return percent(float64(n) / float64(web.Hosts)) }
	t.Logf("%d hosts, %d pages, %.1f per host; %s with a Crawl-delay, %s with more than 1,000 pages, the largest with %d", web.Hosts, pages,
		float64(pages)/float64(web.Hosts), part(delayed), part(large), most)
	for _, n := range []int{10, 100} {
		b := balanceOf(byHost(web, n))
		t.Logf("%d shards; the largest has, compared with the mean, %v", n, b)
		if most := 1 + 5*math.Sqrt(float64(n)/float64(web.Hosts)); b.hosts > most {
			t.Errorf("%d shards: the largest has %.3f times the mean, want at most %.3f", n, b.hosts, most)
		}
	}
}

// TestScaleWhole simulates the whole crawl of one shard of a hundred.
func TestScaleWhole(t *testing.T) {
	web := Web{*hosts, *seed}
	of := max(1, min(100, *hosts/1000))
	share := byHost(web, of)[:1]
	pages, longest := 0, time.Duration(0)
	for _, x := range share[0] {
		pages += int(x.pages)
		longest = max(longest, time.Duration(x.pages)*max(MinDelay, web.crawlDelay(int(x.host))))
	}
	c := newCrawl(web, share, slots, 0)
	c.run(math.MaxInt64)
	ends := c.result.Ends
	if len(ends) != pages || c.result.Short > 0 {
		t.Fatalf("%d of %d pages, %d gaps are shorter than the delay", len(ends), pages, c.result.Short)
	}
	if last := ends[len(ends)-1]; last < longest {
		t.Errorf("done after %v, but the slowest host takes %v", last, longest)
	}
	t.Logf("one shard of %d: %d hosts, %d pages; limit by slots %v, limit by the slowest host %v", of, len(share[0]), pages,
		(time.Duration(pages) * meanResponse / slots).Round(time.Second), longest.Round(time.Minute))
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		t.Logf("%5.1f %% of the pages after %v", 100*q, ends[int(q*float64(len(ends)-1))].Round(time.Second))
	}
}

// TestScaleLost prints how long hosts get no requests after a process is lost.
func TestScaleLost(t *testing.T) {
	web := Web{max(*hosts/100, min(*hosts/2, 5000)), *seed}
	const at = 5 * time.Minute
	all := table("setup", "taken over after", "hosts being crawled", "median silence", "99 %", "longest", "pages fetched again", "gaps under the delay")
	losses := []*loss{
		{way: ways[1], later: 10 * time.Second, recover: (*crawl).restart},
		{way: ways[1], later: time.Minute, recover: (*crawl).restart},
		{way: ways[3], later: 10 * time.Second, recover: (*crawl).restart},
		{way: ways[2], later: 90 * time.Second, recover: (*crawl).spread},
	}
	each(losses, func(l *loss) { l.run(web, at) })
	for _, l := range losses {
		if len(l.Silent) == 0 {
			t.Fatalf("%s: no host was watched", l.name)
		}
		if l.Short > 0 && l.shared {
			t.Errorf("%s: %d gaps are shorter than the delay", l.name, l.Short)
		}
		slices.Sort(l.Silent)
		q := func(q float64) time.Duration {
			return l.Silent[int(q*float64(len(l.Silent)-1))].Round(100 * time.Millisecond)
		}
		all.add(l.name, l.later, len(l.Silent), q(0.5), q(0.99), q(1), l.Again, l.Short)
	}
	t.Logf("%d hosts, %d processes, one is lost after %v\n%s", web.Hosts, 10, at, all)
}

// A loss is a crawl that loses a process.
type loss struct {
	way
	later   time.Duration // the time between the loss and the call of recover
	recover func(*crawl, *process)
	Result
}

// run simulates a crawl that loses its first process at a time.
func (l *loss) run(web Web, at time.Duration) {
	shares := byHost(web, l.workers)
	if !l.split {
		shares = byPage(web, l.workers)
	}
	leased := time.Duration(0)
	if l.shared {
		leased = trip
	}
	c := newCrawl(web, shares, slots, leased)
	c.lose(at, l.later, at+20*time.Minute, l.recover)
	l.Result = c.result
}

// TestScaleMemory prints the memory of hosts in the pace of one process, after one request to each
// host.
func TestScaleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // almost everything that is allocated here is retained
	web := Web{*hosts, *seed}
	before := heap()
	p := newProcess(&crawl{web: web}, nil)
	var ticket pace.Ticket
	for host := range web.Hosts {
		h := p.hosts.At(p.start, web.name(host))
		h.SetCrawlDelay(p.start, pace.Source{Scheme: "https"}, web.crawlDelay(host), time.Time{})
		h.StartNow(p.start, &ticket, true)
		ticket.End()
	}
	bytes := float64(heap()-before) / float64(web.Hosts)
	runtime.KeepAlive(p)
	t.Logf("%d hosts in the pace: %.0f bytes per host, %.2f GB", web.Hosts, bytes, bytes*float64(web.Hosts)/1e9)
	if bytes > 700 && !underRace {
		t.Errorf("%.0f bytes per host, want at most 700", bytes)
	}
}

// TestScaleIsReproducible checks that two simulations with the same seed give the same figures.
func TestScaleIsReproducible(t *testing.T) {
	for _, w := range ways[1:4] {
		a, b := cell{way: w, hosts: 2000}, cell{way: w, hosts: 2000}
		a.run()
		b.run()
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %d requests in one run, %d in the other", &a, a.result.Requests, b.result.Requests)
		}
	}
}

func TestHashSlot(t *testing.T) {
	for tag, want := range map[string]int{"123456789": 0x31c3, "": 0} {
		if got := hashSlot(tag); got != want {
			t.Errorf("hashSlot(%q) = %#x, want %#x", tag, got, want)
		}
	}
}

// each calls f for all cells, with as many calls at a time as there are processors.
func each[T any](cells []T, f func(T)) {
	next := make(chan T)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for c := range next {
				f(c)
			}
		})
	}
	for _, c := range cells {
		next <- c
	}
	close(next)
	running.Wait()
}

// underRace reports whether the tests run under the race detector.
var underRace bool

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func median(values []float32) float32 {
	slices.Sort(values)
	return values[len(values)/2]
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// rows is a table in Markdown.
type rows struct {
	text strings.Builder
	w    *tabwriter.Writer
}

func table(columns ...any) *rows {
	r := new(rows)
	r.w = tabwriter.NewWriter(&r.text, 0, 0, 1, ' ', tabwriter.AlignRight|tabwriter.Debug)
	r.add(columns...)
	for i := range columns {
		columns[i] = "---:"
	}
	r.add(columns...)
	return r
}

func (r *rows) add(cells ...any) {
	for i, x := range cells {
		if f, ok := x.(float64); ok {
			cells[i] = fmt.Sprintf("%.0f", f)
		}
	}
	fmt.Fprint(r.w, "\t")
	for _, x := range cells {
		fmt.Fprint(r.w, x, "\t")
	}
	fmt.Fprintln(r.w)
}

func (r *rows) String() string {
	r.w.Flush()
	return r.text.String()
}
