package processes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/sitemap"
)

// TestShardOf checks shards that another program has computed from the documentation of ShardOf,
// because programs in other languages must find the same.
func TestShardOf(t *testing.T) {
	for _, tc := range []struct {
		url  string
		n    int
		want int
	}{
		{"http://example.com/", 1, 0},
		{"http://example.com/", 2, 1},
		{"http://example.com/", 10, 2},
		{"http://example.com/", 100, 2},
		{"http://example.com/", 1000000, 692700},
		{"https://www.example.com/x", 1, 0},
		{"https://www.example.com/x", 2, 1},
		{"https://www.example.com/x", 10, 6},
		{"https://www.example.com/x", 100, 6},
		{"https://www.example.com/x", 1000000, 188513},
		{"http://bücher.example/", 1, 0},
		{"http://bücher.example/", 2, 0},
		{"http://bücher.example/", 10, 5},
		{"http://bücher.example/", 100, 76},
		{"http://bücher.example/", 1000000, 824408},
		{"http://192.0.2.7:8080/", 1, 0},
		{"http://192.0.2.7:8080/", 2, 0},
		{"http://192.0.2.7:8080/", 10, 2},
		{"http://192.0.2.7:8080/", 100, 94},
		{"http://192.0.2.7:8080/", 1000000, 587158},
		{"http://[2001:db8::1]/", 1, 0},
		{"http://[2001:db8::1]/", 2, 0},
		{"http://[2001:db8::1]/", 10, 2},
		{"http://[2001:db8::1]/", 100, 47},
		{"http://[2001:db8::1]/", 1000000, 390434},
	} {
		if got, err := collyrobots.ShardOf(tc.url, tc.n); got != tc.want || err != nil {
			t.Errorf("%s of %d: got %d, %v; want %d", tc.url, tc.n, got, err, tc.want)
		}
	}
}

// TestShardOfSpellings checks that a host has the same shard in each spelling.
func TestShardOfSpellings(t *testing.T) {
	for _, same := range [][]string{
		{"http://example.com/", "https://example.com/x?y#z", "HTTP://EXAMPLE.com:80", "https://user:secret@Example.Com:8443/"},
		{"http://bücher.example/", "https://xn--bcher-kva.example/", "http://BÜCHER.example/"},
		{"http://[::1]/", "http://[0:0::1]:8080/"},
	} {
		want, err := collyrobots.ShardOf(same[0], 1000)
		kit.Must(t, err)
		for _, u := range same[1:] {
			if got, err := collyrobots.ShardOf(u, 1000); got != want || err != nil {
				t.Errorf("%s: got shard %d, %v; %s has %d", u, got, err, same[0], want)
			}
		}
	}
}

// TestShardOfErrors checks that ShardOf returns an error for invalid URLs and numbers.
func TestShardOfErrors(t *testing.T) {
	for _, tc := range []struct {
		url string
		n   int
	}{{"http://a.test/", 0}, {"http://a.test/", -1}, {"ftp://a.test/", 2}, {"/x", 2}, {"http://user:secret@a.test:x/", 2}, {"http:///x", 2}, {"mailto:a@a.test", 2}, {"", 2}} {
		if shard, err := collyrobots.ShardOf(tc.url, tc.n); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("ShardOf(%q, %d) = %d, %v; want an error", tc.url, tc.n, shard, err)
		}
	}
}

// hostsOf returns a host of each of n shards.
func hostsOf(t *testing.T, n int) []string {
	t.Helper()
	hosts := make([]string, n)
	for i := 0; slices.Contains(hosts, ""); i++ {
		host := fmt.Sprintf("h%d.test", i)
		shard, err := collyrobots.ShardOf("http://"+host, n)
		kit.Must(t, err)
		hosts[shard] = host
	}
	return hosts
}

// wantForeign checks that err is a ShardError with the URL and its shard.
func wantForeign(t *testing.T, err error, url string, shard, of int) {
	t.Helper()
	var foreign *report.ShardError
	if !errors.As(err, &foreign) || foreign.URL != url || foreign.Shard != shard || foreign.Of != of {
		t.Errorf("%s: got %v, want a ShardError with shard %d of %d", url, err, shard, of)
	}
}

// TestForeignHosts checks that neither pages nor robots.txt are requested from the host of another
// process, and that the error names its shard.
func TestForeignHosts(t *testing.T) {
	hosts := hostsOf(t, 2)
	own, foreign := "http://"+hosts[0], "http://"+hosts[1]
	web := robotstest.New(t, robotstest.Sites{
		hosts[0]: {"/robots.txt": kit.NoDenys, "/": robotstest.Page(foreign + "/linked"), "/redirect": robotstest.Redirect(foreign + "/target")},
		hosts[1]: robotstest.Pages(5, kit.NoDenys),
	})
	for name, opts := range map[string][]collyrobots.Option{"": nil, "dry run": {collyrobots.DryRun(true)}} {
		t.Run(name, func(t *testing.T) {
			c := kit.Start(t, web, nil, append(opts, collyrobots.ShardByHost(2, 0))...).Follow()
			wantForeign(t, c.Visit(foreign+"/1"), foreign+"/1", 1, 2)
			wantForeign(t, c.Denied[foreign+"/1"], foreign+"/1", 1, 2)
			kit.Must(t, c.Visit(own+"/"))
			wantForeign(t, c.Denied[foreign+"/linked"], foreign+"/linked", 1, 2)
			wantForeign(t, c.Visit(own+"/redirect"), foreign+"/target", 1, 2)
			wantForeign(t, c.Errs[own+"/redirect"], foreign+"/target", 1, 2)
			if len(c.Denied) != 3 {
				t.Errorf("OnDenied got %v, want 3 errors", c.Denied)
			}
			_, err := c.Robots.Check(t.Context(), foreign+"/3")
			wantForeign(t, err, foreign+"/3", 1, 2)
			if log := web.Log(hosts[1]); len(log) != 0 {
				t.Errorf("requests to the foreign host, want none:\n%s", log)
			}
			if n := len(c.Robots.Stats().Hosts); n != 1 {
				t.Errorf("Stats has %d hosts, want 1", n)
			}
		})
	}
}

// TestForeignPagesOfSitemaps checks that the foreign pages in a sitemap are reported like others,
// and that a sitemap on a foreign host is not read.
func TestForeignPagesOfSitemaps(t *testing.T) {
	hosts := hostsOf(t, 2)
	own, foreign := "http://"+hosts[0], "http://"+hosts[1]
	sites := robotstest.Sites{
		hosts[0]: {"/robots.txt": "User-agent: *\nDisallow: /x\nSitemap: /map.xml\nSitemap: " + foreign + "/map.xml\n", "/": robotstest.Page(), "/1": robotstest.Page(),
			"/map.xml": robotstest.Sitemap(own+"/1", own+"/x", foreign+"/1")},
		hosts[1]: {"/robots.txt": "User-agent: *\nDisallow: /\n", "/map.xml": robotstest.Sitemap(own + "/2")},
	}
	t.Run("FollowSitemaps", func(t *testing.T) {
		web := robotstest.New(t, sites)
		c := kit.Start(t, web, nil, collyrobots.ShardByHost(2, 0), collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny}))
		kit.Must(t, c.Visit(own+"/"))
		wantForeign(t, c.Denied[foreign+"/1"], foreign+"/1", 1, 2)
		kit.WantURIs(t, web, hosts[0], "/robots.txt / /map.xml /1")
		kit.WantURIs(t, web, hosts[1], "")
		if s := c.Robots.Stats().Sitemaps; s.FilesFailed != 1 || s.Denied != 1 || s.Fed != 2 {
			t.Errorf("got stats %+v", s)
		}
	})
	t.Run("Sink", func(t *testing.T) {
		web := robotstest.New(t, sites)
		var got []string
		sink := func(_ context.Context, e sitemap.Entry) error { got = append(got, e.Loc); return nil }
		c := kit.Start(t, web, nil, collyrobots.ShardByHost(2, 0), collyrobots.FollowSitemaps(collyrobots.Feed{Scope: collyrobots.ScopeAny, Sink: sink}))
		kit.Must(t, c.Visit(own+"/"))
		if want := []string{own + "/1", foreign + "/1"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		kit.WantURIs(t, web, hosts[1], "")
	})
	t.Run("Pages", func(t *testing.T) {
		web := robotstest.New(t, sites)
		c := kit.Start(t, web, nil, collyrobots.ShardByHost(2, 0))
		var got []string
		for e, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{Scope: collyrobots.ScopeAny}, own) {
			if err == nil {
				got = append(got, e.Loc)
			} else if u, _ := url.Parse(foreign); !strings.Contains(err.Error(), u.Host) {
				t.Error(err)
			}
		}
		if want := []string{own + "/1", foreign + "/1"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		kit.WantURIs(t, web, hosts[1], "")
	})
}

// TestRobotsTxtOnForeignHost checks that a robots.txt that redirects to the host of another
// process is read from there.
func TestRobotsTxtOnForeignHost(t *testing.T) {
	hosts := hostsOf(t, 2)
	web := robotstest.New(t, robotstest.Sites{
		hosts[0]: {"/robots.txt": robotstest.Redirect("http://" + hosts[1] + "/robots.txt"), "/": robotstest.Page()},
		hosts[1]: {"/robots.txt": kit.NoDenys},
	})
	c := kit.Start(t, web, nil, collyrobots.ShardByHost(2, 0))
	kit.Must(t, c.Visit("http://"+hosts[0]+"/"))
	kit.WantURIs(t, web, hosts[0], "/robots.txt /")
	kit.WantURIs(t, web, hosts[1], "/robots.txt")
}
