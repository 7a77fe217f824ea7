package policy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// serve answers every request with a robots.txt, at no cost that would count here.
func serve(body string) Doer {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func absent(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
}

// crawl makes c know n hosts.
func crawl(tb testing.TB, c *Cache, n int, answer func(i int) Doer) {
	tb.Helper()
	for i := range n {
		u := &url.URL{Scheme: "https", Host: fmt.Sprintf("www.host-%07d.example", i), Path: "/page"}
		if _, err := c.Get(context.Background(), u, "ExampleBot/1.0", answer(i)); err != nil {
			tb.Fatal(err)
		}
	}
}

// retained is the heap that a cache of n hosts keeps, and what it takes it for.
func retained(tb testing.TB, n int, answer func(i int) Doer) (octets, weight int) {
	tb.Helper()
	c := New(Options{Tokens: []string{"ExampleBot"}})
	before := heap()
	crawl(tb, c, n, answer)
	octets, weight = heap()-before, int(c.policies.WeightedSize())
	if err := c.Close(); err != nil {
		tb.Error(err)
	}
	return octets, weight
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// webs are crawls of some kinds of hosts.
var webs = []struct {
	name   string
	answer func(i int) Doer
	most   int // octets a host
}{
	{"no robots.txt", func(int) Doer { return absent }, 420},
	{"equal files", func(int) Doer { return serve(usual) }, 420},
	{"every file its own, short", func(i int) Doer { return serve(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i)) }, 900},
	{"every file its own", func(i int) Doer { return serve(fmt.Sprintf("%sDisallow: /%d\n", usual, i)) }, 1600},
}

var usual = "User-agent: *\n" + strings.Repeat("Disallow: /a/rather/usual/rule\n", 20)

// TestRetained: what a host costs, and that the cache knows what it costs.
func TestRetained(t *testing.T) {
	const n = 5000
	for _, web := range webs {
		octets, weight := retained(t, n, web.answer)
		t.Logf("%s: %d octets a host, estimated as %d", web.name, octets/n, weight/n)
		if octets/n > web.most {
			t.Errorf("%s: %d octets a host, want at most %d", web.name, octets/n, web.most)
		}
		if octets > weight*6/5 {
			t.Errorf("%s: %d octets are taken for %d", web.name, octets, weight)
		}
	}
}

// TestBound: a cache does not outgrow its bound, and what it has dropped it fetches again.
func TestBound(t *testing.T) {
	const most = 200 * entryWeight
	c := New(Options{MaxWeight: most})
	defer c.Close()
	fetches := 0
	answer := func(i int) Doer {
		return func(req *http.Request) (*http.Response, error) { fetches++; return webs[3].answer(i)(req) }
	}
	crawl(t, c, 1000, answer)
	if got := c.policies.WeightedSize(); got > most {
		t.Errorf("weighs %d, want at most %d", got, most)
	}
	crawl(t, c, 1000, answer)
	if fetches < 1500 {
		t.Errorf("%d fetches", fetches)
	}
	c.reader.mu.Lock() // what is collected is forgotten at any time
	defer c.reader.mu.Unlock()
	for _, r := range c.reader.seen {
		if r := r.Value(); r != nil && r.users.Load() < 0 {
			t.Errorf("a reading has %d users", r.users.Load())
		}
	}
}

// TestShared: hosts with equal files share what was read, for as long as one is in use.
func TestShared(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	var groups []*dialect.Group
	for _, host := range []string{"a.example", "b.example"} {
		p, err := c.Get(context.Background(), &url.URL{Scheme: "http", Host: host}, "", serve(usual))
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, p.Group)
	}
	if groups[0] != groups[1] {
		t.Error("two groups")
	}
	if n := len(c.known()); n != 1 {
		t.Errorf("%d readings known", n)
	}
	c.policies.InvalidateAll()
	for i := 0; i < 100 && len(c.known()) > 0; i++ {
		runtime.GC()
		runtime.Gosched()
	}
	if n := len(c.known()); n != 0 {
		t.Errorf("%d readings known when nobody uses them", n)
	}
	runtime.KeepAlive(c)
}

func (c *Cache) known() map[[32]byte]bool {
	c.reader.mu.Lock()
	defer c.reader.mu.Unlock()
	known := make(map[[32]byte]bool)
	for sum := range c.reader.seen {
		known[sum] = true
	}
	return known
}

// TestWarmGet: what is known costs no allocation.
func TestWarmGet(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	ctx, do := context.Background(), serve(usual)
	for _, raw := range []string{"https://www.example.com/x?y", "http://127.0.0.1:8080/", "http://a-b.example:8000/"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		get := func() {
			if p, err := c.Get(ctx, u, "ExampleBot/1.0", do); err != nil || p.Meaning != Rules {
				t.Fatal(p, err)
			}
			c.Answered(u)
		}
		get()
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

func BenchmarkWarmGet(b *testing.B) {
	c := New(Options{})
	defer c.Close()
	u, do := &url.URL{Scheme: "https", Host: "www.example.com", Path: "/"}, serve(usual)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(context.Background(), u, "ExampleBot/1.0", do); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHosts is a crawl of as many hosts as it has iterations: -benchtime 1000000x for a million.
func BenchmarkHosts(b *testing.B) {
	for _, web := range webs {
		b.Run(web.name, func(b *testing.B) {
			octets, _ := retained(b, b.N, web.answer)
			b.ReportMetric(float64(octets)/float64(b.N), "retained-B/host")
		})
	}
}
