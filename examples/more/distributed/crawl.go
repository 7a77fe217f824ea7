package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/hostqueue"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

// longest is the time limit for a crawl of the demo sites.
const longest = 3 * time.Minute

// A cluster has the parts of a crawl: a Redis, the sites, and the workers.
type cluster struct {
	settings
	output io.Writer // for progress
	began  time.Time
	job    job // the job of the workers, without their numbers
	redis  *redis.Client
	queue  *hostqueue.Queue
	web    map[string]demo.Site // the sites by host
	sites  *demo.Server

	once     sync.Once // kills a worker
	mu       sync.Mutex
	workers  []*child    // all workers that were started, in the order of their numbers, which begin with 1
	killed   []*child    // the workers that were killed
	deaths   chan *child // receives the workers that were killed
	finished chan *child // receives the workers that have ended because all pages are done
	fault    chan error  // receives an error when a worker fails
}

// crawl crawls the demo sites and returns a report. If it fails during the crawl, it returns a
// report and an error. If interfere is not nil, it is called during the crawl; tests use it to kill
// workers.
func crawl(ctx context.Context, s settings, output io.Writer, interfere func(context.Context, *cluster)) (r *outcome, err error) {
	c := &cluster{
		settings: s,
		output:   output,
		began:    time.Now(),
		deaths:   make(chan *child, mostWorkers),
		finished: make(chan *child, 2*mostWorkers),
		fault:    make(chan error, mostWorkers),
	}
	keeper, err := c.openRedis(ctx)
	if keeper != nil {
		defer keeper.end()
	}
	if err != nil {
		return nil, err
	}
	defer c.redis.Close()
	err = c.serve()
	if err != nil {
		return nil, err
	}
	defer c.sites.Close()
	defer func() {
		if cerr := c.clear(keeper == nil); err == nil {
			err = cerr
		}
	}()
	defer c.endWorkers()
	if err := c.begin(ctx, keeper == nil); err != nil {
		return nil, err
	}
	if interfere != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go interfere(ctx, c)
	}
	if err := c.wait(ctx); err != nil {
		return newReport(c, false), err
	}
	r = newReport(c, true)
	return r, r.addFailed(ctx, c.queue)
}

// serve starts the sites.
func (c *cluster) serve() (err error) {
	c.web = demo.Sites
	if c.settings.sites > 0 {
		c.web = demo.Generate(c.settings.sites, c.settings.pages)
	}
	c.sites, err = demo.Serve(c.web)
	if err != nil {
		return err
	}
	c.job.Sites = c.sites.Addr()
	c.sites.Watch(c.onRequest)
	return nil
}

// openRedis connects to the Redis of -redis, or starts one. In the second case it returns the child
// process that runs the Redis.
func (c *cluster) openRedis(ctx context.Context) (keeper *child, err error) {
	c.job.Redis = c.settings.redis
	if c.job.Redis == "" {
		keeper, c.job.Redis, err = startRedis(ctx, c.say)
		if err != nil {
			return keeper, err
		}
	}
	options, err := redisOptions(c.job.Redis)
	if err != nil {
		return keeper, fmt.Errorf("-redis: %w", err)
	}
	if err := ping(ctx, c.job.Redis); err != nil {
		return keeper, fmt.Errorf("cannot use the Redis at %s: %w", redisName(c.job.Redis), err)
	}
	id := strings.ToLower(rand.Text()[:8]) // keeps the keys of different crawls apart
	c.job.Crawl = "demo-" + id
	c.job.Prefix = "collyrobots-" + id + ":"
	c.redis = redis.NewClient(options)
	shared, err := redisstore.New(ctx, c.redis, redisstore.Prefix(c.job.Prefix))
	if err == nil {
		c.queue, err = hostqueue.Open(ctx, c.redis, c.job.Crawl)
	}
	if err != nil {
		c.redis.Close()
		return keeper, fmt.Errorf("cannot use the Redis at %s: %w", redisName(c.job.Redis), err)
	}
	return keeper, shared.Close()
}

// begin queues the sites and starts the workers. foreign says that the Redis is that of -redis.
func (c *cluster) begin(ctx context.Context, foreign bool) error {
	name := "its own Redis"
	if foreign {
		name = "the Redis"
	}
	c.say("using %s at %s, %d sites at %s, %d workers", name, redisName(c.job.Redis), len(c.web), c.job.Sites, c.settings.workers)
	var starts []string
	for host := range c.web {
		starts = append(starts, "http://"+host+"/")
	}
	if err := c.queue.Add(ctx, starts...); err != nil {
		return err
	}
	for range c.settings.workers {
		if err := c.startWorker(); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until the workers have ended because all pages are done. It starts a new worker for
// each worker that is killed.
func (c *cluster) wait(ctx context.Context) error {
	limit := longest + time.Duration(c.settings.pages)*10*minDelay
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the crawl has not finished within %v", limit))
	defer cancel()
	for running := c.settings.workers; running > 0; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-c.fault:
			return err
		case <-c.finished:
			running--
		case <-c.deaths:
			c.say("starting worker %d", len(c.workers)+1)
			if err := c.startWorker(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cluster) startWorker() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.job
	j.Worker = len(c.workers) + 1
	w, err := startChild(j, c.say)
	if err != nil {
		return err
	}
	c.workers = append(c.workers, w)
	go func() {
		<-w.ended
		switch {
		case w.process.ProcessState.Success():
			c.finished <- w
		case !w.wanted.Load():
			c.fault <- fmt.Errorf("%s: %w", w.name(), w.err)
		}
	}()
	return nil
}

// onRequest shows a request to the sites. When it is time to kill a worker, it kills the worker
// that has sent the request, before the worker gets the response.
func (c *cluster) onRequest(a demo.Access) {
	w := c.workerOf(a)
	if w == nil {
		return
	}
	if c.settings.sites == 0 {
		c.say("%-9s  %d  http://%s%s", w.name(), a.Status, a.Host, a.Path)
	}
	if c.settings.kill > 0 && time.Since(c.began) >= c.settings.kill && isPage(a.Path) {
		c.once.Do(func() { c.kill(w) })
	}
}

// kill kills a worker with -9, and waits until it has ended.
func (c *cluster) kill(w *child) {
	w.kill()
	if w.process.ProcessState.Success() {
		return // it had ended before
	}
	c.mu.Lock()
	c.killed = append(c.killed, w)
	c.mu.Unlock()
	c.say("%-9s  killed with -9", w.name())
	c.deaths <- w
}

// workerOf returns the worker that has sent a request, or nil.
func (c *cluster) workerOf(a demo.Access) *child {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers {
		if a.Agent == userAgent(w.job.Worker) {
			return w
		}
	}
	return nil
}

// say prints a line with the time since the start.
func (c *cluster) say(format string, args ...any) {
	fmt.Fprintf(c.output, "%6.1fs  "+format+"\n", append([]any{time.Since(c.began).Seconds()}, args...)...)
}

// endWorkers ends all workers, and waits until they have ended.
func (c *cluster) endWorkers() {
	c.mu.Lock()
	workers := slices.Clone(c.workers)
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(w.end)
	}
	all.Wait()
}

// clear removes the keys of the crawl from the Redis of -redis, which continues to run. It does
// nothing if foreign is false.
func (c *cluster) clear(foreign bool) error {
	if !foreign {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(c.queue.Remove(ctx), removeKeys(ctx, c.redis, c.job.Prefix+"*"))
}
