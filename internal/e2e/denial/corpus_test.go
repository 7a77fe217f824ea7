package denial

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/robotstest"
)

// corpusDir contains real robots.txt files and the decisions of Google's own matcher about them.
// The files belong to others, so the directory is outside of the repository.
const corpusDir = "../../../../shared/corpus"

// A corpusCase is a file, a crawler, and the targets that it may fetch ('0' or '1' for each
// target).
type corpusCase struct {
	File, Agent, Allowed string
	Targets              []string
}

func readCorpus(t *testing.T) []corpusCase {
	f, err := os.Open(filepath.Join(corpusDir, "google_verdicts.jsonl.gz"))
	if err != nil {
		t.Skipf("the corpus of real robots.txt files is missing: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []corpusCase
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c corpusCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// TestCorpusInTheAccessLog crawls sites with real robots.txt files. The access log must contain all
// targets that Google's matcher allows, and no others.
func TestCorpusInTheAccessLog(t *testing.T) {
	var replayed, kept, denied int
	for _, tc := range readCorpus(t) {
		if tc.Agent != "zzProbeBot" && tc.Agent != "Googlebot" {
			continue
		}
		robots, err := os.ReadFile(filepath.Join(corpusDir, tc.File))
		if err != nil {
			t.Fatal(err)
		}
		replayed++
		k, d := replay(t, tc, robots)
		kept, denied = kept+k, denied+d
	}
	t.Logf("%d crawls of %d targets, %d of them denied", replayed, kept, denied)
	if replayed < 300 || kept < 10_000 || denied < 1_000 {
		t.Error("the corpus is smaller than expected")
	}
}

// replay crawls the targets of a case and compares the access log. It returns the number of
// compared targets and how many of them were denied.
func replay(t *testing.T, tc corpusCase, robots []byte) (kept, denied int) {
	t.Helper()
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": robots, "*": []byte{}}})
	c := kit.Start(t, web, []colly.CollectorOption{colly.AllowURLRevisit()},
		collyrobots.Dialect(dialect.Google()), collyrobots.ProductToken(tc.Agent))
	c.Impolite = true // Verify reads files under RFC 9309
	defer robotstest.Verify(t, web, dialect.Google(), tc.Agent)
	wanted := map[string]bool{}
	for i, target := range tc.Targets {
		if target == "/robots.txt" || !strings.HasPrefix(target, "/") || onTheWire(target) != target || !isNormal(t, target) {
			continue // robots.txt itself, or the plugin decides about another target than the matcher did
		}
		kept++
		wanted[target] = tc.Allowed[i] == '1'
		if !wanted[target] {
			denied++
		}
		c.Visit("http://a.test" + target)
	}
	asked := web.Log("a.test").URIs()
	for target, want := range wanted {
		if got := slices.Contains(asked, target); got != want {
			t.Errorf("%s, %s: %q requested: %t, want %t", tc.File, tc.Agent, target, got, want)
		}
	}
	if asked[0] != "/robots.txt" || slices.Contains(asked[1:], "/robots.txt") {
		t.Errorf("%s: robots.txt was not the first request, or was requested twice", tc.File)
	}
	return kept, denied
}

// onTheWire returns a target as Colly sends it.
func onTheWire(target string) string {
	c := colly.NewCollector(colly.IgnoreRobotsTxt())
	uri := ""
	c.OnRequest(func(r *colly.Request) { uri = r.URL.RequestURI(); r.Abort() })
	c.Visit("http://a.test" + target)
	return uri
}

// isNormal reports whether dialect.Target leaves a target unchanged.
func isNormal(t *testing.T, target string) bool {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return dialect.Target(u) == target
}

// TestCorpusStaysWithinTheLimits crawls sites whose real robots.txt files list sitemaps on other
// domains. None of these sitemaps may be left out because of a limit.
func TestCorpusStaysWithinTheLimits(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpusDir, "protego__*"))
	if err != nil || len(files) == 0 {
		t.Skip("the corpus of real robots.txt files is missing")
	}
	most := 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		host := strings.TrimPrefix(filepath.Base(file), "protego__")
		sites := robotstest.Sites{}
		for _, sitemap := range dialect.RFC9309().Parse(body).Sitemaps() {
			if u, err := url.Parse(sitemap); err == nil && u.Port() == "" && u.Hostname() != "" {
				sites[strings.ToLower(u.Host)] = robotstest.Site{"*": robotstest.Sitemap()}
			}
		}
		delete(sites, host)
		if len(sites) == 0 {
			continue
		}
		sites[host] = robotstest.Site{"/robots.txt": body, "*": robotstest.Sitemap()}
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
			c.Impolite = true // a file may deny the page
			c.Visit("https://" + host + "/")
			if strings.Contains(c.Logged.String(), "other sites") {
				t.Errorf("%s:\n%s", file, c.Logged)
			}
			most = max(most, len(web.Log(""))-len(web.Log(host)))
		})
	}
	if most < 80 {
		t.Errorf("at most %d requests to other hosts; the corpus is smaller than expected", most)
	}
	t.Logf("at most %d requests to other hosts", most)
}

// TestCorpusFigures computes the figures in docs/delays.md and docs/limits.md about real
// robots.txt files: the delays for a crawler that they do not name, and their sitemaps of other
// registrable domains.
func TestCorpusFigures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpusDir, "*.txt"))
	sites, _ := filepath.Glob(filepath.Join(corpusDir, "protego__*"))
	files = append(files, sites...)
	if err != nil || len(sites) == 0 {
		t.Skip("the corpus of real robots.txt files is missing")
	}
	slices.Sort(files)
	files = slices.Compact(files)
	var delays []time.Duration
	lists, foreign, most := 0, 0, 0
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rules := dialect.RFC9309().Parse(body)
		if delay, ok := rules.Group("zzProbeBot").CrawlDelay(); ok {
			delays = append(delays, delay)
		}
		if len(rules.Sitemaps()) > 0 {
			lists++
		}
		_, name, _ := strings.Cut(filepath.Base(file), "__")
		host, _, _ := strings.Cut(name, "_") // "example.com_443" has a port
		n := 0
		for _, sitemap := range rules.Sitemaps() {
			u, err := url.Parse(sitemap)
			if err == nil && u.Hostname() != "" && hostname.Registrable(u.Hostname()) != hostname.Registrable(host) {
				n++
			}
		}
		if n > 0 {
			foreign++
		}
		most = max(most, n)
	}
	slices.Sort(delays)
	want := "194 files; 31 delays, median 10s; 111 list sitemaps, 3 of other domains, 80 at most"
	got := fmt.Sprintf("%d files; %d delays, median %v; %d list sitemaps, %d of other domains, %d at most",
		len(files), len(delays), delays[len(delays)/2], lists, foreign, most)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	t.Log(delays)
}
