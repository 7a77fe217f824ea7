package pace

import (
	"math/rand/v2"
	"time"
)

// A Memory keeps what a later process has to know about the pace of hosts. host is the name of a
// group that hosts share, or of a host that is paced alone. The methods are called without a lock.
type Memory interface {
	// Load returns what was saved about a host, by this process or by an earlier one. It returns nil
	// if there is nothing.
	Load(host string) (*Kept, error)
	// Save replaces what was saved about a host, unless that is newer than k.
	Save(host string, k Kept)
}

// A Kept is what is saved about a host. If one is saved, the host may have got a request at any
// time until the end of the process that has saved it.
type Kept struct {
	Process   uint64        `json:"process"`             // a random number, which identifies the process
	At        time.Time     `json:"at"`                  // when it was saved
	Delay     time.Duration `json:"delay,omitempty"`     // the longest that a robots.txt requests, in nanoseconds
	Until     time.Time     `json:"until,omitzero"`      // when Delay expires
	BackOff   time.Duration `json:"back_off,omitempty"`  // the delay that complaints have caused, in nanoseconds
	NotBefore time.Time     `json:"not_before,omitzero"` // the end of the last Retry-After
}

// UseMemory makes the delays, the back-off and the Retry-After of all hosts hold also after a
// restart. It must be called before any other method. The pace of a host is loaded from m when the
// host is first used, and it is saved before the first request and by Host.Save. The time of each
// request is not saved. So the first request to a host that is in m starts one delay after New.
func (h *Hosts) UseMemory(m Memory) {
	h.memory = m
	h.process = rand.Uint64()
}

// longestKept limits how long a saved delay holds, because the clock may have been ahead.
const longestKept = 24 * time.Hour

// remembers reports whether the pace of g is saved.
func (g *Group) remembers() bool { return g.registry.memory != nil && !g.rules.Free }

// isUnknown reports whether the pace of g has to be loaded. g is locked.
func (g *Group) isUnknown() bool { return !g.isLoaded && g.remembers() }

// lockLoaded is like lock, but loads the pace of the group first.
func (h *Host) lockLoaded() (*Group, *Host) {
	g, host := h.lock()
	for g.isUnknown() {
		g.mu.Unlock()
		g.load()
		g, host = h.lock()
	}
	return g, host
}

// load loads the pace of g. If there is nothing to load, it saves that the host may get a request
// from now on.
func (g *Group) load() {
	registry := g.registry
	began := time.Now()
	k, err := registry.memory.Load(g.name)
	if k == nil {
		registry.memory.Save(g.name, Kept{Process: registry.process, At: began})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isLoaded {
		return
	}
	g.isLoaded = true
	now := registry.now()
	if err != nil || k != nil && k.Process != registry.process {
		g.last = max(g.last, 1)
	}
	if k != nil {
		g.restore(now, *k)
	}
	g.isPaced.Store(g.paced != nil || !g.unpaced(now))
}

// restore makes the pace k hold from now on.
func (g *Group) restore(now instant, k Kept) {
	registry := g.registry
	if until := min(registry.instant(k.Until), now.add(longestKept)); k.Delay > 0 && until > now {
		d := &crawlDelay{source: Source{Reader: "an earlier process"}, written: k.Delay, until: until}
		g.ensurePaced()
		g.addCrawlDelay(now, d, nil)
		g.paced.longest = nil
	}
	notBefore := min(registry.instant(k.NotBefore), now.add(maxRetryAfter))
	if !k.NotBefore.IsZero() && notBefore > now {
		g.ensurePaced().notBefore = notBefore
	}
	quiet := now.since(max(registry.instant(k.At), notBefore))
	if k.BackOff > 0 && quiet < longQuiet+10*k.BackOff {
		e := g.ensureEstimator(now)
		e.base = 1 / k.BackOff.Seconds()
		e.goal = e.base
		e.probe()
	}
	if g.paced != nil {
		g.paced.saved = &k
	}
}

// Save saves the pace of h if it has changed. The caller calls it after it has read a robots.txt of
// the host, and after a complaint.
func (h *Host) Save() {
	g, _ := h.lockLoaded()
	k, changed := g.change()
	g.mu.Unlock()
	if changed {
		g.registry.memory.Save(g.name, k)
	}
}

// change returns the pace of g, and reports whether it has to be saved. g is locked.
func (g *Group) change() (k Kept, changed bool) {
	if g.paced == nil || !g.remembers() {
		return Kept{}, false
	}
	k = g.kept(g.registry.now())
	if k.says(g.paced.saved) {
		return k, false
	}
	g.paced.saved = &k
	return k, true
}

// kept returns the pace of g at now.
func (g *Group) kept(now instant) Kept {
	k := Kept{Process: g.registry.process, At: time.Now(), BackOff: g.backOff(now)}
	for _, d := range g.paced.crawlDelays {
		if !g.inForce(now, d) {
			continue
		}
		k.Delay = max(k.Delay, d.delay(now))
		if until := g.registry.time(min(d.until, now.add(longestKept))); until.After(k.Until) {
			k.Until = until
		}
	}
	if until := g.notBefore(now); until != 0 {
		k.NotBefore = g.registry.time(until)
	}
	return k
}

// says reports whether k says what was saved. saved is nil if only the time was saved.
func (k *Kept) says(saved *Kept) bool {
	if saved == nil {
		saved = new(Kept)
	}
	return k.Delay == saved.Delay && k.BackOff == saved.BackOff && k.NotBefore.Equal(saved.NotBefore) && k.Until.Sub(saved.Until) < leastGrace
}
