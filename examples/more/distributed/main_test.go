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

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

// programVariable is an environment variable that makes the test binary run the program. Its value
// has the arguments of the program.
const programVariable = "COLLYROBOTS_EXAMPLE_PROGRAM"

func TestMain(m *testing.M) {
	logging.Disable()
	if status, isChild := asChild(); isChild {
		os.Exit(status)
	}
	if args, isProgram := os.LookupEnv(programVariable); isProgram {
		os.Unsetenv(programVariable)
		ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
		os.Exit(run(ctx, strings.Fields(args), os.Stdout, os.Stderr))
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // the tests use little processor time
	os.Exit(tests(m))
}

// tests runs the tests, and fails if they leave a goroutine or a directory behind.
func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "distributed-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	status := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Println(err)
		status = 1
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "collyrobots-*")); len(left) > 0 {
		fmt.Println("directories were left behind:", left)
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

// ownRedis starts a Redis that ends when the test ends, and returns its address.
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

// clientOf returns a client of the Redis at an address. It is closed at the end of the test.
func clientOf(t *testing.T, address string) *redis.Client {
	t.Helper()
	options, err := redisOptions(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// left returns the processes whose environment contains a text. All processes of a crawl have the
// address of its Redis there, with a unique password. On systems without /proc, left returns none.
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
	if text := stderr.String(); status != 1 || stdout.Len() > 0 || !strings.Contains(text, "apt-get install redis-server\n") || !strings.Contains(text, "-redis") {
		t.Errorf("status %d, %s%s", status, stdout.String(), text)
	}
}

// TestWrongRedis checks the errors for addresses of -redis without a Redis.
func TestWrongRedis(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	closed := conn.LocalAddr().String() // a port that is in use without a listener
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, test := range []struct{ name, address, want string }{
		{name: "closed port", address: closed, want: closed + ": dial tcp"},
		{name: "web server", address: strings.TrimPrefix(web.URL, "http://"), want: "HTTP/1.1 400"},
		{name: "URL of a web server", address: web.URL, want: "invalid URL scheme"},
		{name: "no port", address: "localhost", want: "missing port"},
		{name: "no response", address: silent.Addr().String(), want: "timeout"},
		{name: "password", address: "redis://:secret@" + closed, want: "at " + closed},
		{name: "password in an invalid URL", address: "redis://:secret@a:b", want: "invalid port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), []string{"-redis", test.address}, &stdout, &stderr)
			if text := stderr.String(); status != 1 || stdout.Len() > 0 || strings.Count(text, "\n") != 1 ||
				!strings.Contains(text, test.want) || strings.Contains(text, "secret") {
				t.Errorf("status %d, %s%s", status, stdout.String(), text)
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
		{"-sites -1", 2, "not between 0 and 10000"},
		{"-pages 0", 2, "not between 1 and 1000"},
		{"-kill soon", 2, "parse error"},
		{"-speed 3", 2, "not defined"},
		{"http://example.com/", 2, "unexpected argument http://example.com/"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), strings.Fields(test.args), &stdout, &stderr)
		if status != test.status || stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%s: status %d, %s", test.args, status, stderr.String())
		}
	}
}

// TestNothingIsLeft checks that all processes end when the program is interrupted, as by Ctrl-C, or
// killed.
func TestNothingIsLeft(t *testing.T) {
	needRedis(t)
	for _, test := range []struct {
		name   string
		signal os.Signal
		after  string // the output before the signal
		want   string // the output after the signal
	}{
		{name: "interrupted at the start", signal: os.Interrupt, after: "workers\n", want: "distributed: interrupted"},
		{name: "interrupted during the crawl", signal: os.Interrupt, after: "200  http://slow.test/\n", want: "distributed: interrupted"},
		{name: "killed", signal: os.Kill, after: "200  http://slow.test/\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			mark := rand.Text()
			program, out := startProgram(t, mark)
			out.waitFor(t, test.after)
			// The first pages may be fetched before the last worker has started.
			for end := time.Now().Add(10 * time.Second); test.signal == os.Kill && len(left(mark)) < 6; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("processes %v, want the program, four workers, and the process that runs Redis", left(mark))
				}
			}
			if err := program.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := program.Wait(); err == nil || !strings.Contains(out.String(), test.want) {
				t.Errorf("%v, output:\n%s", err, out.String())
			}
			end := time.Now().Add(10 * time.Second)
			for len(left(mark)) > 0 && test.signal == os.Kill && time.Now().Before(end) {
				time.Sleep(50 * time.Millisecond)
			}
			if pids := left(mark); len(pids) > 0 {
				t.Errorf("processes %v have not ended", pids)
			}
		})
	}
}

// startProgram starts the program, and returns its standard output and standard error in one. The
// program and its child processes have mark in their environment.
func startProgram(t *testing.T, mark string) (*exec.Cmd, *output) {
	t.Helper()
	out := new(output)
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), programVariable+"=", "COLLYROBOTS_EXAMPLE_MARK="+mark)
	program.Stdout = out
	program.Stderr = out
	program.WaitDelay = time.Second
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Process.Kill() })
	return program, out
}
