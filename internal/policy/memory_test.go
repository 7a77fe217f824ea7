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

var underRace bool // set where the race detector is on

// serve answers every request with a robots.txt, at no cost that would count here.
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

// hosts returns n authorities. Their names are the caller's memory.
func hosts(n int) []dialect.Authority {
	all := make([]dialect.Authority, n)
	for i := range all {
		all[i] = dialect.Authority{Scheme: "https", Host: fmt.Sprintf("www.host-%07d.example", i)}
	}
	return all
}

// crawl makes c know all of the hosts.
func crawl(tb testing.TB, c *Cache, hosts []dialect.Authority, answer func(i int) Doer) {
	tb.Helper()
	for i, a := range hosts {
		if _, err := c.Get(context.Background(), a, Fetch{Do: answer(i), UserAgent: "ExampleBot/1.0"}); err != nil {
			tb.Fatal(err)
		}
	}
}

// retained is the heap that a cache of n hosts keeps, without their names, and what it takes it
// for.
func retained(tb testing.TB, n int, answer func(i int) Doer) (octets, weight int) {
	tb.Helper()
	all := hosts(n)
	c := New(Options{Tokens: []string{"ExampleBot"}})
	before := heap()
	crawl(tb, c, all, answer)
	octets, weight = heap()-before, int(c.policies.weight())
	runtime.KeepAlive(all)
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
	hosts  int // to measure by
	most   int // octets a host
}{
	{"equal files", func(int) Doer { return serve(usual) }, 100_000, 280},
	{"every file its own, median of the corpus", func(i int) Doer { return serve(median(i)) }, 100_000, 280 + 400},
	{"every file its own, short", func(i int) Doer { return serve(fmt.Sprintf("User-agent: *\nDisallow: /%d\n", i)) }, 5000, 500},
	{"every file its own", long, 5000, 1250},
	{"no robots.txt", func(int) Doer { return absent }, 5000, 280},
	{"validators", func(i int) Doer {
		return serve(usual, "ETag", fmt.Sprintf(`"5f3c-%07x"`, i), "Last-Modified", fmt.Sprintf("Mon, 02 Jan 2006 15:04:%02d GMT", i%60))
	}, 5000, 280 + 110},
	{"no response", func(int) Doer { return dead }, 5000, 280 + 250},
}

func long(i int) Doer { return serve(fmt.Sprintf("%sDisallow: /%d\n", usual, i)) }

var usual = "User-agent: *\n" + strings.Repeat("Disallow: /a/rather/usual/rule\n", 20)

// median returns a file like the middle one of real files: 561 octets, nine rules for everybody.
func median(i int) string {
	text := "User-agent: *\nCrawl-delay: 1\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /search\n" +
		"Disallow: /*?replytocom=\nDisallow: /cart/\nDisallow: /checkout/\nDisallow: /my-account/\nDisallow: /*.pdf$\n" +
		fmt.Sprintf("Disallow: /%07d/\n\nSitemap: https://www.host-%07d.example/sitemap.xml\n\n", i, i) +
		"User-agent: OtherBot\nUser-agent: AnotherBot\nDisallow: /\n# "
	return text + strings.Repeat("-", 560-len(text)) + "\n"
}

// TestRetained: what a host costs, and that the cache knows what it costs.
func TestRetained(t *testing.T) {
	if got := len(median(0)); got != 561 {
		t.Fatalf("the median file has %d octets", got)
	}
	for _, web := range webs {
		n := web.hosts
		if underRace || testing.Short() {
			n = 5000
		}
		octets, weight := retained(t, n, web.answer)
		t.Logf("%s: %d octets a host of %d, estimated as %d", web.name, octets/n, n, weight/n)
		if octets/n > web.most && !underRace {
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
		return func(req *http.Request) (*http.Response, error) { fetches++; return long(i)(req) }
	}
	all := hosts(1000)
	crawl(t, c, all, answer)
	if got := c.policies.weight(); got > most {
		t.Errorf("weighs %d, want at most %d", got, most)
	}
	crawl(t, c, all, answer)
	if fetches < 1500 {
		t.Errorf("%d fetches", fetches)
	}
	for _, r := range c.reader.shared {
		if r.users.Load() < 1 {
			t.Errorf("a reading has %d users", r.users.Load())
		}
	}
	if got, most := len(c.reader.shared), len(slices.Collect(c.All())); got > most {
		t.Errorf("%d readings for %d policies", got, most)
	}
}

// TestShared: hosts with equal files share what was read, for as long as one is in use.
func TestShared(t *testing.T) {
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
		t.Error("two groups")
	}
	if n := len(c.reader.shared); n != 1 {
		t.Errorf("%d readings known", n)
	}
	c.policies.clear()
	if n := len(c.reader.shared); n != 0 {
		t.Errorf("%d readings known when nobody uses them", n)
	}
}

// TestSharedByTwoAtOnce: of a text that two have read at the same time one reading is kept.
func TestSharedByTwoAtOnce(t *testing.T) {
	c := New(Options{})
	defer c.Close()
	var all []*Policy
	for _, a := range hosts(2) {
		f := facts{copy: &goodCopy{class: ok, fetched: now(), maxAge: noMaxAge}, body: []byte(usual)}
		all = append(all, c.policyOf(a, f))
	}
	if all[0].Group() == all[1].Group() {
		t.Fatal("nothing to share")
	}
	for _, p := range all {
		c.keep(p)
	}
	if all[0].Group() != all[1].Group() || len(c.reader.shared) != 1 || all[0].copy.reading.users.Load() != 2 {
		t.Errorf("%d readings, the first with %d users", len(c.reader.shared), all[0].copy.reading.users.Load())
	}
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
			t.Errorf("%s: %v allocations", raw, n)
		}
	}
}

func BenchmarkWarmGet(b *testing.B) {
	c := New(Options{})
	defer c.Close()
	a, f := hosts(1)[0], Fetch{Do: serve(usual), UserAgent: "ExampleBot/1.0"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(context.Background(), a, f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHosts is a crawl of as many hosts as it has iterations: -benchtime 1000000x for a
// million.
func BenchmarkHosts(b *testing.B) {
	for _, web := range webs {
		b.Run(web.name, func(b *testing.B) {
			octets, _ := retained(b, b.N, web.answer)
			b.ReportMetric(float64(octets)/float64(b.N), "retained-B/host")
		})
	}
}

// Answered notes that a page of a was answered, as whoever has the policy does.
func (c *Cache) Answered(a dialect.Authority) {
	if p := c.policies.get(a); p != nil {
		p.SiteAnswered()
	}
}

// weight returns what all policies of a table weigh.
func (t *table) weight() (sum uint64) {
	for part := range t.made {
		sum += part.WeightedSize()
	}
	return sum
}
