package redisstore_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// workers starts two workers, a and b, that send requests to one host.
func workers(t *testing.T, j job) (a, b *worker) {
	t.Helper()
	j.Name = "a"
	a = newWorker(t, j)
	j.Name = "b"
	return a, newWorker(t, j)
}

// TestKill checks that after a process was killed, its host is free again when the lease has
// expired and the delay has passed.
func TestKill(t *testing.T) {
	t.Parallel()
	const length = time.Second
	s, web := newServer(t), newSite(t)
	j := job{Name: "a", Redis: s.addr, Site: web.addr, Delay: delay, Lease: length, Path: "hang"}
	client := s.client(t)
	for range 3 {
		victim := newWorker(t, j)
		web.await(t, 1)
		victim.kill() // while it waits for the response
		killed := len(web.visits())
		state := strings.Fields(client.Get(ctx, only(t, client, "*:pace:host0")).Val())
		granted, err := strconv.ParseInt(state[5], 10, 64)
		if err != nil {
			t.Fatal(err, state)
		}
		free := time.UnixMicro(granted).Add(length + delay)
		heir := newWorker(t, j)
		web.await(t, 1)
		heir.kill()
		if at := web.visits()[killed].at; at.UnixMicro() < free.UnixMicro() {
			t.Errorf("%v before the host was free", time.Duration(free.UnixMicro()-at.UnixMicro())*time.Microsecond)
		}
		time.Sleep(length)
	}
	web.gap(t, delay)
}

// TestStop checks that a process that was stopped for longer than its lease does not send when it
// continues, except for a request that it had already begun to send.
func TestStop(t *testing.T) {
	t.Parallel()
	const length = 600 * time.Millisecond
	s, web := newServer(t), newSite(t)
	a, b := workers(t, job{Redis: s.addr, Site: web.addr, Delay: delay, Lease: length, Late: 40 * time.Millisecond})
	web.await(t, 2)
	for n := range 6 {
		w := []*worker{a, b}[n%2]
		time.Sleep(time.Duration(n) * delay / 4)
		w.signal(syscall.SIGSTOP)
		time.Sleep(length + 300*time.Millisecond)
		w.signal(syscall.SIGCONT)
		web.await(t, 1)
	}
	unfenced := 0
	for _, w := range []*worker{a, b} {
		w.end()
		unfenced += len(w.said("unfenced"))
	}
	short := web.short(delay)
	t.Logf("%d gaps are shorter than the delay, %d requests were stopped between the last check and the socket", short, unfenced)
	if short > unfenced {
		t.Errorf("%d gaps are shorter than the delay; only %d of them could not be avoided", short, unfenced)
	}
}

// TestAway checks that nothing is sent while Redis cannot be reached, that Acquire returns an error
// after a while, and that the workers continue by themselves when Redis is back.
func TestAway(t *testing.T) {
	for name, away := range map[string]func(t *testing.T, s *server) (back func()){
		"stopped": func(t *testing.T, s *server) func() {
			_ = s.process.Process.Signal(syscall.SIGSTOP)
			return func() { _ = s.process.Process.Signal(syscall.SIGCONT) }
		},
		"killed": func(t *testing.T, s *server) func() {
			s.stop()
			return func() { s.start(t) } // without its data
		},
		"paused": func(t *testing.T, s *server) func() {
			s.do(t, "CLIENT", "PAUSE", 4000)
			return func() {}
		},
		"asleep": func(t *testing.T, s *server) func() {
			slept := make(chan any)
			go func() { slept <- s.do(t, "DEBUG", "SLEEP", "4") }()
			return func() { <-slept }
		},
		"read-only": func(t *testing.T, s *server) func() {
			s.do(t, "REPLICAOF", "127.0.0.1", 1)
			return func() { s.do(t, "REPLICAOF", "NO", "ONE") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, web := newServer(t), newSite(t)
			a, b := workers(t, job{Redis: s.addr, Site: web.addr, Delay: delay})
			web.await(t, 4)
			back := away(t, s)
			gone := time.Now().Add(1200 * time.Millisecond) // a lease that was granted before is valid for a second
			time.Sleep(time.Until(gone) + 2*time.Second)
			if sent := web.between(gone, gone.Add(2*time.Second)); len(sent) > 0 {
				t.Errorf("sent while Redis was away: %v", sent)
			}
			back()
			web.await(t, 6)
			web.gap(t, delay)
			for _, w := range []*worker{a, b} {
				lines := w.said("away")
				if len(lines) == 0 || !strings.HasPrefix(lines[0], "away true") {
					t.Errorf("%s printed %q", w.name, lines)
				}
			}
		})
	}
}

// TestEmptied checks that all workers pause after Redis has lost its data, including a worker that
// starts later.
func TestEmptied(t *testing.T) {
	for name, empty := range map[string]func(t *testing.T, s *server){
		"FLUSHALL": func(t *testing.T, s *server) { s.do(t, "FLUSHALL") },
		"restart": func(t *testing.T, s *server) {
			s.stop()
			s.start(t)
		},
		"restart with old data": func(t *testing.T, s *server) {
			s.stop()
			s.start(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, web := newServer(t), newSite(t)
			j := job{Redis: s.addr, Site: web.addr, Delay: delay, Late: 20 * time.Millisecond}
			workers(t, j)
			web.await(t, 4)
			if strings.Contains(name, "old") {
				s.do(t, "SAVE")
				web.await(t, 2)
			}
			for n := range 2 {
				empty(t, s)
				j.Name = fmt.Sprint("new", n)
				newWorker(t, j)
				web.await(t, 4)
			}
			t.Logf("smallest gap %v", web.gap(t, delay))
		})
	}
}

// TestSentinelSettings checks that with the two settings of the guide, a master that has lost its
// replica grants nothing. With the default lag of ten seconds, it would still grant hosts after the
// pause of the new master is over.
func TestSentinelSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/many-processes.md")
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, " "); ok && strings.HasPrefix(line, "min-replicas-") {
			args = append(args, "--"+name, value)
		}
	}
	if want := []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}; !slices.Equal(args, want) {
		t.Fatalf("the guide has %q, want %q", args, want)
	}
	master := newServer(t, append(args, "--repl-diskless-sync-delay", "0")...)
	client := master.client(t)
	refuses := func() bool {
		_, err := redisstore.New(ctx, client)
		return err != nil && strings.Contains(err.Error(), "NOREPLICAS")
	}
	if !refuses() {
		t.Error("New succeeds without a replica")
	}
	host, port, _ := strings.Cut(master.addr, ":")
	replica := newServer(t, "--replicaof", host, port)
	eventually(t, "the master finds its replica", func() bool { return !refuses() })
	replica.stop()
	eventually(t, "the master misses its replica", refuses)
}

// eventually waits until a condition is true. It fails the test if that takes longer than a minute.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not true after a minute: %s", what)
		}
	}
}

// TestPromoted checks that all workers pause when a replica that has not received the last starts
// takes over.
func TestPromoted(t *testing.T) {
	t.Parallel()
	s, web := newServer(t), newSite(t)
	p := newProxy(t, s.addr)
	host, port, _ := strings.Cut(s.addr, ":")
	replica := newServer(t, "--replicaof", host, port)
	a, b := workers(t, job{Redis: p.addr(), Site: web.addr, Delay: 3 * delay})
	eventually(t, "the replica finds its master", func() bool {
		return strings.Contains(replica.do(t, "INFO", "replication").(string), "master_link_status:up")
	})
	web.await(t, 3)
	_ = replica.process.Process.Signal(syscall.SIGSTOP) // now the replica lags
	web.await(t, 1)
	s.stop()
	_ = replica.process.Process.Signal(syscall.SIGCONT)
	replica.do(t, "REPLICAOF", "NO", "ONE")
	p.redirect(replica.addr)
	web.await(t, 5)
	t.Logf("smallest gap %v; said %q %q", web.gap(t, 3*delay), a.said(""), b.said(""))
}
