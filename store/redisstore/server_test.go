package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// A server is a redis-server process of one test, on a free loopback port.
type server struct {
	dir, addr string
	args      []string
	process   *exec.Cmd
	ended     chan struct{} // closed when the process has ended
}

// newServer starts a redis-server without persistence in its own folder. It is stopped at the end
// of the test.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
	}
	s := &server{dir: t.TempDir(), addr: freeAddr(t), args: args}
	t.Cleanup(s.stop)
	s.start(t)
	return s
}

// lastPort is the port that freeAddr tried last, counted from firstPort.
var lastPort atomic.Uint32

func init() { lastPort.Store(mathrand.Uint32N(ports)) }

// The test servers use ports that the operating system does not assign to listeners on port 0. So
// no other program gets the port of a server that is stopped for a while. A cluster node also uses
// the port that is higher by ten thousand.
const firstPort, ports = 10_000, 12_000

// freeAddr returns an address on which no program listens. Each call returns a different one.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range ports {
		addr := fmt.Sprint("127.0.0.1:", firstPort+lastPort.Add(1)%ports)
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts the server, and returns when it accepts connections.
func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	args := append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--enable-debug-command", "yes"}, s.args...)
	says := &saying{ready: make(chan struct{})}
	s.process, s.ended = exec.Command("redis-server", args...), make(chan struct{})
	s.process.Stdout = says
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait()
	}()
	select {
	case <-says.ready:
	case <-s.ended:
		t.Fatalf("redis-server has ended:\n%s", says.text)
	case <-time.After(30 * time.Second):
		t.Fatal("redis-server does not start")
	}
}

// A saying collects the log of a server.
type saying struct {
	text  []byte
	ready chan struct{} // closed when the server accepts connections; an earlier answer comes from another server
}

func (s *saying) Write(b []byte) (int, error) {
	const ready = "Ready to accept connections"
	before := bytes.Contains(s.text, []byte(ready))
	s.text = append(s.text, b...)
	if !before && bytes.Contains(s.text, []byte(ready)) {
		close(s.ready)
	}
	return len(b), nil
}

// stop kills the server, which loses its data.
func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		<-s.ended
		s.process = nil
	}
}

// client returns a client of the server. It is closed at the end of the test.
func (s *server) client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// do sends a command as redis-cli would.
func (s *server) do(t testing.TB, args ...any) any {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, ReadTimeout: 20 * time.Second})
	defer c.Close()
	got, err := c.Do(context.Background(), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return got
}

// newStore calls redisstore.New. It tries again if New fails, because on a busy machine Redis may
// not answer within Patience.
func newStore(ctx context.Context, client redis.UniversalClient, options ...redisstore.Option) (s *redisstore.Store, err error) {
	for range 20 {
		s, err = redisstore.New(ctx, client, options...)
		if err == nil {
			break
		}
	}
	return s, err
}

// open returns a Store that is closed at the end of the test.
func open(t testing.TB, client redis.UniversalClient, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	s, err := newStore(context.Background(), client, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// settled is the length of the first pause of a new server, for hosts with the delay of most tests.
const settled = time.Second + delay + 50*time.Millisecond

// used returns the size of the server's data in bytes.
func (s *server) used(t testing.TB) (n int) {
	t.Helper()
	_, _ = fmt.Sscan(fieldOf(fmt.Sprint(s.do(t, "INFO", "memory")), "used_memory_dataset"), &n)
	return n
}
