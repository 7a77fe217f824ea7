package backend_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/collyrobots/collyrobots/internal/backend"
)

type outer struct{ http.RoundTripper }

func (o outer) Unwrap() http.RoundTripper { return o.RoundTripper }

// ProxyURL has the name of a function of net/http, but its result is not fixed.
func ProxyURL(calls *int) func(*http.Request) (*url.URL, error) {
	return func(*http.Request) (*url.URL, error) {
		*calls++
		return &url.URL{Scheme: "http", Host: "other.test"}, nil
	}
}

// TestFixedProxy checks which proxies are known to be the same for each request. A function of the
// user must not be called.
func TestFixedProxy(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.test", User: url.UserPassword("u", "p")}
	calls := 0
	inside := func() http.RoundTripper { return &http.Transport{Proxy: http.ProxyURL(proxy)} }
	for name, tc := range map[string]struct {
		rt   http.RoundTripper
		want *url.URL
	}{
		"http.ProxyURL":      {&http.Transport{Proxy: http.ProxyURL(proxy)}, proxy},
		"in a function":      {inside(), proxy},
		"in another":         {outer{outer{&http.Transport{Proxy: http.ProxyURL(proxy)}}}, proxy},
		"unknown outer":      {struct{ http.RoundTripper }{&http.Transport{Proxy: http.ProxyURL(proxy)}}, nil},
		"no URL":             {&http.Transport{Proxy: http.ProxyURL(nil)}, nil},
		"no proxy":           {&http.Transport{}, nil},
		"of the environment": {&http.Transport{Proxy: http.ProxyFromEnvironment}, nil}, // see TestPlan
		"of the user":        {&http.Transport{Proxy: ProxyURL(&calls)}, nil},
	} {
		if got := backend.FixedProxy(tc.rt, &url.URL{Scheme: "http", Host: "127.0.0.1"}); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	if calls != 0 {
		t.Error("the function of the user was called")
	}
}
