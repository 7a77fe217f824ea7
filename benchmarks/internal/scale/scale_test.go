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
	hosts = flag.Int("hosts", 10_000, "hosts of the larger crawl; the smaller one has a tenth")
	seed  = flag.Uint64("seed", 1, "of the simulated web and its answers")
)

const (
	places = 1000                   // requests that a process has in flight at most
	window = 10 * time.Minute       // of the crawl
	trip   = 500 * time.Microsecond // there and back between a process and Redis, the script included
)

// A way is how processes share out hosts and keep their pace.
type way struct {
	name    string
	workers int
	shared  bool // the pace, through leases
	split   bool // ShardByHost
}

var ways = []way{
	{"one process", 1, false, true},
	{"ShardByHost", 10, false, true},
	{"SharedPace, one queue", 10, true, false},
	{"SharedPace and ShardByHost", 10, true, true},
	{"ShardByHost", 100, false, true},
	{"SharedPace, one queue", 100, true, false},
	{"SharedPace and ShardByHost", 100, true, true},
}

// A cell is one way to crawl one web, and what came of the part of it that was simulated.
type cell struct {
	way
	hosts   int
	part    int           // of all processes, or of all hosts and places, one in part is simulated
	allowed int           // requests that the delays of the hosts in it allow
	room    time.Duration // of all places in it
	known   int           // hosts in the pace of one process
	result  Result
	cluster [3]float64
}

var clusters = [...]int{3, 6, 12}

// TestScale prints what many processes are worth in a crawl, and checks what must hold whatever
// comes of it.
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
	t.Logf("%v of a crawl, %d places a process\n%s\nRedis\n%s", window, places, pages, redis)
}

// run simulates the cell's part of the crawl.
func (c *cell) run() {
	web, shares, perProcess, leased := Web{c.hosts, *seed}, [][]share(nil), places, time.Duration(0)
	if c.shared {
		leased = trip
	}
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

// check finds what must never be.
func (c *cell) check(t *testing.T) {
	t.Helper()
	r := c.result
	if r.Short > 0 || len(r.Gaps) == 0 {
		t.Errorf("%v: %d of %d gaps are under the delay", c, r.Short, len(r.Gaps))
	}
	if r.Requests > c.allowed || r.Pages == 0 {
		t.Errorf("%v: %d requests and %d pages, the delays allow %d", c, r.Requests, r.Pages, c.allowed)
	}
	if r.Busy > c.room {
		t.Errorf("%v: places were taken for %v, there are %v", c, r.Busy, c.room)
	}
	if granted := r.Commands - r.Refused; c.shared && (granted > 2*r.Requests+places*c.workers || granted < r.Requests) {
		t.Errorf("%v: %d commands for %d requests, and %d for nothing", c, granted, r.Requests, r.Refused)
	}
}

func (c *cell) String() string {
	return fmt.Sprintf("%s, %d hosts, %d processes", c.name, c.hosts, c.workers)
}

// print adds the cell to the tables.
func (c *cell) print(pages, redis *rows) {
	r, seconds := c.result, window.Seconds()
	delays, room := float64(c.allowed*c.part)/seconds, float64(places*c.workers)/meanAnswer.Seconds()
	rate := float64(r.Requests*c.part) / seconds
	pages.add(c.hosts, c.name, c.workers, rate*float64(r.Pages)/float64(r.Requests), delays, room,
		percent(rate/min(delays, room)), percent(1-float64(r.Busy)/float64(c.room)), percent(float64(median(r.Gaps))-1), c.known)
	if c.shared {
		redis.add(c.hosts, c.name, c.workers, float64(r.Commands*c.part)/seconds, fmt.Sprintf("%.2f", float64(r.Commands)/float64(r.Requests)),
			percent(float64(r.Refused)/float64(r.Commands)), percent(c.cluster[0]), percent(c.cluster[1]), percent(c.cluster[2]))
	}
}

// TestScaleWeb prints what the simulated web is like and how ShardByHost shares it out.
func TestScaleWeb(t *testing.T) {
	web := Web{*hosts, *seed}
	var pages, delayed, large, most int
	for host := range web.Hosts {
		n := web.pages(host)
		pages, most = pages+n, max(most, n)
		if web.crawlDelay(host) > 0 {
			delayed++
		}
		if n > 1000 {
			large++
		}
	}
	part := func(n int) string { return percent(float64(n) / float64(web.Hosts)) }
	t.Logf("%d hosts, %d pages, %.1f a host; %s with a Crawl-delay, %s of more than 1,000 pages, the largest of %d", web.Hosts, pages,
		float64(pages)/float64(web.Hosts), part(delayed), part(large), most)
	for _, n := range []int{10, 100} {
		b := balanceOf(byHost(web, n))
		t.Logf("%d shards, the largest: %v over the mean", n, b)
		if most := 1 + 5*math.Sqrt(float64(n)/float64(web.Hosts)); b.hosts > most {
			t.Errorf("%d shards: the largest has %.3f times the mean, want at most %.3f", n, b.hosts, most)
		}
	}
}

// TestScaleWhole crawls one share of a hundred to its end.
func TestScaleWhole(t *testing.T) {
	web := Web{*hosts, *seed}
	of := max(1, min(100, *hosts/1000))
	share := byHost(web, of)[:1]
	pages, longest := 0, time.Duration(0)
	for _, x := range share[0] {
		pages += int(x.pages)
		longest = max(longest, time.Duration(x.pages)*max(MinDelay, web.crawlDelay(int(x.host))))
	}
	c := newCrawl(web, share, places, 0)
	c.run(math.MaxInt64)
	ends := c.result.Ends
	if len(ends) != pages || c.result.Short > 0 {
		t.Fatalf("%d of %d pages, %d gaps under the delay", len(ends), pages, c.result.Short)
	}
	if last := ends[len(ends)-1]; last < longest {
		t.Errorf("done after %v, before %v which the host with the most to wait takes", last, longest)
	}
	t.Logf("one share of %d: %d hosts, %d pages; the places allow %v, the slowest host %v", of, len(share[0]), pages,
		(time.Duration(pages) * meanAnswer / places).Round(time.Second), longest.Round(time.Minute))
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		t.Logf("%5.1f %% of the pages after %v", 100*q, ends[int(q*float64(len(ends)-1))].Round(time.Second))
	}
}

// TestScaleLost prints what a lost process costs.
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
			t.Errorf("%s: %d gaps under the delay", l.name, l.Short)
		}
		slices.Sort(l.Silent)
		q := func(q float64) time.Duration {
			return l.Silent[int(q*float64(len(l.Silent)-1))].Round(100 * time.Millisecond)
		}
		all.add(l.name, l.later, len(l.Silent), q(0.5), q(0.99), q(1), l.Again, l.Short)
	}
	t.Logf("%d hosts, %d processes, one of which is lost after %v\n%s", web.Hosts, 10, at, all)
}

// A loss is how a crawl goes on after a process was lost, and what that came to.
type loss struct {
	way
	later   time.Duration // after which its work is taken over
	recover func(*crawl, *process)
	Result
}

// run simulates a crawl in which the first process is lost at a time.
func (l *loss) run(web Web, at time.Duration) {
	shares, leased := byHost(web, l.workers), time.Duration(0)
	if !l.split {
		shares = byPage(web, l.workers)
	}
	if l.shared {
		leased = trip
	}
	c := newCrawl(web, shares, places, leased)
	c.lose(at, l.later, at+20*time.Minute, l.recover)
	l.Result = c.result
}

// TestScaleMemory prints what hosts take in the pace of one process that has asked each of them.
func TestScaleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // hardly anything that is made here is not kept
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
	t.Logf("%d hosts in the pace: %.0f bytes each, %.2f GB", web.Hosts, bytes, bytes*float64(web.Hosts)/1e9)
	if bytes > 700 && !underRace {
		t.Errorf("%.0f bytes a host", bytes)
	}
}

// TestScaleIsTheSameAgain: the seed decides.
func TestScaleIsTheSameAgain(t *testing.T) {
	for _, w := range ways[1:4] {
		a, b := cell{way: w, hosts: 2000}, cell{way: w, hosts: 2000}
		a.run()
		b.run()
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%v: one run came to %d requests, the other to %d", &a, a.result.Requests, b.result.Requests)
		}
	}
}

func TestSlots(t *testing.T) {
	for tag, want := range map[string]int{"123456789": 0x31c3, "": 0} {
		if got := slot(tag); got != want {
			t.Errorf("slot(%q) = %#x, want %#x", tag, got, want)
		}
	}
}

// each calls f for all cells, as many at a time as there are processors.
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

// underRace reports whether the race detector is at work.
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

// rows are a table in Markdown.
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
