package serve

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/internal/tooltest"
)

// The tests of this file run the command and crawlers as processes. The access logs of the sites are the
// judge. No two requests to a site may be closer together than the delay, however busy the machine is:
// a turn is granted when the one before it was answered and the delay has passed.

// delay is the delay of the services.
const delay = 100 * time.Millisecond

// A site is a server on the loopback interface, with an access log.
type site struct {
	url string

	mu  sync.Mutex
	log []access
}

// An access is a request that a site has got.
type access struct {
	path string
	at   time.Time
}

// newSite starts a site that denies /private, redirects /moved, and answers /busy with 429 and a
// Retry-After of one second. arrived is called with the path of each request before the response; it
// may be nil.
func newSite(t *testing.T, arrived func(path string)) *site {
	t.Helper()
	s := new(site)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, access{path: r.URL.Path, at: time.Now()})
		s.mu.Unlock()
		if arrived != nil {
			arrived(r.URL.Path)
		}
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: ExampleBot\nDisallow: /private\n")
		case "/moved":
			http.Redirect(w, r, "/private/moved", http.StatusFound)
		case "/busy":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// pages returns the URLs of n pages.
func (s *site) pages(name string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("%s/%s%d", s.url, name, i))
	}
	return urls
}

// paths returns the paths of the requests so far.
func (s *site) paths() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.log {
		paths = append(paths, a.path)
	}
	return paths
}

// wantPolite checks that no request was denied by robots.txt, and that none came too early.
func (s *site) wantPolite(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.log {
		if strings.HasPrefix(a.path, "/private") {
			t.Errorf("%s was requested", a.path)
		}
		if i == 0 {
			continue
		}
		if gap := a.at.Sub(s.log[i-1].at); gap < delay {
			t.Errorf("%s came %v after %s", a.path, gap, s.log[i-1].path)
		}
	}
}

// wantOnce checks that each of the URLs was requested once, and robots.txt as often as given.
func (s *site) wantOnce(t *testing.T, urls []string, robots int) {
	t.Helper()
	count := make(map[string]int)
	for _, path := range s.paths() {
		count[path]++
	}
	if count["/robots.txt"] != robots {
		t.Errorf("robots.txt was requested %d times, want %d", count["/robots.txt"], robots)
	}
	for _, url := range urls {
		path := strings.TrimPrefix(url, s.url)
		if path != url && count[path] != 1 {
			t.Errorf("%s was requested %d times", path, count[path])
		}
	}
}

// A process is a running service.
type process struct {
	cmd  *exec.Cmd
	url  string
	read chan struct{} // closed when its log was read to the end
}

// newProcess starts a service. It is killed at the end of the test, if it runs until then.
func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := (*tooltest.World)(nil).Command(t, append([]string{"-allow-private", "-delay", delay.String()}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, read: make(chan struct{})}
	t.Cleanup(p.kill)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		url, ok := strings.CutPrefix(lines.Text(), "Listening on ")
		if ok {
			p.url = strings.TrimSuffix(url, "/")
			go func() {
				defer close(p.read)
				for lines.Scan() {
					t.Log(lines.Text())
				}
			}()
			return p
		}
	}
	close(p.read)
	t.Fatalf("the service does not listen: %s", lines.Text())
	return nil
}

// kill kills the process with -9.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		<-p.read
		p.cmd.Wait()
	}
}

// stop stops the process with SIGTERM. It must end with status 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.read
	err := p.cmd.Wait()
	if err != nil {
		t.Error(err)
	}
}

// A crawler is a process that runs an example.
type crawler struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// examples is the folder with the examples.
const examples = "../../../../examples/serve"

// newCrawler starts an example, which fetches URLs.
func newCrawler(t *testing.T, service, interpreter, file string, urls ...string) *crawler {
	t.Helper()
	path, err := exec.LookPath(interpreter)
	if err != nil {
		t.Skipf("%s is not installed; this test runs %s with it", interpreter, file)
	}
	c := new(crawler)
	c.cmd = exec.CommandContext(t.Context(), path, append([]string{filepath.Join(examples, file)}, urls...)...)
	c.cmd.Env = append(os.Environ(), "COLLYROBOTS="+service, "NO_PROXY=*", "no_proxy=*")
	c.cmd.Stdout = &c.stdout
	c.cmd.Stderr = &c.stderr
	err = c.cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wait waits until a crawler ends, and returns its output.
func (c *crawler) wait(t *testing.T) string {
	t.Helper()
	err := c.cmd.Wait()
	if err != nil {
		t.Errorf("%v: %v\n%s%s", c.cmd, err, &c.stdout, &c.stderr)
	}
	return c.stdout.String()
}

// TestExamples runs the example of each language, and checks the audit log.
func TestExamples(t *testing.T) {
	t.Parallel()
	for interpreter, file := range map[string]string{"python3": "polite.py", "node": "polite.mjs", "sh": "polite.sh"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("curl"); err != nil && interpreter == "sh" {
				t.Skip("curl is not installed")
			}
			s := newSite(t, nil)
			dir := filepath.Join(t.TempDir(), "log")
			service := newProcess(t, "-listen=127.0.0.1:0", "-audit", dir)
			gone, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			gone.Close()
			dead := "http://" + gone.Addr().String() + "/"
			out := newCrawler(t, service.url, interpreter, file, "http://a.test:99999/", s.url+"/1", s.url+"/private", s.url+"/moved", s.url+"/busy", s.url+"/2", dead).wait(t)
			lines := strings.Split(out, "\n")
			want := []string{"http://a.test:99999/ ", "200 " + s.url + "/1", s.url + "/private ", "302 " + s.url + "/moved", "429 " + s.url + "/busy", "200 " + s.url + "/2", dead + " ", ""}
			if !slices.EqualFunc(lines, want, strings.HasPrefix) || !strings.Contains(lines[2], "Disallow: /private") {
				t.Errorf("it has printed\n%s\nwant\n%s", out, strings.Join(want, "\n"))
			}
			s.wantPolite(t)
			if paths := s.paths(); !slices.Equal(paths, []string{"/robots.txt", "/1", "/moved", "/busy", "/2"}) {
				t.Errorf("%q was requested", paths)
			} else if gap := s.log[4].at.Sub(s.log[3].at); gap < time.Second {
				t.Errorf("/2 came %v after the Retry-After of a second", gap)
			}
			service.stop(t)
			r, err := audit.Verify(dir)
			if err != nil {
				t.Fatal(err)
			}
			if l := r.Logs[0]; !r.OK() || l.Starts != 5 || l.Denied != 2 || !l.Closed { // dead is also denied
				t.Errorf("the log is %+v, and the faults are %v", r.Logs[0], r.Findings)
			}
		})
	}
}

// TestKilledService kills a service with -9 while four crawlers use it, and starts it again.
func TestKilledService(t *testing.T) {
	t.Parallel()
	fifth := make(chan bool, 1)
	var count sync.Map
	s := newSite(t, func(path string) {
		count.Store(path, true)
		n := 0
		for range count.Range {
			n++
		}
		if n == 5 {
			fifth <- true
		}
	})
	args := []string{"-cache", filepath.Join(t.TempDir(), "cache")}
	service := newProcess(t, append(args, "-listen=127.0.0.1:0")...)
	var crawlers []*crawler
	urls := s.pages("", 24)
	for chunk := range slices.Chunk(urls, 6) {
		crawlers = append(crawlers, newCrawler(t, service.url, "python3", "polite.py", chunk...))
	}
	<-fifth
	service.kill()
	time.Sleep(500 * time.Millisecond) // a request whose turn was granted is sent by then
	newProcess(t, append(args, "-listen", strings.TrimPrefix(service.url, "http://"))...)
	for _, c := range crawlers {
		if out := c.wait(t); strings.Count(out, "200 http") != 6 {
			t.Errorf("a crawler has printed\n%s%s", out, &c.stderr)
		}
	}
	s.wantPolite(t)
	s.wantOnce(t, urls, 1)
}

// TestTwoServices lets two services share one pace through Redis, and four crawlers use them.
func TestTwoServices(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
	}
	socket := startRedis(t)
	s := newSite(t, nil)
	urls := s.pages("", 20)
	var crawlers []*crawler
	for i := range 2 {
		service := newProcess(t, "-listen=127.0.0.1:0", "-redis=unix://"+socket)
		for chunk := range slices.Chunk(urls[10*i:10*i+10], 5) {
			crawlers = append(crawlers, newCrawler(t, service.url, "python3", "polite.py", chunk...))
		}
	}
	for _, c := range crawlers {
		if out := c.wait(t); strings.Count(out, "200 http") != 5 {
			t.Errorf("a crawler has printed\n%s%s", out, &c.stderr)
		}
	}
	s.wantPolite(t)
	s.wantOnce(t, urls, 1)
}

// startRedis starts a Redis server, which is killed at the end of the test, and returns its socket.
func startRedis(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "")
	err = cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	})
	for range 600 {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			return socket
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("redis-server does not start")
	return ""
}
