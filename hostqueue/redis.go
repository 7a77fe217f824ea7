package hostqueue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// mostAtOnce is the largest number of pages or hosts that one script gets, so that no script blocks
// Redis for long.
const mostAtOnce = 1000

// add records pages in two steps. First they are appended to the waiting pages of their hosts. Then
// the hosts are listed. If the process dies between the two, the page that has the links is not
// done, so it is fetched again, and its links are added again.
func (q *Queue) add(ctx context.Context, pages []page) error {
	for len(pages) > 0 {
		n := min(len(pages), mostAtOnce)
		err := q.addSome(ctx, pages[:n])
		if err != nil {
			return err
		}
		pages = pages[n:]
	}
	return nil
}

func (q *Queue) addSome(ctx context.Context, pages []page) error {
	args := make(map[string][]any) // of the script, by host
	for _, p := range pages {
		if args[p.host] == nil {
			args[p.host] = []any{q.maxRecordedPerHost}
		}
		args[p.host] = append(args[p.host], p.key, p.text())
	}
	turns := make(map[string]*redis.Cmd)
	_, err := q.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for host, args := range args {
			k := q.keys.host(host)
			turns[host] = addScript.Eval(ctx, pipe, []string{k.state, k.pages, k.seen}, args...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	list := make(map[string]string) // the turns of the hosts to list
	for host, cmd := range turns {
		turn, err := cmd.Int64()
		if err != nil {
			return err
		}
		if turn >= 0 {
			list[host] = strconv.FormatInt(turn, 10)
		}
	}
	return q.list(ctx, list)
}

// list lists hosts under their turns, and then records in their states that they are listed.
func (q *Queue) list(ctx context.Context, turns map[string]string) error {
	if len(turns) == 0 {
		return nil
	}
	var args []any
	for host, turn := range turns {
		args = append(args, host, string(newMember(host, turn)))
	}
	err := listScript.Run(ctx, q.client, []string{q.keys.listed(), q.keys.known()}, args...).Err()
	if err != nil && err != redis.Nil {
		return err
	}
	_, err = q.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for host, turn := range turns {
			pipe.HSet(ctx, q.keys.host(host).state, "listed", turn)
		}
		return nil
	})
	return err
}

// A taking is the answer of lua/take.lua.
type taking struct {
	listed    int           // the number of listed hosts
	processes int           // the number of processes in Run
	wait      time.Duration // the time until the next host is due; negative if none is listed
	hosts     []member      // the hosts that were taken
}

// take takes at most n hosts for a process. It returns ErrLost if Redis does not have the crawl.
func (q *Queue) take(ctx context.Context, process string, n int) (taking, error) {
	keys := []string{q.keys.listed(), q.keys.processes(), q.keys.crawl()}
	got, err := takeScript.Run(ctx, q.client, keys, q.id, process, n, q.lease.Milliseconds()).Slice()
	switch {
	case err != nil:
		return taking{}, err
	case len(got) == 0:
		return taking{}, ErrLost
	case len(got) < 3:
		return taking{}, fmt.Errorf("unexpected reply of Redis: %q", got)
	}
	var numbers [3]int64
	for i := range numbers {
		numbers[i], _ = got[i].(int64)
	}
	t := taking{listed: int(numbers[0]), processes: int(numbers[1]), wait: time.Duration(numbers[2]) * time.Millisecond}
	for _, m := range got[3:] {
		text, _ := m.(string)
		t.hosts = append(t.hosts, member(text))
	}
	return t, nil
}

// move sets the times from now until hosts are due.
func (q *Queue) move(ctx context.Context, due map[member]time.Duration) error {
	var args []any
	for m, d := range due {
		args = append(args, string(m), d.Milliseconds())
	}
	for len(args) > 0 {
		n := min(len(args), 2*mostAtOnce)
		err := moveScript.Run(ctx, q.client, []string{q.keys.listed()}, args[:n]...).Err()
		if err != nil && err != redis.Nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// remove removes hosts from the list.
func (q *Queue) remove(ctx context.Context, members []member) error {
	for len(members) > 0 {
		n := min(len(members), mostAtOnce)
		var args []any
		for _, m := range members[:n] {
			args = append(args, string(m))
		}
		err := q.client.ZRem(ctx, q.keys.listed(), args...).Err()
		if err != nil {
			return err
		}
		members = members[n:]
	}
	return nil
}

// begin makes holder the only one that may take pages of a host. It returns false if the turn of
// the host is over.
func (q *Queue) begin(ctx context.Context, host, turn, holder string) (bool, error) {
	k := q.keys.host(host)
	n, err := beginScript.Run(ctx, q.client, []string{k.state, k.pages}, turn, holder).Int()
	return n == 1, err
}

// An ending says how a page has ended.
type ending struct {
	page    string        // the text of the page, or "" if there is none
	outcome string        // one of the outcomes below
	text    string        // what to store for a page that has failed or is retried
	pause   time.Duration // before a retry
}

// These are the outcomes of lua/next.lua.
const (
	outcomeDone   = "done"
	outcomeDenied = "denied"
	outcomeFailed = "failed"
	outcomeRetry  = "retry"
	outcomeBack   = "back" // the page waits again, as if it had not been taken
)

// A step is the answer of lua/next.lua.
type step struct {
	word string        // one of the words below
	page string        // the text of the next page
	wait time.Duration // the time until a page is retried
}

const (
	stepLost  = "lost"  // another holder has the host
	stepPage  = "page"  // page is the next page
	stepPause = "pause" // all pages of the host wait for a retry
	stepKept  = "kept"  // pages wait, and none was taken
	stepEmpty = "empty" // all pages of the host are done
)

// next records how a page has ended. If take is true, it takes the next page of the host.
func (q *Queue) next(ctx context.Context, host, holder string, e ending, take bool) (step, error) {
	k := q.keys.host(host)
	keys := []string{k.state, k.pages, k.retries, k.failed}
	got, err := nextScript.Run(ctx, q.client, keys, holder, e.page, e.outcome, e.text, e.pause.Milliseconds(), take).Slice()
	if err != nil {
		return step{}, err
	}
	if len(got) != 2 {
		return step{}, fmt.Errorf("unexpected reply of Redis: %q", got)
	}
	s := step{word: fmt.Sprint(got[0])}
	switch s.word {
	case stepPage:
		s.page = fmt.Sprint(got[1])
	case stepPause:
		milliseconds, _ := got[1].(int64)
		s.wait = time.Duration(milliseconds) * time.Millisecond
	}
	return s, nil
}
