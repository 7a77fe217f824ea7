package scale

import (
	"math/rand/v2"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
)

// A crawl is some processes at work, in simulated time since the start.
type crawl struct {
	web       Web
	places    int // requests that a process has in flight at most
	now       time.Duration
	end       time.Duration // of this run
	events    events
	processes []*process
	leases    *leases // nil: the processes share no pace
	random    *rand.Rand
	asked     map[int]*asked // the hosts so far
	result    Result
}

// A process is one crawler.
type process struct {
	hosts *pace.Hosts
	start time.Time // that of the crawl, by the clock of hosts
	free  int       // places not taken
	due   line      // visits whose host may be asked, as far as is known here
	rest  []share   // what has not been begun
	begun []*visit
	dead  bool
}

// A share is the pages of one host that are one process's to fetch.
type share struct {
	host  int32
	pages int32
}

// A visit is a process's work at one host: a share that has been begun.
type visit struct {
	p      *process
	a      *asked
	ticket pace.Ticket
	host   int
	left   int           // pages
	robots bool          // the request in flight is for robots.txt
	read   bool          // the host's crawl delay is known to the process
	until  time.Duration // when the answer to the request in flight has been read
	again  time.Duration // after what time to ask for the host again
}

// asked is what is known of a host that has been asked: by its access log, as it were.
type asked struct {
	delay  time.Duration // in force
	robots bool          // robots.txt was read
	last   time.Duration // when the last request came; never: none has
	lease  lease
	watch  time.Duration // since when it could be asked again; never: nobody wants to know
}

const never = -1

// A Result is what came of a crawl.
type Result struct {
	Requests, Pages int             // begun; pages without robots.txt
	Busy            time.Duration   // of all places together, from starts to ends
	Gaps            []float32       // between two requests to a host, by the delay that was in force
	Short           int             // of these, those under the delay
	Commands        int             // sent to what keeps the shared pace
	Refused         int             // of these: where another process had the host, or its time had not come
	Ends            []time.Duration // when each page was read
	Silent          []time.Duration // by how much each host of a lost process was asked late
	Again           int             // pages that were fetched once more
}

// newCrawl returns a crawl by processes with these shares, each of which has some places. Where
// they share a pace, trip is the time of a round trip to what keeps it; 0: they do not.
func newCrawl(web Web, shares [][]share, places int, trip time.Duration) *crawl {
	c := &crawl{web: web, places: places, random: rand.New(rand.NewPCG(web.Seed, 3)), asked: make(map[int]*asked)}
	if trip > 0 {
		c.leases = &leases{trip: trip}
	}
	for _, rest := range shares {
		c.processes = append(c.processes, newProcess(c, rest))
	}
	return c
}

// newProcess returns a process that begins now, with an empty pace.
func newProcess(c *crawl, rest []share) *process {
	rules := &pace.Rules{MinDelay: MinDelay}
	return &process{
		rest: rest, free: c.places, hosts: pace.New(func(string) *pace.Rules { return rules }), start: time.Now().Add(-c.now),
	}
}

// run goes on until a time, or until nothing is left to do.
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

// after makes something happen to a visit after a time.
func (c *crawl) after(wait time.Duration, what func(*crawl, *visit), v *visit) {
	c.events.push(event{c.now + wait, what, v})
}

// dispatch fills the free places of p: with visits whose host is due, else with new ones.
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

// open begins the visit of p's next share.
func (c *crawl) open(p *process) *visit {
	next := p.rest[0]
	p.rest = p.rest[1:]
	host := int(next.host)
	a := c.asked[host]
	if a == nil {
		a = &asked{delay: MinDelay, last: never, watch: never}
		c.asked[host] = a
	}
	return p.visit(a, host, int(next.pages))
}

// visit begins one.
func (p *process) visit(a *asked, host, pages int) *visit {
	v := &visit{p: p, a: a, host: host, left: pages}
	p.begun = append(p.begun, v)
	return v
}

// due puts v in line.
func (c *crawl) due(v *visit) {
	if v.p.dead {
		return
	}
	v.p.due.push(v)
	c.dispatch(v.p)
}

// start sends v's next request if its pace lets it, from the place that v has taken. It reports
// whether it did.
func (c *crawl) start(v *visit) bool {
	p, a := v.p, v.a
	now := p.start.Add(c.now)
	h := p.hosts.At(now, c.web.name(v.host))
	if v.robots = !a.robots; !v.robots && !v.read {
		v.read = true // from the Store, or because another request has read it
		h.SetCrawlDelay(now, pace.Source{Scheme: "https"}, c.web.crawlDelay(v.host), time.Time{})
	}
	wait, ok := h.StartNow(now, &v.ticket, true)
	if !ok {
		p.free++
		c.after(wait, (*crawl).due, v)
		return false
	}
	c.count(a)
	if c.result.Requests++; !v.robots {
		c.result.Pages++
	}
	took := answer(c.random)
	c.result.Busy += min(took, c.end-c.now)
	v.until = c.now + took
	c.after(took, (*crawl).ended, v)
	return true
}

// count notes the gap before a request, as the host sees it.
func (c *crawl) count(a *asked) {
	r, now := &c.result, c.now
	if a.watch != never {
		r.Silent = append(r.Silent, max(now-a.watch, 0))
		a.watch = never
	}
	if a.last != never {
		gap := now - a.last
		r.Gaps = append(r.Gaps, float32(float64(gap)/float64(a.delay)))
		if gap < a.delay {
			r.Short++
		}
	}
	a.last = now
}

// ended is the end of v's request.
func (c *crawl) ended(v *visit) {
	if v.p.dead {
		return // nobody has read the answer
	}
	v.ticket.End()
	if v.robots {
		v.a.robots = true
		v.a.delay = max(MinDelay, c.web.crawlDelay(v.host))
	} else {
		v.left--
		c.result.Ends = append(c.result.Ends, c.now)
	}
	if c.leases != nil {
		c.leases.release(c, v)
	}
	if v.left > 0 {
		next := v.a.last + v.a.delay
		if c.leases != nil {
			next = c.now + v.a.delay
		}
		c.after(max(next-c.now, 0), (*crawl).due, v)
	}
	v.p.free++
	c.dispatch(v.p)
}
