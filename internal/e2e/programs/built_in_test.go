package programs

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

var builtInSites = flag.Int("builtin", 150, "number of random sites in TestTemotoFetchesSamePagesAsBuiltInCheck")

// TestTemotoFetchesSamePagesAsBuiltInCheck checks that the plugin under Temoto fetches the same
// pages of random sites as Colly's built-in check. The sites do not contain the differences that
// docs/built-in-check.md lists: pages that redirect, and a robots.txt that changes.
func TestTemotoFetchesSamePagesAsBuiltInCheck(t *testing.T) {
	sites := *builtInSites
	if testing.Short() {
		sites /= 5
	}
	sorts := builtInSortsQueries(t)
	fetched, kept := 0, 0
	for seed := range uint64(sites) {
		s := newRandomSite(rand.New(rand.NewPCG(20, seed)))
		var want, got []string
		synctest.Test(t, func(t *testing.T) {
			want = s.crawl(t, false)
			got = s.crawl(t, true)
		})
		if !sorts {
			want = slices.DeleteFunc(want, hasOwnOrder)
			got = slices.DeleteFunc(got, hasOwnOrder)
		}
		if !slices.Equal(got, want) {
			t.Errorf("site %d, %s:\nthe plugin fetches         %q\nthe built-in check fetches %q", seed, s, got, want)
		}
		fetched += len(want)
		kept += len(s.pages) - len(want)
	}
	t.Logf("%d sites, %d pages fetched, %d not fetched", sites, fetched, kept)
	if fetched < sites || kept < sites {
		t.Error("the sites prove little: too few pages were fetched, or too few were denied")
	}
}

// builtInSortsQueries reports whether Colly's built-in check sorts the members of a query, as that of
// v2.3.0 and Temoto do.
func builtInSortsQueries(t *testing.T) bool {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /?b=1&a=2", "/": robotstest.Page()}})
	c := colly.NewCollector()
	c.IgnoreRobotsTxt = false
	c.WithTransport(web.Transport())
	return c.Visit("http://a.test/?b=1&a=2") == nil
}

// hasOwnOrder reports whether a built-in check that sorts queries changes the query of a page.
func hasOwnOrder(page string) bool {
	u, err := url.Parse(page)
	return err != nil || u.RawQuery != u.Query().Encode()
}

// A randomSite is a site with a robots.txt that Colly's built-in check may not handle, and a spider
// that visits some of its pages.
type randomSite struct {
	robots  string // the rules
	status  int    // of the response with the rules
	hops    int    // the number of redirects before this response
	broken  string // the fault of the response: "cut", "dropped", "gzip" or ""
	guard   string // a header that selects the rules; requests without it get other rules; may be ""
	agent   string // the collector's UserAgent
	headers http.Header
	cookie  bool // whether the collector has the cookie that guard may require
	pages   []string
}

func newRandomSite(r *rand.Rand) *randomSite {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	s := &randomSite{status: http.StatusOK, agent: pick("mybot/1.0", "Mozilla/5.0 (compatible; mybot/1)", "", "FooBot")}
	s.robots = randomRules(pick, 1+r.IntN(8))
	if r.IntN(3) == 0 {
		s.status, _ = strconv.Atoi(pick("204", "206", "301", "304", "401", "403", "404", "410", "429", "500", "503", "599"))
	}
	if r.IntN(5) == 0 {
		s.hops = 1 + r.IntN(12)
	}
	s.broken = pick("", "", "", "", "", "cut", "dropped", "gzip")
	s.guard = pick("", "", "X-Key", "Cookie")
	s.headers = http.Header{}
	if r.IntN(2) == 0 {
		s.headers.Set("X-Key", "1")
	}
	if r.IntN(4) == 0 {
		s.headers.Set("User-Agent", pick("mybot", "other/1"))
	}
	s.cookie = r.IntN(2) == 0
	for range 12 {
		page := "/" + pick("a", "b", "ab", "s", "%7Ea", "%7ea", "\u00e4", "%c3%a4", "5%25off", "a/b.html", "")
		s.pages = append(s.pages, page+pick("", "", "?b=1&a=2", "?a=2&b=1", "?print", "?a", "?q=%C3%A4+x"))
	}
	slices.Sort(s.pages)
	s.pages = slices.Compact(s.pages)
	return s
}

// randomRules returns a robots.txt, sometimes with a line that temoto rejects.
func randomRules(pick func(...string) string, lines int) string {
	var b strings.Builder
	if pick("", "", "", "x") == "" {
		b.WriteString("User-agent: " + pick("*", "*", "mybot", "my", "Mozilla") + "\n")
	}
	for range lines {
		line := pick("User-agent: ", "Disallow: ", "Disallow: ", "Disallow: ", "Allow: ", "Allow: ", "Crawl-delay: ", "# ", "")
		switch line {
		case "User-agent: ":
			line += pick("*", "mybot", "FooBot", "other", "Mozilla/5.0", "")
		case "Disallow: ", "Allow: ":
			line += pick("", "/", "/a", "/a", "/b", "/s", "/*b", "*.html$", "/a*", "/s?a=2&b=1", "/s?b=1&a=2", "/*?print", "/*?print=$", "/%7Ea", "/%7ea", "\u00e4", "a/b", "/*/")
		case "Crawl-delay: ":
			line += pick("1", "0.5", "10000000000", "1", "2", "5s")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// String returns the fields of the site.
func (s *randomSite) String() string { return fmt.Sprintf("%+v", *s) }

// crawl visits the pages with the plugin or with the built-in check. It returns the pages that the
// server received requests for.
func (s *randomSite) crawl(t *testing.T, plugin bool) (fetched []string) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"*": s.serve}})
	c := colly.NewCollector(colly.UserAgent(s.agent), colly.AllowURLRevisit())
	c.WithTransport(web.Transport())
	c.IgnoreRobotsTxt = false
	headers := s.headers.Clone()
	c.Headers = &headers
	if s.cookie {
		kit.Must(t, c.SetCookies("http://a.test/", []*http.Cookie{{Name: "session", Value: "1"}}))
	}
	if plugin {
		robots, err := collyrobots.WithRobots(c, collyrobots.Dialect(dialect.Temoto()), collyrobots.Logger(slog.New(slog.DiscardHandler)))
		kit.Must(t, err)
		defer robots.Close()
	}
	for _, page := range s.pages {
		c.Visit("http://a.test" + page)
	}
	for _, r := range web.Log("a.test") {
		if !strings.HasPrefix(r.URI, "/robots.txt") {
			fetched = append(fetched, r.URI)
		}
	}
	return fetched
}

func (s *randomSite) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/robots.txt" {
		fmt.Fprint(w, "a page")
		return
	}
	if hop, _ := strconv.Atoi(r.URL.RawQuery); hop < s.hops {
		http.Redirect(w, r, fmt.Sprint("/robots.txt?", hop+1), http.StatusFound)
		return
	}
	body := []byte(s.robots)
	if s.guard != "" && r.Header.Get(s.guard) == "" {
		body = []byte("User-agent: *\nDisallow: /a\n")
	}
	switch s.broken {
	case "dropped":
		kit.Drop(w, r)
	case "cut":
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+10))
	case "gzip":
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			body = robotstest.Gzip(string(body))
			w.Header().Set("Content-Encoding", "gzip")
		}
	}
	w.WriteHeader(s.status)
	w.Write(body)
}
