package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

// crawl runs a worker that uses the plugin: a spider that visits pages of all hosts in turn.
func (j *job) crawl(ctx context.Context, s *redisstore.Store) int {
	c := collyrobots.NewCollector(colly.UserAgent(j.Name+"/1.0"), colly.Async(true), colly.StdlibContext(ctx))
	c.WithTransport(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, j.Site)
	}})
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("Worker", j.Name) })
	robots, err := c.WithRobots(collyrobots.MinDelay(j.Delay), collyrobots.Logger(slog.New(slog.DiscardHandler)), collyrobots.Store(s), collyrobots.SharedPace(s))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer robots.Close()
	for page := range 40 {
		for n := range j.Hosts {
			_ = c.Visit(fmt.Sprintf("http://host%d.example/%s%d", n, j.Name, page))
		}
		_ = c.Visit(fmt.Sprintf("http://host%d.example/private/%d", page%j.Hosts, page))
	}
	c.Wait()
	return 0
}

// TestPlugins checks that spiders in several processes keep the delay of a robots.txt that only one
// of them has fetched, and that they continue with the hosts of a spider that was killed.
func TestPlugins(t *testing.T) {
	t.Parallel()
	const crawlDelay, hosts = time.Second, 3
	s, web := newServer(t), newSite(t)
	var spiders []*worker
	for n := range 3 {
		spiders = append(spiders, newWorker(t, job{Name: fmt.Sprint("spider", n), Redis: s.addr, Site: web.addr, Hosts: hosts, Plugin: true, Lease: 3 * time.Second}))
	}
	time.Sleep(7 * time.Second)
	spiders[0].kill()
	killed := time.Now()
	time.Sleep(6 * time.Second)
	for n := range hosts {
		visits := web.visits(fmt.Sprintf("host%d.example", n))
		files, later := 0, 0
		for _, v := range visits {
			if v.path == "/robots.txt" {
				files++
			}
			if v.at.After(killed.Add(time.Second)) {
				later++
			}
		}
		t.Logf("host %d: %d visits, %d of them since a spider was killed", n, len(visits), later)
		if files != 1 {
			t.Errorf("host %d: robots.txt was fetched %d times", n, files)
		}
		if len(visits) < 6 || later == 0 {
			t.Errorf("host %d: the crawl did not go on", n)
		}
	}
	t.Logf("smallest gap %v", web.gap(t, crawlDelay))
}
