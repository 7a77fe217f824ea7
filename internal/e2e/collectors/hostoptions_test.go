package collectors

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestPatterns checks that all patterns that match a host apply, the later one wins, and the options of
// the whole crawl apply to all hosts, also those that are given after ForHosts.
func TestPatterns(t *testing.T) {
	kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
		sites := robotstest.Sites{}
		for _, host := range []string{"a.test", "b.a.test", "c.test"} {
			sites[host] = robotstest.Pages(3, "User-agent: *\nDisallow: /2\nRequest-rate: 1/8s\n")
		}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil,
				collyrobots.ForHosts("*.test", collyrobots.MinDelay(2*time.Second)),
				collyrobots.ForHosts("*.a.test", collyrobots.MinDelay(4*time.Second)),
				collyrobots.HostOptions(func(host string) []collyrobots.HostOption {
					if host == "c.test" {
						return []collyrobots.HostOption{collyrobots.Dialect(dialect.Seznam()), collyrobots.RobotsTxt([]byte("User-agent: *\nRequest-rate: 1/8s\n"))}
					}
					return nil
				}),
				collyrobots.ForHosts("c.*", collyrobots.MinDelay(3*time.Second)),
				collyrobots.MinDelay(time.Second))
			c.Impolite = true // RobotsTxt replaces the file of c.test
			for host := range sites {
				for i := range 3 {
					c.Visit(fmt.Sprintf("http://%s/%d", host, i))
				}
			}
			c.Wait()
			for host, want := range map[string]string{"a.test": "2s", "b.a.test": "4s", "c.test": "8s"} {
				log := web.Log(host)
				if gap := log[1].Time.Sub(log[0].Time).String(); gap != want {
					t.Errorf("%s: a gap of %s, want %s", host, gap, want)
				}
			}
			kit.WantURIs(t, web, "c.test", "/0 /1 /2")
			kit.WantURIs(t, web, "a.test", "/robots.txt /0 /1")
		})
	})
}

// TestHostOptions checks how often the function is called, also by many goroutines, and that options
// inside it need the same others as inside ForHosts.
func TestHostOptions(t *testing.T) {
	sites := robotstest.Sites{}
	for i := range 20 {
		sites[fmt.Sprintf("h%d.test", i)] = robotstest.Pages(5, kit.NoDenys)
	}
	var calls sync.Map
	var all atomic.Int32
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.HostOptions(func(host string) []collyrobots.HostOption {
			all.Add(1)
			calls.Store(host, true)
			return []collyrobots.HostOption{collyrobots.MaxPagesPerHost(3)}
		}))
		for i := range 5 {
			for host := range sites {
				c.Visit(fmt.Sprintf("http://%s/%d", host, i))
			}
		}
		c.Wait()
		for host := range sites {
			if n := len(web.Log(host)); n != 4 {
				t.Errorf("%s got %d requests, want 4", host, n)
			}
			if _, ok := calls.Load(host); !ok {
				t.Errorf("the function was not called for %s", host)
			}
		}
		if c.Robots.Stats().Totals.Denied != 40 {
			t.Errorf("%d pages were denied, want 40", c.Robots.Stats().Totals.Denied)
		}
	})
	if n := all.Load(); n < 20 || n > 100 {
		t.Errorf("%d calls for 20 hosts and 100 pages", n)
	}
}

// TestFaultsOfHostOptions checks that no request is sent to a host whose options are not valid, through
// any door, and that the error names the host and each fault.
func TestFaultsOfHostOptions(t *testing.T) {
	sites := robotstest.Sites{
		"good.test":     robotstest.Pages(2, kit.NoDenys),
		"redirect.test": {"/robots.txt": kit.NoDenys, "/": robotstest.Redirect("http://negative.test/new")},
	}
	texts := map[string]string{
		"negative.test":  `"negative.test": MinDelay: -1ns is negative`,
		"both.test":      `"both.test": WhenForbidden: has no effect with RobotsTxt; remove one of them`,
		"usage.test":     `"usage.test": EnforceUsage: needs the option Purpose`,
		"zero.test:8080": `"zero.test:8080": Option: number 1 is nil or zero`,
		"panics.test":    `"panics.test": the function has panicked: no list`,
	}
	for host := range texts {
		sites[host] = robotstest.Pages(1, kit.NoDenys)
	}
	web := robotstest.New(t, sites)
	c := kit.Start(t, web, nil, collyrobots.HostOptions(func(host string) []collyrobots.HostOption {
		switch host {
		case "negative.test":
			return []collyrobots.HostOption{collyrobots.MinDelay(-1)}
		case "both.test":
			return []collyrobots.HostOption{collyrobots.RobotsTxt([]byte{}), collyrobots.WhenForbidden(collyrobots.DenyAll)}
		case "usage.test":
			return []collyrobots.HostOption{collyrobots.EnforceUsage(true)}
		case "zero.test:8080":
			return []collyrobots.HostOption{{}}
		case "panics.test":
			panic("no list")
		}
		return nil
	}))
	client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
	for host, text := range texts {
		url := "http://" + host + "/"
		_, checked := c.Robots.Check(t.Context(), url)
		_, got := kit.Get(client, url)
		_, acquired := c.Robots.Acquire(t.Context(), kit.NewRequest(t, url))
		_, file := c.Robots.Robots(t.Context(), url)
		for i, err := range []error{c.Visit(url), checked, got, acquired, file} {
			var fault *collyrobots.OptionError
			if !errors.As(err, &fault) || fault.Option != "HostOptions" || !strings.Contains(err.Error(), text) {
				t.Errorf("%s through door %d: %v", host, i, err)
			}
		}
		if n := len(web.Log(host)); n != 0 {
			t.Errorf("%s got %d requests", host, n)
		}
	}
	kit.Must(t, c.Visit("http://good.test/0"))
	if err := c.Visit("http://redirect.test/"); err == nil || !strings.Contains(err.Error(), texts["negative.test"]) {
		t.Errorf("a redirect to a host with a fault: %v", err)
	}
	if slices.ContainsFunc(web.Log(""), func(r robotstest.Request) bool { return texts[r.Host] != "" }) {
		t.Errorf("a host with a fault got a request: %v", web.Log(""))
	}
}
