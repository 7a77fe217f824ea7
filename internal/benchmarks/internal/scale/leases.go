package scale

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// leases simulates the shared pace of store/redisstore. At most one process holds the lease of a
// host. The next request may start one delay after the end of the last response. If a process does
// not get the lease, it sends the next command after one delay, because no request can start before
// that. A process has at most one command per host under way.
type leases struct {
	trip time.Duration // a round trip to Redis
}

// A lease is the state of one host. The zero lease is that of a host without any commands.
type lease struct {
	holder   *visit // nil if the lease is free
	until    time.Duration
	delay    time.Duration // the longest delay of all commands
	next     time.Duration // the next request does not start before this time
	commands int
}

// leaseTime is how long a lease lasts if it is not released.
const leaseTime = 30 * time.Second

// ask sends a command for the lease of v's host. The response comes later.
func (l *leases) ask(c *crawl, v *visit) { c.after(l.trip/2, (*crawl).acquire, v) }

// acquire executes the command of ask in Redis.
func (c *crawl) acquire(v *visit) {
	l := c.leaseOf(v)
	if l.holder != nil && l.until <= c.now { // expired
		l.next = l.until + l.delay
		l.holder = nil
	}
	l.delay = max(l.delay, v.site.delay)
	switch {
	case l.holder != nil:
		c.refuse(v, l.delay)
	case l.next > c.now:
		c.refuse(v, l.next-c.now)
	default:
		l.holder = v
		l.until = c.now + leaseTime
		c.after(c.leases.trip/2, (*crawl).granted, v)
	}
}

// leaseOf returns the lease of v's host and counts a command.
func (c *crawl) leaseOf(v *visit) *lease {
	v.site.lease.commands++
	c.result.Commands++
	return &v.site.lease
}

// refuse responds that v does not get the lease and should ask again after a time.
func (c *crawl) refuse(v *visit, wait time.Duration) {
	c.result.Refused++
	v.again = wait
	c.after(c.leases.trip/2, (*crawl).refused, v)
}

// refused is called when the response of refuse arrives.
func (c *crawl) refused(v *visit) {
	if v.p.dead {
		return
	}
	c.after(v.again, (*crawl).due, v)
	v.p.free++
	c.dispatch(v.p)
}

// granted is called when the response arrives that v has got the lease.
func (c *crawl) granted(v *visit) {
	if v.p.dead {
		return
	}
	if !c.start(v) {
		c.leases.release(c, v)
	}
}

// release sends a command that releases the lease of v's host.
func (l *leases) release(c *crawl, v *visit) { c.after(l.trip/2, (*crawl).released, v) }

// released executes the command of release in Redis.
func (c *crawl) released(v *visit) {
	l := c.leaseOf(v)
	l.delay = max(l.delay, v.site.delay)
	if l.holder == v {
		l.holder = nil
		l.next = c.now + l.delay
	}
}

// busiest returns how many more commands than the mean the busiest of n masters of a cluster gets,
// as a share of the mean.
func (c *crawl) busiest(n int) float64 {
	shards := make([]int, n)
	all := 0
	for host, s := range c.sites {
		shards[hashSlot(tag(c.web.name(host)))*n/hashSlots] += s.lease.commands
		all += s.lease.commands
	}
	return float64(slices.Max(shards))*float64(n)/float64(all) - 1
}

// tag returns the hash tag of the keys of a host. There are 256 tags.
func tag(host string) string {
	h := fnv.New32a()
	h.Write([]byte(host))
	return strconv.Itoa(int(h.Sum32() % 256))
}

// hashSlots is the number of hash slots of a Redis Cluster.
const hashSlots = 1 << 14

// hashSlot returns the hash slot of a tag, which is the CRC-16 of the tag with the polynomial
// 0x1021 (Redis Cluster specification, "Key distribution model").
func hashSlot(tag string) int {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % hashSlots)
}
