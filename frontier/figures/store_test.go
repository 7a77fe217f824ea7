//go:build linux

package figures

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

var (
	waitingFlag = flag.Int("waiting", 0, "TestWaiting: number of pages that wait; if 0, a few thousand")
	seenFlag    = flag.Int("seen", 0, "TestSeen: number of known URLs; if 0, a few thousand")
)

// Goals. The tests fail if a run with at least fullSize pages misses one.
const (
	fullSize    = 1_000_000
	mostWaiting = 200e6 // bytes of resident memory
	mostSeen    = 1e9
	leastRate   = 50_000 // pages added and handed out per second
	latestFirst = 2 * time.Second
)

// knownLinks is the number of links of a page to known pages, except in the process that measures
// the rate without them. A page also has one link to a new page.
const knownLinks = 9

// TestWaiting adds pages of 10,000 hosts, each with its known links, in one process. Other
// processes then open the folder, after Close and after a kill, and hand out pages.
func TestWaiting(t *testing.T) {
	n := max(*waitingFlag, 5_000)
	dir := t.TempDir()
	base := task{Dir: dir, Pages: n, Hosts: min(10_000, n/10), Links: knownLinks}
	do := func(what string, links int, kill bool) result {
		next := base
		next.Do = what
		next.Links = links
		next.Kill = kill
		if what == "steady" {
			next.Pages = n / 5
		}
		r := start(t, next)
		t.Logf("%-6s  %d known links, %9d pages in %6.1fs, %7.0f/s, CPU %5.1f µs/page, first after %.3fs, resident %.0f MB, peak %.0f MB, disk %.0f MB",
			what, links, r.Pages, r.Elapsed.Seconds(), r.perSecond(), float64(r.CPU.Microseconds())/float64(r.Pages), r.First.Seconds(),
			megabytes(r.Anon), megabytes(r.Peak), megabytes(sizeOf(t, dir)))
		return r
	}
	added := do("add", knownLinks, false)
	afterClose := do("open", 0, false)
	linked := do("steady", knownLinks, false)
	steady := do("steady", 0, true)
	afterKill := do("open", 0, false)
	drained := do("drain", 0, false)
	if most := n + runtime.GOMAXPROCS(0); drained.Pages < n || drained.Pages > most {
		t.Errorf("%d pages were handed out in the end, want %d, and at most %d because the last calls of Done are lost by the kill", drained.Pages, n, most)
	}
	if n < fullSize {
		return
	}
	for _, r := range []result{added, afterClose, linked, steady, afterKill} {
		if r.Peak > mostWaiting {
			t.Errorf("peak of resident memory is %.0f MB, want at most %.0f MB", megabytes(r.Peak), megabytes(mostWaiting))
		}
	}
	for _, r := range []result{afterClose, afterKill} {
		if r.First > latestFirst {
			t.Errorf("first page after %v, want at most %v", r.First, latestFirst)
		}
	}
	if both := 2 * steady.perSecond(); both < leastRate {
		t.Errorf("%.0f pages were added and handed out per second, want at least %d", both, leastRate)
	}
}

// TestSeen adds, hands out and ends many pages.
func TestSeen(t *testing.T) {
	n := max(*seenFlag, 5_000)
	dir := t.TempDir()
	r := start(t, task{Do: "know", Dir: dir, Pages: n, Hosts: min(10_000, n/10)})
	t.Logf("%d known URLs in %.1fs, %.0f/s, CPU %.1f µs/URL, resident %.0f MB, peak %.0f MB, disk %.0f MB", n, r.Elapsed.Seconds(), r.perSecond(),
		float64(r.CPU.Microseconds())/float64(n), megabytes(r.Anon), megabytes(r.Peak), megabytes(sizeOf(t, dir)))
	if n >= fullSize && r.Peak > mostSeen {
		t.Errorf("peak of resident memory is %.0f MB, want at most %.0f MB", megabytes(r.Peak), megabytes(mostSeen))
	}
}

// A store is a Frontier that a task uses.
type store struct {
	*frontier.Frontier
	task
	request []byte
}

func (t task) open() (*store, error) {
	f, err := frontier.Open(t.Dir)
	if err != nil {
		return nil, err
	}
	return &store{Frontier: f, task: t, request: make([]byte, 150)}, nil
}

// result returns the result of n pages since start.
func (s *store) result(n int, start time.Time) result {
	return result{Pages: n, Elapsed: time.Since(start), closer: s.Close}
}

func (s *store) host(i int) string { return fmt.Sprintf("www.host-%05d.example", i%s.Hosts) }

// page returns page i, which belongs to host i%Hosts.
func (s *store) page(i int) *urlstore.Page {
	return &urlstore.Page{
		URL:     fmt.Sprintf("https://%s/section-%d/an-article-about-%d.html", s.host(i), i%17, i),
		Host:    s.host(i),
		Depth:   3,
		Request: s.request,
	}
}

// add adds page i, which must be new, and known pages of the same host.
func (s *store) add(i int) error {
	added, err := s.Add(s.page(i))
	if err != nil {
		return err
	}
	if !added {
		return fmt.Errorf("page %d is known", i)
	}
	for range s.Links {
		known := i - s.Hosts*rand.IntN(i/s.Hosts+1)
		added, err := s.Add(s.page(known))
		if err != nil {
			return err
		}
		if added && known >= s.Hosts { // another goroutine may add the first page of a host later
			return fmt.Errorf("page %d is not known", known)
		}
	}
	return nil
}

// parallel calls f for the numbers in [from, to), in as many goroutines as there are processors.
func parallel(from, to int, f func(i int) error) error {
	var next atomic.Int64
	next.Store(int64(from))
	var group sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for g := range errs {
		group.Go(func() {
			for errs[g] == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					return
				}
				errs[g] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// addPages adds new pages, whose hosts may start in an hour.
func addPages(t task) (result, error) {
	s, err := t.open()
	if err != nil {
		return result{}, err
	}
	start := time.Now()
	err = parallel(0, t.Hosts, func(i int) error {
		if err := s.add(i); err != nil {
			return err
		}
		s.Pace(s.host(i), start.Add(time.Hour), true)
		return nil
	})
	if err != nil {
		return result{}, err
	}
	err = parallel(t.Hosts, t.Pages, s.add)
	return s.result(t.Pages, start), err
}

// openFirst opens a folder and gets the first page.
func openFirst(t task) (result, error) {
	start := time.Now()
	s, err := t.open()
	if err != nil {
		return result{}, err
	}
	_, err = s.Next(context.Background())
	r := s.result(1, start)
	r.First = r.Elapsed
	return r, err
}

// ready lets all pages of all hosts be handed out at once.
func (s *store) ready() {
	for i := range s.Hosts {
		s.Pace(s.host(i), time.Now(), false)
	}
}

// handOut hands out a page, and ends it when f has returned.
func (s *store) handOut(f func() error) error {
	p, err := s.Next(context.Background())
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	s.Pace(p.Host, time.Now(), false)
	return s.Done(p)
}

// handOutAndAdd hands out pages. Each has links to known pages and to one new page. The number of
// pages that wait stays the same.
func handOutAndAdd(t task) (result, error) {
	s, err := t.open()
	if err != nil {
		return result{}, err
	}
	s.ready()
	start := time.Now()
	stats := s.Stats()
	known := stats.Waiting + stats.Done
	err = parallel(known, known+t.Pages, func(i int) error {
		return s.handOut(func() error { return s.add(i) })
	})
	return s.result(t.Pages, start), err
}

// drain hands out all pages.
func drain(t task) (result, error) {
	s, err := t.open()
	if err != nil {
		return result{}, err
	}
	s.ready()
	start := time.Now()
	n := s.Stats().Waiting
	err = parallel(0, n, func(int) error {
		return s.handOut(func() error { return nil })
	})
	return s.result(n, start), err
}

// know adds pages, hands them out and ends them. The pages of a host have links to each other.
func know(t task) (result, error) {
	s, err := t.open()
	if err != nil {
		return result{}, err
	}
	s.request = nil
	start := time.Now()
	s.ready()
	err = parallel(0, t.Pages, func(i int) error {
		if _, err := s.Add(s.page(i)); err != nil {
			return err
		}
		return s.handOut(func() error { return nil })
	})
	return s.result(t.Pages, start), err
}
