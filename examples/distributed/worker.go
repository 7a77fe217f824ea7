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
	minDelay  = 250 * time.Millisecond // the minimum delay between two requests to a host
	hostLease = 3 * time.Second        // the length of the lease for a host; the host of a killed worker is free after it
	atOnce    = 8                      // the number of tasks of a worker at a time
	ofHost    = 2                      // the number of these that may be pages of one host
)

// A worker is a process that crawls.
type worker struct {
	robots   *collyrobots.Plugin
	frontier *frontier
	spiders  chan *spider // the idle spiders

	mu    sync.Mutex
	hosts map[string]int // the number of pages being visited, by host
}

// work runs a worker until ctx ends.
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
		TaskCheckInterval:        100 * time.Millisecond, // the defaults of both intervals are seconds
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
	cancel() // visits that wait for a host fail, and their pages go back to the queue
	server.Shutdown()
	return nil
}

// A spider is a collector that visits one page at a time.
type spider struct {
	collector *collyrobots.Collector
	links     []string // the links of the page to the same host
	status    int      // the status of the response
}

// newSpiders makes the spiders of w. They have one plugin, which shares the pace and the robots.txt
// files with the other processes.
func (w *worker) newSpiders(ctx context.Context, j job, shared *redisstore.Store) error {
	c := collyrobots.NewCollector(
		colly.StdlibContext(ctx),
		colly.AllowURLRevisit(), // the frontier keeps the visited URLs
		colly.ParseHTTPErrorResponse(),
		colly.UserAgent(userAgent(j.Worker)))
	c.WithTransport(demo.Transport(j.Sites))
	var err error
	w.robots, err = c.WithRobots(
		collyrobots.ProductToken(productToken),
		collyrobots.MinDelay(minDelay),
		collyrobots.Store(shared),      // one fetch of robots.txt for all processes
		collyrobots.SharedPace(shared), // one request at a time to a host, from all processes together
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

// userAgent returns the User-Agent of a worker. It contains the number of the worker, for the
// report from the logs of the sites.
func userAgent(worker int) string {
	return fmt.Sprintf(productToken+"/1.0 (worker %d; +https://example.com/bot)", worker)
}

func (s *spider) onLink(e *colly.HTMLElement) {
	link, err := url.Parse(e.Request.AbsoluteURL(e.Attr("href")))
	if err == nil && link.Host == e.Request.URL.Host {
		s.links = append(s.links, link.String())
	}
}

// visitPage does a task: it visits a page and queues its links. The task is done when visitPage
// returns nil. If the worker is killed before that, another one visits the page again.
func (w *worker) visitPage(ctx context.Context, task *asynq.Task) error {
	page := string(task.Payload())
	leave, err := w.enter(page)
	if err != nil {
		return err
	}
	defer leave()
	s := <-w.spiders
	defer func() { w.spiders <- s }()
	s.links = nil
	s.status = 0
	var denied *collyrobots.DisallowedError
	err = s.collector.Visit(page)
	switch {
	case errors.As(err, &denied):
		fmt.Println(denial(denied.Decision))
		return nil // the task is done
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

// denial describes a denied page, in the columns of the lines about fetched pages.
func denial(d collyrobots.Decision) string {
	if d.Reason == collyrobots.ReasonRule {
		return fmt.Sprintf("---  %s denied: line %d, %v", d.URL, d.Rule.Line, d.Rule)
	}
	return fmt.Sprintf("---  %s denied: robots.txt is %s", d.URL, d.Reason)
}

// readSitemaps does a task: it queues the pages in the sitemaps of a site. Pages leaves out denied
// pages.
func (w *worker) readSitemaps(ctx context.Context, task *asynq.Task) error {
	site := string(task.Payload())
	for page, err := range w.robots.Pages(ctx, collyrobots.Feed{}, site) {
		switch {
		case err != nil && !isFailure(err):
			return err
		case err != nil:
			fmt.Println("---  ", err) // continue with the other sitemaps
			continue
		}
		if err := w.frontier.add(ctx, visitPage, page.Loc); err != nil {
			return err
		}
	}
	return nil
}

// errBusy means that the worker is already visiting ofHost pages of the host.
var errBusy = errors.New("the worker is visiting other pages of the host")

// enter counts a page of a host until leave is called. It fails if the worker is visiting ofHost
// pages of that host, so that the waiting pages of a slow host do not take all tasks of the worker.
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
		w.hosts[u.Host]--
		if w.hosts[u.Host] == 0 {
			delete(w.hosts, u.Host)
		}
	}, nil
}

// isFailure reports whether an error counts toward the retries of a task. Errors that the page has
// not caused do not count.
func isFailure(err error) bool {
	var unpaced *collyrobots.PaceError
	return !errors.Is(err, errBusy) && !errors.As(err, &unpaced) && !errors.Is(err, context.Canceled)
}

// retryDelay returns the time after which a task is tried again. asynq rounds it to whole seconds.
func retryDelay(retries int, err error, _ *asynq.Task) time.Duration {
	switch {
	case errors.Is(err, asynq.ErrLeaseExpired), errors.Is(err, context.Canceled):
		return 0 // the worker has died or is ending
	case !isFailure(err):
		return time.Second
	}
	return time.Second << min(retries, 10)
}
