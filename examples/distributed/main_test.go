package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

// wholeVariable makes this test binary the program itself: its arguments are behind it.
const wholeVariable = "COLLYROBOTS_EXAMPLE_WHOLE"

func TestMain(m *testing.M) {
	logging.Disable()
	if status, isChild := asChild(); isChild {
		os.Exit(status)
	}
	if args, isWhole := os.LookupEnv(wholeVariable); isWhole {
		os.Unsetenv(wholeVariable)
		ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
		os.Exit(run(ctx, strings.Fields(args), os.Stdout, os.Stderr))
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // they wait more than they work
	os.Exit(tests(m))
}

// tests runs the tests, and fails if they leave a goroutine or a folder.
func tests(m *testing.M) int {
	folder, err := os.MkdirTemp("", "distributed-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	os.Setenv("TMPDIR", folder)
	status := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		status = 1
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "collyrobots-*")); len(left) > 0 {
		fmt.Println("left behind:", left)
		status = 1
	}
	return status
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed: on Debian and Ubuntu, apt-get install redis-server")
	}
}

// ownRedis starts a Redis that ends with the test, and returns its address.
func ownRedis(t *testing.T) (address string) {
	t.Helper()
	needRedis(t)
	keeper, address, err := startRedis(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(keeper.end)
	return address
}

// left returns the processes that have a text in their environment. What a crawl starts has the
// address of its Redis there, with a password that nobody else has, the Redis itself included. It
// knows only where there is /proc.
func left(text string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if environment, err := os.ReadFile(file); err == nil && bytes.Contains(environment, []byte(text)) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

func TestWithoutRedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), nil, &stdout, &stderr)
	if said := stderr.String(); status != 1 || stdout.Len() > 0 || !strings.Contains(said, "apt-get install redis-server\n") || !strings.Contains(said, "-redis") {
		t.Errorf("status %d, %s%s", status, stdout.String(), said)
	}
}

// TestWrongRedis names what is no Redis: one line says what is wrong.
func TestWrongRedis(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	nobody := conn.LocalAddr().String() // taken, and nobody listens
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	for _, test := range []struct{ name, address, want string }{
		{"nobody is there", nobody, nobody + ": dial tcp"},
		{"a web server", strings.TrimPrefix(web.URL, "http://"), "HTTP/1.1 400"},
		{"a web server's URL", web.URL, "invalid URL scheme"},
		{"no port", "localhost", "missing port"},
		{"no answer", mute.Addr().String(), "timeout"},
		{"a password", "redis://:secret@" + nobody, "at " + nobody},
		{"a password in nonsense", "redis://:secret@a:b", "invalid port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), []string{"-redis", test.address}, &stdout, &stderr)
			if said := stderr.String(); status != 1 || stdout.Len() > 0 || strings.Count(said, "\n") != 1 ||
				!strings.Contains(said, test.want) || strings.Contains(said, "secret") {
				t.Errorf("status %d, %s%s", status, stdout.String(), said)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"-h", 0, "-kill"},
		{"-workers 0", 2, "not between 1 and 32"},
		{"-workers 33", 2, "not between 1 and 32"},
		{"-kill -1s", 2, "negative"},
		{"-kill soon", 2, "parse error"},
		{"-speed 3", 2, "not defined"},
		{"http://example.com/", 2, "what is http://example.com/?"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
		if status != test.status || stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%s: status %d, %s", test.args, status, stderr.String())
		}
	}
}

// TestNothingIsLeft interrupts the program, as Ctrl-C does, and kills it: either way all that it
// has started ends.
func TestNothingIsLeft(t *testing.T) {
	needRedis(t)
	for _, test := range []struct {
		name   string
		signal os.Signal
		after  string // what it has said by then
		want   string
	}{
		{"interrupted at once", os.Interrupt, "workers\n", "distributed: interrupted"},
		{"interrupted on the way", os.Interrupt, "200  http://slow.test/\n", "distributed: interrupted"},
		{"killed", os.Kill, "200  http://slow.test/\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			mark := rand.Text()
			program, said := startWhole(t, mark)
			said.await(t, test.after)
			for end := time.Now().Add(10 * time.Second); test.signal == os.Kill && len(left(mark)) < 6; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) { // the first pages may be there before the last worker is
					t.Fatalf("there should be the program, four workers, and the keeper of a Redis, but there are %v", left(mark))
				}
			}
			if err := program.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := program.Wait(); err == nil || !strings.Contains(said.String(), test.want) {
				t.Errorf("%v, it said\n%s", err, said.String())
			}
			end := time.Now().Add(10 * time.Second)
			for len(left(mark)) > 0 && test.signal == os.Kill && time.Now().Before(end) {
				time.Sleep(50 * time.Millisecond)
			}
			if pids := left(mark); len(pids) > 0 {
				t.Errorf("processes %v are left", pids)
			}
		})
	}
}

// startWhole starts the program, and returns what it says on both outputs. It and what it starts have mark in their environment.
func startWhole(t *testing.T, mark string) (*exec.Cmd, *saying) {
	t.Helper()
	said := new(saying)
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), wholeVariable+"=", "COLLYROBOTS_EXAMPLE_MARK="+mark)
	program.Stdout, program.Stderr, program.WaitDelay = said, said, time.Second
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Process.Kill() })
	return program, said
}
