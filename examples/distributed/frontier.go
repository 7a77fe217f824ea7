package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A frontier has the URLs of a crawl: those that are waiting, those that a worker is visiting, and
// those that are done. It is a queue of asynq.
//
// The ID of a task is its URL, and tasks that are done are kept. So the queue is also the set of
// visited URLs, and one command of Redis both adds a URL to the queue and marks it as visited. No
// worker can die between the two, so no URL is lost. (If the set were separate from the queue, a
// URL would be lost when a worker dies after it has marked the URL and before it has queued it.) A
// URL takes almost a kilobyte of Redis memory.
type frontier struct {
	redis     redis.UniversalClient
	queue     string
	client    *asynq.Client
	inspector *asynq.Inspector
}

func newFrontier(client redis.UniversalClient, queue string) *frontier {
	return &frontier{
		redis:     client,
		queue:     queue,
		client:    asynq.NewClientFromRedisClient(client),
		inspector: asynq.NewInspectorFromRedisClient(client),
	}
}

// These are the kinds of tasks. The payload of a task is a URL.
const (
	visitPage    = "page"     // visit the page and queue its links
	readSitemaps = "sitemaps" // read the sitemaps of the site and queue their pages
)

const (
	mostRetries = 5              // how often a task is retried that fails or whose worker dies
	visited     = 24 * time.Hour // how long a visited URL is not visited again
)

// add queues a task, unless it was queued before.
func (f *frontier) add(ctx context.Context, kind, url string) error {
	_, err := f.client.EnqueueContext(ctx, asynq.NewTask(kind, []byte(url)),
		asynq.Queue(f.queue), asynq.TaskID(kind+" "+url), asynq.MaxRetry(mostRetries), asynq.Retention(visited))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	return err
}

// left returns the number of tasks that are not done. It returns 0 only at the end of the crawl,
// because a worker queues the links of a page before it marks the page as done.
func (f *frontier) left() (int, error) {
	info, err := f.inspector.GetQueueInfo(f.queue)
	if err != nil {
		return 0, err
	}
	return info.Pending + info.Active + info.Scheduled + info.Retry, nil
}

// failures returns the tasks that were given up, with their errors.
func (f *frontier) failures() (failed []string, err error) {
	tasks, err := f.inspector.ListArchivedTasks(f.queue, asynq.PageSize(100))
	for _, t := range tasks {
		failed = append(failed, t.ID+": "+t.LastErr)
	}
	return failed, err
}

const (
	leased  = 30 * time.Second // how long a task is leased to a worker by asynq
	renewed = 8 * time.Second  // all living workers have renewed their leases after this time; asynq does so every 5 seconds
)

// release ends the leases that were not renewed since a worker died. It must be called after the
// time renewed has passed. The next worker that starts puts these tasks back into the queue.
// release returns their number.
//
// asynq does the same by itself, 60 to 120 seconds after a worker has died, and has no setting for
// this time. A real crawl can wait for this and does not need release, but the demo is over by
// then.
func (f *frontier) release(ctx context.Context, died time.Time) (int, error) {
	leases := "asynq:{" + f.queue + "}:lease" // a sorted set of the tasks by the ends of their leases
	ends := &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(died.Add(leased).Unix(), 10)}
	tasks, err := f.redis.ZRangeByScore(ctx, leases, ends).Result()
	for _, id := range tasks {
		err = errors.Join(err, f.redis.ZAddXX(ctx, leases, redis.Z{Member: id}).Err())
	}
	return len(tasks), err
}

// remove removes the data of the queue from Redis.
func (f *frontier) remove(ctx context.Context) error {
	return errors.Join(removeKeys(ctx, f.redis, "asynq:{"+f.queue+"}:*"), f.redis.SRem(ctx, "asynq:queues", f.queue).Err())
}
