package redisstore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

const workerVariable = "REDISSTORE_WORKER" // a job, as JSON

// A job configures a worker process, which requests pages of one host until its standard input
// ends.
type job struct {
	Name, Redis, Site string
	Delay, Lease      time.Duration
	Patience          time.Duration
	Path              string        // the path of the pages; "" for an ordinary page
	Late              time.Duration // how long the worker waits between Acquire and Valid
}

// work runs in a worker process. It prints a line for each event.
func work(config string) int {
	var j job
	if err := json.Unmarshal([]byte(config), &j); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	client := redis.NewClient(&redis.Options{Addr: j.Redis, ReadTimeout: 500 * time.Millisecond, DialTimeout: 500 * time.Millisecond})
	defer client.Close()
	s, err := newStore(ctx, client, redisstore.Lease(j.Lease), redisstore.Patience(j.Patience))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	defer s.Close()
	fmt.Println("ready")
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	for ctx.Err() == nil {
		j.page(ctx, s, web)
	}
	return 0
}

// page requests one page, in the way that every user of a Pacer should.
func (j *job) page(ctx context.Context, s *redisstore.Store, web *http.Client) {
	l, err := s.Acquire(ctx, "host0", j.Delay)
	if err != nil {
		if ctx.Err() == nil {
			away := (*redisstore.AwayError)(nil)
			fmt.Println("away", errors.As(err, &away), err)
			time.Sleep(50 * time.Millisecond)
		}
		return
	}
	sent, notBefore := false, time.Time{}
	defer func() { l.Release(sent, j.Delay, notBefore) }()
	time.Sleep(j.Late)
	exchange, cancel := context.WithCancel(ctx)
	if d := l.Deadline(); !d.IsZero() {
		exchange, cancel = context.WithDeadline(ctx, d)
	}
	defer cancel()
	req, err := http.NewRequestWithContext(exchange, "GET", "http://"+j.Site+"/"+j.Path, nil)
	if err != nil {
		panic(err)
	}
	req.Host = "host0"
	req.Header.Set("Worker", j.Name)
	if !l.Valid() {
		return
	}
	looked := time.Now()
	req.Header.Set("Looked", strconv.FormatInt(looked.UnixNano(), 10))
	req = req.WithContext(httptrace.WithClientTrace(exchange, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		if took := time.Since(looked); took > j.Lease/10 { // the safety margin of a lease
			fmt.Println("unfenced", took)
		}
	}}))
	sent = true
	resp, err := web.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if after := resp.Header.Get("Retry-After"); after != "" {
		d, _ := time.ParseDuration(after + "s")
		notBefore = time.Now().Add(d)
	}
}

// A worker is a worker process as its parent sees it.
type worker struct {
	name    string
	process *exec.Cmd
	stdin   io.Closer
	lines   chan string
	last    []string // the rest of lines, after the process has ended
	ended   bool
}

// newWorker starts a worker and returns when it is ready. The worker is stopped at the end of the
// test.
func newWorker(t *testing.T, j job) *worker {
	t.Helper()
	if j.Lease == 0 {
		j.Lease = 2 * time.Second
	}
	if j.Patience == 0 {
		j.Patience = time.Second
	}
	config, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{name: j.Name, process: exec.Command(os.Args[0]), lines: make(chan string, 10_000)}
	w.process.Env = append(os.Environ(), workerVariable+"="+string(config))
	w.process.Stderr = os.Stderr
	w.stdin, err = w.process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.lines <- lines.Text()
		}
	}()
	t.Cleanup(w.end)
	if got := <-w.lines; got != "ready" {
		t.Fatalf("worker %s: %s", w.name, got)
	}
	return w
}

// end stops the worker. It kills the process if it does not exit by itself.
func (w *worker) end() {
	if w.ended {
		return
	}
	w.ended = true
	w.stdin.Close()
	force := time.AfterFunc(5*time.Second, func() { _ = w.process.Process.Kill() })
	defer force.Stop()
	w.signal(syscall.SIGCONT)
	for line := range w.lines {
		w.last = append(w.last, line)
	}
	_ = w.process.Wait()
}

func (w *worker) signal(s syscall.Signal) { _ = w.process.Process.Signal(s) }

// kill kills the worker with SIGKILL.
func (w *worker) kill() {
	w.signal(syscall.SIGKILL)
	w.end()
}

// said returns the lines that the worker has printed so far for one kind of event: "away" or
// "unfenced".
func (w *worker) said(of string) (lines []string) {
	for more := true; more && !w.ended; {
		select {
		case line, ok := <-w.lines:
			more = ok
			if ok {
				w.last = append(w.last, line)
			}
		default:
			more = false
		}
	}
	for _, line := range w.last {
		if strings.HasPrefix(line, of) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A site is the web server that the workers crawl. It records the time of each visit and the
// worker.
type site struct {
	addr string
	mu   sync.Mutex
	log  []visit
}

type visit struct {
	at     time.Time
	looked time.Time // when the worker last checked its lease before the request; zero for a spider
	worker string
	path   string
}

// until returns an upper limit for the time from this visit to the next one. A request is sent
// after the worker has checked its lease, and the site may record it late. until uses the earlier
// of these two times for this visit, so that a gap does not look too short on a busy machine.
func (v visit) until(next visit) time.Duration {
	if v.looked.IsZero() {
		return next.at.Sub(v.at)
	}
	return next.at.Sub(v.looked)
}

func newSite(t *testing.T) *site {
	s := new(site)
	web := httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(web.Close)
	s.addr = strings.TrimPrefix(web.URL, "http://")
	return s
}

func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	v := visit{at: time.Now(), worker: r.Header.Get("Worker"), path: r.URL.Path}
	if nanos, err := strconv.ParseInt(r.Header.Get("Looked"), 10, 64); err == nil {
		v.looked = time.Unix(0, nanos)
	}
	s.mu.Lock()
	s.log = append(s.log, v)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
		_, _ = io.WriteString(w, "User-agent: *\nCrawl-delay: 1\nDisallow: /private\n")
	case "/hang":
		<-r.Context().Done()
	}
}

// visits returns the visits so far.
func (s *site) visits() []visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// await waits until there were n more visits. It fails the test if that takes very long.
func (s *site) await(t *testing.T, n int) {
	t.Helper()
	before := len(s.visits())
	for end := time.Now().Add(2 * time.Minute); len(s.visits()) < before+n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d more visits instead of %d", len(s.visits())-before, n)
		}
	}
}

func (s *site) between(at, end time.Time) map[string]int {
	count := make(map[string]int)
	for _, v := range s.visits() {
		if v.at.After(at) && v.at.Before(end) {
			count[v.worker]++
		}
	}
	return count
}

// short counts the gaps between visits that are shorter than delay.
func (s *site) short(delay time.Duration) (n int) {
	visits := s.visits()
	for i := range len(visits) - 1 {
		if visits[i].until(visits[i+1]) < delay {
			n++
		}
	}
	return n
}

// gap returns the shortest time between two successive visits. It fails the test if
// that time is shorter than delay.
func (s *site) gap(t *testing.T, delay time.Duration) time.Duration {
	t.Helper()
	visits := s.visits()
	least := time.Hour
	for i := range len(visits) - 1 {
		gap := visits[i].until(visits[i+1])
		if gap < delay {
			t.Errorf("%v between a visit of %s and one of %s", gap, visits[i].worker, visits[i+1].worker)
		}
		least = min(least, gap)
	}
	return least
}
