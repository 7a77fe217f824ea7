package backend

import (
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// This file puts a Seam into the backend of a collector, keeps it there, and takes it out.

// ErrControlled reports that another controller has the collector.
var ErrControlled = errors.New("the collector already has another controller")

// installing guards seams, and is held while the client of a backend is replaced.
var installing sync.RWMutex

// seams maps each client that this package has created to its Seam. It keeps neither of them alive.
var seams = make(map[weak.Pointer[http.Client]]weak.Pointer[Seam])

// Install puts a Seam into the backend of the collector, unless the backend has one, and makes ctl
// the controller of the collector. fresh is false if ctl already was its controller. Install
// returns ErrControlled if the collector has another controller.
func (h *Handle) Install(ctl Controller) (s *Seam, fresh bool, err error) {
	installing.Lock()
	defer installing.Unlock()
	h.released = false
	return h.install(ctl)
}

// install is Install without the lock. installing is held.
func (h *Handle) install(ctl Controller) (s *Seam, fresh bool, err error) {
	s = h.ensureSeam()
	fresh, err = s.addMember(member{collector: weak.Make(h.collector), controller: ctl})
	if err != nil {
		return nil, false, err
	}
	return s, fresh, nil
}

// ensureSeam returns the Seam in the backend. It installs one if there is none. installing is held.
func (h *Handle) ensureSeam() *Seam {
	field := h.client()
	current := field.Load()
	if s := seams[weak.Make(current)].Value(); s != nil {
		return s
	}
	s := newSeam(field, withoutSeam(current))
	field.Store(s.installed)
	key := weak.Make(s.installed)
	seams[key] = weak.Make(s)
	runtime.AddCleanup(s, forget, key)
	return s
}

// withoutSeam returns c, or a client without a Seam if c is a copy of an installed client. A Colly whose
// clones have clients of their own copies the client of the parent.
func withoutSeam(c *http.Client) *http.Client {
	s, ok := c.Transport.(*Seam)
	if !ok {
		return c
	}
	user := *c
	user.Transport = s.transportBefore()
	if user.Timeout == noTimeout {
		user.Timeout = s.Timeout()
	}
	return &user
}

// forget removes the entry of a Seam that was garbage collected.
func forget(key weak.Pointer[http.Client]) {
	installing.Lock()
	defer installing.Unlock()
	delete(seams, key)
}

// current returns the Seam in the backend, or nil.
func (h *Handle) current() *Seam {
	installing.RLock()
	defer installing.RUnlock()
	return seams[weak.Make(h.Client())].Value()
}

// Watch returns the Seam of the collector, and puts it in place again if something has replaced it.
// SetProxy, WithTransport, SetRequestTimeout and similar methods replace a part of the client, and
// SetClient and Init replace the whole client.
//
// known is the result of the last call of Install or Watch, and ctl is the controller of the
// collector. Watch must be called before each request, by the goroutine that will send it.
func (h *Handle) Watch(known *Seam, ctl Controller) *Seam {
	if h.Client() != known.installed {
		known = h.putBack(known, ctl)
	}
	known.sync()
	return known
}

// putBack installs a Seam and returns it. It returns known if the collector was released.
func (h *Handle) putBack(known *Seam, ctl Controller) *Seam {
	installing.Lock()
	defer installing.Unlock()
	if h.released {
		return known
	}
	s, _, err := h.install(ctl)
	if err != nil {
		return known
	}
	return s
}

// Controller returns the controller of the collector, or nil.
func (h *Handle) Controller() Controller {
	s := h.current()
	if s == nil {
		return nil
	}
	return s.controllerOfCollector(weak.Make(h.collector))
}

// Stay makes sure that the backend has a Seam, and reports whether ctl sees the requests of the
// collector there. It is for a collector that is used after Release. The idle function of Release
// must then return false until the request has reached the Seam.
func (h *Handle) Stay(ctl Controller) bool {
	installing.Lock()
	defer installing.Unlock()
	h.ensureSeam()
	return Marked(h.collector.Context, ctl)
}

// Release removes ctl from all collectors of the backend. After it, Watch puts nothing in place. If
// no controller is left and idle reports that no request is under way, the backend gets its client
// back. This is the user's client, or a copy of it if the collector's setters have changed
// something since. No Seam can be installed while idle runs.
func (h *Handle) Release(ctl Controller, idle func() bool) {
	installing.Lock()
	defer installing.Unlock()
	h.released = true
	s := seams[weak.Make(h.Client())].Value()
	if s == nil {
		return
	}
	isIdle := idle()
	unused := s.removeMembers(ctl)
	if isIdle && unused {
		s.uninstall()
	}
}

// uninstall gives the backend its client back, unless something has replaced the client since.
// installing is held.
func (s *Seam) uninstall() {
	if s.field.Load() != s.installed {
		return
	}
	s.sync()
	s.field.Store(s.original())
}

// addMember adds a collector and its controller. fresh is false if the collector already has this
// controller. The error is ErrControlled if it has another one.
func (s *Seam) addMember(added member) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.collector.Value() == nil })
	for _, m := range s.members {
		if m.collector != added.collector {
			continue
		}
		if m.controller != added.controller {
			return false, ErrControlled
		}
		return false, nil
	}
	s.members = append(s.members, added)
	return true, nil
}

// removeMembers removes the collectors of ctl. It reports whether nothing needs the Seam any
// longer.
func (s *Seam) removeMembers(ctl Controller) (unused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.controller == ctl })
	return len(s.members) == 0 && !s.kept.Load()
}
