package redisstore_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// TestMain is also where the worker processes of the tests begin: the test binary, run again.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	if config := os.Getenv(workerVariable); config != "" {
		os.Exit(work(config))
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // most of the time they wait
	goleak.VerifyTestMain(m)
}

// quiet is a logger for go-redis, which says each time that a server is not there.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// fieldOf returns the value of a field in a text of INFO.
func fieldOf(text, field string) string {
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
