package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// impatient returns a client that gives up soon. The client is closed at the end of the test.
func impatient(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	return client
}

// TestAwayMessages checks that errors name the Redis that does not answer, and the cause.
func TestAwayMessages(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	want := "redisstore: Redis at " + server.addr + " does not answer"
	s := open(t, impatient(t, server.addr), redisstore.Patience(300*time.Millisecond))
	server.stop()
	_, newErr := redisstore.New(ctx, impatient(t, server.addr))
	_, getErr := s.Get(ctx, "k")
	updateErr := s.Update(ctx, "k", 0, func([]byte) ([]byte, error) { return nil, nil })
	_, acquireErr := s.Acquire(ctx, "host", delay)
	for name, err := range map[string]error{"New": newErr, "Get": getErr, "Update": updateErr, "Acquire": acquireErr} {
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", name, err)
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := redisstore.New(canceled, impatient(t, server.addr)); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "does not answer") {
		t.Errorf("New with a canceled context: %v", err)
	}
}

// TestAwayNames checks that errors name the servers of each kind of client.
func TestAwayNames(t *testing.T) {
	t.Parallel()
	one, two := freeAddr(t), freeAddr(t)
	for want, client := range map[string]redis.UniversalClient{
		"Redis at " + one + ", " + two: redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{one, two}}),
		"Redis at " + one:              redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"shard": one}}),
		"Redis behind Sentinel":        redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{one}, MaxRetries: -1, DialerRetries: 1}),
	} {
		t.Cleanup(func() { client.Close() })
		_, err := redisstore.New(ctx, client, redisstore.Patience(time.Second))
		if err == nil || !strings.HasPrefix(err.Error(), "redisstore: "+want+" does not answer: ") {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
