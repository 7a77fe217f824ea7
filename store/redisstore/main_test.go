package redisstore_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/robotstest"
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
	robotstest.Main(m)
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
