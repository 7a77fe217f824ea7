package redisstore_test

import (
	"context"
	"flag"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestMain runs the tests. Worker processes also begin here, because a worker is the test binary
// itself.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	if config := os.Getenv(workerVariable); config != "" {
		os.Exit(work(config))
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // the tests spend most of their time waiting
	os.Exit(run(m))
}

// run runs the tests and returns the status. It is not 0 if the tests leave a goroutine behind.
func run(m *testing.M) int {
	before := runtime.NumGoroutine()
	status := m.Run()
	for wait := time.Millisecond; status == 0 && runtime.NumGoroutine() > before; wait *= 2 {
		if wait > 4*time.Second {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			status = 1
		}
		time.Sleep(wait)
	}
	return status
}

// quiet is a logger for go-redis that drops everything. Otherwise, go-redis would log each failed
// connection to a server that a test has stopped.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// fieldOf returns the value of a field in a reply to INFO.
func fieldOf(text, field string) string {
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
