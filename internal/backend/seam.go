package backend

import (
	"errors"
	"maps"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
)

// A Seam is what a collector's backend holds in place of the user's client, and shares with the
// backend's clones. It serves any number of governors, and lets through untouched what belongs to
// none of them.
type Seam struct {
	slot  *slot        // the backend's
	user  *http.Client // as it was found; never written to
	own   *http.Client // in the backend
	check uintptr      // the code of own's redirect check

	mu     sync.Mutex     // for own's fields, jar and the lists
	jar    http.CookieJar // as own has it, unless the collector was given another
	owners []owner
	kept   atomic.Bool // see Keep
	set    atomic.Pointer[settings]
}

// settings are what the collector's setters have changed since; nil and zero: nothing.
type settings struct {
	transport http.RoundTripper
	redirect  *func(req *http.Request, via []*http.Request) error
	timeout   *time.Duration
	jar       bool
}

// An owner is a collector of the backend and the governor it is attached to.
type owner struct {
	collector weak.Pointer[colly.Collector]
	governor  Governor
}

// moved is the Timeout of own: no timeout to net/http, and another value than any user's. The seam
// applies the user's to each exchange: net/http lets one timeout run over a whole chain of
// redirects, so that a hop's wait for its host would use it up, and hides the collector's context
// behind it.
const moved = -1

// ErrOwned means that another governor has the collector.
var ErrOwned = errors.New("backend: the collector has a governor already")

// installing is held where a backend gets another client, and guards seams.
var installing sync.RWMutex

// seams has the seam of each client that this package has made. It keeps neither alive.
var seams = make(map[weak.Pointer[http.Client]]weak.Pointer[Seam])

// Install puts a seam into c's backend, unless there is one, and makes g govern c. It reports
// whether it did not before. The error is ErrOwned.
func (h *Handle) Install(g Governor) (s *Seam, fresh bool, err error) {
	installing.Lock()
	defer installing.Unlock()
	h.released = false
	return h.install(g)
}

// install is Install with installing held.
func (h *Handle) install(g Governor) (s *Seam, fresh bool, err error) {
	s = h.seam()
	key := weak.Make(h.collector)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners = slices.DeleteFunc(s.owners, func(o owner) bool { return o.collector.Value() == nil })
	for _, o := range s.owners {
		switch {
		case o.collector != key:
		case o.governor == g:
			return s, false, nil
		default:
			return nil, false, ErrOwned
		}
	}
	s.owners = append(s.owners, owner{key, g})
	return s, true, nil
}

// seam returns the seam in the backend, put there if need be. installing is held.
func (h *Handle) seam() *Seam {
	slot := h.slot()
	user := slot.Load()
	if s := seams[weak.Make(user)].Value(); s != nil {
		return s
	}
	s := &Seam{slot: slot, user: user}
	own := *s.user
	s.own, s.jar = &own, own.Jar
	s.set.Store(new(settings))
	own.Transport, own.CheckRedirect, own.Timeout = s, s.checkRedirect, moved
	s.check = codeOf(own.CheckRedirect)
	slot.Store(s.own)
	key := weak.Make(s.own)
	seams[key] = weak.Make(s)
	runtime.AddCleanup(s, forget, key)
	return s
}

func forget(key weak.Pointer[http.Client]) {
	installing.Lock()
	defer installing.Unlock()
	delete(seams, key)
}

// Watch returns the seam of the collector and puts it in place again where something was put before
// it: by SetProxy, WithTransport, SetRequestTimeout and the like, or by SetClient or Init, which
// replace the whole client. Called before each request, it notices what was replaced while nothing
// of this goroutine is on the wire. known is what Install or Watch returned last, g who governs the
// collector.
func (h *Handle) Watch(known *Seam, g Governor) *Seam {
	if h.slot().Load() != known.own {
		known = h.putBack(known, g)
	}
	known.sync()
	return known
}

// putBack puts a seam in place, unless the collector was released. It returns that, or known.
func (h *Handle) putBack(known *Seam, g Governor) *Seam {
	installing.Lock()
	defer installing.Unlock()
	if h.released {
		return known
	}
	if s, _, err := h.install(g); err == nil {
		return s
	}
	return known
}

// sync takes over what was set on own.
func (s *Seam) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untouched() {
		return
	}
	now := *s.set.Load()
	if s.own.Transport != http.RoundTripper(s) {
		before := s.user.Transport
		if now.transport != nil {
			before = now.transport
		}
		now.transport = carryOver(s.own.Transport, before)
	}
	if s.own.Timeout != moved {
		timeout := s.own.Timeout
		now.timeout = &timeout
	}
	if codeOf(s.own.CheckRedirect) != s.check {
		check := s.own.CheckRedirect
		now.redirect = &check
	}
	if !now.jar && !same(s.own.Jar, s.jar) {
		now.jar = true
	}
	if !now.jar {
		s.jar = s.user.Jar
		s.own.Jar = s.jar
	}
	s.own.Transport, s.own.Timeout, s.own.CheckRedirect = s, moved, s.checkRedirect
	s.set.Store(&now)
}

// untouched reports whether own is as the seam left it. s.mu is held.
func (s *Seam) untouched() bool {
	return s.own.Transport == http.RoundTripper(s) && s.own.Timeout == moved && codeOf(s.own.CheckRedirect) == s.check &&
		(s.set.Load().jar || same(s.own.Jar, s.jar) && same(s.user.Jar, s.jar))
}

// codeOf returns where the code of a redirect check is. Functions cannot be compared.
func codeOf(check func(*http.Request, []*http.Request) error) uintptr {
	return reflect.ValueOf(check).Pointer()
}

// same reports whether a and b are one jar. Jars that cannot be compared are taken for one.
func same(a, b http.CookieJar) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return !reflect.TypeOf(a).Comparable() || a == b
}

// Owner returns the governor of the collector, or nil.
func (h *Handle) Owner() Governor {
	installing.RLock()
	s := seams[weak.Make(h.slot().Load())].Value()
	installing.RUnlock()
	if s == nil {
		return nil
	}
	key := weak.Make(h.collector)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.owners {
		if o.collector == key {
			return o.governor
		}
	}
	return nil
}

// Keep leaves the seam in the backend for good: collectors without a governor send through it, too,
// and may do so at the very moment at which Release would write to what they read.
func (s *Seam) Keep() {
	if !s.kept.Load() {
		s.kept.Store(true)
	}
}

// Stay makes sure that there is a seam in the backend, and reports whether g sees the requests of the
// collector there. It is for a collector that is used after Release, which must report that it is
// not idle until the exchange has begun.
func (h *Handle) Stay(g Governor) bool {
	installing.Lock()
	defer installing.Unlock()
	h.seam()
	return Marked(h.collector.Context, g)
}

// Release makes g govern no collector of the backend any more, and lets Watch put nothing in place
// any more. If that leaves no governor, and idle reports that no request is under way, the backend
// gets its client back: the user's own, or where the collector's setters have changed something
// since, a copy with these changes. idle is called while no seam can be put in place.
func (h *Handle) Release(g Governor, idle func() bool) {
	installing.Lock()
	defer installing.Unlock()
	h.released = true
	if s := seams[weak.Make(h.slot().Load())].Value(); s != nil {
		s.remove(g, idle())
	}
}

func (s *Seam) remove(g Governor, restore bool) {
	s.mu.Lock()
	s.owners = slices.DeleteFunc(s.owners, func(o owner) bool { return o.governor == g })
	restore = restore && len(s.owners) == 0 && !s.kept.Load()
	s.mu.Unlock()
	if !restore || s.slot.Load() != s.own {
		return
	}
	s.sync()
	set := s.set.Load()
	if *set == (settings{}) {
		s.slot.Store(s.user)
		return
	}
	client := *s.user
	client.Jar, client.Timeout = s.own.Jar, s.Timeout()
	if set.transport != nil {
		client.Transport = set.transport
	}
	if set.redirect != nil {
		client.CheckRedirect = *set.redirect
	}
	s.slot.Store(&client)
}

// governor returns who governs collectors of this seam and has let the request through, or nil. It
// serves requests that carry no mark, since their collector's Context was replaced.
func (s *Seam) governor(req *http.Request) Governor {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.owners {
		if o.governor.Knows(req.URL) {
			return o.governor
		}
	}
	return nil
}

// stray tells all who govern collectors of this seam of a request that is none of theirs.
func (s *Seam) stray(req *http.Request) {
	s.mu.Lock()
	owners := slices.Clone(s.owners)
	s.mu.Unlock()
	for i, o := range owners {
		if !slices.ContainsFunc(owners[:i], func(before owner) bool { return before.governor == o.governor }) {
			o.governor.Stray(req)
		}
	}
}

// Collectors returns the collectors of this seam that have a governor.
func (s *Seam) Collectors() (all []*colly.Collector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.owners {
		if c := o.collector.Value(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// Transport returns the transport below the seam: the collector's, with its proxy and its TLS
// settings.
func (s *Seam) Transport() http.RoundTripper {
	if t := s.set.Load().transport; t != nil {
		return t
	}
	if s.user.Transport != nil {
		return s.user.Transport
	}
	return http.DefaultTransport
}

// Timeout returns how long the user lets one exchange take; 0: for ever.
func (s *Seam) Timeout() time.Duration {
	if t := s.set.Load().timeout; t != nil {
		return *t
	}
	return s.user.Timeout
}

// A Way is how the collectors of a seam reach a host: their transport, its proxy and the time that
// they wait. Two of them are equal if nothing has changed. It keeps nothing alive.
type Way struct {
	settings  weak.Pointer[settings] // each seam has its own, and new ones after each change
	transport weak.Pointer[http.Transport]
	proxied   bool
	timeout   time.Duration
}

// Way returns how the collectors of this seam reach a host now.
func (s *Seam) Way() Way {
	way := Way{settings: weak.Make(s.set.Load()), timeout: s.Timeout()}
	if t, ok := s.Transport().(*http.Transport); ok {
		way.transport = weak.Make(t)
		way.proxied = t.Proxy != nil
	}
	return way
}

// Jar returns the cookies of the collectors of this seam, or nil.
func (s *Seam) Jar() http.CookieJar {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own.Jar
}

// checkRedirect asks whoever decides about redirects. Then it puts the seam in place again: a
// transport may have been replaced while the request was under way, or by the user's handler, and
// net/http looks at it anew for each hop.
func (s *Seam) checkRedirect(req *http.Request, via []*http.Request) error {
	defer s.sync()
	check := s.user.CheckRedirect
	if set := s.set.Load().redirect; set != nil {
		check = *set
	}
	if check == nil { // what net/http does then
		if len(via) >= 10 {
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return check(req, via)
}

// carryOver returns the transport that Colly would have if it had found before in place. SetProxy
// changes the *http.Transport of a collector, but replaces any other RoundTripper, such as a seam,
// by a transport without the user's settings.
func carryOver(now, before http.RoundTripper) http.RoundTripper {
	set, ok := now.(*http.Transport)
	kept, known := before.(*http.Transport)
	if !ok || !known || !bySetProxy(set, kept) {
		return now
	}
	merged := kept.Clone()
	for scheme, rt := range protocols(kept) {
		merged.RegisterProtocol(scheme, rt)
	}
	merged.Proxy = set.Proxy
	merged.DisableKeepAlives = true
	return merged
}

// bySetProxy reports whether set is what SetProxyFunc makes: it has a proxy, no keep-alives and
// nothing else. Without a proxy it is only taken for that if before has one of SetProxyFunc, which
// is removed then.
func bySetProxy(set, before *http.Transport) bool {
	if !set.DisableKeepAlives || set.Proxy == nil && (before.Proxy == nil || !before.DisableKeepAlives) {
		return false
	}
	v := reflect.ValueOf(set).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && f.Name != "Proxy" && f.Name != "DisableKeepAlives" && !v.Field(i).IsZero() {
			return false
		}
	}
	return len(protocols(set)) == 0
}

// protocols returns what RegisterProtocol has added to t, which Transport.Clone leaves out.
func protocols(t *http.Transport) map[string]http.RoundTripper {
	f := reflect.ValueOf(t).Elem().FieldByName("altProto")
	if !f.IsValid() || f.Type() != reflect.TypeFor[atomic.Value]() {
		return nil // it is kept elsewhere in this version of Go
	}
	all, _ := (*atomic.Value)(f.Addr().UnsafePointer()).Load().(map[string]http.RoundTripper)
	added := maps.Clone(all)
	if rt := added["https"]; rt != nil && reflect.TypeOf(rt).PkgPath() == "net/http" {
		delete(added, "https") // net/http's own, for HTTP/2
	}
	return added
}
