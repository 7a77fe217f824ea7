package audit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
)

// TestRequestsAtOnce crawls a host without a delay with many requests in flight, on real connections.
// Their log has no faults.
func TestRequestsAtOnce(t *testing.T) {
	for range 5 {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer site.Close()
		dir := filepath.Join(t.TempDir(), "log")
		l := mustOpen(t, dir)
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		robots, err := collyrobots.WithRobots(c, quiet, collyrobots.PrivateNetworks(collyrobots.AllowAll), collyrobots.OnEveryEvent(l.Event))
		if err != nil {
			t.Fatal(err)
		}
		for n := range 400 {
			c.Visit(fmt.Sprintf("%s/%d", site.URL, n))
		}
		c.Wait()
		robots.Close()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		r, faults := verify(t, dir)
		if !r.OK() || r.Logs[0].Starts != 401 {
			t.Errorf("%d requests, faults: %q", r.Logs[0].Starts, faults)
		}
	}
}

// dialing makes the transport of a collector call before, with the number of the connection, before it
// makes a connection. If that returns an error, the connection fails.
func (p *programRun) dialing(c *colly.Collector, before func(n int) error) {
	transport := p.web.Transport()
	transport.DisableKeepAlives = true
	dial := transport.DialContext
	var count atomic.Int32
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := before(int(count.Add(1))); err != nil {
			return nil, err
		}
		return dial(ctx, network, address)
	}
	c.WithTransport(transport)
}

// overtakingPrograms are polite programs whose requests are not sent in the order in which they
// started, or not at all.
func overtakingPrograms() []program {
	refuse := func(robots any) program {
		return program{sites: siteOf(robots, ""), run: func(p *programRun) {
			robots := p.with()
			defer robots.Close()
			c := p.collector(robots)
			p.dialing(c, func(n int) error {
				if n%2 == 0 {
					return errors.New("connection refused")
				}
				return nil
			})
			for n := range 8 {
				time.Sleep(4 * time.Second)
				c.Visit(fmt.Sprintf("http://shop.test/%d", n))
			}
		}}
	}
	noDelay := refuse(404)
	noDelay.name = "connections that are refused, without a delay"
	delay := refuse(twoSeconds)
	delay.name = "connections that are refused"
	burst := program{name: "requests that overtake others", sites: siteOf(404, ""), run: func(p *programRun) {
		robots := p.with()
		defer robots.Close()
		c := p.collector(robots, colly.Async())
		p.dialing(c, func(n int) error {
			time.Sleep(time.Duration(n%3) * time.Second)
			return nil
		})
		for n := range 20 {
			c.Visit(fmt.Sprintf("http://shop.test/%d", n))
			if n%5 == 4 {
				c.Wait()
				time.Sleep(10 * time.Second)
			}
		}
	}}
	several := program{name: "requests that overtake others, with a delay", sites: siteOf(404, ""), run: func(p *programRun) {
		robots := p.with(collyrobots.MinDelay(2*time.Second), collyrobots.MaxInFlightPerHost(3))
		defer robots.Close()
		c := p.collector(robots, colly.Async())
		p.dialing(c, func(n int) error {
			time.Sleep(time.Duration(n%3) * 3 * time.Second)
			return nil
		})
		for n := range 20 {
			c.Visit(fmt.Sprintf("http://shop.test/%d", n))
			if n%5 == 4 {
				c.Wait()
				time.Sleep(10 * time.Second)
			}
		}
	}}
	silent := program{name: "a transport that does not report when a request is written", sites: siteOf(404, wait(3*time.Second)), run: func(p *programRun) {
		robots := p.with(collyrobots.MinDelay(2*time.Second), collyrobots.MaxInFlightPerHost(3))
		defer robots.Close()
		c := p.collector(robots, colly.Async())
		transport := &http.Transport{}
		transport.RegisterProtocol("http", untraced{p.web.Transport()})
		c.WithTransport(transport)
		for n := range 20 {
			c.Visit(fmt.Sprintf("http://shop.test/%d", n))
		}
		c.Wait()
	}}
	return []program{noDelay, delay, burst, several, silent}
}

// wait answers every third request after d, and the others at once.
func wait(d time.Duration) http.HandlerFunc {
	var count atomic.Int32
	return func(http.ResponseWriter, *http.Request) {
		if count.Add(1)%3 == 1 {
			time.Sleep(d)
		}
	}
}

// untraced is a RoundTripper that reports nothing to net/http/httptrace.
type untraced struct{ rt http.RoundTripper }

func (u untraced) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := u.rt.RoundTrip(req.WithContext(context.Background()))
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// TestOvertakingPrograms checks the logs of programs whose requests overtake others.
func TestOvertakingPrograms(t *testing.T) {
	for _, x := range overtakingPrograms() {
		t.Run(x.name, x.check)
	}
}
