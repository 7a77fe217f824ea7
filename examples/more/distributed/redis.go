package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisOptions returns the options for an address, which is host:port or a redis:// URL.
func redisOptions(address string) (*redis.Options, error) {
	if !strings.Contains(address, "://") {
		return &redis.Options{Addr: address}, nil
	}
	options, err := redis.ParseURL(address)
	var invalid *url.Error
	if errors.As(err, &invalid) {
		err = invalid.Err // without the URL, which may contain a password
	}
	return options, err
}

// redisName returns an address without its password. An invalid address may be a password.
func redisName(address string) string {
	if o, err := redisOptions(address); err == nil {
		return o.Addr
	}
	return "the address of -redis"
}

// ping returns nil if a Redis answers at an address.
func ping(ctx context.Context, address string) error {
	options, err := redisOptions(address)
	if err != nil {
		return err
	}
	options.MaxRetries = -1
	options.DialTimeout = 3 * time.Second
	options.DialerRetries = 1
	client := redis.NewClient(options)
	defer client.Close()
	return client.Ping(ctx).Err()
}

// removeKeys removes all keys that match a pattern.
func removeKeys(ctx context.Context, client redis.UniversalClient, pattern string) error {
	var keys []string
	all := client.Scan(ctx, 0, pattern, 1000).Iterator()
	for all.Next(ctx) {
		keys = append(keys, all.Val())
	}
	if err := all.Err(); err != nil || len(keys) == 0 {
		return err
	}
	return client.Unlink(ctx, keys...).Err()
}

// errNoRedis says how to get a Redis.
var errNoRedis = errors.New(`redis-server is not installed, and the workers need a Redis. To install it:
  Debian, Ubuntu:  sudo apt-get install redis-server
  Fedora:          sudo dnf install redis
  macOS:           brew install redis
  other systems:   start a Redis, for example with "docker run --rm -p 6379:6379 redis", and use -redis localhost:6379`)

// startRedis starts a Redis on a free port of the loopback interface. It returns when the Redis
// answers. The Redis keeps its data in memory. It has a password, so that another Redis that has
// taken the port is noticed.
func startRedis(ctx context.Context, say func(format string, args ...any)) (keeper *child, address string, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, "", errNoRedis
	}
	for range 3 { // another program may take the port before Redis does
		address, err = freeAddress()
		if err != nil {
			return nil, "", err
		}
		address = "redis://:" + rand.Text() + "@" + address
		keeper, err = startChild(job{Redis: address}, say)
		if err != nil {
			return nil, "", err
		}
		err = keeper.waitForRedis(ctx)
		if err == nil {
			return keeper, address, nil
		}
		keeper.end()
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
	}
	return nil, "", fmt.Errorf("redis-server cannot be used: %w", err)
}

// waitForRedis waits until the Redis of a child answers.
func (c *child) waitForRedis(ctx context.Context) error {
	for end := time.After(10 * time.Second); ; {
		err := ping(ctx, c.job.Redis)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return c.err
		case <-end:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// keepRedis runs a Redis with a temporary directory until ctx ends. It runs in a child process, so
// that the Redis ends and the directory is removed also if the parent is killed.
func keepRedis(ctx context.Context, j job) error {
	dir, err := os.MkdirTemp("", "collyrobots-redis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	options, err := redisOptions(j.Redis)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(options.Addr)
	if err != nil {
		return err
	}
	logFile := filepath.Join(dir, "log")
	// When ctx ends, the server is killed. It has no data to save.
	server := exec.CommandContext(ctx, "redis-server", "--bind", host, "--port", port, "--requirepass", options.Password,
		"--dir", dir, "--logfile", logFile, "--save", "", "--appendonly", "no")
	err = server.Run()
	if ctx.Err() != nil {
		return nil
	}
	text, _ := os.ReadFile(logFile)
	text = text[max(0, len(text)-500):]
	return fmt.Errorf("redis-server has ended: %w\n%s", err, text)
}
