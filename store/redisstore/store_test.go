package redisstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/redisstore"
	"github.com/collyrobots/collyrobots/store/storetest"
)

func TestStore(t *testing.T) {
	server := newServer(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, server.client(t), redisstore.Prefix(rand.Text()+":"))
	})
}

const countVariable = "REDISSTORE_COUNT" // the address of the server on which a child process counts

const counts = 200

// TestUpdateAmongProcesses checks that no update of one process is lost because of another process.
func TestUpdateAmongProcesses(t *testing.T) {
	if addr := os.Getenv(countVariable); addr != "" {
		s := open(t, (&server{addr: addr}).client(t))
		for range counts {
			count(t, s)
		}
		return
	}
	server := newServer(t)
	s := open(t, server.client(t))
	var processes sync.WaitGroup
	for range 3 {
		processes.Go(func() {
			child := exec.Command(os.Args[0], "-test.run=^TestUpdateAmongProcesses$", "-test.count=1")
			child.Env = append(os.Environ(), countVariable+"="+server.addr)
			if out, err := child.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	processes.Wait()
	if got := get(t, s, "count"); got != strconv.Itoa(3*counts) {
		t.Errorf("%s instead of %d", got, 3*counts)
	}
}

func count(t *testing.T, s store.Store) {
	t.Helper()
	err := s.Update(context.Background(), "count", time.Hour, func(old []byte) ([]byte, error) {
		n, _ := strconv.Atoi(string(old))
		return []byte(strconv.Itoa(n + 1)), nil
	})
	if err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, s store.Store, key string) string {
	t.Helper()
	got, err := s.Get(context.Background(), key)
	if err != nil {
		t.Error(err)
	}
	return string(got)
}

// TestUpdateOnce checks that a write counts once if its reply was lost and the client repeats it.
func TestUpdateOnce(t *testing.T) {
	server := newServer(t)
	p := newProxy(t, server.addr)
	s := open(t, p.client(t))
	for range 20 {
		count(t, s)
		p.cutAfter(2) // forwards the reply to the read, and drops the reply to the write
		count(t, s)
	}
	if got := get(t, s, "count"); got != "40" || p.cuts.Load() < 20 {
		t.Errorf("the counter is %s instead of 40 after %d lost replies", got, p.cuts.Load())
	}
}

// TestForeignRecords checks that a key with unexpected content is reported once and moved aside,
// and that none of its content is returned.
func TestForeignRecords(t *testing.T) {
	server := newServer(t)
	client := server.client(t)
	garbage := bytes.Repeat([]byte("garbage "), 10<<20/8)
	for name, damage := range map[string]func(key string) *redis.Cmd{
		"a list":      func(key string) *redis.Cmd { return client.Do(ctx, "RPUSH", key, "x") },
		"a hash":      func(key string) *redis.Cmd { return client.Do(ctx, "HSET", key, "x", "y") },
		"short":       func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "hello") },
		"10 MB":       func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, garbage) },
		"one bit":     func(key string) *redis.Cmd { return client.Do(ctx, "SETBIT", key, 8*90, 1) },
		"longer":      func(key string) *redis.Cmd { return client.Do(ctx, "APPEND", key, "x") },
		"another key": func(key string) *redis.Cmd { return client.Do(ctx, "COPY", otherRecord(t, client), key, "REPLACE") },
		"no version":  func(key string) *redis.Cmd { return client.Do(ctx, "SETRANGE", key, len("collyrobots record "), "x") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, update := range []bool{false, true} {
				prefix := rand.Text() + ":"
				s := open(t, client, redisstore.Prefix(prefix))
				storetest.Damaged(t, s, func() {
					key := only(t, client, prefix+"*}:record:*")
					if strings.HasPrefix(name, "a ") {
						client.Del(ctx, key)
					}
					if err := damage(key).Err(); err != nil {
						t.Fatal(err)
					}
				}, update)
				only(t, client, prefix+"*}:damaged:record:*")
			}
		})
	}
}

var ctx = context.Background()

// otherRecord writes an intact record with another prefix and returns its key.
func otherRecord(t *testing.T, client *redis.Client) string {
	prefix := rand.Text() + ":"
	storetest.Put(t, open(t, client, redisstore.Prefix(prefix)), "other", "value")
	return only(t, client, prefix+"*}:record:*")
}

// only returns the one key that matches a pattern.
func only(t *testing.T, client *redis.Client, pattern string) string {
	t.Helper()
	keys, err := client.Keys(ctx, pattern).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%s: %q, %v", pattern, keys, err)
	}
	return keys[0]
}

// TestLaterRecord checks that a record of a later version is neither read nor replaced.
func TestLaterRecord(t *testing.T) {
	client := newServer(t).client(t)
	s := open(t, client)
	storetest.Put(t, s, "k", "value")
	key := only(t, client, "*:record:k")
	client.Set(ctx, key, "collyrobots record 2\nwho knows", 0)
	_, err := s.Get(ctx, "k")
	for range 2 {
		var version *store.VersionError
		if !errors.As(err, &version) || version.Path != key || version.Version != "2" {
			t.Errorf("%v", err)
		}
		err = s.Update(ctx, "k", 0, func([]byte) ([]byte, error) { return []byte("mine"), nil })
	}
	if got := client.Get(ctx, key).Val(); got != "collyrobots record 2\nwho knows" {
		t.Errorf("the record was changed to %q", got)
	}
}

// TestTimeToLive checks that records expire in Redis itself, so that they do not fill its memory.
func TestTimeToLive(t *testing.T) {
	client := newServer(t).client(t)
	s := open(t, client)
	err := s.Update(ctx, "k", 100*time.Millisecond, func([]byte) ([]byte, error) { return []byte("v"), nil })
	if err != nil || get(t, s, "k") != "v" {
		t.Fatal(err)
	}
	time.Sleep(150 * time.Millisecond)
	if keys := client.Keys(ctx, "*:record:*").Val(); len(keys) > 0 {
		t.Error(keys)
	}
}

func TestLongValue(t *testing.T) {
	s := open(t, newServer(t).client(t))
	for n, fits := range map[int]bool{redisstore.MaxRecord: true, redisstore.MaxRecord + 1: false} {
		err := s.Update(ctx, fmt.Sprint(n), 0, func([]byte) ([]byte, error) { return make([]byte, n), nil })
		if (err == nil) != fits {
			t.Errorf("%d bytes: %v", n, err)
		}
		if got := get(t, s, fmt.Sprint(n)); fits != (len(got) == n) {
			t.Errorf("%d bytes: read %d", n, len(got))
		}
	}
}
