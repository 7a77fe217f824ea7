package redisstore_test

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

const (
	fresh    = 250 * time.Millisecond // how long Acquire relies on an answer of Redis that no process has a delay
	sendable = time.Second            // how long after such an answer a request may be sent that relies on it
)

// perAnswer is for how many requests Acquire relies on such an answer.
const perAnswer = 64

// TestAnswersAreReused checks that starts at a host without a delay take one round trip for each
// perAnswer starts, or one for each time that an answer stays fresh. After this process has learned
// of a delay, Acquire asks again.
func TestAnswersAreReused(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	trips := new(counter)
	client := server.client(t)
	client.AddHook(trips)
	s := open(t, client)
	time.Sleep(settled)
	mustAcquire(t, s, 0) // the first call also loads the script
	start := func(n int) (trip int, took time.Duration) {
		time.Sleep(fresh)
		began := time.Now()
		trips.n.Store(0)
		for range n {
			l := mustAcquire(t, s, 0)
			if !l.Deadline().IsZero() {
				t.Fatal("the host is held")
			}
			l.Release(true, 0, time.Time{})
		}
		return int(trips.n.Load()), time.Since(began)
	}
	for _, n := range []int{1, perAnswer, perAnswer + 1, 4*perAnswer + 1} {
		want := (n + perAnswer - 1) / perAnswer
		if got, took := start(n); got < want || got > want+int(took/fresh) {
			t.Errorf("%d round trips for %d starts in %v, want %d", got, n, took, want)
		}
	}
	l := mustAcquire(t, s, 0)
	l.Release(true, 0, time.Now().Add(2*time.Second))
	takes(t, 2*time.Second, func() { mustAcquire(t, s, 0) })
}

// TestDelayWaitsForAnswers checks that a process with a delay does not start before the requests of
// other processes that rely on the answer that there is no delay. A brief delay, as for robots.txt,
// does not wait for them.
func TestDelayWaitsForAnswers(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	asked := time.Now()
	l := mustAcquire(t, a, 0)
	takes(t, 0, func() { mustAcquire(t, b, time.Millisecond).Release(true, 0, time.Time{}) })
	lasts(t, sendable-delay, sendable+delay, func() { mustAcquire(t, b, delay) })
	if l.Valid() || time.Since(asked) < sendable+delay {
		t.Errorf("the host was granted with a delay after %v; the request without a delay may be sent: %v", time.Since(asked), l.Valid())
	}
}

// TestDelayWaitsForReused checks the same for leases that Acquire has returned without asking
// Redis. The delay is so short that it does not hide that such a lease is valid for too long.
func TestDelayWaitsForReused(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	first := mustAcquire(t, a, 0)
	for end := time.Now().Add(fresh * 3 / 4); time.Now().Before(end); {
		mustAcquire(t, a, 0).Release(true, 0, time.Time{})
	}
	last := mustAcquire(t, a, 0) // relies on the first answer, unless the machine is slow
	mustAcquire(t, b, 2*time.Millisecond)
	if first.Valid() || last.Valid() {
		t.Error("a request without a delay may be sent while another process has the host")
	}
}

// TestDamagedTimeOfSending checks that a process with a delay waits if the time until which other
// requests may be sent is damaged, and that it does not wait forever.
func TestDamagedTimeOfSending(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client := server.client(t)
	for name, put := range map[string]func(key string) *redis.Cmd{
		"list":     func(key string) *redis.Cmd { return client.Do(ctx, "RPUSH", key, "x") },
		"empty":    func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "") },
		"garbage":  func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "garbage") },
		"negative": func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "-1") },
		"too late": func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "99999999999999999999") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := rand.Text()
			s := open(t, client, redisstore.Prefix(prefix))
			time.Sleep(settled)
			mustAcquire(t, s, 0)
			key := only(t, client, prefix+"*:sending:host")
			client.Del(ctx, key)
			if err := put(key).Err(); err != nil {
				t.Fatal(err)
			}
			takes(t, sendable+delay, func() { mustAcquire(t, s, delay) })
		})
	}
}

// TestClockGoesBackAfterAnswer checks that after the clock of Redis went back, a process with a
// delay waits no longer for requests without a delay than without the jump.
func TestClockGoesBackAfterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(t)
		a, b := c.open(t), c.open(t)
		c.jump(100 * time.Hour)
		l := mustAcquire(t, a, 0)
		c.jump(-5 * time.Second)
		passes(t, sendable+delay, func() { mustAcquire(t, b, delay) })
		if l.Valid() {
			t.Error("the request without a delay may be sent")
		}
	})
}
