package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/store/redisstore"
)

const (
	minDelay  = 250 * time.Millisecond // between two requests to a host that asks for nothing
	hostLease = 3 * time.Second        // for how long a host is taken for one request, and by a worker that was killed
	atOnce    = 8                      // tasks of a worker at a time
	ofHost    = 2                      // how many of them may be pages of one host
)

// A worker is a process that crawls.
type worker struct {
	robots   *collyrobots.Plugin
	frontier *frontier
	spiders  chan *spider // those that have nothing to do

	mu    sync.Mutex
	hosts map[string]int // how many pages of each are being asked for
}

// work is a worker process. It ends when ctx does.
func work(ctx context.Context, j job) error {
	options, err := redisOptions(j.Redis)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	shared, err := redisstore.New(ctx, client, redisstore.Prefix(j.Prefix), redisstore.Lease(hostLease))
	if err != nil {
		return err
	}
	defer shared.Close()
	visits, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w := &worker{frontier: newFrontier(client, j.Queue), spiders: make(chan *spider, atOnce), hosts: make(map[string]int)}
	if err := w.newSpiders(visits, j, shared); err != nil {
		return err
	}
	defer w.robots.Close()

	server := asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency:              atOnce,
		Queues:                   map[string]int{j.Queue: 1},
		IsFailure:                isFailure,
		RetryDelayFunc:           retryDelay,
		TaskCheckInterval:        100 * time.Millisecond, // both are seconds if nothing is said
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		ShutdownTimeout:          time.Second,
		LogLevel:                 asynq.ErrorLevel,
	})
	tasks := asynq.NewServeMux()
	tasks.HandleFunc(visitPage, w.visitPage)
	tasks.HandleFunc(readSitemaps, w.readSitemaps)
	if err := server.Start(tasks); err != nil {
		return err
	}
	<-ctx.Done()
	server.Stop()
	cancel() // what waits for a host gives up, and its page goes back to the queue
	server.Shutdown()
	return nil
}

// A spider is a collector that visits one page at a time.
type spider struct {
	collector *collyrobots.Collector
	links     []string // of the page, to the same host
	status    int      // of the answer
}

// newSpiders makes the spiders of w. They have one plugin, which shares all it knows with the other
// processes.
func (w *worker) newSpiders(ctx context.Context, j job, shared *redisstore.Store) error {
	c := collyrobots.NewCollector(
		colly.StdlibContext(ctx),
		colly.AllowURLRevisit(), // the frontier knows what was visited
		colly.ParseHTTPErrorResponse(),
		colly.UserAgent(userAgent(j.Worker)))
	c.WithTransport(demo.Transport(j.Sites))
	var err error
	w.robots, err = c.WithRobots(
		collyrobots.ProductToken(productToken),
		collyrobots.MinDelay(minDelay),
		collyrobots.Store(shared),      // one fetch of a robots.txt for all processes
		collyrobots.SharedPace(shared), // one request at a time to a host, whoever sends it
		collyrobots.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))))
	if err != nil {
		return err
	}
	for range atOnce {
		s := &spider{collector: c.Clone()}
		s.collector.OnResponse(func(r *colly.Response) { s.status = r.StatusCode })
		s.collector.OnHTML("a[href]", s.onLink)
		w.spiders <- s
	}
	return nil
}

const productToken = "ExampleBot"

// userAgent names the worker, for the table that is made from the sites' log.
func userAgent(worker int) string {
	return fmt.Sprintf(productToken+"/1.0 (worker %d; +https://example.com/bot)", worker)
}

func (s *spider) onLink(e *colly.HTMLElement) {
	link, err := url.Parse(e.Request.AbsoluteURL(e.Attr("href")))
	if err == nil && link.Host == e.Request.URL.Host {
		s.links = append(s.links, link.String())
	}
}

// visitPage does a task: it visits a page and queues its links. The task is done when it returns
// nil; a worker that is killed before that leaves the page to another one, which asks for it again.
func (w *worker) visitPage(ctx context.Context, task *asynq.Task) error {
	page := string(task.Payload())
	leave, err := w.enter(page)
	if err != nil {
		return err
	}
	defer leave()
	s := <-w.spiders
	defer func() { w.spiders <- s }()
	s.links, s.status = nil, 0
	var denied *collyrobots.DisallowedError
	switch err := s.collector.Visit(page); {
	case errors.As(err, &denied):
		fmt.Println(outcome(denied.Decision))
		return nil // there is no more to do
	case err != nil:
		return err
	case s.status == 429 || s.status >= 500:
		return fmt.Errorf("status %d", s.status)
	}
	for _, link := range s.links {
		if err := w.frontier.add(ctx, visitPage, link); err != nil {
			return err
		}
	}
	return nil
}

// outcome says of a page that it was denied, in the columns of those that were fetched.
func outcome(d collyrobots.Decision) string {
	if d.Reason == collyrobots.ReasonRule {
		return fmt.Sprintf("---  %s: line %d, %v", d.URL, d.Rule.Line, d.Rule)
	}
	return fmt.Sprintf("---  %s: robots.txt is %s", d.URL, d.Reason)
}

// readSitemaps does a task: it queues what the sitemaps of a site list. Pages leaves out what is
// denied.
func (w *worker) readSitemaps(ctx context.Context, task *asynq.Task) error {
	site := string(task.Payload())
	for page, err := range w.robots.Pages(ctx, collyrobots.Feed{}, site) {
		switch {
		case err != nil && !isFailure(err):
			return err
		case err != nil:
			fmt.Println("---  ", err) // what other sitemaps list is read all the same
			continue
		}
		if err := w.frontier.add(ctx, visitPage, page.Loc); err != nil {
			return err
		}
	}
	return nil
}

// errBusy says that this worker is at enough pages of the host.
var errBusy = errors.New("the host is busy")

// enter takes a place among the pages of a host, until leave is called. So the pages of a slow host
// do not fill the worker while they wait, and those of other hosts get their turn.
func (w *worker) enter(page string) (leave func(), err error) {
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hosts[u.Host] >= ofHost {
		return nil, errBusy
	}
	w.hosts[u.Host]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.hosts[u.Host]--; w.hosts[u.Host] == 0 {
			delete(w.hosts, u.Host)
		}
	}, nil
}

// isFailure reports whether an error counts towards the retries of a task: one that is no fault of
// its page does not.
func isFailure(err error) bool {
	var unpaced *collyrobots.PaceError
	return !errors.Is(err, errBusy) && !errors.As(err, &unpaced) && !errors.Is(err, context.Canceled)
}

// retryDelay says after how long a task is tried again. asynq counts in whole seconds.
func retryDelay(retries int, err error, _ *asynq.Task) time.Duration {
	switch {
	case errors.Is(err, asynq.ErrLeaseExpired), errors.Is(err, context.Canceled):
		return 0 // its worker has died, or ends
	case !isFailure(err):
		return time.Second
	}
	return time.Second << min(retries, 10)
}
