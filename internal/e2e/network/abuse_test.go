package network

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file bound what the robots.txt and the sitemaps of one site can cost other
// sites and the crawl. They count the requests in the access log.

// lines returns n Sitemap lines. The format contains %d for the number of the line.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Sitemap: "+format+"\n", i)
	}
	return b.String()
}

// TestRequestsToOtherSitesAreBounded has a site that leads the crawler to other sites in all ways
// that a site can use. It checks how many requests arrive there, at how many hosts, and how far
// apart.
func TestRequestsToOtherSitesAreBounded(t *testing.T) {
	const most = 200 // requests to other sites that a site may cause
	page, none := robotstest.Page(), 404
	for name, tc := range map[string]struct {
		robots   string
		sitemap  any // the answer at /map.xml of the site
		victim   any // the answer of other sites, except for robots.txt
		requests int
		hosts    int
		last     time.Duration // the time of the last request
	}{
		"sitemaps on a host":           {lines(10_000, "http://victim.test/?%d"), none, page, most, 1, 199 * time.Second},
		"the same sitemap":             {strings.Repeat("Sitemap: http://victim.test/map.xml\nSitemap: HTTP://VICTIM.test:80/map.xml#x\n", 5_000), none, robotstest.Sitemap(), 2, 1, time.Second},
		"sitemaps on subdomains":       {lines(3_000, "http://h%d.victim.test/map.xml"), none, none, most, most / 2, 100 * time.Second},
		"sitemaps on many ports":       {lines(3_000, "http://victim.test:1%04d/map.xml"), none, none, most, most / 2, 100 * time.Second},
		"sitemaps on many domains":     {lines(1_000, "http://victim%d.test/map.xml"), none, none, 20, 10, 10 * time.Second},
		"sitemaps that redirect there": {lines(1_000, "http://a.test/to?http://victim.test/%d"), none, none, most, 1, 199 * time.Second},
		"an index":                     {"Sitemap: /map.xml", robotstest.SitemapIndex(urls(1_000, "http://victim.test/%d")...), none, most, 1, 199 * time.Second},
		"a chain between two hosts":    {lines(1_000, "http://victim.test/to?http://victim2.test/to?http://victim.test/%d"), none, none, most, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sites := robotstest.Sites{"a.test": {"/robots.txt": tc.robots, "/": page, "/map.xml": tc.sitemap, "*": forwardOr(none)}}
			for _, m := range regexp.MustCompile(`//([^/]*victim[^/]*)/`).FindAllStringSubmatch(tc.robots, -1) {
				sites[m[1]] = robotstest.Site{"/robots.txt": "", "*": forwardOr(tc.victim)}
			}
			sites["victim.test"] = robotstest.Site{"/robots.txt": "", "*": forwardOr(tc.victim)}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.MaxBackOff(0))
				began := time.Now()
				kit.Must(t, c.Visit("http://a.test/"))
				wantOutside(t, web, "a.test", tc.requests, tc.hosts)
				if log := web.Log(""); tc.last != 0 && log[len(log)-1].Time.Sub(began) != tc.last {
					t.Errorf("the last request came after %v, want %v", log[len(log)-1].Time.Sub(began), tc.last)
				}
				if said := strings.Count(c.Logged.String(), "\n"); said > 60 {
					t.Errorf("%d lines were logged, want at most 60", said)
				}
			})
		})
	}
}

// forwardOr returns a handler that redirects to the URL in the query. If there is none, it answers
// with a status or a body.
func forwardOr(answer any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch status, _ := answer.(int); {
		case strings.HasPrefix(r.URL.RawQuery, "http"):
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
		case status != 0:
			w.WriteHeader(status)
		default:
			fmt.Fprint(w, answer)
		}
	}
}

// urls returns n URLs. The format contains %d for the number of the URL.
func urls(n int, format string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// wantOutside fails the test if the number of requests to hosts other than site, or the number of
// these hosts, is different. The requests to each host must be at least a second apart.
func wantOutside(t *testing.T, web *robotstest.Web, site string, requests, hosts int) {
	t.Helper()
	last := map[string]time.Time{}
	n := 0
	for _, r := range web.Log("") {
		if r.Host == site {
			continue
		}
		n++
		if before, ok := last[r.Host]; ok && r.Time.Sub(before) < time.Second {
			t.Errorf("%s: request for %s %v after the previous one, want at least 1s", r.Host, r.URI, r.Time.Sub(before))
		}
		last[r.Host] = r.Time
	}
	if n != requests || len(last) != hosts {
		t.Errorf("%d requests to %d other hosts, want %d to %d", n, len(last), requests, hosts)
	}
}

// TestRetriesCountAsRequestsToOtherSites has a site that lists sitemaps on a host that drops every
// second connection. net/http and the plugin then send requests again. Each attempt must count.
func TestRetriesCountAsRequestsToOtherSites(t *testing.T) {
	asked := 0
	sites := robotstest.Sites{
		"a.test": {"/robots.txt": lines(1_000, "http://victim.test/%d"), "/": robotstest.Page()},
		"victim.test": {"/robots.txt": "", "*": func(w http.ResponseWriter, r *http.Request) {
			asked++
			if asked%2 == 0 {
				kit.Drop(w, r)
			}
		}},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		kit.Must(t, c.Visit("http://a.test/"))
		wantOutside(t, web, "a.test", 200, 1)
		distinct := map[string]bool{}
		for _, r := range web.Log("victim.test") {
			distinct[r.URI] = true
		}
		if again := 200 - len(distinct); again < 50 {
			t.Errorf("%d retries, want at least 50, so that the test proves something", again)
		}
	})
}

// TestGzipSitemapWithoutEnd serves a sitemap as an endless gzip stream of empty members. It is read
// only up to Limits.Raw, although it never contains a byte of text.
func TestGzipSitemapWithoutEnd(t *testing.T) {
	var member bytes.Buffer
	kit.Must(t, gzip.NewWriter(&member).Close())
	members := bytes.Repeat(member.Bytes(), 1000)
	const limit = 1 << 20
	sent := 0
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: /endless.xml\nSitemap: /map.xml\n", "/": robotstest.Page(), "/1": robotstest.Page(),
		"/map.xml": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, robotstest.Sitemap("http://a.test/1"))
			z.Close()
		},
		"/endless.xml": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			for sent < 100*limit {
				if _, err := w.Write(members); err != nil {
					return
				}
				sent += len(members)
			}
		},
	}}, func(t *testing.T, web *robotstest.Web) {
		f := collyrobots.Feed{}
		f.Limits.Raw = limit
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(f))
		kit.Must(t, c.Visit("http://a.test/"))
		c.Transport.CloseIdleConnections()
		synctest.Wait()
		if sent > 2*limit {
			t.Errorf("%d bytes were sent, want %d and the size of the buffers", sent, limit)
		}
		if s := c.Robots.Stats().Sitemaps; s.Fed != 1 || s.FilesCut != 1 {
			t.Errorf("got stats %+v, want one fed page and one truncated file", s)
		}
	})
}

// TestVerySlowSitemaps checks that sitemaps which send a byte every ten seconds delay the crawl by
// hours at most.
func TestVerySlowSitemaps(t *testing.T) {
	drip := func(out http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(out, " ")
			out.(http.Flusher).Flush()
			time.Sleep(10 * time.Second)
		}
	}
	for name, robots := range map[string]string{
		"of the site":     lines(5_000, "http://a.test/%d.xml"),
		"of another site": lines(5_000, "http://b.test/%d.xml"),
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"a.test": {"/robots.txt": robots, "/": robotstest.Page(), "*": drip},
				"b.test": {"/robots.txt": "", "*": drip},
			}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
				began := time.Now()
				c.Visit("http://a.test/")
				// The limit is four hours. Some of the files are read at the same time.
				if d := time.Since(began); d > 4*time.Hour+10*time.Minute {
					t.Errorf("the crawl took %v, want about 4h", d)
				}
				if n := len(web.Log("")); n > 4*60/5+8 {
					t.Errorf("%d requests that take five minutes each", n)
				}
			})
		})
	}
}

// TestEndlessRedirectsOfSitemaps checks that an endless chain of redirects costs six requests at
// most.
func TestEndlessRedirectsOfSitemaps(t *testing.T) {
	hops := 0
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: /loop.xml\nSitemap: http://a.test/on?0\nSitemap: http://a.test/to-self.xml\nSitemap: http://a.test/ping.xml\n", "/": robotstest.Page(),
		"/to-self.xml": robotstest.Redirect("/to-self.xml"),
		"/ping.xml":    robotstest.Redirect("http://b.test/pong.xml"),
		"*": func(out http.ResponseWriter, r *http.Request) {
			hops++
			http.Redirect(out, r, fmt.Sprint("/on?", hops), http.StatusFound)
		},
	}, "b.test": {"/robots.txt": robotstest.Redirect("http://a.test/robots.txt"), "/pong.xml": robotstest.Redirect("http://a.test/ping.xml")}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		c.Visit("http://a.test/")
		if n := len(web.Log("")); n > 30 {
			t.Errorf("%d requests, want at most 30: %s", n, kit.URIsOf(web.Log("")))
		}
	})
}

// TestEndlessIndexes has indexes that list more indexes without end. They are read up to Limits.
func TestEndlessIndexes(t *testing.T) {
	next := 0
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "Sitemap: http://a.test/0.xml\n", "/": robotstest.Page(),
		"*": func(out http.ResponseWriter, r *http.Request) {
			next += 3
			fmt.Fprint(out, robotstest.SitemapIndex(fmt.Sprintf("http://a.test/%d.xml", next), fmt.Sprintf("http://a.test/%d.xml", next+1), fmt.Sprintf("http://victim.test/%d.xml", next)))
		},
	}, "victim.test": {"*": 404}}, func(t *testing.T, web *robotstest.Web) {
		f := collyrobots.Feed{}
		f.Limits.Files, f.Limits.Depth = 100, 50
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(f))
		c.Visit("http://a.test/")
		if n := len(web.Log("")); n > 100+3 { // two robots.txt and the page
			t.Errorf("%d requests, want at most 103", n)
		}
	})
}

// TestInvalidHosts checks that a URL whose host is invalid is an error, wherever the URL comes
// from.
func TestInvalidHosts(t *testing.T) { kit.ForEachClient(t, testInvalidHosts) }

func testInvalidHosts(t *testing.T, start kit.Starter) {
	for _, host := range []string{"[::%25\xff]", "[::1%25%2f]", "[fe80::1%25a%0ab]", "", ".", "a\x00b.test", "a%ffb.test", strings.Repeat("a", 2000) + ".test", "a.test:99999"} {
		kit.InBubble(t, robotstest.Sites{"a.test": {
			"/robots.txt": "Sitemap: http://" + host + "/map.xml\n", "/": robotstest.Page(),
			"/hop": func(out http.ResponseWriter, _ *http.Request) {
				out.Header()["Location"] = []string{"http://" + host + "/"}
				out.WriteHeader(http.StatusFound)
			},
		}}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			if d, err := c.Robots.Check(t.Context(), "http://"+host+"/"); err == nil {
				t.Errorf("Check of %.40q returned %v, want an error", host, d)
			}
			if err := c.Visit("http://a.test/hop"); err == nil {
				t.Errorf("a redirect to %.40q succeeded, want an error", host)
			}
			kit.WantURIs(t, web, "a.test", "/robots.txt /hop")
		})
	}
}
