package main

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
	"github.com/collyrobots/collyrobots/examples/internal/demo"
	"github.com/collyrobots/collyrobots/robotstest"
)

// inDemo calls f in a synctest bubble with the job that the program has without URLs, and the demo
// server. Delays take no time there, and the instants in the server's log are exact.
func inDemo(t *testing.T, f func(t *testing.T, j *job, d *demo.Server), args ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j, err := parse(args, io.Discard)
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

// TestDemo crawls the demo sites and holds the table that the program prints against the access log
// of the server.
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
		r.print(&out, 0, false)
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
			if gap := smallestGap(log); gap > 0 && gap < row.kept {
				t.Errorf("%s: the server saw a gap of %v, the delay is %v", host, gap, row.kept)
			}
			if row.gap > 0 && row.gap < row.kept {
				t.Errorf("%s: the table has a smallest gap of %v under a delay of %v", host, row.gap, row.kept)
			}
		}
		if asked := rows["slow.test"].asked; asked != time.Second {
			t.Errorf("slow.test asks for %v, want 1s", asked)
		}

		denied := parseDenied(out.String())
		if want := demoDenied(); !slices.Equal(denied, want) {
			t.Errorf("denied:\n%s\nwant:\n%s", strings.Join(denied, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range denied {
			url, _, _ := strings.Cut(line, " ")
			if asked(d, url) {
				t.Errorf("%s is denied and was asked for", url)
			}
		}
		for host, row := range rows {
			if n := countPrefix(denied, "http://"+host+"/"); row.denied != n {
				t.Errorf("%s: the table says %d denied, the list has %d", host, row.denied, n)
			}
		}
	})
}

// demoDenied is what the report has to say of the demo sites, worked out by hand from RFC 9309.
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

// TestDemoUnderCocCoc makes sure that the demo is crawled to its end: each page that no rule closes
// is asked for. Coc Coc takes the 503 of down.test for no restriction, so that its pages are open
// too.
func TestDemoUnderCocCoc(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		r, err := crawl(t.Context(), j, newProgress(io.Discard))
		if err != nil || !r.worked() {
			t.Fatal(err, r.failures)
		}
		for host, site := range demo.Sites {
			for path := range site {
				closed := slices.ContainsFunc(demoDenied()[1:], func(line string) bool { return strings.HasPrefix(line, "http://"+host+path+" ") })
				if asked := asked(d, "http://"+host+path); asked == closed {
					t.Errorf("http://%s%s: closed %v, asked for %v", host, path, closed, asked)
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

// TestInterrupted ends a crawl half-way: there is a report, of what was done.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		j.urls = []string{"http://slow.test/"}
		ctx, cancel := context.WithCancel(t.Context())
		sites := j.transport
		j.transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/" && r.URL.Path != "/robots.txt" {
				cancel()
			}
			return sites.RoundTrip(r)
		})
		r, err := crawl(ctx, j, newProgress(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r.print(&out, 0, false)
		if r.worked() || len(r.failures) > 0 || !strings.Contains(out.String(), "Interrupted") {
			t.Errorf("worked %v, report:\n%s", r.worked(), out.String())
		}
		if rows := parseTable(t, out.String()); rows["slow.test"].pages != 1 {
			t.Errorf("report:\n%s", out.String())
		}
	})
}

// TestStaysOnSite follows links where the start page led to, and nowhere else.
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
	var asked []string
	for _, r := range web.Log("") {
		if r.URI != "/robots.txt" {
			asked = append(asked, r.Scheme+"://"+r.Host+r.URI)
		}
	}
	if want := []string{"http://a.test/", "http://www.a.test/", "http://www.a.test/next", "http://third.test/"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
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
	silent := "http://" + conn.LocalAddr().String() // taken, and nobody listens
	for _, test := range []struct {
		name   string
		args   []string
		status int
		stdout string // regular expressions
		stderr string
	}{
		{"demo", []string{"-depth=1", "-sitemaps=false"}, 0, `slow\.test +1 +0 +1s`, `demo sites`},
		{"a bound", []string{"-max=7"}, 0, `No more pages may be asked for`, `demo sites`},
		{"negative bound", []string{"-max=-1"}, 2, ``, `-max -1: not between`},
		{"a URL", []string{site.URL}, 0, `127\.0\.0\.1:\d+ +1 +0 +- +250ms`, `200 +` + regexp.QuoteMeta(site.URL)},
		{"a start page that is not there", []string{site.URL + "/gone"}, 1, `Failed \(1\):\n.*/gone +404 Not Found`, ``},
		{"a site that does not answer", []string{silent}, 1, `(?s)unreachable: dial tcp.*refused.*Not every start URL was answered`, ``},
		{"unknown dialect", []string{"-dialect=yandex"}, 2, ``, `yandex: unknown; there are rfc9309, google, coccoc`},
		{"negative depth", []string{"-depth=-1"}, 2, ``, `-depth -1: is negative`},
		{"no parallelism", []string{"-parallelism=0"}, 2, ``, `-parallelism 0: at least 1`},
		{"no token", []string{"-token= ,"}, 2, ``, `-token: a crawler needs a name`},
		{"bad token", []string{"-token=Foo/1.0", site.URL}, 2, ``, `ProductToken: "Foo/1.0" is not a product token`},
		{"no scheme", []string{"example.com"}, 2, ``, `"example.com" is no URL of a web page, such as https://`},
		{"two faults", []string{"ftp://example.com/", ":"}, 2, ``, `(?s)"ftp://example.com/" is no URL.*":" is no URL`},
		{"flag behind", []string{site.URL, "-depth=2"}, 2, ``, `-depth=2: flags come before the URLs`},
		{"unknown flag", []string{"-speed=9"}, 2, ``, `-speed`},
		{"help", []string{"-h"}, 0, ``, `(?s)Usage: crawl.*-dialect.*-sitemaps`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), test.args, &stdout, &stderr); status != test.status {
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
	j, err := parse([]string{"-token", "Googlebot-News, Googlebot", "-dialect", "google"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Googlebot-News", "Googlebot"}; !slices.Equal(j.tokens, want) || j.dialect != dialect.Google() || !j.sitemaps {
		t.Errorf("%+v", j)
	}
}

// A row is what the table says of a host.
type row struct {
	pages, denied    int
	asked, kept, gap time.Duration
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
		rows[f[0]] = row{number(t, f[1]), number(t, f[2]), period(t, f[3]), period(t, f[4]), period(t, f[5])}
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

// parseDenied returns the list of denied URLs with their reasons, blanks made single.
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

// asked reports whether a URL is in the log.
func asked(d *demo.Server, url string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return slices.ContainsFunc(d.Log(host), func(a demo.Access) bool { return "http://"+a.Host+a.Path == url })
}

// countPages counts the answers that are pages: not redirects, and not the files that the plugin
// reads for itself.
func countPages(log []demo.Access) (n int) {
	for _, a := range log {
		if a.Status == http.StatusOK && a.Path != "/robots.txt" && !strings.Contains(a.Path, ".xml") {
			n++
		}
	}
	return n
}

// smallestGap returns the smallest time between two accesses, zero if there are none.
func smallestGap(log []demo.Access) (smallest time.Duration) {
	for i := 1; i < len(log); i++ {
		if gap := log[i].At.Sub(log[i-1].At); smallest == 0 || gap < smallest {
			smallest = gap
		}
	}
	return smallest
}

// TestPasswords crawls URLs with passwords: answered, denied, failed and unreachable ones.
func TestPasswords(t *testing.T) {
	t.Parallel()
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/": robotstest.Page("http://joe:secret@a.test/closed", "http://joe:secret@a.test/gone"),
	}})
	j := new(job)
	j.urls, j.tokens, j.parallelism, j.transport = []string{"http://joe:secret@a.test/", "http://joe:secret@dead.test/"}, []string{"ExampleBot"}, 2, web.Transport()
	var out bytes.Buffer
	r, err := crawl(t.Context(), j, newProgress(&out))
	if err != nil {
		t.Fatal(err)
	}
	r.print(&out, 0, false)
	if got := out.String(); strings.Contains(got, "secret") || strings.Count(got, "joe:xxxxx@") < 4 {
		t.Errorf("the program prints\n%s", got)
	}
}
