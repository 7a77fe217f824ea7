package scale

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// leases is what keeps a shared pace, as store/redisstore does with Redis: a host is one holder's
// at a time, and its next start is one delay after the end of the last answer. Who finds it taken
// asks again after a delay, since nobody can start before that. It asks for one host at most once
// at a time.
type leases struct {
	trip time.Duration // there and back
}

// A lease is the state of one host. The zero lease is that of a host which nobody has asked for.
type lease struct {
	holder   *visit // nil: nobody
	until    time.Duration
	delay    time.Duration // the longest that was asked for
	next     time.Duration // nobody starts before
	commands int
}

// leaseTime is how long a holder that says nothing has a host.
const leaseTime = 30 * time.Second

// ask asks for v's host. What comes of it comes later.
func (l *leases) ask(c *crawl, v *visit) { c.after(l.trip/2, (*crawl).acquire, v) }

// acquire is what happens to a question where the leases are.
func (c *crawl) acquire(v *visit) {
	l := c.leaseOf(v)
	if l.holder != nil && l.until <= c.now { // it has vanished
		l.next, l.holder = l.until+l.delay, nil
	}
	l.delay = max(l.delay, v.a.delay)
	switch {
	case l.holder != nil:
		c.refuse(v, l.delay)
	case l.next > c.now:
		c.refuse(v, l.next-c.now)
	default:
		l.holder, l.until = v, c.now+leaseTime
		c.after(c.leases.trip/2, (*crawl).granted, v)
	}
}

// leaseOf returns the state of v's host, to which a command has come.
func (c *crawl) leaseOf(v *visit) *lease {
	v.a.lease.commands++
	c.result.Commands++
	return &v.a.lease
}

// refuse answers that v may ask again after a time.
func (c *crawl) refuse(v *visit, wait time.Duration) {
	c.result.Refused++
	v.again = wait
	c.after(c.leases.trip/2, (*crawl).refused, v)
}

// refused is the answer's arrival.
func (c *crawl) refused(v *visit) {
	if v.p.dead {
		return
	}
	c.after(v.again, (*crawl).due, v)
	v.p.free++
	c.dispatch(v.p)
}

// granted is the other answer's.
func (c *crawl) granted(v *visit) {
	if v.p.dead {
		return
	}
	if !c.start(v) {
		c.leases.release(c, v)
	}
}

// release gives v's host back.
func (l *leases) release(c *crawl, v *visit) { c.after(l.trip/2, (*crawl).released, v) }

// released is that where the leases are.
func (c *crawl) released(v *visit) {
	l := c.leaseOf(v)
	l.delay = max(l.delay, v.a.delay)
	if l.holder == v {
		l.holder, l.next = nil, c.now+l.delay
	}
}

// busiest returns by what share of the mean the busiest of n shards of a cluster gets more commands
// than that.
func (c *crawl) busiest(n int) float64 {
	shards, all := make([]int, n), 0
	for host, a := range c.asked {
		shards[slot(tag(c.web.name(host)))*n/slots] += a.lease.commands
		all += a.lease.commands
	}
	return float64(slices.Max(shards))*float64(n)/float64(all) - 1
}

// tag returns the hash tag of a host's keys: it is in one of 256 buckets.
func tag(host string) string {
	h := fnv.New32a()
	h.Write([]byte(host))
	return strconv.Itoa(int(h.Sum32() % 256))
}

// slots is how many hash slots a Redis Cluster has.
const slots = 1 << 14

// slot returns the slot of a hash tag: its CRC-16 with the polynomial 0x1021, as the Redis Cluster
// specification says.
func slot(tag string) int {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % slots)
}
