package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
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

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start returns when the server answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	args := append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--enable-debug-command", "yes"}, s.args...)
	s.process = exec.Command("redis-server", args...)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if answers(s.addr) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("redis-server does not answer")
}

// answers reports whether a server answers a PING, with an error perhaps.
func answers(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PING\r\n")
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && !strings.Contains(reply, "LOADING")
}

// stop kills the server, which keeps nothing.
func (s *server) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
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

// open returns a Store that ends with the test.
func open(t testing.TB, client redis.UniversalClient, options ...redisstore.Option) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(context.Background(), client, options...)
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
