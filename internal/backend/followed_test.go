package backend_test

import (
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/gocolly/colly/v2"
)

// following returns a transport that follows redirects by itself.
func following(t *testing.T) http.RoundTripper {
	client := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		sent := req.Clone(req.Context())
		sent.RequestURI = ""
		return client.Do(sent)
	})
}

func TestTransportFollowsARedirect(t *testing.T) {
	server := redirecting(t)
	r := new(recorder)
	c := install(t, colly.NewCollector(), r)
	c.WithTransport(following(t))
	if err := c.Visit(server.URL + "/"); err != nil {
		t.Error(err)
	}
	r.wantCounts(t, 2, 2, 2)
	if followed := r.followed.Load(); followed != 1 {
		t.Errorf("%d redirects were followed, want 1", followed)
	}
}

func TestTransportFollowsARefusedRedirect(t *testing.T) {
	server := redirecting(t)
	refused := errors.New("refused")
	r := &recorder{redirect: func(*http.Request) error { return refused }}
	c := install(t, colly.NewCollector(), r)
	c.WithTransport(following(t))
	if err := c.Visit(server.URL + "/"); !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	r.wantCounts(t, 2, 1, 1)
}

// The address of the last connection is checked for the Trip of the redirect, which may refuse it.
func TestTransportFollowsARedirectToARefusedAddress(t *testing.T) {
	server := redirecting(t)
	refused := errors.New("refused")
	r := new(recorder)
	r.guard = func(string, net.Addr) error {
		if r.asked.Load() == 2 {
			return refused
		}
		return nil
	}
	c := install(t, colly.NewCollector(), r)
	c.WithTransport(following(t))
	if err := c.Visit(server.URL + "/"); !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	r.wantCounts(t, 2, 1, 2)
}
