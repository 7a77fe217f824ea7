package crawl

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/robotstest"
)

// inDemo calls f in a synctest bubble with the job of the program without URLs, and with the demo
// server. Delays take no time in the bubble, and the times in the log of the server are exact.
func inDemo(t *testing.T, f func(t *testing.T, j *job, d *demo.Server), args ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j, err := parse(append(args, "a.test"), strings.NewReader(""), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		d := new(demo.Server)
		sites := make(robotstest.Sites)
		for host := range demo.Sites {
			sites[host] = robotstest.Site{"*": d.ServeHTTP}
		}
		j.urls = demo.Starts()
		j.transport = robotstest.New(t, sites).Transport()
		f(t, j, d)
	})
}

// TestDemo crawls the demo sites and compares the report with the access log of the server.
func TestDemo(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		r, err := crawl(t.Context(), j, newProgress(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		if !r.worked() {
			t.Errorf("the crawl failed: %v", r.failures)
		}
		var out bytes.Buffer
		r.print(&out, layout{})
		t.Log(out.String())

		rows := parseTable(t, out.String())
		if len(rows) != len(demo.Sites) {
			t.Errorf("the table has %d hosts, want %d", len(rows), len(demo.Sites))
		}
		for host, row := range rows {
			log := d.Log(host)
			if pages := countPages(log); row.pages != pages {
				t.Errorf("%s: the table says %d pages, the log %d", host, row.pages, pages)
			}
			if gap := smallestGap(log); gap > 0 && gap < row.delay {
				t.Errorf("%s: the log has a gap of %v, want at least %v", host, gap, row.delay)
			}
			if row.gap > 0 && row.gap < row.delay {
				t.Errorf("%s: the table has a smallest gap of %v, want at least %v", host, row.gap, row.delay)
			}
		}
		if delay := rows["slow.test"].crawlDelay; delay != time.Second {
			t.Errorf("slow.test has a Crawl-delay of %v, want 1s", delay)
		}

		denied := parseDenied(out.String())
		if want := demoDenied(); !slices.Equal(denied, want) {
			t.Errorf("denied:\n%s\nwant:\n%s", strings.Join(denied, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range denied {
			url, _, _ := strings.Cut(line, " ")
			if requested(d, url) {
				t.Errorf("%s is denied and was requested", url)
			}
		}
		for host, row := range rows {
			if n := countPrefix(denied, "http://"+host+"/"); row.denied != n {
				t.Errorf("%s: the table says %d denied, the list has %d", host, row.denied, n)
			}
		}
	})
}

// demoDenied returns the denied URLs of the demo sites with their reasons, derived by hand from RFC
// 9309.
func demoDenied() []string {
	return []string{
		"http://down.test/ unreachable: robots.txt answered with status 503",
		"http://maps.test/closed/book line 2: Disallow: /closed/",
		"http://slow.test/admin line 3: Disallow: /admin",
		"http://slow.test/admin/login line 3: Disallow: /admin",
		"http://wild.test/a?print line 3: Disallow: /*?print$",
		"http://wild.test/anna/drafts/1 line 6: Disallow: /*/drafts/",
		"http://wild.test/anna/drafts/2 line 6: Disallow: /*/drafts/",
		"http://wild.test/brochure.pdf line 4: Disallow: /*.pdf$",
		"http://wild.test/report.pdf line 4: Disallow: /*.pdf$",
	}
}

// TestDemoUnderCocCoc checks that a crawl of the demo requests each page that is not disallowed.
// For Coc Coc, the 503 of down.test is no restriction, so the pages of down.test are also
// requested.
func TestDemoUnderCocCoc(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		r, err := crawl(t.Context(), j, newProgress(io.Discard))
		if err != nil || !r.worked() {
			t.Fatal(err, r.failures)
		}
		for host, site := range demo.Sites {
			for path := range site {
				denied := slices.ContainsFunc(demoDenied()[1:], func(line string) bool { return strings.HasPrefix(line, "http://"+host+path+" ") })
				if requested := requested(d, "http://"+host+path); requested == denied {
					t.Errorf("http://%s%s: denied %v, requested %v", host, path, denied, requested)
				}
			}
		}
	}, "-dialect=coccoc", "-depth=0", "-parallelism=2")
}

func TestWithoutSitemaps(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		j.urls = []string{"http://maps.test/"}
		if _, err := crawl(t.Context(), j, newProgress(io.Discard)); err != nil {
			t.Fatal(err)
		}
		if log := d.Log("maps.test"); len(log) != 2 || log[0].Path != "/robots.txt" || log[1].Path != "/" {
			t.Errorf("log: %v", log)
		}
	}, "-sitemaps=false", "-depth=1")
}

// TestInterrupted checks the report of a crawl that is interrupted.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		j.urls = []string{"http://slow.test/"}
		ctx, cancel := context.WithCancel(t.Context())
		sites := j.transport
		j.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/" && r.URL.Path != "/robots.txt" {
				cancel()
				<-r.Context().Done()
			}
			return sites.RoundTrip(r)
		})
		r, err := crawl(ctx, j, newProgress(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r.print(&out, layout{})
		if r.worked() || len(r.failures) > 0 || !strings.Contains(out.String(), "Interrupted") {
			t.Errorf("worked %v, report:\n%s", r.worked(), out.String())
		}
		if rows := parseTable(t, out.String()); rows["slow.test"].pages != 1 {
			t.Errorf("report:\n%s", out.String())
		}
	})
}

// TestStaysOnSite checks that links are followed only on the hosts of the start pages, after their
// redirects.
func TestStaysOnSite(t *testing.T) {
	t.Parallel()
	web := robotstest.New(t, robotstest.Sites{
		"a.test":     {"/": robotstest.Redirect("http://www.a.test/")},
		"www.a.test": {"/": robotstest.Page("/next", "http://other.test/", "mailto:me@a.test"), "/next": robotstest.Redirect("http://third.test/")},
		"third.test": {"/": robotstest.Page("/more"), "/more": ""},
		"other.test": {"/": ""},
	})
	j := &job{urls: []string{"http://a.test/"}, tokens: []string{"ExampleBot"}, parallelism: 2, transport: web.Transport()}
	r, err := crawl(t.Context(), j, newProgress(io.Discard))
	if err != nil || !r.worked() {
		t.Fatal(err, r.failures)
	}
	var requested []string
	for _, r := range web.Log("") {
		if r.URI != "/robots.txt" {
			requested = append(requested, r.Scheme+"://"+r.Host+r.URI)
		}
	}
	if want := []string{"http://a.test/", "http://www.a.test/", "http://www.a.test/next", "http://third.test/"}; !slices.Equal(requested, want) {
		t.Errorf("requests for %v, want %v", requested, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRun(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	conn, err := net.Dial("tcp", site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	silent := "http://" + conn.LocalAddr().String() // a port that is in use without a listener
	for _, test := range []struct {
		name   string
		args   []string
		status int
		stdout string // regular expressions
		stderr string
	}{
		{"no URL", []string{"-depth=1"}, 2, ``, `no URL given; collyrobots crawl -h prints the usage`},
		{"negative limit", []string{"-max=-1", "a.test"}, 2, ``, `-max -1 is not between`},
		{"a URL", []string{site.URL}, 0, `127\.0\.0\.1:\d+ +1 +0 +- +250ms`, `200 +` + regexp.QuoteMeta(site.URL)},
		{"missing start page", []string{site.URL + "/gone"}, 1, `Failed \(1\):\n.*/gone +404 Not Found`, ``},
		{"a site that does not answer", []string{silent}, 1, `(?s)unreachable: dial tcp.*refused.*At least one start URL could not be fetched`, ``},
		{"unknown dialect", []string{"-dialect=bing", "a.test"}, 2, ``, `bing: unknown dialect; use one of rfc9309, google, coccoc`},
		{"negative depth", []string{"-depth=-1", "a.test"}, 2, ``, `-depth -1 is negative`},
		{"no parallelism", []string{"-parallelism=0", "a.test"}, 2, ``, `-parallelism 0 is less than 1`},
		{"no token", []string{"-token= ,", "a.test"}, 2, ``, `-token: no name given`},
		{"bad token", []string{"-token=Foo/1.0", site.URL}, 2, ``, `ProductToken: "Foo/1.0" is not a product token`},
		{"two faults", []string{"ftp://example.com/", ":"}, 2, ``, `(?s)"ftp://example.com/" is not a host or a URL.*":" is not a host or a URL`},
		{"flag after URL", []string{site.URL, "-depth=2"}, 2, ``, `-depth=2: flags must come before the arguments`},
		{"unknown flag", []string{"-speed=9"}, 2, ``, `-speed`},
		{"help", []string{"-h"}, 0, ``, `(?s)Usage: collyrobots crawl.*-dialect.*-pace-by unit\s+use one pace for each unit: host, domain or address.*-sitemaps`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if status := Run(t.Context(), test.args, strings.NewReader(""), &stdout, &stderr); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
			for _, c := range []struct{ name, got, want string }{{"stdout", stdout.String(), test.stdout}, {"stderr", stderr.String(), test.stderr}} {
				if !regexp.MustCompile(c.want).MatchString(c.got) {
					t.Errorf("%s does not match %s:\n%s", c.name, c.want, c.got)
				}
				if c.want == "" && c.name == "stdout" && c.got != "" {
					t.Errorf("stdout: %s", c.got)
				}
			}
		})
	}
}

func TestParseDefaults(t *testing.T) {
	j, err := parse([]string{"-token", "Googlebot-News, Googlebot", "-dialect", "google", "a.test"}, strings.NewReader(""), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Googlebot-News", "Googlebot"}; !slices.Equal(j.tokens, want) || j.dialect != dialect.Google() || !j.sitemaps {
		t.Errorf("%+v", j)
	}
}

// A row is the row of a host in the table.
type row struct {
	pages, denied          int
	crawlDelay, delay, gap time.Duration
}

func parseTable(t *testing.T, report string) map[string]row {
	t.Helper()
	rows := make(map[string]row)
	table, _, _ := strings.Cut(report, "\n\n")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
		f := strings.Fields(line)
		if len(f) != 6 {
			t.Fatalf("not a row: %q", line)
		}
		rows[f[0]] = row{
			pages: number(t, f[1]), denied: number(t, f[2]),
			crawlDelay: period(t, f[3]), delay: period(t, f[4]), gap: period(t, f[5]),
		}
	}
	return rows
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func period(t *testing.T, s string) time.Duration {
	t.Helper()
	if s == "-" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// parseDenied returns the list of denied URLs with their reasons, separated by single spaces.
func parseDenied(report string) []string {
	_, list, _ := strings.Cut(report, "\nDenied (")
	_, list, _ = strings.Cut(list, "\n")
	var lines []string
	for _, line := range strings.Split(list, "\n") {
		if strings.HasPrefix(line, "  http") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}

func countPrefix(lines []string, prefix string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// requested reports whether a URL is in the log.
func requested(d *demo.Server, url string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return slices.ContainsFunc(d.Log(host), func(a demo.Access) bool { return "http://"+a.Host+a.Path == url })
}

// countPages counts the pages in the log: the responses that are not redirects, robots.txt files or
// sitemaps.
func countPages(log []demo.Access) (n int) {
	for _, a := range log {
		if a.Status == http.StatusOK && a.Path != "/robots.txt" && !strings.Contains(a.Path, ".xml") {
			n++
		}
	}
	return n
}

// smallestGap returns the smallest time between two requests, or 0 if there are fewer than two.
func smallestGap(log []demo.Access) (smallest time.Duration) {
	for i := 1; i < len(log); i++ {
		if gap := log[i].At.Sub(log[i-1].At); smallest == 0 || gap < smallest {
			smallest = gap
		}
	}
	return smallest
}

// TestPasswords checks that passwords in URLs are not printed, for URLs that are fetched, denied,
// failed and unreachable.
func TestPasswords(t *testing.T) {
	t.Parallel()
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Page("http://joe:secret@a.test/closed", "http://joe:secret@a.test/gone"),
	}})
	j := &job{
		urls:        []string{"http://joe:secret@a.test/", "http://joe:secret@dead.test/"},
		tokens:      []string{"ExampleBot"},
		parallelism: 2,
		transport:   web.Transport(),
	}
	var out bytes.Buffer
	r, err := crawl(t.Context(), j, newProgress(&out))
	if err != nil {
		t.Fatal(err)
	}
	r.print(&out, layout{})
	if got := out.String(); strings.Contains(got, "secret") || strings.Count(got, "joe:xxxxx@") < 4 {
		t.Errorf("the program prints\n%s", got)
	}
}
