package collyrobots

import (
	"errors"
	"fmt"
	"slices"
	"weak"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

// Attach makes c obey robots.txt. It also turns off Colly's built-in check.
//
// Call Attach before the first Visit, and after the registration of OnRequest callbacks that may
// abort requests or change them. Callbacks that are registered later also work, but each request
// that they abort costs its host one delay. A second Attach of the same collector has no effect,
// unless Collector.Init was called in between.
//
// A clone made by Colly's own Clone has no callbacks, and must be attached itself. Until then its
// requests wait while they hold a LimitRule slot, and each counts as in flight only until the
// headers of its response are there.
//
// Attach does not change the user's http.Client. It gives the collector a client of the plugin
// instead. A collector and its clones have one client together, so none of them may have requests
// under way when the first of them is attached. Other collectors are not affected, even if they
// share a client or a transport with c.
//
// A debugger of c also receives each Event, with the Type "robots." and the Kind. The plugin calls
// it in the callbacks of c, on the goroutines on which Colly calls it, so the debugger needs no
// more locks than without the plugin. An event that happens between two callbacks is delivered in
// the next one, or in Close.
//
// Attach returns ErrAttached if c has another plugin that is not closed, ErrNilCollector if c is
// nil, and another error if this package does not know the version of Colly that made c. After an
// error c is unchanged.
//
// Attach one plugin to a collector, and keep it. Colly cannot remove callbacks, so each further
// plugin, after the Close of the one before, adds five callbacks to c, which cost time for each
// page. A program with many jobs makes one collector per job, or one plugin for all jobs.
func (p *Plugin) Attach(c *colly.Collector) error {
	if err := p.usable(); err != nil {
		return err
	}
	if c == nil {
		return ErrNilCollector
	}
	handle, err := backend.Open(c)
	if err != nil {
		return fmt.Errorf("collyrobots: Attach: %w", err)
	}
	seam, fresh, err := handle.Install(p.controller)
	if errors.Is(err, backend.ErrControlled) {
		return ErrAttached
	}
	if !c.IgnoreRobotsTxt {
		c.IgnoreRobotsTxt = true
	}
	p.warnOfUncheckedRequests(c)
	if !backend.Marked(c.Context, p.controller) && !backend.TakeOver(c.Context, p.controller, isClosed) {
		c.Context = backend.Mark(c.Context, p.controller)
	}
	if h := p.hooksOf(c); !fresh || h != nil { // if Collector.Init has undone the rest, the callbacks are still there
		return errors.Join(h.watchStorage(), p.frontier.watch(h))
	}
	h := &hooks{core: p.core, controller: p.controller, c: c, handle: handle}
	h.inPlace.Store(seam)
	h.enforcesTags = slices.ContainsFunc(p.settings.all(), func(s *hostSettings) bool { return s.enforceTags })
	err = errors.Join(h.watchStorage(), p.revalidation.add(h), p.frontier.add(h))
	if err != nil {
		return err
	}
	p.remember(h)
	h.attach()
	h.debugger.Store(p.debuggers.add(handle, p.report))
	return nil
}

// warnOfUncheckedRequests warns if c has sent requests before any plugin was attached to it.
func (p *Plugin) warnOfUncheckedRequests(c *colly.Collector) {
	var n int
	fmt.Sscanf(c.String(), "Requests made: %d", &n) // Colly has no other getter
	if n > 0 && !backend.EverMarked(c.Context) {
		p.report.warn("Attach was called after the first Visit: the requests that the collector had made by then were not checked", "count", n)
	}
}

// isClosed reports whether ctl is the controller of a plugin that is closed.
func isClosed(ctl backend.Controller) bool {
	own, ok := ctl.(*controller)
	return ok && own.closed.Load()
}

// remember records a collector. From time to time it forgets those that are gone.
func (p *Plugin) remember(h *hooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.hooks)
	if isPowerOfTwo := n > 0 && n&(n-1) == 0; isPowerOfTwo {
		p.hooks = slices.DeleteFunc(p.hooks, func(w weak.Pointer[hooks]) bool { return w.Value() == nil })
	}
	p.hooks = append(p.hooks, weak.Make(h))
}

// hooksOf returns the hooks of a collector, or nil.
func (p *Plugin) hooksOf(c *colly.Collector) *hooks {
	return p.find(func(h *hooks) bool { return h.c == c })
}

// userAgent returns that of the first collector that still exists. If none does, it returns the one
// that robots.txt was last read for, or "".
func (p *Plugin) userAgent() string {
	h := p.first()
	if h != nil {
		return h.c.UserAgent
	}
	return p.policies.lastUserAgent()
}

// first returns the hooks of the first collector that still exists, or nil.
func (p *Plugin) first() *hooks {
	return p.find(func(*hooks) bool { return true })
}

// find returns the first hooks that match accepts, or nil.
func (p *Plugin) find(match func(*hooks) bool) *hooks {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.hooks {
		h := w.Value()
		if h != nil && match(h) {
			return h
		}
	}
	return nil
}
