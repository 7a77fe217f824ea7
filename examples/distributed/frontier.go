package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A frontier is the URLs of a crawl: those that wait, those that a worker is at, and those that are
// done. It is a queue of asynq.
//
// The ID of a task is its URL, and a task that is done is kept. So the queue is the set of visited
// URLs as well, and one command of Redis both queues a URL and marks it: nobody can be killed
// between the two, and neither is a URL lost nor visited for ever. (With a set beside the queue, a
// worker that dies after it has marked a URL and before it has queued it loses the URL.) A URL
// takes not quite a kilobyte of Redis' memory that way.
type frontier struct {
	redis     redis.UniversalClient
	queue     string
	client    *asynq.Client
	inspector *asynq.Inspector
}

func newFrontier(client redis.UniversalClient, queue string) *frontier {
	return &frontier{client, queue, asynq.NewClientFromRedisClient(client), asynq.NewInspectorFromRedisClient(client)}
}

// Kinds of tasks. The payload is a URL.
const (
	visitPage    = "page"     // visit it, and queue its links
	readSitemaps = "sitemaps" // of its site, and queue what they list
)

const (
	mostRetries = 5              // of a task that fails, or whose worker dies
	visited     = 24 * time.Hour // for how long a URL that is done is not visited again
)

// add queues a task, unless that was ever done.
func (f *frontier) add(ctx context.Context, kind, url string) error {
	_, err := f.client.EnqueueContext(ctx, asynq.NewTask(kind, []byte(url)),
		asynq.Queue(f.queue), asynq.TaskID(kind+" "+url), asynq.MaxRetry(mostRetries), asynq.Retention(visited))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	return err
}

// left returns how many tasks are not done. It is not 0 before the end: a worker queues the links
// of a page before it says that the page is done.
func (f *frontier) left() (int, error) {
	info, err := f.inspector.GetQueueInfo(f.queue)
	if err != nil {
		return 0, err
	}
	return info.Pending + info.Active + info.Scheduled + info.Retry, nil
}

// failures returns the tasks that were given up, with why.
func (f *frontier) failures() (failed []string, err error) {
	tasks, err := f.inspector.ListArchivedTasks(f.queue, asynq.PageSize(100))
	for _, t := range tasks {
		failed = append(failed, t.ID+": "+t.LastErr)
	}
	return failed, err
}

const (
	leased = 30 * time.Second // for how long asynq gives a task to a worker at a time
	silent = 8 * time.Second  // after so long whoever lives has renewed that: asynq does so every 5 seconds
)

// forsake ends the leases that nobody has renewed since a worker died, silent ago: the next worker
// that starts gives these tasks out again. It returns how many.
//
// asynq does as much by itself, 60 to 120 seconds after a worker's last sign of life, and has no
// setting for that. A crawl can wait, and needs no forsake; a demo is over by then.
func (f *frontier) forsake(ctx context.Context, died time.Time) (int, error) {
	leases := "asynq:{" + f.queue + "}:lease" // a sorted set: when each ends
	tasks, err := f.redis.ZRangeByScore(ctx, leases, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(died.Add(leased).Unix(), 10)}).Result()
	for _, id := range tasks {
		err = errors.Join(err, f.redis.ZAddXX(ctx, leases, redis.Z{Member: id}).Err())
	}
	return len(tasks), err
}

// remove removes what asynq has of the queue.
func (f *frontier) remove(ctx context.Context) error {
	return errors.Join(removeKeys(ctx, f.redis, "asynq:{"+f.queue+"}:*"), f.redis.SRem(ctx, "asynq:queues", f.queue).Err())
}
