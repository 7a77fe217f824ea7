package scale

import (
	"math/rand/v2"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// A crawl simulates several processes. Times count from the start of the crawl.
type crawl struct {
	web       Web
	slots     int // the largest number of requests that a process has in flight
	now       time.Duration
	end       time.Duration // of the current run
	events    events
	processes []*process
	leases    *leases // nil if the processes do not share a pace
	random    *rand.Rand
	sites     map[int]*site // the hosts that were requested, by number
	result    Result
}

// A process is one crawler.
type process struct {
	hosts *pace.Hosts
	start time.Time // the start of the crawl, by the clock of hosts
	free  int       // slots without a request
	due   line      // visits whose next request may start, as far as the process knows
	rest  []share   // the shares without a visit
	begun []*visit
	dead  bool
}

// A share is the pages of one host that one process fetches.
type share struct {
	host  int32
	pages int32
}

// A visit is the work of a process at one host. It begins with a share.
type visit struct {
	p      *process
	site   *site
	ticket pace.Ticket
	host   int
	left   int           // pages that were not fetched
	robots bool          // the request in flight is for robots.txt
	read   bool          // the process knows the crawl delay of the host
	until  time.Duration // when the response to the request in flight has been read
	again  time.Duration // how long to wait before the next command for the host
}

// A site is a host that was requested. Its fields are what its access log would show.
type site struct {
	delay  time.Duration // in force
	robots bool          // robots.txt was read
	last   time.Duration // when the last request came; never if there was none
	lease  lease
	watch  time.Duration // when a process was lost and the host could get a request; never if it is not watched
}

const never = -1

// A Result contains the measurements of a crawl.
type Result struct {
	Requests int             // started requests
	Pages    int             // started requests, except those for robots.txt
	Busy     time.Duration   // the total time of all requests
	Gaps     []float32       // the gaps between two requests to a host, each divided by the delay in force
	Short    int             // the number of gaps that are shorter than the delay
	Commands int             // the number of commands sent to Redis
	Refused  int             // the number of commands that did not get the host
	Ends     []time.Duration // when each page was read
	Silent   []time.Duration // how late each host of a lost process got its next request
	Again    int             // the number of pages that were fetched twice
}

// newCrawl returns a crawl by processes with the given shares. slots is the largest number of
// requests that a process has in flight. trip is the time of a round trip to Redis, or 0 if the
// processes do not share a pace.
func newCrawl(web Web, shares [][]share, slots int, trip time.Duration) *crawl {
	c := &crawl{web: web, slots: slots, random: rand.New(rand.NewPCG(web.Seed, 3)), sites: make(map[int]*site)}
	if trip > 0 {
		c.leases = &leases{trip: trip}
	}
	for _, rest := range shares {
		c.processes = append(c.processes, newProcess(c, rest))
	}
	return c
}

// newProcess returns a process that starts now, with an empty pace.
func newProcess(c *crawl, rest []share) *process {
	rules := &pace.Rules{MinDelay: MinDelay}
	return &process{
		hosts: pace.New(func(string) *pace.Rules { return rules }),
		start: time.Now().Add(-c.now),
		free:  c.slots,
		rest:  rest,
	}
}

// run continues the crawl until a time, or until there is nothing left to do.
func (c *crawl) run(until time.Duration) {
	c.end = until
	for _, p := range c.processes {
		c.dispatch(p)
	}
	for len(c.events) > 0 && c.events[0].at <= until {
		e := c.events.pop()
		c.now = e.at
		e.what(c, e.v)
	}
	c.now = until
}

// after calls what with v after a time.
func (c *crawl) after(wait time.Duration, what func(*crawl, *visit), v *visit) {
	c.events.push(event{at: c.now + wait, what: what, v: v})
}

// dispatch fills the free slots of p with visits whose host is due, and then with new visits.
func (c *crawl) dispatch(p *process) {
	for p.free > 0 && !p.dead {
		v := p.due.pop()
		if v == nil && len(p.rest) > 0 {
			v = c.open(p)
		}
		if v == nil {
			return
		}
		p.free--
		if c.leases != nil {
			c.leases.ask(c, v)
		} else {
			c.start(v)
		}
	}
}

// open begins a visit with the next share of p.
func (c *crawl) open(p *process) *visit {
	next := p.rest[0]
	p.rest = p.rest[1:]
	host := int(next.host)
	s := c.sites[host]
	if s == nil {
		s = &site{delay: MinDelay, last: never, watch: never}
		c.sites[host] = s
	}
	return p.visit(s, host, int(next.pages))
}

// visit begins a visit of some pages of a host.
func (p *process) visit(s *site, host, pages int) *visit {
	v := &visit{p: p, site: s, host: host, left: pages}
	p.begun = append(p.begun, v)
	return v
}

// due appends v to the visits whose next request may start.
func (c *crawl) due(v *visit) {
	if v.p.dead {
		return
	}
	v.p.due.push(v)
	c.dispatch(v.p)
}

// start starts the next request of v, which has a slot, if the pace allows it. Otherwise it frees
// the slot. It reports whether the request was started.
func (c *crawl) start(v *visit) bool {
	p := v.p
	now := p.start.Add(c.now)
	h := p.hosts.At(now, c.web.name(v.host))
	v.robots = !v.site.robots
	if !v.robots && !v.read {
		v.read = true // from the Store, or by another request
		h.SetCrawlDelay(now, pace.Source{Scheme: "https"}, c.web.crawlDelay(v.host), time.Time{})
	}
	wait, ok := h.StartNow(now, &v.ticket, true)
	if !ok {
		p.free++
		c.after(wait, (*crawl).due, v)
		return false
	}
	c.count(v.site)
	c.result.Requests++
	if !v.robots {
		c.result.Pages++
	}
	took := responseTime(c.random)
	c.result.Busy += min(took, c.end-c.now)
	v.until = c.now + took
	c.after(took, (*crawl).ended, v)
	return true
}

// count records the gap before a request, as the host sees it.
func (c *crawl) count(s *site) {
	r := &c.result
	if s.watch != never {
		r.Silent = append(r.Silent, max(c.now-s.watch, 0))
		s.watch = never
	}
	if s.last != never {
		gap := c.now - s.last
		r.Gaps = append(r.Gaps, float32(float64(gap)/float64(s.delay)))
		if gap < s.delay {
			r.Short++
		}
	}
	s.last = c.now
}

// ended is called when the request of v has ended.
func (c *crawl) ended(v *visit) {
	if v.p.dead {
		return // the response is lost
	}
	v.ticket.End()
	if v.robots {
		v.site.robots = true
		v.site.delay = max(MinDelay, c.web.crawlDelay(v.host))
	} else {
		v.left--
		c.result.Ends = append(c.result.Ends, c.now)
	}
	if c.leases != nil {
		c.leases.release(c, v)
	}
	if v.left > 0 {
		next := v.site.last + v.site.delay
		if c.leases != nil {
			next = c.now + v.site.delay
		}
		c.after(max(next-c.now, 0), (*crawl).due, v)
	}
	v.p.free++
	c.dispatch(v.p)
}
