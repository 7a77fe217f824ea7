// Package redisstore lets many processes share what they know of hosts, and the pace at which they
// ask them, through Redis. A [Store] is a [store.Store] for what robots.txt files said, and a
// [collyrobots.Pacer] for when a host may be asked again:
//
//	shared, err := redisstore.New(ctx, redis.NewClient(&redis.Options{Addr: "redis:6379"}))
//	...
//	robots, err := c.WithRobots(collyrobots.Store(shared), collyrobots.SharedPace(shared))
//
// # What is guaranteed
//
// Of all processes that share a Redis and a [Prefix], at most one at a time has a request in flight
// to a host that has a delay. The next request starts when that one has ended and the delay has
// passed: the longest delay that any process has asked for within the last minute. A Retry-After
// holds for all of them. Redis keeps the time, so the clocks of the processes need not agree.
//
// If a process is killed, its host is free when its [Lease] expires, plus one delay. A process that
// was stopped notices, before it sends, that its lease has expired. While Redis cannot be reached,
// nothing is sent. Acquire returns an [*AwayError] after a while, and later calls succeed when Redis
// is back. If Redis has lost its data, was restarted, or was replaced by a replica, every host waits
// for one delay and a second, also for new processes; so it does when an empty Redis is first used.
//
// # What is not guaranteed
//
// A process can be stopped between its last check of the lease and the write to the socket. When it
// continues, it sends its request late. A web server knows no tokens by which to refuse it.
//
// Replication is asynchronous. A replica that takes over may not have the last writes. The pause
// above covers the starts that it does not know, but a longer delay or a Retry-After that it does not
// know is lost until a process asks for it again. While two servers both act as the master, two
// processes may hold one host. To prevent that, set both min-replicas-to-write and
// min-replicas-max-lag to 1: an old master then refuses writes before the new one grants a host. If
// the user has no permission for INFO, a restart with old data is not noticed.
//
// If Redis' clock jumps ahead, two processes may start within one delay, once for each host. If it
// jumps back, hosts wait no longer than they would have at the last look, and a warning is logged.
//
// # What it costs
//
// A start takes two round trips when there is nothing to wait for: one before, one after. Who waits
// sleeps until the host may be free, and looks again then: about twice for each start of another
// process. A host that nobody has asked a delay for takes one round trip and is not held. (A delay
// of a millisecond or less holds it for one start, and is not remembered.) The plugin asks for one
// start of a host at a time, so a process starts no more requests to such a host than there are
// round trips in a second: keep Redis near.
//
// Redis 5 or later is needed, alone, with Sentinel or as a cluster; every key but those of records
// without a time to live expires. Where maxmemory is set, so must be maxmemory-policy noeviction:
// of a host whose key was dropped nobody knows when it was asked. With another policy when New is
// called, and with a redis.Ring, records are kept, and Acquire fails.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store"
)

// A Store keeps records and the pace of hosts in Redis. Any number of goroutines and processes may
// use the same ones.
type Store struct {
	client   redis.UniversalClient
	server   string // as messages name it
	keys     keys
	lease    time.Duration
	patience time.Duration
	report   report
	late     late
	unfit    error // why this Redis cannot keep a pace; nil: it can

	close  sync.Once
	closed chan struct{}
}

// An Option is a setting of New.
type Option func(*Store) error

// Prefix sets what all keys begin with. Processes share what has the same prefix. Default:
// "collyrobots:".
func Prefix(prefix string) Option {
	return func(s *Store) error {
		s.keys = keys(prefix)
		return nil
	}
}

// Lease sets for how long at most a host is taken for one request: what a request may take, its
// body included, and what its host waits for if this process is killed. A tenth of it, at most a
// second, is a margin. At least 200 milliseconds; default: 30 seconds.
func Lease(d time.Duration) Option {
	return func(s *Store) error {
		if d < minLease || d > maxDelay {
			return fmt.Errorf("redisstore: Lease(%v) is not between %v and %v", d, minLease, maxDelay)
		}
		s.lease = d
		return nil
	}
}

// Patience sets for how long Redis may give no usable answer before Acquire returns an
// [*AwayError]. An exchange that is under way then may last for as long as the client lets it.
// Default: 5 seconds.
func Patience(d time.Duration) Option {
	return func(s *Store) error {
		if d <= 0 {
			return fmt.Errorf("redisstore: Patience(%v) is not positive", d)
		}
		s.patience = d
		return nil
	}
}

// Logger sets the logger for what no call returns: a clock that went back, data that was lost, and
// a key with something else in it. Default: slog.Default().
func Logger(l *slog.Logger) Option {
	return func(s *Store) error {
		if l == nil {
			return errors.New("redisstore: Logger(nil)")
		}
		s.report.log = l
		return nil
	}
}

const (
	minLease = 200 * time.Millisecond
	maxDelay = 365 * 24 * time.Hour // longer ones count as this
)

// New returns a Store on client, which stays the caller's: Close does not close it. New asks Redis
// whether it can be used. It returns an error if Redis does not answer, refuses the password, is a
// read-only replica, or has keys that belong to something else, and a [*store.VersionError] if a
// later version of this package has written there.
func New(ctx context.Context, client redis.UniversalClient, options ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	s := &Store{
		client:   client,
		server:   nameOf(client),
		keys:     "collyrobots:",
		lease:    30 * time.Second,
		patience: 5 * time.Second,
		report:   report{log: slog.Default()},
		closed:   make(chan struct{}),
	}
	var faults []error
	for _, option := range options {
		if option != nil {
			faults = append(faults, option(s))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// begin looks at all epochs, and makes those that are not there: so the pause that an epoch begins
// with is over, on most hosts, before they are first asked. It also finds what is unfit for a pace.
func (s *Store) begin(ctx context.Context) error {
	all := make([]*redis.Cmd, buckets)
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range all {
			all[n] = begin.Eval(ctx, p, []string{s.keys.epoch(n)})
		}
		return nil
	})
	for n, cmd := range all {
		if cmd.Err() != nil {
			return s.problem(s.keys.epoch(n), cmd.Err())
		}
		if policy, _ := cmd.Text(); policy != "" {
			s.unfit = fmt.Errorf("redisstore: Redis drops keys when its memory is full, and with them when hosts were asked: "+
				"its maxmemory-policy is %s, and must be noeviction", policy)
		}
	}
	if _, ring := s.client.(*redis.Ring); ring {
		s.unfit = errors.New("redisstore: a redis.Ring cannot keep a pace: while a server is away another one takes its hosts, and knows nothing of them")
	}
	return s.problem("", err)
}

// Close ends all that waits for a host. It does not close the client.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

// usable returns why a call cannot begin, nil if it can.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
		return context.Cause(ctx)
	}
}
