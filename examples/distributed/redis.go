package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisOptions reads an address: host:port, or a redis:// URL with what else a client needs to
// know.
func redisOptions(address string) (*redis.Options, error) {
	if strings.Contains(address, "://") {
		return redis.ParseURL(address)
	}
	return &redis.Options{Addr: address}, nil
}

// redisName is an address without its password.
func redisName(address string) string {
	if o, err := redisOptions(address); err == nil {
		return o.Addr
	}
	return address
}

// ping returns nil if there is a Redis at an address that answers.
func ping(ctx context.Context, address string) error {
	options, err := redisOptions(address)
	if err != nil {
		return err
	}
	options.MaxRetries, options.DialTimeout, options.DialerRetries = -1, 3*time.Second, 1
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

// errNoRedis says how to get one.
var errNoRedis = errors.New(`redis-server is not installed, and the workers need a Redis.
  Debian, Ubuntu:  sudo apt-get install redis-server
  Fedora:          sudo dnf install redis
  macOS:           brew install redis
  elsewhere:       start one, such as by "docker run --rm -p 6379:6379 redis", and add -redis localhost:6379`)

// startRedis starts a Redis on a free port of the loopback interface, and returns its address when it
// answers. It keeps what it has in memory, and has a password: whoever else takes the port does not know it.
func startRedis(ctx context.Context, say func(format string, args ...any)) (keeper *child, address string, err error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, "", errNoRedis
	}
	for range 3 { // another program may take the port before Redis does
		if address, err = freeAddress(); err != nil {
			return nil, "", err
		}
		address = "redis://:" + rand.Text() + "@" + address
		if keeper, err = startChild(job{Redis: address}, say); err != nil {
			return nil, "", err
		}
		if err = keeper.answers(ctx); err == nil {
			return keeper, address, nil
		}
		if keeper.end(); ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
	}
	return nil, "", fmt.Errorf("redis-server cannot be used: %w", err)
}

// answers waits until the Redis of a child does.
func (c *child) answers(ctx context.Context) error {
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

// keepRedis is the process that has a Redis, with a folder of its own, until ctx ends. It is there
// so that neither outlives a parent that is killed.
func keepRedis(ctx context.Context, j job) error {
	folder, err := os.MkdirTemp("", "collyrobots-redis-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	options, err := redisOptions(j.Redis)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(options.Addr)
	if err != nil {
		return err
	}
	log := filepath.Join(folder, "log")
	// Ended by ctx, it is killed: it has nothing to keep.
	server := exec.CommandContext(ctx, "redis-server", "--bind", host, "--port", port, "--requirepass", options.Password, "--dir", folder, "--logfile", log, "--save", "", "--appendonly", "no")
	if err := server.Run(); ctx.Err() == nil {
		said, _ := os.ReadFile(log)
		said = said[max(0, len(said)-500):]
		return fmt.Errorf("redis-server has ended: %w\n%s", err, said)
	}
	return nil
}
