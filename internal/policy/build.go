package policy

import "strings"

const robotsPath = "/robots.txt"

// policyOf is what f means for the authority of the file at robots.
func (c *Cache) policyOf(robots string, f facts) (p *Policy) {
	defer func() {
		if v := recover(); v != nil {
			p = c.policyOf(robots, facts{}.after(failed(silent, &PanicError{v})))
		}
	}()
	f = c.digest(f)
	v := c.row.judge(f)
	p = &Policy{
		Authority: strings.TrimSuffix(robots, robotsPath),
		RobotsURL: robots,
		Meaning:   v.meaning,
		Group:     c.reader.nothing.group,
		Expires:   v.expires,
		facts:     f,
	}
	p.explain()
	if v.meaning == Rules {
		p.obey(f.copy.reading)
	}
	return p
}

// digest reads the body of the copy, if that is still to be done, and lets go of it.
func (c *Cache) digest(f facts) facts {
	if f.copy == nil || f.copy.reading != nil && f.copy.reading.group != nil {
		return f
	}
	s := *f.copy
	if s.reading == nil {
		s.reading = c.reader.nothing
	} else {
		s.reading = c.reader.read(s.reading.body)
	}
	f.copy = &s
	return f
}

func (p *Policy) obey(r *reading) {
	p.Group, p.Sitemaps = r.group, r.sitemaps
	p.CrawlDelay, p.HasDelay = r.delay, r.hasDelay
}

// explain fills in where the policy comes from.
func (p *Policy) explain() {
	if s := p.facts.copy; s != nil {
		p.Status, p.Fetched = int(s.status), s.fetched()
		if s.class == astray {
			p.Err = &RedirectError{Status: p.Status, Hops: int(s.hops) - 1}
		}
	}
	if f := p.facts.failure; f != nil {
		p.Status, p.Err = f.status, f.err
		if p.facts.copy == nil || p.Meaning != Rules {
			p.Fetched = f.last
		}
	}
}
