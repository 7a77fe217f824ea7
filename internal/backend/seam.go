package backend

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gocolly/colly/v2"
)

// A Seam is the transport of the http.Client that a backend holds in place of the user's client. A
// collector and its clones share a backend, so they share the Seam, but each collector may have its
// own controller. Requests of collectors without a controller pass through unchanged.
type Seam struct {
	only      Controller     // of all requests, if the Seam is from NewSeam; otherwise nil
	field     *clientPointer // of the backend; nil if the Seam is from NewSeam
	user      *http.Client   // the client that was found in the backend; never written to
	installed *http.Client   // the client in the backend
	check     uintptr        // the code of installed.CheckRedirect

	mu      sync.Mutex     // guards the fields of installed, jar and members
	jar     http.CookieJar // installed.Jar, unless a setter has replaced it
	members []member
	kept    atomic.Bool // see Keep
	changes atomic.Pointer[changes]
	limits  atomic.Pointer[timeouts] // of the transfers; nil if there is no timeout
}

// changes are the changes that the collector's setters have made since the Seam was installed. A
// field is nil or false if there was no such change.
type changes struct {
	transport *http.RoundTripper // points to nil after WithTransport(nil)
	redirect  *func(req *http.Request, via []*http.Request) error
	timeout   *time.Duration
	jar       bool
}

// A member is a collector that uses the backend and has a controller.
type member struct {
	collector  weak.Pointer[colly.Collector]
	controller Controller
}

// noTimeout is the Timeout of an installed client. It means no timeout to net/http, and differs
// from every value that a user sets. The Seam applies the user's timeout to each request instead:
// net/http lets one timeout run over a whole chain of redirects, so a redirect that waits for its
// host would use it up.
const noTimeout = -1

// newSeam returns a Seam that has not been installed yet.
func newSeam(field *clientPointer, user *http.Client) *Seam {
	client := *user
	s := &Seam{
		field:     field,
		user:      user,
		installed: &client,
		jar:       user.Jar,
	}
	s.changes.Store(new(changes))
	s.reset()
	s.check = codeOf(client.CheckRedirect)
	return s
}

// NewSeam returns a Seam that belongs to no collector. It sends requests with rt, and ctl is the
// controller of all of them. If rt is nil, the Seam keeps the current http.DefaultTransport: the
// program may make the Seam a part of the next one.
func NewSeam(rt http.RoundTripper, ctl Controller) *Seam {
	if rt == nil {
		rt = http.DefaultTransport
	}
	s := newSeam(nil, &http.Client{Transport: rt})
	s.only = ctl
	return s
}

// reset puts the transport, the timeout and the redirect check of the Seam into the installed
// client.
func (s *Seam) reset() {
	s.installed.Transport = s
	s.installed.Timeout = noTimeout
	s.installed.CheckRedirect = s.checkRedirect
}

// original returns the client that the backend would have without the Seam.
func (s *Seam) original() *http.Client {
	changed := s.changes.Load()
	if *changed == (changes{}) {
		return s.user
	}
	client := *s.user
	client.Jar = s.installed.Jar
	client.Timeout = s.Timeout()
	if changed.transport != nil {
		client.Transport = *changed.transport
	}
	if changed.redirect != nil {
		client.CheckRedirect = *changed.redirect
	}
	return &client
}

// sync takes over the changes that setters have made to the installed client, and resets the
// client. It also takes over a jar that the user has given to the user's own client.
func (s *Seam) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isCurrent() {
		return
	}
	now := *s.changes.Load()
	if s.installed.Transport != http.RoundTripper(s) {
		transport := withProxy(s.installed.Transport, s.transportBefore())
		now.transport = &transport
	}
	if s.installed.Timeout != noTimeout {
		timeout := s.installed.Timeout
		now.timeout = &timeout
	}
	if codeOf(s.installed.CheckRedirect) != s.check {
		check := s.installed.CheckRedirect
		now.redirect = &check
	}
	if !sameJar(s.installed.Jar, s.jar) {
		now.jar = true
	}
	if !now.jar {
		s.jar = s.user.Jar
		s.installed.Jar = s.jar
	}
	s.reset()
	s.changes.Store(&now)
}

// isCurrent reports whether there is nothing to take over. s.mu is held.
func (s *Seam) isCurrent() bool {
	c := s.installed
	if c.Transport != http.RoundTripper(s) || c.Timeout != noTimeout || codeOf(c.CheckRedirect) != s.check {
		return false
	}
	return s.changes.Load().jar || sameJar(c.Jar, s.jar) && sameJar(s.user.Jar, s.jar)
}

// transportBefore returns the transport that was set last, or nil if no transport was set.
func (s *Seam) transportBefore() http.RoundTripper {
	if set := s.changes.Load().transport; set != nil {
		return *set
	}
	return s.user.Transport
}

// codeOf returns the address of the code of a redirect check. Go cannot compare functions.
func codeOf(check func(*http.Request, []*http.Request) error) uintptr {
	return reflect.ValueOf(check).Pointer()
}

// sameJar reports whether a and b are the same jar. Jars of a type that cannot be compared count as
// the same.
func sameJar(a, b http.CookieJar) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return !reflect.TypeOf(a).Comparable() || a == b
}

// Keep makes the Seam stay in the backend after Release. It is called when a collector without a
// controller has sent through it. Such a collector may read the client at any time, even while
// Release would replace it.
func (s *Seam) Keep() {
	if !s.kept.Load() {
		s.kept.Store(true)
	}
}

// Collectors returns the collectors that use this Seam and have a controller.
func (s *Seam) Collectors() []*colly.Collector {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*colly.Collector
	for _, m := range s.members {
		if c := m.collector.Value(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// controllers returns the controllers of the collectors of this Seam, each of them once.
func (s *Seam) controllers() []Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Controller
	for _, m := range s.members {
		if !slices.Contains(all, m.controller) {
			all = append(all, m.controller)
		}
	}
	return all
}

// controllerOfCollector returns the controller of a collector, or nil.
func (s *Seam) controllerOfCollector(collector weak.Pointer[colly.Collector]) Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m.collector == collector {
			return m.controller
		}
	}
	return nil
}

// Transport returns the user's transport, which sends the requests of the Seam. It has the proxy
// and the TLS settings of the collector.
func (s *Seam) Transport() http.RoundTripper {
	rt := s.transportBefore()
	if rt == nil {
		return http.DefaultTransport
	}
	return rt
}

// Timeout returns the user's timeout for one request, or 0 if there is none.
func (s *Seam) Timeout() time.Duration {
	if t := s.changes.Load().timeout; t != nil {
		return *t
	}
	return s.user.Timeout
}

// limit returns the timeouts of a new transfer, or nil if there is no timeout.
func (s *Seam) limit() *timeouts {
	timeout := s.Timeout()
	l := s.limits.Load()
	if l == nil || l.length != timeout {
		l = newTimeouts(timeout)
		s.limits.Store(l)
	}
	return l
}

// Jar returns the cookie jar of the collectors of this Seam, or nil.
func (s *Seam) Jar() http.CookieJar {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.installed.Jar
}

// CloseIdleConnections makes http.Client.CloseIdleConnections reach the user's transport.
func (s *Seam) CloseIdleConnections() {
	if c, ok := s.Transport().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// checkRedirect calls the redirect check of the user. Then it resets the installed client: its
// transport may have been replaced by the user's check or while the request was under way, and
// net/http reads it again for each redirect.
func (s *Seam) checkRedirect(req *http.Request, via []*http.Request) error {
	defer s.sync()
	check := s.user.CheckRedirect
	if set := s.changes.Load().redirect; set != nil {
		check = *set
	}
	if check != nil {
		err := loopError(check(req, via), req, via)
		if ctl := s.controllerOf(req); ctl != nil {
			ctl.Redirected(req, err)
		}
		return err
	}
	if len(via) >= 10 { // as in net/http
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// ErrRedirectLoop reports that a redirect of a collector leads back to a URL that has led to it.
var ErrRedirectLoop = errors.New("collyrobots: redirect loop")

// loopError returns err, which is the result of a redirect check. If Colly does not follow the redirect
// because it leads back to a URL in via, the error is or wraps ErrRedirectLoop. Colly follows a first
// redirect to the first URL, because that may have set a cookie.
func loopError(err error, req *http.Request, via []*http.Request) error {
	if err == nil || !slices.ContainsFunc(via, func(r *http.Request) bool { return *r.URL == *req.URL }) {
		return err
	}
	visited := (*colly.AlreadyVisitedError)(nil)
	switch {
	case errors.As(err, &visited):
		return fmt.Errorf("%w: %w", ErrRedirectLoop, err)
	case err == http.ErrUseLastResponse && len(via) >= 10:
		return ErrRedirectLoop
	}
	return err
}

// A Way describes how the collectors of a Seam reach a host: their transport, its proxy and their
// timeout. Two values are equal if nothing has changed. A Way keeps nothing alive.
type Way struct {
	changes   weak.Pointer[changes] // differs between Seams, and after each change
	transport weak.Pointer[http.Transport]
	proxied   bool
	timeout   time.Duration
}

// Way returns how the collectors of this Seam currently reach a host.
func (s *Seam) Way() Way {
	way := Way{
		changes: weak.Make(s.changes.Load()),
		timeout: s.Timeout(),
	}
	if t, ok := s.Transport().(*http.Transport); ok {
		way.transport = weak.Make(t)
		way.proxied = t.Proxy != nil
	}
	return way
}
