package hostqueue

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/robotstest"
)

// A gate holds back the commands of a client while it is closed, as if the process were stopped.
type gate struct{ sync.RWMutex }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.RLock()
		defer g.RUnlock()
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		g.RLock()
		defer g.RUnlock()
		return next(ctx, cmds)
	}
}

// TestStoppedProcess stops a process for longer than its lease, just before it sends a page. Another
// process fetches the page in the meantime. When the first one continues, it must not send it.
func TestStoppedProcess(t *testing.T) {
	mini, client := newMini(t)
	const lease = 100 * time.Millisecond
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/": robotstest.Page()}})
	slow := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer slow.Close()
	stopped := new(gate)
	slow.AddHook(stopped)
	asleep := make(chan bool, 1)
	awake := make(chan bool)
	first := newSpider(t, web, mustOpen(t, slow, "test", Lease(lease)))
	first.OnRequestHeaders(func(*colly.Request) {
		stopped.Lock()
		asleep <- true
		<-awake
		stopped.Unlock()
	})
	ended := make(chan error, 1)
	err := first.queue.Add(t.Context(), "http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- first.queue.Run(t.Context(), first.Collector, first.robots) }()
	<-asleep
	second := newSpider(t, web, mustOpen(t, client, "test", Lease(lease)))
	second.run(t, "http://a.test/") // begins when the lease of the first process has expired
	close(awake)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantRequests(t, web, "a.test", "/")
	wantStats(t, second.queue, Stats{Hosts: 1, Done: 1})
}

// TestHold checks when a lease is valid. A lease that has expired cannot be renewed, because another
// process may have the host.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(time.Now().Add(time.Second))
		time.Sleep(999 * time.Millisecond)
		h.renew(time.Now().Add(time.Second))
		time.Sleep(999 * time.Millisecond)
		if !h.valid() {
			t.Error("the lease was renewed and is not valid")
		}
		time.Sleep(time.Millisecond)
		if h.valid() {
			t.Error("the lease is valid after its end")
		}
		h.renew(time.Now().Add(time.Second))
		if h.valid() {
			t.Error("the lease was renewed after its end")
		}
	})
}
