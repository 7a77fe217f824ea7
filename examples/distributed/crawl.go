package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/examples/internal/term"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

// longest is after how long a crawl of the demo sites does not end any more.
const longest = 3 * time.Minute

// A stage is all that a crawl needs: a Redis, the sites, and workers.
type stage struct {
	settings
	display  *term.Display
	began    time.Time
	job      job // of the workers, but for their numbers
	redis    *redis.Client
	frontier *frontier
	sites    *demo.Server

	once    sync.Once // kills a worker
	mu      sync.Mutex
	workers []*child // all that there have been; a worker's number is one more than its place
	victims []*child // those that were killed
	heirs   int      // workers that were started for these
	kills   chan death
	fault   chan error // a worker has ended by itself
}

// A death is the end of a worker that was killed.
type death struct {
	worker *child
	at     time.Time
}

// crawl crawls the demo sites, and returns what these saw, as far as it came. While it lasts,
// meddle is called, if it is there: a test kills with it.
func crawl(ctx context.Context, s settings, display *term.Display, meddle func(context.Context, *stage)) (r *report, err error) {
	st := &stage{settings: s, display: display, began: time.Now(), kills: make(chan death, mostWorkers), fault: make(chan error, mostWorkers)}
	defer display.Close()
	keeper, err := st.openRedis(ctx)
	if keeper != nil {
		defer keeper.end()
	}
	if err != nil {
		return nil, err
	}
	defer st.redis.Close()
	if st.sites, err = demo.Start(); err != nil {
		return nil, err
	}
	defer st.sites.Close()
	st.job.Sites = st.sites.Addr()
	st.sites.Watch(st.onRequest)

	defer func() {
		if cerr := st.clear(keeper == nil); err == nil {
			err = cerr
		}
	}()
	defer st.endWorkers()
	if err := st.begin(ctx, keeper == nil); err != nil {
		return nil, err
	}
	if meddle != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go meddle(ctx, st)
	}
	if err := st.wait(ctx); err != nil {
		return newReport(st, false), err
	}
	r = newReport(st, true)
	r.failed, err = st.frontier.failures()
	return r, err
}

// openRedis finds the Redis that the user has named, or starts one in a process that it returns.
func (st *stage) openRedis(ctx context.Context) (keeper *child, err error) {
	st.job.Redis = st.settings.redis
	if st.job.Redis == "" {
		if keeper, st.job.Redis, err = startRedis(ctx, st.say); err != nil {
			return keeper, err
		}
	}
	options, err := redisOptions(st.job.Redis)
	if err != nil {
		return keeper, fmt.Errorf("-redis: %w", err)
	}
	if err := ping(ctx, st.job.Redis); err != nil {
		return keeper, fmt.Errorf("no Redis can be used at %s: %w", redisName(st.job.Redis), err)
	}
	id := strings.ToLower(rand.Text()[:8])
	st.job.Queue, st.job.Prefix = "pages-"+id, "collyrobots-"+id+":" // of this crawl alone
	st.redis = redis.NewClient(options)
	st.frontier = newFrontier(st.redis, st.job.Queue)
	shared, err := redisstore.New(ctx, st.redis, redisstore.Prefix(st.job.Prefix))
	if err != nil {
		st.redis.Close()
		return keeper, fmt.Errorf("no Redis can be used at %s: %w", redisName(st.job.Redis), err)
	}
	return keeper, shared.Close()
}

// begin queues the sites and starts the workers.
func (st *stage) begin(ctx context.Context, foreign bool) error {
	whose := "a Redis of its own"
	if foreign {
		whose = "the Redis"
	}
	st.say("%s at %s, %d sites at %s, %d workers", whose, redisName(st.job.Redis), len(demo.Sites), st.job.Sites, st.settings.workers)
	for _, site := range demo.Starts() {
		for _, kind := range []string{visitPage, readSitemaps} {
			if err := st.frontier.add(ctx, kind, site); err != nil {
				return err
			}
		}
	}
	for range st.settings.workers {
		if err := st.startWorker(); err != nil {
			return err
		}
	}
	return nil
}

// wait returns when all tasks are done. Meanwhile it starts a worker for each that is killed.
func (st *stage) wait(ctx context.Context) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	end := time.After(longest)
	var dead []death
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return fmt.Errorf("the crawl has not ended within %v", longest)
		case err := <-st.fault:
			return err
		case d := <-st.kills:
			dead = append(dead, d)
		case <-look.C:
			switch left, err := st.frontier.left(); {
			case err != nil:
				return fmt.Errorf("the queue in Redis: %w", err)
			case left == 0:
				return nil
			}
			if len(dead) > 0 && time.Since(dead[0].at) >= silent {
				if err := st.replace(ctx, dead[0]); err != nil {
					return err
				}
				dead = dead[1:]
			}
		}
	}
}

// replace starts a worker for one that was killed, which gives out again what that was at.
func (st *stage) replace(ctx context.Context, d death) error {
	n, err := st.frontier.forsake(ctx, d.at)
	if err != nil {
		return err
	}
	st.heirs++
	st.say("%-9s  has been silent for %v: what it was at (%s) goes back to the queue, and worker %d starts",
		d.worker.name(), silent, term.Number(n, "task"), len(st.workers)+1)
	return st.startWorker()
}

func (st *stage) startWorker() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	j := st.job
	j.Worker = len(st.workers) + 1
	w, err := startChild(j, st.say)
	if err != nil {
		return err
	}
	st.workers = append(st.workers, w)
	go func() {
		if <-w.ended; !w.wanted.Load() {
			st.fault <- fmt.Errorf("%s: %w", w.name(), w.err)
		}
	}()
	return nil
}

// onRequest shows what the sites are asked for. It kills the worker that asks, if it is time for
// that: the answer will not reach it.
func (st *stage) onRequest(a demo.Access) {
	w := st.workerOf(a)
	if w == nil {
		return
	}
	st.say("%-9s  %d  http://%s%s", w.name(), a.Status, a.Host, a.Path)
	if st.settings.kill > 0 && time.Since(st.began) >= st.settings.kill && isPage(a.Path) {
		st.once.Do(func() { st.kill(w) })
	}
}

// kill kills a worker with -9, and returns when it is gone.
func (st *stage) kill(w *child) {
	w.kill()
	st.mu.Lock()
	st.victims = append(st.victims, w)
	st.mu.Unlock()
	st.say("%-9s  is killed with -9", w.name())
	st.kills <- death{w, time.Now()}
}

// workerOf returns who has sent a request, nil if nobody knows.
func (st *stage) workerOf(a demo.Access) *child {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, w := range st.workers {
		if a.Agent == userAgent(w.job.Worker) {
			return w
		}
	}
	return nil
}

// say shows a line with the time since the beginning.
func (st *stage) say(format string, args ...any) {
	st.display.Printf("%6.1fs  "+format, append([]any{time.Since(st.began).Seconds()}, args...)...)
}

// endWorkers returns when all workers are gone.
func (st *stage) endWorkers() {
	st.mu.Lock()
	workers := slices.Clone(st.workers)
	st.mu.Unlock()
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(w.end)
	}
	all.Wait()
}

// clear removes what the crawl has left in a Redis that stays.
func (st *stage) clear(stays bool) error {
	if !stays {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(st.frontier.remove(ctx), removeKeys(ctx, st.redis, st.job.Prefix+"*"))
}
