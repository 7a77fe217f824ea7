package redisstore_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
)

// TestGroupOfProcesses checks PaceBy together with SharedPace: two processes keep one delay for all
// hosts of a group, and a 429 with a Retry-After of one host stops both processes at all of them.
func TestGroupOfProcesses(t *testing.T) {
	for _, test := range []struct {
		by         collyrobots.Grouping
		hosts, key string
	}{
		{by: collyrobots.ByDomain, hosts: "shop%d.shops.example", key: "*:pace:shops.example"},
		{by: collyrobots.ByAddress, hosts: "127.0.0.1:80%d", key: "*:pace:127.0.0.1"},
	} {
		t.Run(test.by.String(), func(t *testing.T) {
			t.Parallel()
			const hosts, least = 3, 300 * time.Millisecond
			s, web := newServer(t), newSite(t)
			web.set("", "2")
			j := job{
				Redis: s.addr, Site: web.addr, Hosts: hosts, HostNames: test.hosts, PaceBy: test.by,
				Plugin: true, Delay: least, Lease: 3 * time.Second,
			}
			j.Name = "a"
			a := newWorker(t, j)
			j.Name = "b"
			b := newWorker(t, j)
			shares := make(map[string]int)
			awaitVisits(t, web, func(visits []visit) bool {
				clear(shares)
				for _, v := range visits {
					shares[v.worker]++
				}
				return len(visits) > 12 && shares["a"] > 3 && shares["b"] > 3
			})
			web.setBusy()
			before := len(web.all())
			awaitVisits(t, web, func(visits []visit) bool { return len(visits) > before+4 })
			only(t, s.client(t), test.key)
			a.kill()
			b.kill()
			if n := len(web.log); n != hosts {
				t.Errorf("%d hosts were visited, want %d", n, hosts)
			}
			checkGroup(t, web.all(), least, 2*time.Second)
		})
	}
}

// awaitVisits waits until enough is true of the visits to all hosts.
func awaitVisits(t *testing.T, web *site, enough func([]visit) bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !enough(web.all()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d visits are not enough", len(web.all()))
		}
	}
}

// checkGroup checks the gaps between successive visits to any host, and those after a 429.
func checkGroup(t *testing.T, visits []visit, least, after429 time.Duration) {
	t.Helper()
	throttled := 0
	shortest := time.Hour
	for i, v := range visits[:len(visits)-1] {
		next := visits[i+1]
		want := least
		if v.status == http.StatusTooManyRequests {
			want = after429
			throttled++
		}
		gap := v.until(next)
		shortest = min(shortest, gap)
		if gap < want {
			t.Errorf("%v between %s of %s and %s of %s, want %v", gap, v.path, v.worker, next.path, next.worker, want)
		}
	}
	if throttled != 1 {
		t.Errorf("%d responses with 429, want 1", throttled)
	}
	t.Logf("%d visits, smallest gap %v", len(visits), shortest)
}

// TestRevalidateAfterKill kills a spider with the option Revalidate. Two others then run at the same
// time. No page that the first one has got is sent again, except those that were under way.
func TestRevalidateAfterKill(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	web.set("", "1")
	j := job{
		Name: "spider", Redis: s.addr, Site: web.addr, Plugin: true, Revalidate: true,
		Delay: 50 * time.Millisecond, Lease: time.Second,
	}
	const host = "host0.example"
	victim := newWorker(t, j)
	awaitVisits(t, web, func(visits []visit) bool { return len(visits) > 15 })
	victim.kill()
	first := web.visits(host)
	got := make(map[string]bool)
	for _, v := range first[:len(first)-1] { // the last one was under way
		if v.path == "/robots.txt" {
			continue
		}
		got[v.path] = true
	}
	newWorker(t, j)
	newWorker(t, j)
	count := make(map[int]int)
	awaitVisits(t, web, func(visits []visit) bool {
		clear(count)
		for _, v := range visits[len(first):] {
			count[v.status]++
			if got[v.path] && v.status != http.StatusNotModified {
				t.Fatalf("%s was sent again", v.path)
			}
		}
		return count[http.StatusNotModified] >= 2*len(got) && count[http.StatusOK] > 0
	})
	t.Logf("%d pages before the kill; afterwards %d with 304 and %d with 200", len(got), count[http.StatusNotModified], count[http.StatusOK])
}
