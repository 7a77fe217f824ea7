package hostqueue

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/robotstest"
)

// TestMain runs the tests. Worker processes also begin here, because a worker is the test binary
// itself.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	if text := os.Getenv(jobVariable); text != "" {
		os.Exit(work(text))
	}
	flag.Parse()
	robotstest.Main(m)
}

// quiet is a logger for go-redis that drops everything. Otherwise, go-redis would log each failed
// connection to a server that a test has stopped.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// A server is a redis-server process of one test. It listens on a Unix socket, so no other program
// can take its address while it is stopped.
type server struct {
	dir     string
	args    []string
	process *exec.Cmd
}

// newServer starts a redis-server, which is stopped at the end of the test.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
	}
	dir, err := os.MkdirTemp("", "hostqueue") // the path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{dir: dir, args: args}
	t.Cleanup(s.kill)
	s.start(t)
	return s
}

func (s *server) socket() string { return filepath.Join(s.dir, "redis.sock") }

// start starts the server, and returns when it answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	args := append([]string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", ""}, s.args...)
	s.process = exec.Command("redis-server", args...)
	err := s.process.Start()
	if err != nil {
		t.Fatal(err)
	}
	client := s.client(t)
	waitFor(t, "redis-server answers", func() bool { return client.Ping(t.Context()).Err() == nil })
}

// freePort returns a port on which no program listens, for a server of a cluster, which also uses
// the port that is higher by ten thousand.
func freePort(t testing.TB) int {
	t.Helper()
	for port := 20_000 + rand.IntN(10_000); port < 40_000; port++ {
		if isFree(port) && isFree(port+10_000) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// isFree reports whether no program listens on a port.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// kill kills the server with -9.
func (s *server) kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

// client returns a client of the server. It is closed at the end of the test.
func (s *server) client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket()})
	t.Cleanup(func() { c.Close() })
	return c
}

// newMini returns a client of a Redis in memory.
func newMini(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	mini := miniredis.RunT(t)
	// On a busy machine, an answer can take longer than the three seconds that are the default.
	client := redis.NewClient(&redis.Options{Addr: mini.Addr(), ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	return mini, client
}

// newBubbleMini starts a Redis server in memory and returns a client of it. It must be called in a bubble.
// The clock of the server is that of the bubble.
func newBubbleMini(t *testing.T) *redis.Client {
	t.Helper()
	mini := miniredis.NewMiniRedis()
	connection, err := mini.Dial() // starts the server
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	mini.Server().SetPreHook(func(_ *redisserver.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") { // the commands of a script use the time of its start
			mini.SetTime(time.Now())
		}
		return false
	})
	t.Cleanup(mini.Close)
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:0", // a name would be looked up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return mini.Dial() },
	})
	t.Cleanup(func() { client.Close() })
	return client
}

// mustOpen opens a crawl.
func mustOpen(t testing.TB, client redis.UniversalClient, crawl string, opts ...Option) *Queue {
	t.Helper()
	q, err := Open(t.Context(), client, crawl, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// waitFor waits until a condition is true. It fails the test if that takes longer than five
// minutes, which a slow test under the race detector on a busy machine does not.
func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after five minutes: %s", what)
		}
	}
}
