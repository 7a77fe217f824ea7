package scale

import (
	"slices"
	"time"
)

// kill ends a process at once. Its pages in flight are fetched again, and its hosts are watched.
func (c *crawl) kill(p *process) {
	p.dead = true
	for _, v := range p.begun {
		if v.left == 0 {
			continue
		}
		if v.until > c.now && !v.robots {
			c.result.Again++
		}
		v.site.watch = max(c.now, v.site.last+v.site.delay)
	}
}

// restart replaces a killed process by a new one. The new process has an empty pace, but the crawl
// delays of robots.txt files that were read are known.
func (c *crawl) restart(dead *process) {
	p := newProcess(c, dead.rest)
	c.processes[slices.Index(c.processes, dead)] = p
	for _, v := range dead.begun {
		if v.left > 0 {
			p.due.push(p.visit(v.site, v.host, v.left))
		}
	}
	c.dispatch(p)
}

// spread divides the rest of the work of a killed process among the other processes.
func (c *crawl) spread(p *process) {
	var others []*process
	for _, o := range c.processes {
		if o != p {
			others = append(others, o)
		}
	}
	i := 0
	next := func() *process {
		i++
		return others[i%len(others)]
	}
	for _, v := range p.begun {
		if v.left > 0 {
			o := next()
			o.due.push(o.visit(v.site, v.host, v.left))
		}
	}
	for _, s := range p.rest {
		o := next()
		o.rest = append(o.rest, s)
	}
	for _, o := range others {
		c.dispatch(o)
	}
}

// lose runs a crawl until a time, and loses its first process at another time. recover is called
// some time after that.
func (c *crawl) lose(at, later, until time.Duration, recover func(*crawl, *process)) {
	c.run(at)
	c.kill(c.processes[0])
	c.run(at + later)
	recover(c, c.processes[0])
	c.run(until)
}
