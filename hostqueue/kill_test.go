package hostqueue

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

var kills = flag.Int("kills", 6, "number of processes that TestKill kills")

// jobVariable is the environment variable with the job of a worker process.
const jobVariable = "HOSTQUEUE_WORKER"

// A job configures a worker process.
type job struct {
	Redis  string // the socket of the Redis
	Sites  string // the address of the sites
	Starts []string
}

const (
	killDelay = 40 * time.Millisecond
	killLease = 400 * time.Millisecond
)

// work crawls in a worker process until the crawl ends, or until standard input ends.
func work(text string) int {
	err := crawl(text)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func crawl(text string) error {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: j.Redis})
	defer client.Close()
	shared, err := redisstore.New(ctx, client, redisstore.Lease(killLease))
	if err != nil {
		return err
	}
	defer shared.Close()
	q, err := Open(ctx, client, "test", Lease(killLease), RetryPause(10*time.Millisecond))
	if err != nil {
		return err
	}
	c := colly.NewCollector(colly.StdlibContext(ctx), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", j.Sites)
	}})
	robots, err := collyrobots.WithRobots(c, collyrobots.MinDelay(killDelay), collyrobots.Store(shared), collyrobots.SharedPace(shared), collyrobots.Logger(discard))
	if err != nil {
		return err
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { q.Follow(e.Request, e.Attr("href")) })
	err = q.Add(ctx, j.Starts...)
	if err != nil {
		return err
	}
	return q.Run(ctx, c, robots)
}

// startWorker starts a worker process.
func startWorker(t *testing.T, j job) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), jobVariable+"="+string(text))
	process.Stdout = os.Stdout
	process.Stderr = os.Stderr
	_, err = process.StdinPipe() // ends with this process
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// A farm serves hosts with a tree of pages, and keeps a log.
type farm struct {
	hosts, pages int

	mu    sync.Mutex
	log   map[string]int       // the number of requests, by URL
	last  map[string]time.Time // the last request, by host
	gap   time.Duration        // the smallest gap
	short int                  // the number of gaps under half of the delay
}

// ServeHTTP implements http.Handler. Page n links to pages 2n+1 and 2n+2, to a page of the next
// host, and to a page that robots.txt denies.
func (f *farm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	f.mu.Lock()
	f.log[r.Host+r.URL.Path]++
	if last, ok := f.last[r.Host]; ok {
		gap := now.Sub(last)
		f.gap = min(f.gap, gap)
		if gap < killDelay/2 {
			f.short++
		}
	}
	f.last[r.Host] = now
	f.mu.Unlock()
	time.Sleep(rand.N(killDelay / 2)) // so that some kills come before the response
	if r.URL.Path == "/robots.txt" {
		fmt.Fprint(w, "User-agent: *\nDisallow: /denied\n")
		return
	}
	var host, n int
	fmt.Sscanf(r.Host, "host%d.test", &host)
	_, err := fmt.Sscanf(r.URL.Path, "/%d", &n)
	if err != nil || n >= f.pages {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, `<a href="/%d">a</a> <a href="/%d#b">b</a> <a href="/denied/%d">c</a>`, 2*n+1, 2*n+2, n)
	fmt.Fprintf(w, `<a href="http://HOST%d.test:80/%d">d</a>`, (host+1)%f.hosts, n)
}

// TestKill kills processes with -9 during a crawl, and checks that no page is lost, that each delay
// is kept, and that only pages in progress are fetched again.
//
//	go test -run TestKill -kills 50 -v
func TestKill(t *testing.T) {
	server := newServer(t)
	f := &farm{hosts: 12, pages: 20 + 3**kills, log: make(map[string]int), last: make(map[string]time.Time), gap: time.Hour}
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	j := job{Redis: server.socket(), Sites: web.Listener.Addr().String(), Starts: []string{"http://host0.test/0"}}
	var workers []*exec.Cmd
	t.Cleanup(func() {
		for _, w := range workers {
			w.Process.Kill()
			w.Wait()
		}
	})
	for range 3 {
		workers = append(workers, startWorker(t, j))
	}
	q := mustOpen(t, server.client(t), "test")
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	for n := range *kills {
		waitFor(t, "pages are fetched", func() bool { return f.requests() > 20*(n+1) })
		victim := random.IntN(len(workers))
		time.Sleep(time.Duration(random.Int64N(int64(killDelay))))
		if n%5 == 4 { // stop the process for longer than its leases instead
			stopped := workers[victim].Process // workers[victim] may be another process later
			stopped.Signal(syscall.SIGSTOP)
			time.AfterFunc(3*killLease/2, func() { stopped.Signal(syscall.SIGCONT) })
			continue
		}
		workers[victim].Process.Kill()
		workers[victim].Wait()
		workers[victim] = startWorker(t, j)
	}
	for _, w := range workers {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	// Each host has its pages, one denied page for each, and links to two pages after the last one
	// that was found: 2n+1 and 2n+2 for n < pages.
	known := 2*f.pages + 1 + f.pages
	wantStats(t, q, Stats{Hosts: f.hosts, Done: f.hosts * (2*f.pages + 1), Denied: f.hosts * f.pages})
	f.mu.Lock()
	defer f.mu.Unlock()
	twice, requests := 0, maps.Clone(f.log)
	for url, n := range requests {
		switch {
		case strings.Contains(url, "/denied"):
			t.Errorf("%d requests for %s", n, url)
		case !strings.HasSuffix(url, "/robots.txt"):
			twice += n - 1
		}
	}
	if pages := len(requests) - f.hosts; pages != f.hosts*(2*f.pages+1) {
		t.Errorf("%d pages were fetched, want %d", pages, f.hosts*(2*f.pages+1))
	}
	if twice > *kills*f.hosts {
		t.Errorf("%d pages were fetched again after %d kills", twice, *kills)
	}
	// A process may be stopped between its last check of the lease and the write to the socket. A
	// busy machine may log a request late, so the gap after it seems shorter.
	if f.short > *kills/5+len(f.log)/100 {
		t.Errorf("%d gaps are shorter than half of the delay, the smallest is %v, want %v", f.short, f.gap, killDelay)
	}
	t.Logf("%d kills, %d known pages for each of %d hosts, %d fetched again, smallest gap %v", *kills, known, f.hosts, twice, f.gap)
}

func (f *farm) requests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, count := range f.log {
		n += count
	}
	return n
}
