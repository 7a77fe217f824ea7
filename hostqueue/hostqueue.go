package hostqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// prefix begins the text of each error that a caller can get from this package.
const prefix = "hostqueue: "

var (
	// ErrLost is returned by Run if the crawl is no longer in Redis, because Redis has lost its
	// data or Remove was called. To begin again, call Open and Add.
	ErrLost = errors.New(prefix + "the crawl is no longer in Redis")

	// ErrPageDone is returned by Follow if the page of the request is done, so the link can no
	// longer be recorded with it. Call Follow only in callbacks of the page, before they return.
	ErrPageDone = errors.New(prefix + "the page is done, so its links can no longer be recorded")

	// ErrNotRun is returned by Follow for a request that Run has not made.
	ErrNotRun = errors.New(prefix + "the request was not made by Run")
)

// A Queue has the pages of a crawl. Any number of processes may open the same crawl. All methods
// may be called from any goroutine.
type Queue struct {
	client redis.UniversalClient
	keys   keys
	id     string // the identity of the crawl, which changes when Redis loses its data

	lease              time.Duration
	hosts              int
	retryPause         time.Duration
	maxRecordedPerHost int
	log                *slog.Logger
}

// An Option sets one property of a Queue. If an option is given twice, the later one applies. The
// zero Option is not valid.
type Option struct {
	set   func(*Queue)
	fault error // why Open rejects the option, or nil
}

// Lease sets how long a process keeps its hosts without contact to Redis. If a process is killed,
// other processes continue with its hosts after this time. The lease is renewed while the process
// runs, so a page may take longer. The minimum is 100 milliseconds, and the default is 15 seconds.
func Lease(d time.Duration) Option {
	o := Option{set: func(q *Queue) { q.lease = d }}
	if d < 100*time.Millisecond {
		o.fault = fmt.Errorf(prefix+"Lease: %v is less than 100ms", d)
	}
	return o
}

// Hosts sets how many hosts a process crawls at once. Each of them has one goroutine and one page
// in progress. The default is 1,000.
func Hosts(n int) Option {
	o := Option{set: func(q *Queue) { q.hosts = n }}
	if n < 1 {
		o.fault = fmt.Errorf(prefix+"Hosts: %d is less than 1", n)
	}
	return o
}

// RetryPause sets the time between the first and the second attempt to fetch a page. The time
// before the third and last attempt is ten times as long. The default is a minute.
func RetryPause(d time.Duration) Option {
	o := Option{set: func(q *Queue) { q.retryPause = d }}
	if d < time.Millisecond {
		o.fault = fmt.Errorf(prefix+"RetryPause: %v is less than 1ms", d)
	}
	return o
}

// MaxRecordedPerHost sets how many pages of a host are recorded. Further pages are dropped and
// counted in Stats.Dropped. This protects the memory of Redis from hosts with endless pages. The
// default is 0, which means no limit.
func MaxRecordedPerHost(n int) Option {
	o := Option{set: func(q *Queue) { q.maxRecordedPerHost = n }}
	if n < 0 {
		o.fault = fmt.Errorf(prefix+"MaxRecordedPerHost: %d is negative", n)
	}
	return o
}

// Logger sets the logger for failures of Redis and for callbacks that panic. The default is
// slog.Default().
func Logger(l *slog.Logger) Option {
	o := Option{set: func(q *Queue) { q.log = l }}
	if l == nil {
		o.fault = errors.New(prefix + "Logger: the logger is nil")
	}
	return o
}

// Open opens the crawl with this name, or begins it if Redis does not have it. Crawls with
// different names share nothing. A name has at least one character, and no braces and control
// characters. The keys in Redis begin with "hostqueue:", the name and a colon.
//
// The caller still owns the client, which must not be a *redis.Ring. If options are not valid, Open
// returns an error that joins the faults of all of them.
func Open(ctx context.Context, client redis.UniversalClient, crawl string, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, errors.New(prefix + "the client is nil")
	}
	if _, ring := client.(*redis.Ring); ring {
		return nil, errors.New(prefix + "a redis.Ring cannot keep a crawl, because another server without its data replaces a server that is down")
	}
	if crawl == "" || strings.ContainsFunc(crawl, func(r rune) bool { return r < ' ' || r == '{' || r == '}' }) {
		return nil, fmt.Errorf(prefix+"%q is not a valid name of a crawl", crawl)
	}
	q := &Queue{
		client:     client,
		keys:       keys("hostqueue:" + crawl + ":"),
		lease:      15 * time.Second,
		hosts:      1000,
		retryPause: time.Minute,
		log:        slog.Default(),
	}
	err := q.apply(opts)
	if err != nil {
		return nil, err
	}
	err = client.SetNX(ctx, q.keys.crawl(), rand.Text(), 0).Err()
	if err == nil {
		q.id, err = client.Get(ctx, q.keys.crawl()).Result()
	}
	if err != nil {
		return nil, fmt.Errorf(prefix+"cannot open crawl %q: %w", crawl, err)
	}
	return q, nil
}

// apply sets the options and returns all of their faults.
func (q *Queue) apply(opts []Option) error {
	var faults []error
	for i, o := range opts {
		if o.set == nil {
			faults = append(faults, fmt.Errorf(prefix+"Option: number %d is the zero Option", i+1))
			continue
		}
		o.set(q)
		faults = append(faults, o.fault)
	}
	return errors.Join(faults...)
}

// Add records pages that are not known yet. When Add returns nil, the pages are recorded. It may be
// called at any time, and by several processes with the same URLs. Run returns at
// once if the crawl has no pages, so call Add before Run, at least in the first process.
//
// Add records no page if one of the URLs is not an http or https URL.
func (q *Queue) Add(ctx context.Context, urls ...string) error {
	var pages []page
	var faults []error
	for _, raw := range urls {
		p, err := newPage(raw, 1)
		pages = append(pages, p)
		faults = append(faults, err)
	}
	err := errors.Join(faults...)
	if err != nil {
		return err
	}
	err = q.add(ctx, pages)
	if err != nil {
		return fmt.Errorf(prefix+"cannot add pages: %w", err)
	}
	return nil
}
