package redisstore_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A proxy forwards connections between clients and a server, and can break them.
type proxy struct {
	listen net.Listener
	cuts   atomic.Int32
	left   atomic.Int32 // how many more replies are read, including the one to drop; if 0 or less, none is dropped
	last   atomic.Bool  // if true, the next dropped reply also takes the proxy down
	slow   atomic.Int64 // an extra delay for each reply, in nanoseconds
	mu     sync.Mutex
	to     string
	conns  map[net.Conn]bool
	down   bool
	wait   sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, listen: l, conns: make(map[net.Conn]bool)}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.setDown(true)
		p.wait.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listen.Addr().String() }

// client returns a client that connects through the proxy. The client is closed at the end of the
// test.
func (p *proxy) client(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.addr(), ReadTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

// cutAfter forwards n-1 replies, and breaks the connection instead of forwarding the next one.
func (p *proxy) cutAfter(n int) { p.left.Store(int32(n)) }

// setDown breaks all connections and rejects new ones, if down is true. Otherwise the proxy accepts
// new ones again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for c := range p.conns {
			c.Close()
		}
	}
}

// redirect breaks all connections and forwards new ones to another server.
func (p *proxy) redirect(to string) {
	p.setDown(true)
	p.mu.Lock()
	p.to, p.down = to, false
	p.mu.Unlock()
}

func (p *proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	return net.Dial("tcp", to)
}

func (p *proxy) accept() {
	for {
		c, err := p.listen.Accept()
		if err != nil {
			return
		}
		server, err := p.dial()
		if err != nil || !p.add(c, server) {
			c.Close()
			if server != nil {
				server.Close()
			}
			continue
		}
		p.wait.Go(func() {
			_, _ = io.Copy(server, c)
			server.Close()
		})
		p.wait.Go(func() {
			p.replies(c, server)
			c.Close()
			server.Close()
		})
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.down
}

// replies forwards replies. It assumes that each read is one reply, which is true for short ones.
func (p *proxy) replies(client io.Writer, server io.Reader) {
	buffer := make([]byte, 1<<20)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(p.slow.Load()))
		if p.left.Load() > 0 && p.left.Add(-1) == 0 {
			p.cuts.Add(1)
			if p.last.Swap(false) {
				p.setDown(true)
			}
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
