// Package redisstore shares records and the pace of requests between processes, through Redis. A
// [Store] is a [store.Store], which keeps what robots.txt files say, and a [pacer.Pacer],
// which decides when the next request to a host may start:
//
//	shared, err := redisstore.New(ctx, redis.NewClient(&redis.Options{Addr: "redis:6379"}))
//	...
//	robots, err := c.WithRobots(collyrobots.Store(shared), collyrobots.SharedPace(shared))
//
// # What is guaranteed
//
// If a host has a delay, only one of the processes that share a Redis and a [Prefix] has a request
// to it in flight at a time. The next request starts when that request has ended and the delay has
// passed. The delay is the longest one that any process has asked for within the last minute. A
// Retry-After applies to all processes. Only the clock of Redis counts, so the clocks of the
// processes may differ.
//
// If a host had no delay before, its first request with a delay waits for one second and the delay
// after Redis has allowed the last requests without a delay. After that second, none of them is
// sent. Processes that have used the host without a delay notice a delay or a
// Retry-After after at most 250 milliseconds and 64 requests each.
//
// If a process is killed, its host is free when its [Lease] expires, plus one delay. A process that
// was stopped notices, before it sends, that its lease has expired. While Redis cannot be reached,
// nothing is sent: Acquire returns an [*AwayError] after a while, and later calls succeed when
// Redis is back. If Redis has lost its data, was restarted, or was replaced by a replica, every
// host waits for one delay and a second. This also applies to new processes, and to the first use
// of an empty Redis.
//
// # What is not guaranteed
//
// A process can be stopped between its last check of the lease and the write to the socket. When it
// continues, it sends its request late. Web servers do not know leases, so they cannot reject such
// a request.
//
// Replication is asynchronous. A replica that takes over may not have the last writes. The pause
// above covers the starts that are missing. A longer delay or a Retry-After that is missing is lost
// until a process asks for it again. While two servers both act as the master, two processes may
// hold one host. To prevent that, set both min-replicas-to-write and min-replicas-max-lag to 1: an
// old master then rejects writes before the new one grants a host. If the Redis user has no
// permission for INFO, a restart with old data is not noticed.
//
// If the clock of Redis jumps ahead, two processes may start within one delay, once for each host.
// If it jumps back, hosts wait no longer than they would have at the last request, and a warning is
// logged.
//
// # What it costs
//
// If there is nothing to wait for, a start takes two round trips: one before the request and one
// after it. A process that has to wait sleeps until the host may be free and then asks again: about
// twice for each start of another process. If no process has asked for a delay for a host, starts
// do not hold the host, and one round trip is enough for 64 starts within 250 milliseconds. A delay
// of a millisecond or less holds the host for one start and is not remembered. The plugin asks for
// one start of a host at a time, so a distant Redis slows down the crawl of a few hosts.
//
// Redis 5 or later is needed, as a single server, with Sentinel or as a cluster. Every key expires,
// except those of records without a time to live. If maxmemory is set, maxmemory-policy must be
// noeviction: if Redis drops the key of a host, the time of its last request is lost. If another
// policy is set when New is called, or the client is a redis.Ring, records are kept but Acquire
// fails.
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

// A Store keeps records and the pace of hosts in Redis. Its methods are safe for concurrent use,
// and any number of processes may use the same keys.
type Store struct {
	client   redis.UniversalClient
	server   string // the name of the server in error messages
	keys     keys
	lease    time.Duration
	patience time.Duration
	report   report
	late     late
	free     freeHosts
	unfit    error // why this Redis cannot keep a pace; nil if it can

	close  sync.Once // closes closed
	closed chan struct{}
}

// An Option sets one property of a Store. If an option is given twice, the later one applies. The
// zero Option is not valid.
type Option struct {
	set   func(*Store)
	fault error // why New rejects the option, or nil
}

// Prefix sets the beginning of all keys. Processes with the same prefix share their records and
// pace. The default is "collyrobots:".
func Prefix(prefix string) Option {
	return Option{set: func(s *Store) { s.keys = keys(prefix) }}
}

// Lease sets how long a process may hold a host for one request. This limits the time for the
// request, including its body, and it is how long the other processes wait if this one is killed. A
// tenth of it, at most a second, is kept as a safety margin. The minimum is 200 milliseconds, and
// the default is 30 seconds.
func Lease(d time.Duration) Option {
	o := Option{set: func(s *Store) { s.lease = d }}
	if d < minLease || d > maxDelay {
		o.fault = fmt.Errorf("redisstore: Lease: %v is not between %v and %v", d, minLease, maxDelay)
	}
	return o
}

// Patience sets how long Redis may be unusable before Acquire returns an [*AwayError]. Acquire does
// not interrupt an exchange that is in progress then, which may last as long as the client allows.
// The default is 5 seconds.
func Patience(d time.Duration) Option {
	o := Option{set: func(s *Store) { s.patience = d }}
	if d <= 0 {
		o.fault = fmt.Errorf("redisstore: Patience: %v is not a positive duration", d)
	}
	return o
}

// Logger sets the logger for events that no call returns: a clock that went back, lost data, and a
// key with unexpected content. The default is slog.Default().
func Logger(l *slog.Logger) Option {
	o := Option{set: func(s *Store) { s.report.log = l }}
	if l == nil {
		o.fault = errors.New("redisstore: Logger: the logger is nil")
	}
	return o
}

const (
	minLease = 200 * time.Millisecond
	maxDelay = 365 * 24 * time.Hour // longer delays are reduced to this
)

// New returns a Store that uses client. The caller still owns the client: Close does not close it.
// If options are not valid, New returns an error that joins the faults of all of them. New checks
// that Redis can be used. It returns an error if Redis does not answer, rejects the password, is a
// read-only replica, or has other data under these keys. It returns a [*store.VersionError] if a
// later version of this package has written there.
func New(ctx context.Context, client redis.UniversalClient, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: client is nil")
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
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// apply sets the options and returns all of their faults.
func (s *Store) apply(opts []Option) error {
	var faults []error
	for i, o := range opts {
		if o.set == nil {
			faults = append(faults, fmt.Errorf("redisstore: Option: number %d is the zero Option", i+1))
			continue
		}
		o.set(s)
		faults = append(faults, o.fault)
	}
	return errors.Join(faults...)
}

// begin reads all epochs and creates the missing ones. A new epoch starts with a pause. Because
// begin creates it early, the pause is usually over before the first request to a host. begin also
// finds out whether this Redis is unfit for a pace.
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
			s.unfit = fmt.Errorf("redisstore: Redis drops keys when its memory is full, so the times of requests would be lost; "+
				"maxmemory-policy is %s, set it to noeviction", policy)
		}
	}
	if _, ring := s.client.(*redis.Ring); ring {
		s.unfit = errors.New("redisstore: a redis.Ring cannot keep a pace, because another server without its data replaces a server that is down; use a cluster or Sentinel")
	}
	return s.problem("", err)
}

// Close ends all calls that wait for a host. It does not close the client.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

// usable returns nil if a call can begin. Otherwise it returns store.ErrClosed or the cause of ctx.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
		return context.Cause(ctx)
	}
}
