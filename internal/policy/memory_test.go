package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

var UnderRace bool // whether the race detector is on

// serve answers every request with a robots.txt. It costs no memory that the tests would count.
func serve(body string, header ...string) Doer {
	return func(*http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Set(header[i], header[i+1])
		}
		return resp, nil
	}
}

func absent(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 404, Header: http.Header{}, Body: http.NoBody}, nil
}

func dead(req *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: errors.New("connection refused")}
}

// hosts returns n authorities. The caller keeps the memory of their names.
func hosts(n int) []dialect.Authority {
	all := make([]dialect.Authority, n)
	for i := range all {
		all[i] = dialect.Authority{Scheme: "https", Host: fmt.Sprintf("www.host-%07d.example", i)}
	}
	return all
}

// crawl gets the policies of all hosts from c.
func crawl(tb testing.TB, c *Cache, hosts []dialect.Authority, answer func(i int) Doer) {
	tb.Helper()
	for i, a := range hosts {
		if _, err := c.Get(context.Background(), a, Fetch{Do: answer(i), UserAgent: "ExampleBot/1.0"}); err != nil {
			tb.Fatal(err)
		}
	}
}

// retained returns the heap that a cache of n hosts keeps, without their names, and the weight that
// the cache estimates.
func retained(tb testing.TB, n int, answer func(i int) Doer) (size, weight int) {
	tb.Helper()
	all := hosts(n)
	c := New(Options{Tokens: []string{"ExampleBot"}})
	before := heap()
	crawl(tb, c, all, answer)
	size, weight = heap()-before, int(c.memory.weight())
	runtime.KeepAlive(all)
	c.Close()
	return size, weight
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// webs are crawls of different kinds of hosts.
var webs = []struct {
	name   string
	answer func(i int) Doer
	hosts  int // how many the test uses
	most   int // bytes per host
}{
	{"equal files", func(int) Doer { return serve(usual) }, 100_000, 280},
	{"different files, median of the corpus", func(i int) Doer { return serve(median(i)) }, 100_000, 280 + 400},
	{"different files, short", func(i int) Doer { return serve(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i)) }, 5000, 500},
	{"different files, long", long, 5000, 1250},
	{"different files with Content-Signal", func(i int) Doer {
		return serve(fmt.Sprintf("User-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference\nDisallow: /%d\n", i))
	}, 5000, 900},
	{"different files with many preferences", func(i int) Doer {
		return serve(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i) + strings.Repeat("Content-Usage: /x train-ai=n\n", 100))
	}, 500, 30_000},
	{"no robots.txt", func(int) Doer { return absent }, 5000, 280},
	{"validators", func(i int) Doer {
		return serve(usual, "ETag", fmt.Sprintf(`"5f3c-%07x"`, i), "Last-Modified", fmt.Sprintf("Mon, 02 Jan 2006 15:04:%02d GMT", i%60))
	}, 5000, 280 + 110},
	{"no response", func(int) Doer { return dead }, 5000, 280 + 270},
}

func long(i int) Doer { return serve(fmt.Sprintf("%sDisallow: /%d\n", usual, i)) }

var usual = "User-agent: *\n" + strings.Repeat("Disallow: /a/rather/usual/rule\n", 20)

// median returns a file like the median of real files: 561 bytes, with nine rules for all crawlers.
func median(i int) string {
	text := "User-agent: *\nCrawl-delay: 1\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search\n" +
		"Disallow: /*?replytocom=\nDisallow: /cart/\nDisallow: /checkout/\nDisallow: /my-account/\nDisallow: /*.pdf$\n" +
		fmt.Sprintf("Disallow: /%07d/\n\nSitemap: https://www.host-%07d.example/sitemap.xml\n\n", i, i) +
		"User-agent: OtherBot\nUser-agent: AnotherBot\nDisallow: /\n# "
	return text + strings.Repeat("-", 560-len(text)) + "\n"
}

// TestRetained measures the memory per host, and compares it with the estimate of the cache.
func TestRetained(t *testing.T) {
	if UnderRace {
		t.Skip("the race detector changes how many bytes are retained")
	}
	if got := len(median(0)); got != 561 {
		t.Fatalf("the median file has %d bytes, want 561", got)
	}
	for _, web := range webs {
		n := web.hosts
		if testing.Short() && n > 5000 {
			continue // a smaller crawl takes more bytes per host: the maps of a Memory have a smallest size
		}
		size, weight := retained(t, n, web.answer)
		t.Logf("%s: %d bytes per host, estimated %d (%d hosts)", web.name, size/n, weight/n, n)
		if size/n > web.most {
			t.Errorf("%s: %d bytes per host, want at most %d", web.name, size/n, web.most)
		}
		if size > weight*6/5 {
			t.Errorf("%s: estimated %d bytes, but %d are in use", web.name, weight, size)
		}
	}
}

// TestMaxWeight checks that a cache does not exceed its bound, and fetches again what it has
// dropped.
func TestMaxWeight(t *testing.T) {
	const most = 200 * entryWeight
	c := New(Options{Memory: NewMemory(most)})
	defer c.Close()
	fetches := 0
	answer := func(i int) Doer {
		return func(req *http.Request) (*http.Response, error) { fetches++; return long(i)(req) }
	}
	all := hosts(1000)
	crawl(t, c, all, answer)
	if got := c.memory.weight(); got > most {
		t.Errorf("weight %d, want at most %d", got, most)
	}
	crawl(t, c, all, answer)
	if fetches < 1500 {
		t.Errorf("%d fetches in two crawls of 1000 hosts, want at least 1500", fetches)
	}
	for _, r := range c.parser.inUse {
		if r.users.Load() < 1 {
			t.Errorf("a parsed file in use has %d users", r.users.Load())
		}
	}
	if got, most := len(c.parser.inUse), len(slices.Collect(c.memory.All)); got > most {
		t.Errorf("%d parsed files for %d policies", got, most)
	}
}

// TestEqualFilesAreShared checks that hosts with equal files share one parsed file, until no host
// uses it.
func TestEqualFilesAreShared(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	var groups []*dialect.Group
	for _, host := range []string{"a.example", "b.example"} {
		p, err := c.Get(context.Background(), dialect.Authority{Scheme: "http", Host: host}, Fetch{Do: serve(usual)})
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, p.Group())
	}
	if groups[0] != groups[1] {
		t.Error("two hosts with equal files have different groups")
	}
	if n := len(c.parser.inUse); n != 1 {
		t.Errorf("%d parsed files in use, want 1", n)
	}
	c.memory.Clear()
	if n := len(c.parser.inUse); n != 0 {
		t.Errorf("%d parsed files in use after the last policy was dropped, want 0", n)
	}
}

// TestEqualFilesParsedAtOnce checks that one parsed file is kept of a text that was parsed twice at
// the same time.
func TestEqualFilesParsedAtOnce(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	var all []*Policy
	for _, a := range hosts(2) {
		f := facts{copy: &goodCopy{class: ok, fetched: now(), maxAge: noMaxAge}, body: []byte(usual)}
		all = append(all, c.policyOf(a, f))
	}
	if all[0].Group() == all[1].Group() {
		t.Fatal("the files share a group before they are kept")
	}
	for _, p := range all {
		c.accept(p, nil, facts{}, false)
	}
	if all[0].Group() != all[1].Group() || len(c.parser.inUse) != 1 || all[0].copy.parsed.users.Load() != 2 {
		t.Errorf("%d parsed files in use, the first with %d users, want 1 with 2 users", len(c.parser.inUse), all[0].copy.parsed.users.Load())
	}
}

// TestFreshPolicyCostsNoAllocation checks that Get of a fresh policy does not allocate.
func TestFreshPolicyCostsNoAllocation(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	ctx, do := context.Background(), serve(usual)
	for _, raw := range []string{"https://www.example.com/x?y", "http://127.0.0.1:8080/", "http://a-b.example:8000/"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		get := func() {
			a, err := dialect.AuthorityOf(u)
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.Get(ctx, a, Fetch{Do: do, UserAgent: "ExampleBot/1.0", Limit: FetchLimit})
			if err != nil || p.RobotsStatus != Rules || p.Group() == nil || p.CrawlDelay() != 0 || p.Sitemaps() != nil || p.Failing() {
				t.Fatal(p, err)
			}
			c.Answered(a)
		}
		get()
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			t.Errorf("%s: %v allocations, want 0", raw, n)
		}
	}
}

// Answered records that a page of a was answered.
func (c *Cache) Answered(a dialect.Authority) {
	if p := c.memory.get(c, a); p != nil {
		p.SiteAnswered()
	}
}

// weight returns the weight of all policies in m.
func (m *Memory) weight() (sum uint64) {
	for part := range m.made {
		sum += part.WeightedSize()
	}
	return sum
}
