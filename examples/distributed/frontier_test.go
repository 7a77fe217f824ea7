package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
)

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

// TestFrontier queues URLs repeatedly: while they are waiting, while they are visited and when they
// are done. It checks that each is visited once, and logs the memory for a URL.
func TestFrontier(t *testing.T) {
	t.Parallel()
	client := clientOf(t, ownRedis(t))
	f := newFrontier(client, "test")
	const urls = 2000
	addAll := func() {
		t.Helper()
		for n := range urls {
			if err := f.add(t.Context(), visitPage, fmt.Sprintf("https://www.example.com/catalogue/product/%d", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := memory(t, client)
	addAll()
	addAll()
	if left, err := f.left(); err != nil || left != urls {
		t.Fatal(left, err)
	}
	visits := make(chan string, 10*urls)
	server := asynq.NewServerFromRedisClient(client, asynq.Config{Concurrency: 10, Queues: map[string]int{"test": 1}, LogLevel: asynq.ErrorLevel})
	if err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		visits <- string(task.Payload())
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown) // runs before the client is closed
	addAll()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left, err := f.left()
		if left == 0 && err == nil {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatal(left, err)
		}
	}
	addAll()
	server.Shutdown()
	if left, err := f.left(); err != nil || left != 0 || len(visits) != urls {
		t.Errorf("%d tasks are left, %v; %d visits, want %d", left, err, len(visits), urls)
	}
	t.Logf("%d bytes per URL", (memory(t, client)-before)/urls)
	if err := f.remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// memory returns the size of the data of a Redis in bytes.
func memory(t *testing.T, client *redis.Client) (n int) {
	t.Helper()
	info, err := client.Info(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, dataset, _ := strings.Cut(info, "used_memory_dataset:")
	if _, err := fmt.Sscan(dataset, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRetries(t *testing.T) {
	for _, test := range []struct {
		err     error
		retries int
		failure bool
		want    time.Duration
	}{
		{errBusy, 0, false, time.Second},
		{errBusy, 4, false, time.Second},
		{fmt.Errorf("visit: %w", &collyrobots.PaceError{Host: "a.test", Err: errors.New("away")}), 3, false, time.Second},
		{context.Canceled, 2, false, 0},
		{asynq.ErrLeaseExpired, 1, true, 0},
		{errors.New("status 500"), 0, true, time.Second},
		{errors.New("status 500"), 3, true, 8 * time.Second},
		{errors.New("status 500"), 99, true, 1024 * time.Second},
	} {
		if got := isFailure(test.err); got != test.failure {
			t.Errorf("%v: failure %v", test.err, got)
		}
		if got := retryDelay(test.retries, test.err, nil); got != test.want {
			t.Errorf("%v: retry after %v, want %v", test.err, got, test.want)
		}
	}
}
