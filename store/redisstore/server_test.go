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

// A server is a redis-server of the test's own, on a free loopback port.
type server struct {
	dir, addr string
	args      []string
	process   *exec.Cmd
	ended     chan struct{} // closed when the process has
}

// newServer starts a redis-server without persistence, in a folder of its own, that ends with the
// test.
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

// lastPort is where freeAddr has got to.
var lastPort atomic.Uint32

func init() { lastPort.Store(mathrand.Uint32N(ports)) }

// The ports of servers are not among those that a system gives to who asks for any: nobody else gets one that is
// free for now, while its server is stopped too. A cluster needs the port that is ten thousand higher.
const firstPort, ports = 10_000, 12_000

// freeAddr returns an address where nobody listens, each time another one.
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

// start returns when the server is ready.
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

// A saying is what a server writes to its log.
type saying struct {
	text  []byte
	ready chan struct{} // closed when it takes connections; whoever answers before that is another server
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

// stop kills the server, which keeps nothing.
func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		<-s.ended
		s.process = nil
	}
}

// client returns a client of the server that ends with the test.
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

// newStore is redisstore.New, again where a busy machine has taken longer than Patience.
func newStore(ctx context.Context, client redis.UniversalClient, options ...redisstore.Option) (s *redisstore.Store, err error) {
	for range 20 {
		if s, err = redisstore.New(ctx, client, options...); err == nil {
			break
		}
	}
	return s, err
}

// open returns a Store that ends with the test.
func open(t testing.TB, client redis.UniversalClient, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	s, err := newStore(context.Background(), client, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// settled is how long the hosts of a new server are left alone, those with the delay of most tests.
const settled = time.Second + delay + 50*time.Millisecond

// used returns how many octets a server's data take.
func (s *server) used(t testing.TB) (n int) {
	t.Helper()
	_, _ = fmt.Sscan(fieldOf(fmt.Sprint(s.do(t, "INFO", "memory")), "used_memory_dataset"), &n)
	return n
}
