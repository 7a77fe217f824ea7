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
	"strings"
	"testing"
	"testing/synctest"

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

// demoReport is the report of a crawl of the demo sites. The denials follow from RFC 9309, and the pages and
// delays from the sites.
const demoReport = `  host        pages  denied  Crawl-delay  delay  smallest gap
  down.test       0       1            -  250ms             -
  maps.test       6       1            -  250ms         250ms
  moved.test      2       0            -  250ms         250ms
  slow.test       5       2           1s     1s            1s
  wild.test       6       5            -  250ms         250ms

Sitemaps: 3 files, 6 pages, 5 added to the crawl, 1 denied

Denied (9):
  http://down.test/               unreachable: robots.txt answered with status 503
  http://maps.test/closed/book    line 2: Disallow: /closed/
  http://slow.test/admin          line 3: Disallow: /admin
  http://slow.test/admin/login    line 3: Disallow: /admin
  http://wild.test/a?print        line 3: Disallow: /*?print$
  http://wild.test/anna/drafts/1  line 6: Disallow: /*/drafts/
  http://wild.test/anna/drafts/2  line 6: Disallow: /*/drafts/
  http://wild.test/brochure.pdf   line 4: Disallow: /*.pdf$
  http://wild.test/report.pdf     line 4: Disallow: /*.pdf$

Responses: 19 × 200
19 pages in 5.0 s, 0 failed, 9 denied
`

// TestDemo crawls the demo sites and checks the report.
func TestDemo(t *testing.T) {
	t.Parallel()
	inDemo(t, func(t *testing.T, j *job, d *demo.Server) {
		r, err := crawl(t.Context(), j, newProgress(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r.print(&out, layout{})
		if !r.worked() || out.String() != demoReport {
			t.Errorf("worked %t, report\n%s", r.worked(), out.String())
		}
	})
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
				denied := host != "down.test" && strings.Contains(demoReport, "\n  http://"+host+path+" ")
				requested := slices.ContainsFunc(d.Log(host), func(a demo.Access) bool { return a.Path == path })
				if requested == denied {
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
		if r.worked() || len(r.failures) > 0 || !strings.Contains(out.String(), "Interrupted") || !strings.Contains(out.String(), "\n1 page in ") {
			t.Errorf("worked %v, report:\n%s", r.worked(), out.String())
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
		{"a URL", []string{site.URL}, 0, `127\.0\.0\.1:\d+ +1 +0 +- +250ms`, `200 +` + regexp.QuoteMeta(site.URL)},
		{"missing start page", []string{site.URL + "/gone"}, 1, `Failed \(1\):\n.*/gone +404 Not Found`, ``},
		{"a site that does not answer", []string{silent}, 1, `(?s)unreachable: dial tcp.*refused.*At least one start URL could not be fetched`, ``},
		{"unknown dialect", []string{"-dialect=bing", "a.test"}, 2, ``, `unknown name "bing", want one of`},
		{"negative depth", []string{"-depth=-1", "a.test"}, 2, ``, `-depth -1 is negative`},
		{"no parallelism", []string{"-parallelism=0", "a.test"}, 2, ``, `-parallelism 0 is less than 1`},
		{"no token", []string{"-token= ,", "a.test"}, 2, ``, `-token: no name given`},
		{"two faults", []string{"ftp://example.com/", ":"}, 2, ``, `(?s)"ftp://example.com/" is not a host or a URL.*":" is not a host or a URL`},
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
	if want := []string{"Googlebot-News", "Googlebot"}; !slices.Equal(j.tokens, want) || j.pace.Dialect != dialect.Google() || !j.sitemaps {
		t.Errorf("%+v", j)
	}
}
