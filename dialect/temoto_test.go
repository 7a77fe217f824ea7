package dialect_test

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/gocolly/colly/v2"
	"github.com/temoto/robotstxt"
)

// A site is a RoundTripper that responds to every request: with a file to /robots.txt, and with a
// page to all other URLs.
type site struct{ robots string }

func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	body := "a page"
	if r.URL.Path == "/robots.txt" && r.URL.RawQuery == "" {
		body = s.robots
	}
	return &http.Response{
		StatusCode: 200,
		Status:     "200 OK",
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"text/plain"}},
		Body:       io.NopCloser(strings.NewReader(body)),
		Request:    r,
	}, nil
}

// builtIn reports whether Colly's built-in check allows a URL.
func builtIn(robots, userAgent, rawURL string) (allowed bool) {
	c := colly.NewCollector(colly.UserAgent(userAgent), colly.AllowURLRevisit())
	c.IgnoreRobotsTxt = false
	c.WithTransport(site{robots})
	err := c.Visit(rawURL)
	return err == nil && !errors.Is(err, colly.ErrRobotsTxtBlocked)
}

// TestTemotoDecisions checks that Temoto makes the same decisions as Colly's built-in check, for
// files that temoto reads and for files that it refuses.
func TestTemotoDecisions(t *testing.T) {
	files := []string{
		"", "\n", "nonsense", "User-agent: *\nDisallow: /a\n", "Disallow: /a\n", "User-agent: *\nCrawl-delay: 5s\n", "User-agent: *\nCrawl-delay:\n",
		"User-agent: *\nDisallow: /s?b=1&a=2\nDisallow: /t?a=1&b=2\n", "User-agent: *\nDisallow: /*?print$\n", "User-agent: *\nDisallow: /a b\n",
		"User-agent: mybot\nDisallow: /a\nUser-agent: *\nDisallow: /b\n", "User-agent: Mozilla\nDisallow: /a\n",
		"User-agent: *\nDisallow: /a*b\nAllow: /a*bc\nDisallow: a\nDisallow: /%7Ea\nAllow: /a/\n", "User-agent: *\nAllow: /a\nDisallow: /a\n",
		"\xEF\xBB\xBFUser-agent: *\nDisallow: /\n",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		files = append(files, generateFile(r, 8))
	}
	agents := []string{"mybot/1.0", "Mozilla/5.0 (compatible; mybot/1)", "FooBot-x", "foo"}
	targets := []string{"/", "/a", "/ab", "/axb", "/xaxb", "/a%20b", "/a b", "/~a", "/%7Ea", "/%7ea", "/s?b=1&a=2", "/t?b=2&a=1", "/t?a=1&b=2&c", "/x?print", "/x?print=", "/é?q=é", "/?a=%zz&b", "/?a;b&c", "/?q=a+b%20c"}
	refused := 0
	for _, file := range files {
		rules := dialect.Temoto().Parse([]byte(file))
		if strings.Contains(issues(dialect.Temoto(), file), "refused") {
			refused++
		}
		for range 4 {
			agent := pick(r, agents)
			target := pick(r, targets)
			got := rules.Group(agent).DecideURL(collyURL(t, "http://example.com"+target))
			if want := builtIn(file, agent, "http://example.com"+target); got.Allowed != want {
				t.Errorf("%q\n%s %s: allowed %v, Colly %v", file, agent, target, got.Allowed, want)
			}
		}
	}
	if refused < 5 {
		t.Errorf("%d files are refused, want at least 5", refused)
	}
}

// TestTemotoHosts checks that DecideURL makes the same decisions as Colly's built-in check for
// hosts with a semicolon. Colly considers a semicolon a part of the host, which no pattern matches.
func TestTemotoHosts(t *testing.T) {
	files := []string{"User-agent: *\nDisallow: /;p\n", "User-agent: *\nDisallow: /*p\nAllow: /b\n", "User-agent: *\nDisallow: /x?b=1\nDisallow: /x?a=1&b=2\n", "Disallow: /\n"}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		files = append(files, generateFile(r, 8))
	}
	hosts := []string{"example.com", "example.com;p", "a;b;c:8080", "example.com:80"}
	targets := []string{"", "/", "/;p", "/a", "/b", "/x?b=1", "/x?b=2&a=1", "?q", "/?", "/a?x;y", "/%7ea b#c", "/a#?b"}
	for _, file := range files {
		group := dialect.Temoto().Parse([]byte(file)).Group("mybot/1.0")
		for _, host := range hosts {
			rawURL := "http://" + host + pick(r, targets)
			got := group.DecideURL(collyURL(t, rawURL))
			if want := builtIn(file, "mybot/1.0", rawURL); got.Allowed != want {
				t.Errorf("%q\n%s: allowed %v, Colly %v", file, rawURL, got.Allowed, want)
			}
		}
	}
}

// collyURL returns a URL in the form that Colly's built-in check receives.
func collyURL(t *testing.T, rawURL string) (u *url.URL) {
	t.Helper()
	c := colly.NewCollector()
	c.OnRequest(func(r *colly.Request) {
		u = r.URL
		r.Abort()
	})
	if err := c.Visit(rawURL); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTemotoGroupName(t *testing.T) {
	const file = "User-agent: my\nUser-agent: MyBot\nDisallow: /a\nUser-agent: mybot/2\nUser-agent: *\nDisallow: /b\nUser-agent: empty\n"
	for agent, want := range map[string]string{
		"mybot/1.0": "MyBot", "Mybot/2.0": "mybot/2", "myx": "my", "empty": "*", "other": "*", "": "*",
	} {
		if got := dialect.Temoto().Parse([]byte(file)).Group(agent).Name(); got != want {
			t.Errorf("%q: group %q, want %q", agent, got, want)
		}
	}
	if got := dialect.Temoto().Parse([]byte("User-agent: a\nDisallow: /\n")).Group("b").Name(); got != "" {
		t.Errorf("group %q for a crawler without a group", got)
	}
}

// TestTemotoRefusals checks the lines that Lint reports as refused: temoto accepts the file without
// all of them, and refuses it with any one of them.
func TestTemotoRefusals(t *testing.T) {
	lines := []string{
		"User-agent: *", "Useragent: x", "User-agent:", "Disallow: /x", "Disallow:", "Disallow", "Disallow /x", "Disallow: \x00", "disalow: /x",
		"Allow: \xff(", "Disallow: /b?z=1&a=1", "Crawl-delay: 1", "Crawl-delay: x", "Crawl-delay:", "Crawl-delay", "Crawl-delay: -1", "Crawl-delay: 1 2",
		"Crawl-delay: # c", "Crawl-delay:5#x", " Crawl-delay : 1s", "crawldelay: x", "Crawl-delay: nan", "# c", "", "foo", "Host:", "Sitemap:", "Sitemap: x",
	}
	refused := func(lines []string, end string) bool {
		_, err := robotstxt.FromString(strings.Join(lines, "\n") + end)
		return err != nil
	}
	random := rand.New(rand.NewPCG(5, 6))
	several := 0 // files with more than one refused line
	rounds := 20_000
	if underRace {
		rounds = 2_000
	}
	for range rounds {
		file := make([]string, 1+random.IntN(6))
		for i := range file {
			file[i] = pick(random, lines)
		}
		end := pick(random, []string{"", "\n", "\n\n", "\n# c"})
		var reported []int // indexes of lines
		for _, issue := range dialect.Temoto().Lint([]byte(strings.Join(file, "\n") + end)) {
			if issue.Problem == dialect.FileRefused {
				reported = append(reported, issue.Line-1)
			}
		}
		if want := refused(file, end); len(reported) > 0 != want {
			t.Fatalf("%q: reported lines %v, file refused: %v", file, reported, want)
		}
		if len(reported) > 1 {
			several++
		}
		for _, alone := range reported {
			without := slices.Clone(file)
			for _, i := range reported {
				without[i] = ";"
			}
			if refused(without, end) {
				t.Fatalf("%q: the file is refused without the reported lines %v", file, reported)
			}
			without[alone] = file[alone]
			if !refused(without, end) {
				t.Fatalf("%q: the file is not refused because of line %d", file, alone+1)
			}
		}
	}
	if several < rounds/20 {
		t.Errorf("%d files have several refused lines, want at least %d", several, rounds/20)
	}
}

// TestTemotoDelay checks delays of more than 292 years, which overflow temoto's own arithmetic.
func TestTemotoDelay(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1.5": 1500 * time.Millisecond, "9e9": 9_000_000_000 * time.Second,
		"1e10": math.MaxInt64, "1e300": math.MaxInt64, "99999999999999999999": math.MaxInt64,
	} {
		group := dialect.Temoto().Parse([]byte("User-agent: *\nCrawl-delay: " + value + "\n")).Group("x")
		if got, ok := group.WrittenDelay(); got != want || !ok {
			t.Errorf("%s: %v %v, want %v", value, got, ok, want)
		}
		if got, ok := group.CrawlDelay(); ok {
			t.Errorf("%s: CrawlDelay returns %v, but Colly ignores delays", value, got)
		}
	}
}

// TestTemotoCost checks that a URL is denied without matching it if temoto would need seconds. Real
// files are far below that limit.
func TestTemotoCost(t *testing.T) {
	hostile := "User-agent: *\n" + strings.Repeat("Disallow: /*a*a*a*b\n", 24_000)
	group := dialect.Temoto().Parse([]byte(hostile)).Group("x")
	if group.Decide("/" + strings.Repeat("a", 2000)).Allowed {
		t.Error("a long URL is allowed although it was not matched")
	}
	if !group.Decide("/c").Allowed {
		t.Error("a short URL is denied")
	}
	large := "User-agent: *\n" + strings.Repeat("Disallow: /*a*a*b\n", 500) + strings.Repeat("Disallow: /b\n", 30_000)
	if !dialect.Temoto().Parse([]byte(large)).Group("x").Decide("/" + strings.Repeat("a", 2000)).Allowed {
		t.Error("a URL is denied because of patterns without wildcards")
	}
}
