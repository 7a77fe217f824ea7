package backend_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
)

// A request of a collector without a controller passes through the Seam of another collector. Each
// controller of the Seam is informed once.
func TestStray(t *testing.T) {
	server := redirecting(t)
	c := colly.NewCollector(colly.AllowURLRevisit())
	second := c.Clone()
	r := &recorder{knowsNo: true}
	other := &recorder{knowsNo: true}
	install(t, c, r)
	unattached := c.Clone()
	unattached.Context = t.Context()
	share := open(t, second).Client() == open(t, c).Client() // otherwise a clone has a client of its own
	install(t, second, other)
	for i, visit := range []struct {
		by     *colly.Collector
		strays int32
	}{
		{c, 0},
		{second, 0},
		{unattached, 1},
		{c, 1},
		{unattached, 2},
	} {
		if err := visit.by.Visit(server.URL + "/end"); err != nil {
			t.Fatal(err)
		}
		if r.strays.Load() != visit.strays || share && other.strays.Load() != visit.strays {
			t.Errorf("visit %d: %d and %d strays, want %d", i, r.strays.Load(), other.strays.Load(), visit.strays)
		}
	}
	if r.asked.Load() != 2 || other.asked.Load() != 1 {
		t.Errorf("asked about %d and %d requests, want 2 and 1", r.asked.Load(), other.asked.Load())
	}
}

func TestWatchPutsTheSeamBack(t *testing.T) {
	server := redirecting(t)
	changes := map[string]func(c *colly.Collector){
		"WithTransport": func(c *colly.Collector) {
			c.WithTransport(&http.Transport{DisableKeepAlives: true})
		},
		"SetClient": func(c *colly.Collector) {
			c.SetClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
		},
		"SetRedirectHandler": func(c *colly.Collector) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error { return nil })
		},
		"SetProxyFunc": func(c *colly.Collector) {
			c.SetProxyFunc(func(*http.Request) (*url.URL, error) { return nil, nil })
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c, redirects := countRedirects(t)
			for i := range 3 {
				if i == 1 {
					change(c)
				}
				if err := c.Visit(server.URL + "/"); err != nil {
					t.Fatal(err)
				}
			}
			if *redirects != 3 {
				t.Errorf("%d redirects, want 3", *redirects)
			}
		})
	}
}

// WithTransport(nil) takes a transport away, as without the plugin.
func TestWithTransportNil(t *testing.T) {
	server := redirecting(t)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	used := 0
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		used++
		return http.DefaultTransport.RoundTrip(req)
	}))
	install(t, c, new(recorder))
	for i, want := range []int{1, 1} {
		if i == 1 {
			c.WithTransport(nil)
		}
		if err := c.Visit(server.URL + "/end"); err != nil {
			t.Fatal(err)
		}
		if used != want {
			t.Errorf("visit %d: the transport was used %d times, want %d", i, used, want)
		}
	}
}

// A callback that sets a transport while a request is under way does not hide its redirects.
func TestTransportIsSetDuringARequest(t *testing.T) {
	server := redirecting(t)
	bare := &http.Transport{}
	defer bare.CloseIdleConnections()
	for name, in := range map[string]func(c *colly.Collector, replace func()){
		"OnRequestHeaders": func(c *colly.Collector, replace func()) {
			c.OnRequestHeaders(func(*colly.Request) { replace() })
		},
		"redirect handler": func(c *colly.Collector, replace func()) {
			c.SetRedirectHandler(func(*http.Request, []*http.Request) error {
				replace()
				return nil
			})
		},
		"OnError": func(c *colly.Collector, replace func()) {
			c.OnError(func(*colly.Response, error) { replace() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, redirects := countRedirects(t)
			in(c, func() { c.WithTransport(bare) })
			c.Visit("http://127.0.0.1:1/")
			for range 2 {
				if err := c.Visit(server.URL + "/"); err != nil {
					t.Fatal(err)
				}
			}
			if *redirects != 2 {
				t.Errorf("%d redirects, want 2", *redirects)
			}
		})
	}
}

// Collectors that share the user's client have controllers of their own, and nothing writes to the
// client.
func TestCollectorsShareAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Timeout: time.Minute, Transport: new(site)}
		before := *client
		var recorders []*recorder
		var visits sync.WaitGroup
		for range 4 {
			r := new(recorder)
			recorders = append(recorders, r)
			c := colly.NewCollector()
			c.SetClient(client)
			install(t, c, r)
			visits.Go(func() {
				if err := c.Visit("http://a.test/hang"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want a timeout", err)
				}
			})
		}
		visits.Wait()
		for _, r := range recorders {
			r.wantCounts(t, 2, 1, 2)
		}
		if client.Timeout != before.Timeout || client.Transport != before.Transport || client.CheckRedirect != nil || client.Jar != nil {
			t.Errorf("the user's client has changed: %+v", client)
		}
	})
}
