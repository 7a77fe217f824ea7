package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/store/pacer/pacertest"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

var (
	_ pacer.Pacer = (*redisstore.Store)(nil)
	_ store.Store = (*redisstore.Store)(nil)
)

// delay is the delay of most tests. A wait may take longer than expected by up to slack.
const (
	delay = 200 * time.Millisecond
	slack = 250 * time.Millisecond
)

// pair returns two Stores with separate clients on one server whose first pause is over.
func pair(t *testing.T, options ...redisstore.Option) (a, b *redisstore.Store) {
	t.Helper()
	server := newServer(t)
	a, b = open(t, server.client(t), options...), open(t, server.client(t), options...)
	time.Sleep(settled)
	return a, b
}

// TestPacer checks the contract of the interface.
func TestPacer(t *testing.T) {
	pacertest.RunRealTime(t, func(t *testing.T) (a, b pacer.Pacer) {
		return pair(t, redisstore.Lease(3*time.Second/2))
	})
}

func mustAcquire(t *testing.T, s *redisstore.Store, delay time.Duration) pacer.Lease {
	t.Helper()
	l, err := s.Acquire(ctx, "host", delay)
	if err != nil {
		t.Fatal(err)
	}
	lastAcquired.Store(t, time.Now())
	return l
}

// sureAcquire acquires a host. It tries again after an AwayError, because on a busy machine Redis
// may not answer within Patience.
func sureAcquire(t *testing.T, s *redisstore.Store, host string, delay time.Duration) (l pacer.Lease) {
	t.Helper()
	err := error(new(redisstore.AwayError))
	for away := (*redisstore.AwayError)(nil); errors.As(err, &away); {
		l, err = s.Acquire(t.Context(), host, delay)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lastAcquired holds, for each test, the time when mustAcquire returned last.
var lastAcquired sync.Map

// takes fails the test unless f takes as long as want. The wait usually begins with the release of
// a host, which may have happened before the clock of takes starts; so the lower limit counts from
// the time when mustAcquire returned last. f may end later by as much as the machine is late.
func takes(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	lasts(t, want, want, f)
}

// lasts is like takes, but f may take less time than want, down to least.
func lasts(t *testing.T, least, want time.Duration, f func()) {
	t.Helper()
	began, late := time.Now(), lateness()
	since := began
	if last, ok := lastAcquired.Load(t); ok {
		since = last.(time.Time)
	}
	f()
	ended, over := time.Now(), late()
	if ended.Sub(since) < least || ended.Sub(began) > want+slack+over {
		t.Errorf("it took %v (%v since the host was acquired) instead of %v; the machine was %v late", ended.Sub(began), ended.Sub(since), want, over)
	}
}

// lateness starts to measure how late the machine is. The function that it returns stops the
// measurement and returns by how much all sleeps were late in total.
func lateness() (sum func() time.Duration) {
	const nap, usual = 5 * time.Millisecond, 2 * time.Millisecond
	end, late := make(chan bool), make(chan time.Duration)
	go func() {
		var over time.Duration
		for began := time.Now(); ; began = time.Now() {
			last := false
			select {
			case <-end:
				last = true
			case <-time.After(nap):
			}
			if d := time.Since(began) - nap; d > usual {
				over += d
			}
			if last {
				late <- over
				return
			}
		}
	}()
	return func() time.Duration {
		end <- true
		return <-late
	}
}

// TestNoDelay checks that a host without a delay is not held in Redis. A delay or a Retry-After that
// another process reports applies to the leases without a delay.
func TestNoDelay(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client := server.client(t)
	a, b := open(t, client), open(t, server.client(t))
	time.Sleep(settled)
	var first pacer.Lease
	takes(t, 0, func() {
		first = mustAcquire(t, a, 0)
		second := mustAcquire(t, b, 0)
		for _, l := range []pacer.Lease{first, second} {
			if !l.Deadline().IsZero() || !l.Valid() {
				t.Errorf("valid: %v, deadline %v", l.Valid(), l.Deadline())
			}
		}
		second.Release(true, 0, time.Time{})
	})
	if keys := client.Keys(ctx, "*:pace:*").Val(); len(keys) > 0 {
		t.Errorf("a host that is not held has the keys %q", keys)
	}
	first.Release(true, delay, time.Now().Add(2*time.Second)) // the delay and the Retry-After apply to the other process
	time.Sleep(fresh)
	takes(t, 2*time.Second-fresh, func() { mustAcquire(t, b, 0).Release(true, 0, time.Time{}) })
	takes(t, delay, func() { mustAcquire(t, b, 0).Release(true, 0, time.Time{}) })
}

// TestReadOnly checks that a read-only server grants nothing, even if nothing has to be written. It
// may lack delays that were requested from the master.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	s := open(t, server.client(t), redisstore.Patience(3*time.Second))
	time.Sleep(settled)
	server.do(t, "REPLICAOF", "127.0.0.1", 1)
	for _, d := range []time.Duration{0, delay} {
		var away *redisstore.AwayError
		if _, err := s.Acquire(ctx, "host", d); !errors.As(err, &away) || !redis.IsReadOnlyError(away.Err) {
			t.Errorf("Acquire with a delay of %v: %v", d, err)
		}
	}
	server.do(t, "REPLICAOF", "NO", "ONE")
	mustAcquire(t, s, 0)
}

// TestDroppedKeys checks that a Redis that drops keys can keep records but no pace.
func TestDroppedKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ memory, policy, want string }{
		{"20mb", "allkeys-lru", "allkeys-lru, set it to noeviction"}, {"20mb", "volatile-ttl", "volatile-ttl, set it to noeviction"},
		{"20mb", "noeviction", ""}, {"0", "allkeys-lru", ""},
	} {
		server := newServer(t, "--maxmemory", test.memory, "--maxmemory-policy", test.policy)
		s := open(t, server.client(t))
		count(t, s)
		l, err := s.Acquire(ctx, "host", delay)
		if (err == nil) != (test.want == "") || err != nil && (l != nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("maxmemory %s, policy %s: %v", test.memory, test.policy, err)
		}
	}
}

// TestRing checks that a redis.Ring, whose servers take over each other's keys, can keep records
// but no pace.
func TestRing(t *testing.T) {
	t.Parallel()
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": newServer(t).addr, "two": newServer(t).addr}})
	t.Cleanup(func() { client.Close() })
	s := open(t, client)
	count(t, s)
	if _, err := s.Acquire(ctx, "host", delay); err == nil || !strings.Contains(err.Error(), "redis.Ring") {
		t.Error(err)
	}
}

// TestPermissions checks that a Redis user without INFO can share a pace, and that New reports a
// user without scripts.
func TestPermissions(t *testing.T) {
	t.Parallel()
	server := newServer(t, "--rename-command", "INFO", "")
	server.do(t, "ACL", "SETUSER", "careful", "on", ">secret", "~collyrobots:*", "+@all", "-@dangerous", "+info")
	server.do(t, "ACL", "SETUSER", "noinfo", "on", ">secret", "~collyrobots:*", "+@all", "-info")
	server.do(t, "ACL", "SETUSER", "noscripts", "on", ">secret", "~collyrobots:*", "+@all", "-@scripting")
	for user, want := range map[string]string{"default": "", "careful": "", "noinfo": "", "noscripts": "NOPERM"} {
		options := &redis.Options{Addr: server.addr, Username: user, Password: "secret"}
		if user == "default" {
			options.Username, options.Password = "", ""
		}
		client := redis.NewClient(options)
		t.Cleanup(func() { client.Close() })
		s, err := redisstore.New(ctx, client)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", user, err)
		}
		if err == nil {
			time.Sleep(settled)
			mustAcquire(t, s, delay).Release(true, delay, time.Time{})
			takes(t, delay, func() { mustAcquire(t, s, delay).Release(true, delay, time.Time{}) })
		}
	}
}

// TestNotUsedAtOnce checks that a lease is valid for a second, even if it does not hold the host.
func TestNotUsedAtOnce(t *testing.T) {
	t.Parallel()
	a, _ := pair(t)
	began := time.Now()
	held, free := mustAcquire(t, a, delay), func() pacer.Lease { l, _ := a.Acquire(ctx, "another", 0); return l }()
	ended := time.Now()
	time.Sleep(time.Until(began.Add(900 * time.Millisecond)))
	if valid := held.Valid() && free.Valid(); !valid && time.Since(began) < time.Second {
		t.Error("the lease was valid for less than a second")
	}
	time.Sleep(time.Until(ended.Add(1010 * time.Millisecond)))
	if held.Valid() || free.Valid() {
		t.Error("the lease is still valid after a second")
	}
}

// TestWaitEnds checks that a waiting Acquire returns when the Store is closed.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	a, b := pair(t)
	mustAcquire(t, a, delay)
	time.AfterFunc(delay, func() { b.Close() })
	takes(t, delay, func() {
		if _, err := b.Acquire(ctx, "host", delay); !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	if _, err := b.Acquire(ctx, "host", delay); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
}

// TestLostReply checks the effect of a lost reply. An Acquire that is repeated with the same token
// holds the host once, and a token that was released does not hold it.
func TestLostReply(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	p := newProxy(t, server.addr)
	clients := []*redis.Client{p.client(t), redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: -1})}
	t.Cleanup(func() { clients[1].Close() })
	b := open(t, server.client(t))
	time.Sleep(settled)
	for _, client := range clients { // the first client retries by itself, the second does not
		a := open(t, client)
		mustAcquire(t, b, delay).Release(false, 0, time.Time{}) // now both servers and clients have cached the script
		p.cutAfter(1)
		began := time.Now()
		l := mustAcquire(t, a, delay)
		p.cutAfter(1)
		l.Release(true, delay, time.Time{})
		if took := time.Since(began); took > 15*time.Second { // half of the lease
			t.Errorf("it took %v: the repeated call waited for its own lease", took)
		}
		if p.cuts.Swap(0) != 2 {
			t.Error("no reply was lost")
		}
		_, err := a.Get(ctx, "anything") // the client reaches the server again
		if err != nil {
			t.Error(err)
		}
		if l := mustAcquire(t, a, delay); l.Valid() {
			l.Release(false, 0, time.Time{})
		}
		takes(t, 0, func() { mustAcquire(t, b, delay).Release(true, delay, time.Time{}) })
		takes(t, delay, func() { mustAcquire(t, b, delay).Release(false, 0, time.Time{}) })
	}
}

// TestGivenUp checks that Redis releases a host later if it was granted to a call that failed, or
// if it was released while Redis could not be reached.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	p := newProxy(t, server.addr)
	a, b := open(t, p.client(t), redisstore.Patience(time.Second)), open(t, server.client(t))
	time.Sleep(settled)
	held := sureAcquire(t, a, "held", delay)
	p.last.Store(true)
	p.cutAfter(1)
	var away *redisstore.AwayError
	if _, err := a.Acquire(ctx, "host", delay); !errors.As(err, &away) {
		t.Fatal(err)
	}
	ended := time.Now()
	held.Release(true, delay, ended.Add(2*time.Second))
	p.setDown(false)
	sureAcquire(t, a, "another", delay)
	takes(t, 0, func() { mustAcquire(t, b, delay).Release(true, delay, time.Time{}) })
	takes(t, time.Until(ended.Add(2*time.Second)), func() {
		if _, err := b.Acquire(ctx, "held", delay); err != nil {
			t.Error(err)
		}
	})
}

// TestManyGivenBackLate checks that late releases, sent to a distant Redis, do not take so long
// that a lease which was just granted becomes invalid.
func TestManyGivenBackLate(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	p := newProxy(t, server.addr)
	a, b := open(t, p.client(t), redisstore.Patience(time.Second)), open(t, server.client(t))
	time.Sleep(settled)
	const hosts = 60
	var held []pacer.Lease
	for n := range hosts {
		held = append(held, sureAcquire(t, a, fmt.Sprint("held", n), delay))
	}
	p.setDown(true)
	var releases sync.WaitGroup
	for _, l := range held {
		releases.Go(func() { l.Release(true, delay, time.Time{}) })
	}
	releases.Wait()
	p.setDown(false)
	p.slow.Store(int64(30 * time.Millisecond))
	for n := range 12 {
		late := lateness()
		l := sureAcquire(t, a, fmt.Sprint("new", n), delay)
		if valid := l.Valid(); late() < 200*time.Millisecond && !valid {
			t.Fatal("the lease is not valid when Acquire returns")
		}
	}
	for n := range hosts {
		if _, err := b.Acquire(ctx, fmt.Sprint("held", n), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A counter counts the commands and pipelines of a client.
type counter struct{ n atomic.Int32 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" && cmd.Name() != "client" { // except those that begin a connection
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

// TestKeysExpire checks that every key of the pace has a time to live.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client := server.client(t)
	s := open(t, client, redisstore.Prefix("mine/"))
	notBefore := make(map[string]time.Time)
	for _, d := range []time.Duration{0, time.Millisecond, time.Hour} {
		l := func() pacer.Lease { l, _ := s.Acquire(ctx, d.String(), min(d, time.Second)); return l }()
		notBefore[d.String()] = time.Now().Add(d)
		l.Release(true, d, notBefore[d.String()])
	}
	keys := client.Keys(ctx, "*").Val()
	lasting := 0
	for _, key := range keys {
		ttl := client.PTTL(ctx, key).Val()
		if !strings.HasPrefix(key, "mine/{") {
			t.Errorf("%s does not have the prefix", key)
		}
		if strings.Contains(key, ":sending:") { // it lives for a second, so it may be gone
			if ttl == -1 {
				t.Errorf("%s has no time to live", key)
			}
			continue
		}
		lasting++
		if least := max(time.Minute, time.Until(notBefore[key[strings.LastIndexByte(key, ':')+1:]])); ttl < least {
			t.Errorf("%s has a time to live of %v", key, ttl)
		}
	}
	if lasting != 256+3 {
		t.Errorf("%d keys", lasting)
	}
}

// TestNew checks that New reports a server or an option that cannot work.
func TestNew(t *testing.T) {
	t.Parallel()
	server, secret := newServer(t), newServer(t, "--requirepass", "secret")
	replica := newServer(t, append([]string{"--replicaof"}, strings.Fields(strings.Replace(server.addr, ":", " ", 1))...)...)
	prefix := func(do ...any) string {
		p := rand.Text()
		server.do(t, append([]any{do[0], p + "{7}:epoch"}, do[1:]...)...)
		return p
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and does not answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, test := range []struct {
		name, addr, password, prefix, want string
	}{
		{"no server", freeAddr(t), "", "", "refused"},
		{"silent server", silent.Addr().String(), "", "", "i/o timeout"},
		{"no password", secret.addr, "", "", "NOAUTH"},
		{"wrong password", secret.addr, "wrong", "", "WRONGPASS"},
		{"replica", replica.addr, "", "", "READONLY"},
		{"another type", server.addr, "", prefix("RPUSH", "x"), "WRONGTYPE"},
		{"garbage", server.addr, "", prefix("SET", strings.Repeat("garbage", 10<<20/7)), "version ?"},
		{"later version", server.addr, "", prefix("SET", "2 or so"), "version 2"},
	} {
		options := &redis.Options{Addr: test.addr, Password: test.password}
		switch test.name {
		case "no server":
			options.MaxRetries, options.DialerRetries = -1, 1
		case "silent server":
			options.ReadTimeout = 200 * time.Millisecond
		}
		client := redis.NewClient(options)
		began := time.Now()
		s, err := redisstore.New(ctx, client, redisstore.Prefix(test.prefix), redisstore.Patience(3*time.Second))
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) || time.Since(began) > time.Minute {
			t.Errorf("%s: %v, after %v", test.name, err, time.Since(began))
		}
		if test.prefix != "" && !strings.Contains(err.Error(), test.prefix+"{7}:epoch") {
			t.Errorf("%s: %v does not name the key", test.name, err)
		}
		client.Close()
	}
	_, err = redisstore.New(ctx, server.client(t), redisstore.Lease(time.Millisecond), redisstore.Patience(-1), redisstore.Logger(nil), redisstore.Option{})
	for _, word := range []string{"Lease: 1ms is not between", "Patience: -1ns is not a positive", "Logger: the logger is nil", "number 4 is the zero Option"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not mention %s", err, word)
		}
	}
	if _, err := redisstore.New(ctx, nil); err == nil {
		t.Error("New accepted a nil client")
	}
}

// TestForeignPace checks a key of the pace with unexpected content. The content is kept under
// another key; the next start waits for one delay, no less and no longer.
func TestForeignPace(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	client := server.client(t)
	for name, put := range map[string]func(key string) *redis.Cmd{
		"list":    func(key string) *redis.Cmd { return client.Do(ctx, "RPUSH", key, "x") },
		"10 MB":   func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, strings.Repeat("garbage ", 10<<20/8)) },
		"empty":   func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "") },
		"cut":     func(key string) *redis.Cmd { return client.Do(ctx, "SETRANGE", key, 30, "\x00") },
		"numbers": func(key string) *redis.Cmd { return client.Do(ctx, "SET", key, "1 - - -1 1e9 nan 0 0 0 0 0") },
	} {
		t.Run(name, func(t *testing.T) {
			var logged log
			prefix := rand.Text()
			s := open(t, client, redisstore.Prefix(prefix), redisstore.Logger(logged.logger()))
			time.Sleep(settled)
			mustAcquire(t, s, delay).Release(true, delay, time.Time{})
			key := only(t, client, prefix+"*:pace:host")
			if name == "list" {
				client.Del(ctx, key)
			}
			if err := put(key).Err(); err != nil {
				t.Fatal(err)
			}
			began, late := time.Now(), lateness()
			mustAcquire(t, s, delay).Release(true, delay, time.Time{})
			if took := time.Since(began); took < delay || took > delay+time.Second+late() {
				t.Errorf("it took %v instead of %v", took, delay)
			}
			only(t, client, prefix+"*:damaged:pace:host")
			if text := logged.String(); strings.Count(text, "moved aside") != 1 || !strings.Contains(text, "host=host") {
				t.Errorf("logged %q", text)
			}
		})
	}
	t.Run("later version", func(t *testing.T) {
		prefix := rand.Text()
		s := open(t, client, redisstore.Prefix(prefix))
		mustAcquire(t, s, delay)
		key := only(t, client, prefix+"*:pace:host")
		client.Set(ctx, key, "2 whatever", 0)
		var version *store.VersionError
		if _, err := s.Acquire(ctx, "host", delay); !errors.As(err, &version) || version.Path != key || version.Version != "2" {
			t.Error(err)
		}
		if got := client.Get(ctx, key).Val(); got != "2 whatever" {
			t.Errorf("the key was changed to %q", got)
		}
	})
}

// TestSpread checks that hosts are distributed over the hash slots of a cluster, and that the keys
// of one script are in one slot.
func TestSpread(t *testing.T) {
	t.Parallel()
	server := newServer(t, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")
	server.do(t, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.addr}})
	t.Cleanup(func() { client.Close() })
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(server.do(t, "CLUSTER", "INFO").(string), "cluster_state:ok"); {
		if time.Now().After(deadline) {
			t.Fatal("the cluster is not ready")
		}
		time.Sleep(50 * time.Millisecond)
	}
	s := open(t, client, redisstore.Prefix("odd{prefix:"))
	time.Sleep(settled)
	mustAcquire(t, s, delay).Release(true, delay, time.Time{})
	takes(t, delay, func() { mustAcquire(t, s, delay).Release(true, delay, time.Time{}) })
	count(t, s)
	if got := get(t, s, "count"); got != "1" {
		t.Error(got)
	}
	var slots []int64
	for _, key := range client.Keys(ctx, "*epoch").Val() {
		slots = append(slots, client.ClusterKeySlot(ctx, key).Val())
	}
	slices.Sort(slots)
	if n := len(slices.Compact(slots)); n < 250 {
		t.Errorf("%d slots", n)
	}
}
