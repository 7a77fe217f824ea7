package redisstore_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

// crawl runs a worker that uses the plugin: a spider that visits pages of all hosts in turn.
func (j *job) crawl(ctx context.Context, s *redisstore.Store) int {
	c := collyrobots.NewCollector(colly.UserAgent(j.Name+"/1.0"), colly.Async(true), colly.StdlibContext(ctx))
	c.WithTransport(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, j.Site)
	}})
	c.OnRequest(func(r *colly.Request) { r.Headers.Set("Worker", j.Name) })
	opts := []collyrobots.Option{collyrobots.MinDelay(j.Delay), collyrobots.Logger(slog.New(slog.DiscardHandler))}
	if !j.Alone {
		opts = append(opts, collyrobots.Store(s), collyrobots.SharedPace(s))
	}
	if j.PaceBy != collyrobots.ByHost {
		opts = append(opts, collyrobots.PaceBy(j.PaceBy))
	}
	if j.Revalidate {
		opts = append(opts, collyrobots.Revalidate(collyrobots.Revalidation{}))
	}
	if j.Audit != "" {
		log, err := audit.Open(j.Audit)
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		defer log.Close()
		opts = append(opts, collyrobots.OnEveryEvent(log.Event))
	}
	robots, err := c.WithRobots(opts...)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer robots.Close()
	names := cmp.Or(j.HostNames, "host%d.example")
	for page := range 40 {
		for n := range j.Hosts {
			_ = c.Visit(fmt.Sprintf("http://"+names+"/%s%d", n, j.Name, page))
		}
		_ = c.Visit(fmt.Sprintf("http://"+names+"/private/%d", page%j.Hosts, page))
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

// TestAudit checks the audit logs of three spiders together. If they share their pace, there are no
// faults, and the logs have as many requests as the access log. Otherwise the gaps are too short.
func TestAudit(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		const hosts = 3
		s, web := newServer(t), newSite(t)
		var dirs []string
		var spiders []*worker
		for n := range 3 {
			dirs = append(dirs, t.TempDir())
			spiders = append(spiders, newWorker(t, job{Name: fmt.Sprint("spider", n), Redis: s.addr, Site: web.addr, Hosts: hosts, Plugin: true, Lease: 3 * time.Second, Alone: alone, Audit: dirs[n]}))
		}
		time.Sleep(6 * time.Second)
		for _, spider := range spiders {
			spider.end()
		}
		r, err := audit.Verify(dirs...)
		if err != nil {
			t.Fatal(err)
		}
		starts, visits, short := 0, 0, 0
		for _, l := range r.Logs {
			starts += l.Starts
			if !l.Closed || l.Open > 0 {
				t.Errorf("alone: %t: %+v", alone, l)
			}
		}
		for n := range hosts {
			visits += len(web.visits(fmt.Sprintf("host%d.example", n)))
		}
		for _, f := range r.Findings {
			if alone && f.Check == audit.CheckDelay {
				short++
			} else {
				t.Errorf("alone: %t: %v", alone, f)
			}
		}
		if starts < 3*hosts || starts != visits {
			t.Errorf("alone: %t: the logs have %d requests, and the access log has %d", alone, starts, visits)
		}
		if alone && short < hosts {
			t.Errorf("%d gaps between requests of different processes were found", short)
		}
		t.Logf("alone: %t: %d requests, %d short gaps", alone, starts, short)
	}
}
