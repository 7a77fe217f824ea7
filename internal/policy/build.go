package policy

// policyOf is what f means here and now.
func (c *Cache) policyOf(k key, f facts) (p *Policy) {
	defer func() {
		if v := recover(); v != nil {
			p = c.policyOf(k, facts{}.after(failed(silent, &PanicError{v})))
		}
	}()
	f = c.digest(f)
	v := c.row.judge(f)
	robots := k.authority() + "/robots.txt"
	p = &Policy{
		Authority: robots[:len(robots)-len("/robots.txt")],
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
	if f.copy == nil || f.copy.reading != nil {
		return f
	}
	s := *f.copy
	s.reading, s.body = c.reader.read(s.body), nil
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

// weight estimates the octets that p keeps in memory. A text read for one crawler takes no more than itself.
func (p *Policy) weight() uint32 {
	const bare = 480 // measured: policy, key, cache entry
	if p.facts.copy == nil || p.facts.copy.reading == nil {
		return bare
	}
	return bare + uint32(p.facts.copy.reading.size)
}
