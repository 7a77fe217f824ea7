package killtest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
)

// paceVariable is the environment variable with the address of the server and the folder of the
// frontier. A process that has it runs paceMain.
const paceVariable = "COLLYROBOTS_PACE"

// minDelay is the delay that the spider of paceMain keeps where robots.txt asks for none.
const minDelay = 300 * time.Millisecond

// paceMain crawls with the option Frontier, and without the option Store.
func paceMain(server, dir string) error {
	f, err := frontier.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	c := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(&http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server)
	}})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	robots, err := collyrobots.WithRobots(c, collyrobots.Frontier(f), collyrobots.MinDelay(minDelay),
		collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer robots.Close()
	c.Visit("http://slow.test/0")
	c.Visit("http://busy.test/0")
	c.Wait()
	return nil
}

// A pacedSite is a site whose requests must be one delay apart.
type pacedSite struct {
	name   string
	robots string
	delay  time.Duration
	pages  int

	log  []hit     // in the order of arrival
	free time.Time // the end of the Retry-After, which the site asks for once
}

// A hit is a request that a site got.
type hit struct {
	path string
	at   time.Time
}

// pacedSites are a site with a crawl delay, sitemaps and redirects to another site, that site, and
// one that asks for a pause.
func pacedSites() map[string]*pacedSite {
	sites := make(map[string]*pacedSite)
	for _, s := range []*pacedSite{
		{name: "slow.test", robots: "User-agent: *\nCrawl-delay: 0.5\nSitemap: http://slow.test/sitemap.xml\n", delay: 500 * time.Millisecond, pages: 8},
		{name: "other.test", delay: minDelay, pages: 5},
		{name: "busy.test", delay: minDelay, pages: 8},
	} {
		sites[s.name] = s
	}
	return sites
}

// answer answers a request to a site.
func (s *pacedSite) answer(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	s.log = append(s.log, hit{path: r.URL.Path, at: now})
	var page int
	fmt.Sscanf(r.URL.Path, "/%d", &page)
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprint(w, s.robots)
	case r.URL.Path == "/sitemap.xml":
		fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://slow.test/7</loc></url></urlset>`)
	case strings.HasPrefix(r.URL.Path, "/away"):
		http.Redirect(w, r, "http://other.test/"+strings.TrimPrefix(r.URL.Path, "/away"), http.StatusFound)
	case s.name == "busy.test" && page == 3 && s.free.IsZero():
		s.free = now.Add(3 * time.Second)
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		w.Header().Set("Content-Type", "text/html")
		if page+1 < s.pages {
			fmt.Fprintf(w, `<a href="/%d">next</a>`, page+1)
		}
		if s.name == "slow.test" && page < 5 {
			fmt.Fprintf(w, `<a href="/away%d">away</a>`, page)
		}
	}
}

// TestPaceSurvivesKills kills a spider twenty times in a row, at random moments, and then lets it
// end. The access log must show that no two requests to a site were closer together than its delay,
// that nothing was sent before the end of a Retry-After, that robots.txt was not read again, and
// that no page was lost.
func TestPaceSurvivesKills(t *testing.T) {
	t.Parallel()
	const kills = 20
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	sites := pacedSites()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sites[r.Host].answer(w, r)
	}))
	defer server.Close()
	job := paceVariable + "=" + server.Listener.Addr().String() + " " + t.TempDir()
	for i := range kills + 1 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), job)
		var output strings.Builder
		child.Stdout = &output
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if i < kills {
			time.AfterFunc(100*time.Millisecond+time.Duration(random.Int64N(int64(900*time.Millisecond))), func() { child.Process.Kill() })
		}
		if err := child.Wait(); err != nil && i == kills {
			t.Fatalf("seed %d: %v\n%s", seed, err, output.String())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, s := range sites {
		s.judge(t, seed)
	}
}

// onItsWay is the longest time that a request may need to reach the log, as in package robotstest.
const onItsWay = 100 * time.Millisecond

// judge reports what is wrong in the log of a site.
func (s *pacedSite) judge(t *testing.T, seed uint64) {
	times := make(map[string]int)
	smallest := time.Hour
	for i, h := range s.log {
		times[h.path]++
		if i == 0 {
			continue
		}
		gap := h.at.Sub(s.log[i-1].at)
		smallest = min(smallest, gap)
		if gap < s.delay-onItsWay {
			t.Errorf("seed %d: %s%s came %v after %s, want %v", seed, s.name, h.path, gap, s.log[i-1].path, s.delay)
		}
		asked := s.free.Add(-3 * time.Second)
		if h.at.After(asked) && h.at.Before(s.free.Add(-onItsWay)) {
			t.Errorf("seed %d: %s%s came %v before the end of Retry-After", seed, s.name, h.path, s.free.Sub(h.at))
		}
	}
	last := len(s.log) - 1
	for last >= 0 && s.log[last].path != "/robots.txt" {
		last--
	}
	if last > 0 && s.log[last-1].path != "/robots.txt" { // a kill may lose the answer, but only until it is in the Frontier
		t.Errorf("seed %d: robots.txt of %s was requested again after %s", seed, s.name, s.log[last-1].path)
	}
	for i := range s.pages {
		if times[fmt.Sprint("/", i)] == 0 {
			t.Errorf("seed %d: %s/%d was not requested", seed, s.name, i)
		}
	}
	t.Logf("seed %d: %s got %d requests, smallest gap %v", seed, s.name, len(s.log), smallest)
}
