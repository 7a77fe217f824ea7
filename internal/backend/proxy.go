package backend

import (
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
)

// This file keeps the user's transport when Colly sets a proxy.

// withProxy returns the transport that Colly would have created if the Seam were not in place.
// Colly's SetProxy and SetProxyFunc change a *http.Transport of the collector, but they replace any
// other RoundTripper, and so the Seam, by a transport without the settings of the user. set is the
// transport that was set, and before is the user's transport before that.
func withProxy(set, before http.RoundTripper) http.RoundTripper {
	proxied, ok := set.(*http.Transport)
	if !ok {
		return set
	}
	user, ok := before.(*http.Transport)
	if !ok || !isFromSetProxy(proxied, user) {
		return set
	}
	merged := user.Clone()
	for scheme, rt := range protocols(user) {
		merged.RegisterProtocol(scheme, rt)
	}
	merged.Proxy = proxied.Proxy
	merged.DisableKeepAlives = true
	return merged
}

// isFromSetProxy reports whether set looks like a transport that SetProxyFunc has created: it has a
// proxy and no keep-alives, and nothing else is set. SetProxyFunc(nil) removes a proxy, so a
// transport without a proxy counts only if before has one from SetProxyFunc. So SetProxy and
// SetProxyFunc(nil) with no request in between look like a new transport of the user, and a
// transport of the user with only these two fields looks like one from SetProxyFunc.
func isFromSetProxy(set, before *http.Transport) bool {
	if !set.DisableKeepAlives {
		return false
	}
	if set.Proxy == nil && (before.Proxy == nil || !before.DisableKeepAlives) {
		return false
	}
	v := reflect.ValueOf(set).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Name == "Proxy" || f.Name == "DisableKeepAlives" || !f.IsExported() {
			continue
		}
		if !v.Field(i).IsZero() {
			return false
		}
	}
	return len(protocols(set)) == 0
}

// protocols returns the protocols that RegisterProtocol has added to t. Transport.Clone does not
// copy them.
func protocols(t *http.Transport) map[string]http.RoundTripper {
	f := reflect.ValueOf(t).Elem().FieldByName("altProto")
	if !f.IsValid() || f.Type() != reflect.TypeFor[atomic.Value]() {
		return nil // this version of Go keeps them elsewhere
	}
	all, _ := (*atomic.Value)(f.Addr().UnsafePointer()).Load().(map[string]http.RoundTripper)
	added := maps.Clone(all)
	if rt := added["https"]; rt != nil && reflect.TypeOf(rt).PkgPath() == "net/http" {
		delete(added, "https") // net/http's own, for HTTP/2
	}
	return added
}

// MayProxy reports whether rt sends a request for u through a proxy, or may do so. A Proxy function
// of the user is not called, because each call may choose another proxy. MayProxy assumes that it
// chooses one.
func MayProxy(rt http.RoundTripper, u *url.URL) bool {
	transport, ok := rt.(*http.Transport)
	if !ok || transport.Proxy == nil {
		return false
	}
	if reflect.ValueOf(transport.Proxy).Pointer() != reflect.ValueOf(http.ProxyFromEnvironment).Pointer() {
		return true
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	return proxy != nil || err != nil
}

// FixedProxy returns the URL of the proxy that rt sends every request for u through. It returns nil
// if there is none, or if the next request may use another one. A Proxy function is called only if
// it is one of net/http, because a call of any other may change which proxy is next. If rt has a
// method Unwrap, as transports around another one have, FixedProxy looks at the transport inside.
func FixedProxy(rt http.RoundTripper, u *url.URL) *url.URL {
	for {
		outer, ok := rt.(interface{ Unwrap() http.RoundTripper })
		if !ok {
			break
		}
		rt = outer.Unwrap()
	}
	if rt == nil {
		rt = http.DefaultTransport
	}
	transport, ok := rt.(*http.Transport)
	if !ok || transport.Proxy == nil || !isOfNetHTTP(transport.Proxy) {
		return nil
	}
	proxy, err := transport.Proxy(&http.Request{URL: u})
	if err != nil {
		return nil
	}
	return proxy
}

// isOfNetHTTP reports whether proxy is http.ProxyFromEnvironment or a result of http.ProxyURL, as
// Colly's SetProxy uses. The latter has a name such as "net/http.ProxyURL.func1". If the compiler has
// moved it into a function p.f, the name is "p.f.ProxyURL.func2" or "p.f.func1.ProxyURL.1".
func isOfNetHTTP(proxy func(*http.Request) (*url.URL, error)) bool {
	pc := reflect.ValueOf(proxy).Pointer()
	if pc == reflect.ValueOf(http.ProxyFromEnvironment).Pointer() {
		return true
	}
	f := runtime.FuncForPC(pc)
	if f == nil || !strings.Contains(f.Name(), ".ProxyURL.") {
		return false
	}
	file, _ := f.FileLine(pc)
	return strings.HasSuffix(file, "net/http/transport.go")
}
