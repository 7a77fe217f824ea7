package hostqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Stats has the numbers of a crawl, of all processes together. Each known page is counted in
// exactly one of Waiting, InProgress, Done, Denied and Failed.
type Stats struct {
	Hosts     int // known hosts
	Active    int // hosts with pages that are not done
	Processes int // processes in Run, including those that were killed within the last Lease

	Known      int // pages that were recorded
	Waiting    int // pages that wait, also for a retry
	InProgress int // pages that are being fetched, or were when their process was killed
	Done       int // pages whose callbacks have run
	Denied     int // pages that robots.txt or the collector does not allow
	Failed     int // pages that have failed three times

	Dropped int // links that were not recorded because of MaxRecordedPerHost; a link may count several times
}

// Stats returns the numbers of the crawl. It reads a few numbers of each known host, which takes
// about a second for 100,000 hosts. While the crawl runs, the numbers of different hosts belong to
// slightly different times.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	active, err := q.client.ZCard(ctx, q.keys.listed()).Result()
	if err != nil {
		return Stats{}, fmt.Errorf(prefix+"%w", err)
	}
	processes, err := q.client.ZCard(ctx, q.keys.processes()).Result()
	if err != nil {
		return Stats{}, fmt.Errorf(prefix+"%w", err)
	}
	s.Active = int(active)
	s.Processes = int(processes)
	for hosts, err := range q.hostBatches(ctx) {
		if err == nil {
			err = s.read(ctx, q, hosts)
		}
		if err != nil {
			return Stats{}, fmt.Errorf(prefix+"%w", err)
		}
	}
	return s, nil
}

// read adds the numbers of some hosts.
func (s *Stats) read(ctx context.Context, q *Queue, hosts []string) error {
	var states []*redis.SliceCmd
	var seen, waiting []*redis.IntCmd
	_, err := q.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, host := range hosts {
			k := q.keys.host(host)
			states = append(states, pipe.HMGet(ctx, k.state, "done", "denied", "failed", "dropped", "page"))
			seen = append(seen, pipe.SCard(ctx, k.seen))
			waiting = append(waiting, pipe.LLen(ctx, k.pages), pipe.ZCard(ctx, k.retries))
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.Hosts += len(hosts)
	for _, state := range states {
		fields := state.Val()
		for i, sum := range []*int{&s.Done, &s.Denied, &s.Failed, &s.Dropped} {
			text, _ := fields[i].(string)
			n, _ := strconv.Atoi(text)
			*sum += n
		}
		if fields[4] != nil {
			s.InProgress++
		}
	}
	for _, n := range seen {
		s.Known += int(n.Val())
	}
	for _, n := range waiting {
		s.Waiting += int(n.Val())
	}
	return nil
}

// hostBatches returns the names of the known hosts, in batches. Hosts that are added at the same
// time may be missing.
func (q *Queue) hostBatches(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		names := q.client.SScan(ctx, q.keys.known(), 0, "", 1000).Iterator()
		seen := make(map[string]bool)
		var batch []string
		for names.Next(ctx) {
			if seen[names.Val()] {
				continue
			}
			seen[names.Val()] = true
			batch = append(batch, names.Val())
			if len(batch) < mostAtOnce {
				continue
			}
			if !yield(batch, nil) {
				return
			}
			batch = nil
		}
		if names.Err() != nil {
			yield(nil, names.Err())
			return
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// A Failure is a page that has failed three times.
type Failure struct {
	URL    string `json:"url"`              // without its password
	Status int    `json:"status,omitempty"` // of the last response, 0 if there was none
	Err    string `json:"error,omitempty"`  // the text of the last error
}

// failureText returns the text of a Failure in Redis.
func failureText(p page, status int, err error) string {
	f := Failure{URL: p.redacted(), Status: status}
	if err != nil {
		f.Err = err.Error()
	}
	text, _ := json.Marshal(f) // strings and numbers can always be marshaled
	return string(text)
}

// Failed returns an iterator over the pages that have failed. If Redis fails, the last error is not
// nil.
func (q *Queue) Failed(ctx context.Context) iter.Seq2[Failure, error] {
	return func(yield func(Failure, error) bool) {
		for hosts, err := range q.hostBatches(ctx) {
			if err != nil {
				yield(Failure{}, fmt.Errorf(prefix+"%w", err))
				return
			}
			for _, host := range hosts {
				if !q.failedOf(ctx, host, yield) {
					return
				}
			}
		}
	}
}

// failedOf yields the pages of a host that have failed. It returns false to end the iteration.
func (q *Queue) failedOf(ctx context.Context, host string, yield func(Failure, error) bool) bool {
	for start := int64(0); ; start += mostAtOnce {
		texts, err := q.client.LRange(ctx, q.keys.host(host).failed, start, start+mostAtOnce-1).Result()
		if err != nil {
			yield(Failure{}, fmt.Errorf(prefix+"%w", err))
			return false
		}
		for _, text := range texts {
			var f Failure
			err := json.Unmarshal([]byte(text), &f)
			if err != nil {
				err = fmt.Errorf(prefix+"%q is not a failure: %w", text, err)
			}
			if !yield(f, err) {
				return false
			}
		}
		if len(texts) < mostAtOnce {
			return true
		}
	}
}

// Remove removes the crawl from Redis. Processes in Run return ErrLost. Pages that they record at
// the same time may remain in Redis, so call Remove when they have ended.
func (q *Queue) Remove(ctx context.Context) error {
	err := q.client.Del(ctx, q.keys.crawl()).Err()
	if err != nil {
		return fmt.Errorf(prefix+"%w", err)
	}
	for hosts, err := range q.hostBatches(ctx) {
		if err == nil {
			_, err = q.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, host := range hosts {
					pipe.Unlink(ctx, q.keys.host(host).all()...)
				}
				return nil
			})
		}
		if err != nil {
			return fmt.Errorf(prefix+"%w", err)
		}
	}
	err = q.client.Unlink(ctx, q.keys.listed(), q.keys.known(), q.keys.processes()).Err()
	if err != nil {
		return fmt.Errorf(prefix+"%w", err)
	}
	return nil
}
