package crawl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { tooltest.MainOf(m, "../..", "crawl") }

// someSites returns a site with allowed, denied and missing pages, and a site with a long delay.
func someSites() robotstest.Sites {
	return robotstest.Sites{
		"shop.test": {"/robots.txt": "User-agent: *\nDisallow: /cart\n", "/": robotstest.Page("/tea", "/cart", "/gone"), "/tea": ""},
		"slow.test": {"/robots.txt": "User-agent: *\nDisallow: /x\nCrawl-delay: 60\n", "/": ""},
	}
}

// listed returns a site whose sitemap lists n pages, /0 and so on. Its start page has no links to
// them.
func listed(host string, n int) robotstest.Site {
	site := robotstest.Site{"/": ""}
	var locs []string
	for i := range n {
		path := fmt.Sprintf("/%d", i)
		site[path] = ""
		locs = append(locs, "http://"+host+path)
	}
	site["/robots.txt"] = "Sitemap: /map.xml\n"
	site["/map.xml"] = robotstest.Sitemap(locs...)
	return site
}

// pagesOf returns how often each page of a host was requested, except the start page.
func pagesOf(w *tooltest.World, host string) map[string]int {
	pages := make(map[string]int)
	for _, r := range w.Log(host) {
		if r.URI != "/" && r.URI != "/robots.txt" && r.URI != "/map.xml" {
			pages[r.URI]++
		}
	}
	return pages
}

// wantMatches checks that a text matches regular expressions.
func wantMatches(t *testing.T, name, text string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("%s does not match %s:\n%s", name, pattern, text)
		}
	}
}

// A running is a program whose standard error is read while it runs.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Scanner
	lines  []string // the lines of stderr so far
	stdout bytes.Buffer
}

func start(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{t: t, cmd: cmd}
	cmd.Stdout = &r.stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.stderr = bufio.NewScanner(pipe)
	return r
}

// waitFor reads lines until one matches, and returns the match with its groups.
func (r *running) waitFor(pattern string) []string {
	r.t.Helper()
	expression := regexp.MustCompile(pattern)
	for r.stderr.Scan() {
		r.lines = append(r.lines, r.stderr.Text())
		if found := expression.FindStringSubmatch(r.stderr.Text()); found != nil {
			return found
		}
	}
	r.t.Fatalf("no line of standard error matches %s:\n%s", pattern, strings.Join(r.lines, "\n"))
	return nil
}

// end waits until the program ends.
func (r *running) end() (status int, stdout string) {
	for r.stderr.Scan() {
		r.lines = append(r.lines, r.stderr.Text())
	}
	r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode(), r.stdout.String()
}

// TestArguments checks that each mistake on the command line is reported on one line, with exit
// status 2.
func TestArguments(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want string
		args []string
	}{
		{`MinDelay: -1s is negative`, []string{"-delay=-1s", "a.test"}},
		{`invalid value "soon" for flag -delay`, []string{"-delay=soon"}},
		{`SkipCrawlDelayAbove: -1s is negative`, []string{"-skip-crawl-delay-above=-1s", "a.test"}},
		{`MaxPagesPerHost: -1 is negative`, []string{"-max-per-host=-1", "a.test"}},
		{`StopAfterRefusals: -1 is negative`, []string{"-stop-after-refusals=-1", "a.test"}},
		{`-max -1 is negative`, []string{"-max=-1"}},
		{`invalid value "9999999999999999999" for flag -max`, []string{"-max=9999999999999999999"}},
		{`-resume needs -cache`, []string{"-resume"}},
		{`-revalidate needs -cache`, []string{"-revalidate"}},
		{`-pace-by: use host, domain or address`, []string{"-pace-by=asn"}},
		{`-purpose sell: use search, ai-use or train-ai`, []string{"-purpose=search,sell"}},
		{`-tdmrep needs -purpose`, []string{"-tdmrep"}},
		{`-hours night: want a window such as 22:00-06:00`, []string{"-hours=night"}},
		{`CrawlHours: "25:00" is not a time of day`, []string{"-hours=22:00-25:00", "a.test"}},
		{`-zone Mars: unknown time zone Mars`, []string{"-hours=22:00-06:00", "-zone=Mars"}},
		{`Jitter: 25 is not between 0 and 1`, []string{"-jitter=25", "a.test"}},
		{`MaxRate: -1 is negative or not a number`, []string{"-max-rate=-1", "a.test"}},
		{`AdaptiveDelay: -1 is negative, infinite or not a number`, []string{"-adaptive=-1", "a.test"}},
		{`-sign and -sign-agent need each other`, []string{"-sign=bot.pem"}},
		{`-sign: .* is not a PEM file`, []string{"-sign=" + file, "-sign-agent=https://a.test/", "a.test"}},
		{`-audit: `, []string{"-audit=" + file, "a.test"}},
		{`no such file`, []string{"-from=" + file + "x"}},
		{`no URL given`, []string{"-from=" + file}},
		{`-cache: `, []string{"-cache=" + file, "a.test"}},
		{`-http: address nowhere: missing port in address; use an address such as 127.0.0.1:8090`, []string{"-http=nowhere", "a.test"}},
		{`-http: listen tcp .*in use`, []string{"-http=" + busy.Addr().String(), "-cache=" + t.TempDir(), "a.test"}},
		{`"Foo/1.0" is not a product token`, []string{"-token=Foo/1.0", "a.test"}},
		{`-json: flags must come before the arguments`, []string{"http://a.test/", "-json", "-max", "3"}},
		{`not defined: -pages`, []string{"-pages=3"}},
		{`"a\\x1b\[1m" is not a host or a URL`, []string{"a\x1b[1m"}},
		{`"http://xxxxx@a.test:x/" is not a host or a URL`, []string{"http://joe:secret@a.test:x/"}},
		{`"" is not a host or a URL`, []string{""}},
	} {
		var stdout, stderr strings.Builder
		status := Run(t.Context(), test.args, strings.NewReader(""), &stdout, &stderr)
		errs := stderr.String()
		if status != 2 || stdout.Len() > 0 || strings.Count(errs, "\n") != 1 || !regexp.MustCompile("^collyrobots crawl: .*"+test.want).MatchString(errs) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.args, status, stdout.String(), errs)
		}
	}
}

// TestDelay checks that -delay applies to hosts without a Crawl-delay, and that hosts are skipped
// whose Crawl-delay is longer than -skip-crawl-delay-above.
func TestDelay(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	status, out, _ := web.Run(t, "", "-delay=300ms", "-skip-crawl-delay-above=30s", "http://shop.test/", "http://slow.test/")
	if status != 0 {
		t.Error("status", status)
	}
	wantMatches(t, "the report", out, `\n  shop\.test +3 +1 +- +300ms +([3-9]\d\dms|[\d.]+s)`, `\n  slow\.test +0 +1 `,
		`\n  http://slow\.test/ +its Crawl-delay of 1m0s is longer than -skip-crawl-delay-above\n`,
		`\nFailed \(1\):\n  http://shop\.test/gone  404 Not Found\n\nResponses: 2 × 200, 1 × 404\n2 pages in \d\.\d s, 1 failed, 2 denied\n$`)
	robotstest.Verify(t, web.Web, dialect.RFC9309())
}

// TestEndings checks that the report says why hosts ended, and that -resume continues with the pages
// over -max-per-host.
func TestEndings(t *testing.T) {
	t.Parallel()
	many := robotstest.Site{"/robots.txt": "User-agent: *\nDisallow:\n", "/": robotstest.Page("/1", "/2", "/3", "/4"), "*": robotstest.Page()}
	web := tooltest.New(t, robotstest.Sites{
		"a.test": many, "b.test": many, "c.test": {"/robots.txt": http.StatusNotFound, "/": robotstest.Page("/1")},
		"no.test": {"/robots.txt": http.StatusNotFound, "/": robotstest.Page("/1", "/2", "/3", "/4", "/5", "/6"), "*": http.StatusForbidden},
	})
	cache := t.TempDir()
	args := []string{"-delay=1ms", "-parallelism=1", "-stop-after-refusals=2", "-max-per-host=4", "-cache", cache}
	urls := []string{"http://a.test/", "http://b.test/", "http://c.test/", "http://no.test/"}
	_, out, _ := web.Run(t, "", append(args, urls...)...)
	wantMatches(t, "the report", out, `\n\na\.test, b\.test ended: budget of 4 pages\nno\.test ended: refused 2 pages in a row\n\nDenied`,
		`\n  http://[ab]\.test/\d +over -max-per-host\n`, `\n  http://no\.test/\d +its host has refused other pages\n`)
	if strings.Contains(out, "c.test ended") {
		t.Errorf("a host that is done is named:\n%s", out)
	}
	_, out, _ = web.Run(t, "", append(append(args, "-resume"), urls...)...)
	if n := len(web.Log("a.test")); n != 6 || strings.Contains(out, "a.test ended") { // robots.txt is in the cache
		t.Errorf("%d requests to a.test after the second run, want 6:\n%s", n, out)
	}
}

// TestCache checks that two runs with the same cache fetch robots.txt once, and that the report of
// the second run has its age.
func TestCache(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /x\n", "/": robotstest.Page("/x")}})
	cache := filepath.Join(t.TempDir(), "made", "here")
	age := -1
	for run := range 2 {
		time.Sleep(time.Duration(run) * 1100 * time.Millisecond)
		status, out, _ := web.Run(t, "", "-cache", cache, "http://a.test/")
		if status != 0 {
			t.Errorf("run %d: status %d", run, status)
		}
		wantMatches(t, "the report", out, `line 2: Disallow: /x`, `^  host .* robots\.txt\n`)
		before := age
		if found := regexp.MustCompile(`\n  a\.test +1 .* +(\d+)s old\n`).FindStringSubmatch(out); found != nil {
			age, _ = strconv.Atoi(found[1])
		}
		if age <= before {
			t.Errorf("run %d: robots.txt is not older than %d s:\n%s", run, before, out)
		}
	}
	files := 0
	for _, r := range web.Log("a.test") {
		if r.URI == "/robots.txt" {
			files++
		}
	}
	if files != 1 {
		t.Errorf("%d requests for robots.txt, want 1", files)
	}
	if _, out, _ := web.Run(t, "", "http://a.test/"); strings.Contains(out, "old") {
		t.Errorf("without a cache:\n%s", out)
	}
}

// TestResume interrupts a crawl. It checks that the next run requests the pages that the first run
// has not done, and no others.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, sign := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sign.String(), func(t *testing.T) {
			t.Parallel()
			site, running := listed("a.test", 30), make(chan *os.Process, 1)
			var requests atomic.Int32
			for i := range 30 {
				page := site[fmt.Sprint("/", i)]
				site[fmt.Sprint("/", i)] = func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) == 15 { // the order of the pages is not fixed
						(<-running).Signal(sign)
						<-r.Context().Done() // no other page starts until the program has got the signal
					}
					fmt.Fprint(w, page)
				}
			}
			web := tooltest.New(t, robotstest.Sites{"a.test": site})
			args := []string{"-cache", t.TempDir(), "-resume", "-delay=40ms", "-parallelism=2", "http://a.test/"}
			first := start(t, web.Command(t, args...))
			running <- first.cmd.Process
			status, out := first.end()
			if status != 1 {
				t.Errorf("status %d\n%s", status, strings.Join(first.lines, "\n"))
			}
			wantMatches(t, "the report", out, `\n  a\.test +\d+ `, `\nInterrupted; 1\d pages were waiting \(a\.test 1\d\), and there may be more\.\n`)
			done := len(pagesOf(web, "a.test"))
			status, out, progress := web.Run(t, "", args...)
			if status != 0 || done >= 30 {
				t.Errorf("status %d, the first run has done %d pages", status, done)
			}
			wantMatches(t, "the report", out, `1 file unchanged`) // its pages wait in the journal
			wantMatches(t, "the progress", progress, `(?m)^Continuing with 1\d pages of the last run\.$`)
			wantOnce(t, web, 30, 2) // two requests were in flight
			_, out, _ = web.Run(t, "", args...)
			wantMatches(t, "the third report", out, `1 file unchanged`)
			wantOnce(t, web, 30, 2)
		})
	}
}

// wantOnce checks that n pages of a.test were requested: at most as many of them twice as
// repeats says, and the others once.
func wantOnce(t *testing.T, w *tooltest.World, n, repeats int) {
	t.Helper()
	pages, repeated := pagesOf(w, "a.test"), 0
	for page, times := range pages {
		repeated += times - 1
		if times > 2 {
			t.Errorf("%d requests for %s", times, page)
		}
	}
	if len(pages) != n || repeated > repeats {
		t.Errorf("%d pages, %d of them twice, want %d and at most %d: %v", len(pages), repeated, n, repeats, pages)
	}
}

// TestMax checks that -max limits the pages of all sites together, without the pages that
// robots.txt denies. With -resume, the next run continues at the limit.
func TestMax(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": robotstest.Pages(40, ""), "b.test": robotstest.Pages(40, "User-agent: *\nDisallow: /1\nDisallow: /2\n")})
	status, out, _ := web.Run(t, "", "-max=25", "-delay=0", "http://a.test/", "http://b.test/")
	if status != 0 {
		t.Error("status", status)
	}
	wantMatches(t, "the report", out, `\nThe crawl ended at the limit of -max; there may be more pages\.\n`)
	pages := slices.DeleteFunc(web.Log(""), func(r robotstest.Request) bool { return r.URI == "/robots.txt" })
	if len(pages) != 25 {
		t.Errorf("%d pages were requested, want 25", len(pages))
	}
	daily := tooltest.New(t, robotstest.Sites{"a.test": listed("a.test", 200)}) // more than Feed.Window
	cache := t.TempDir()
	for run := range 3 {
		status, out, _ := daily.Run(t, "", "-cache", cache, "-resume", "-max=81", "-delay=1ms", "http://a.test/")
		if n := len(pagesOf(daily, "a.test")); status != 0 || n != min(200, 80+81*run) { // the first run also requests the start page
			t.Errorf("run %d: status %d, %d pages\n%s", run, status, n, out)
		}
	}
	wantOnce(t, daily, 200, 0)
}

// TestJSON checks the JSON report, and that it reads back as it was written.
func TestJSON(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	status, out, _ := web.Run(t, "", "-json", "-delay=10ms", "-cache", t.TempDir(), "http://shop.test/", "http://dead.test/")
	records := parseLines(t, out)
	last := records[len(records)-1]
	r := last.End
	if status != 1 || last.Kind != kindEnd || r.Worked || r.Interrupted || r.Full || !r.StartFailed {
		t.Fatal(status, out)
	}
	var again ending
	if text, err := json.Marshal(r); err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(&again, r) {
		t.Errorf("%v\n%+v\n%+v", err, r, again)
	}
	var shop report.HostStats
	for _, h := range r.Stats.Hosts {
		if h.Host == "shop.test" {
			shop = h
		}
	}
	if shop.Requests != len(web.Log("shop.test")) || shop.Delay != 10*time.Millisecond || r.Stats.Totals.Requests < shop.Requests {
		t.Errorf("%+v, want %d requests", shop, len(web.Log("shop.test")))
	}
	var got []string
	for _, r := range records[:len(records)-1] {
		got = append(got, fmt.Sprint(r.Kind, " ", r.URL, " ", r.Status, " ", r.Decision != nil))
		if r.Kind == kindDenied && r.Status == 0 && r.URL == "http://shop.test/cart" && r.Decision.Rule.Line != 2 {
			t.Errorf("denied: %+v", r.Decision)
		}
	}
	slices.Sort(got)
	wantLines := []string{
		"denied http://dead.test/ 0 true", "denied http://shop.test/cart 0 true", "failed http://shop.test/gone 404 false",
		"page http://shop.test/ 200 false", "page http://shop.test/tea 200 false",
	}
	if !slices.Equal(got, wantLines) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantLines, "\n"))
	}
	i := slices.IndexFunc(r.Robots, func(f robotsFile) bool { return f.Host == "shop.test" })
	if i < 0 || r.Ended.Sub(r.Robots[i].Fetched) > time.Minute {
		t.Fatalf("robots.txt: %+v", r.Robots)
	}
	file := r.Robots[i]
	file.Fetched = time.Time{}
	want := robotsFile{URL: "http://shop.test/robots.txt", Host: "shop.test", Status: 200, RobotsStatus: report.RobotsRules}
	if file != want {
		t.Errorf("robots.txt: %+v, want %+v", file, want)
	}
}

// parseLines parses the JSON lines of a crawl.
func parseLines(t *testing.T, out string) (records []record) {
	t.Helper()
	for line := range strings.Lines(out) {
		var r record
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		t.Fatal("no lines")
	}
	return records
}

// get returns the body of a response.
func get(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPage requests the page of a crawl while it runs, and interrupts the crawl. An open stream of events must
// not delay the end of the program.
func TestPage(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	crawl := start(t, web.Command(t, "-http=:0", "http://slow.test/", "http://shop.test/"))
	at := crawl.waitFor(`^Watch the crawl at (http://127\.0\.0\.1:\d+/)$`)[1]
	crawl.waitFor(`denied   http://shop\.test/cart`)
	wantMatches(t, "the page", get(t, at), `<html`)
	wantMatches(t, "the state", get(t, at+"state.json"), `"host":"slow\.test"`)
	stream, err := http.Get(at + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	began := time.Now()
	crawl.cmd.Process.Signal(os.Interrupt)
	if status, _ := crawl.end(); status != 1 || time.Since(began) > 5*time.Second {
		t.Errorf("status %d after %v", status, time.Since(began))
	}
}

// TestPageAfterTheCrawl checks that the page is served after the crawl has ended, until Ctrl-C.
func TestPageAfterTheCrawl(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{"a.test": robotstest.Pages(2, "")})
	crawl := start(t, web.Command(t, "-http=:0", "-delay=1ms", "http://a.test/1"))
	at := crawl.waitFor(`^The crawl has ended\. Its page is still at (http://127\.0\.0\.1:\d+/) until Ctrl-C, and its report at http://.*/report\.html$`)[1]
	wantMatches(t, "the report", get(t, at+"report.html"), `All pages were done\. *</b> No page was left\.`, `a\.test`)
	crawl.cmd.Process.Signal(os.Interrupt)
	status, stdout := crawl.end()
	if status != 0 {
		t.Errorf("status %d", status)
	}
	wantMatches(t, "stdout", stdout, `a\.test`)
}

// An addressed is a listener that reports another address than its own.
type addressed struct {
	net.Listener
	addr net.TCPAddr
}

func (l addressed) Addr() net.Addr { return &l.addr }

// TestPublicPage checks that the program warns of a page that is not on loopback.
func TestPublicPage(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{
		"127.0.0.1": "Watch the crawl at http://127.0.0.1:8090/\n",
		"::1":       "Watch the crawl at http://[::1]:8090/\n",
		"::": "Watch the crawl at http://localhost:8090/\n" +
			"Warning: everyone who can reach [::]:8090 can see every URL of this crawl. Use -http :8090 to serve the page on loopback only.\n",
		"192.0.2.1": "Watch the crawl at http://192.0.2.1:8090/\n" +
			"Warning: everyone who can reach 192.0.2.1:8090 can see every URL of this crawl. Use -http :8090 to serve the page on loopback only.\n",
	} {
		l, err := cli.Listen(":0")
		if err != nil {
			t.Fatal(err)
		}
		if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("it listens at %v", l.Addr())
		}
		var out bytes.Buffer
		servePage(addressed{l, net.TCPAddr{IP: net.ParseIP(ip), Port: 8090}}, nil, newProgress(&out)).stop()
		if out.String() != want {
			t.Errorf("%s: %s, want %s", ip, out.String(), want)
		}
	}
}

// TestReportLost checks that the program fails if the report cannot be written.
func TestReportLost(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full:", err)
	}
	defer full.Close()
	web := tooltest.New(t, robotstest.Sites{"a.test": {"/": ""}})
	for _, args := range [][]string{{}, {"-json"}} {
		var stderr bytes.Buffer
		cmd := web.Command(t, append(args, "http://a.test/")...)
		cmd.Stdout = full
		cmd.Stderr = &stderr
		cmd.Run()
		if !strings.HasSuffix(stderr.String(), "\ncollyrobots crawl: write /dev/stdout: no space left on device\n") || cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%q: %v\n%s", args, cmd.ProcessState, stderr.String())
		}
	}
}

// TestLive checks the display on a terminal while pages are waiting, and the report after Ctrl-C.
func TestLive(t *testing.T) {
	t.Parallel()
	terminal := tooltest.NewTerminal(t)
	web := tooltest.New(t, someSites())
	terminal.Start(web.Command(t, "-http=:0", "http://slow.test/", "http://slow.test/2", "http://shop.test/"), 100, 30)
	terminal.WaitFor(`(?m)^Watch the crawl at .*\n\d+s  2 pages, 1 denied, 1 failed\n` +
		`2 pages waiting for slow\.test, next in 5\ds, about 1m5\ds left \(Crawl-delay: 60, line 3\)\n(200|denied|failed)  .*\n`)
	terminal.Keys("C-c")
	screen := terminal.WaitFor(`exit 1`)
	wantMatches(t, "the screen", screen, `\n  slow\.test +0 +0 +1m +1m `, `\n  http://shop\.test/cart  line 2: Disallow: /cart\n`, `\nInterrupted`)
	if strings.Contains(screen, "waiting for") {
		t.Errorf("the display was not removed:\n%s", screen)
	}
}

// TestNarrow checks that no line is too long for a terminal of 50 columns.
func TestNarrow(t *testing.T) {
	t.Parallel()
	terminal := tooltest.NewTerminal(t)
	web := tooltest.New(t, someSites())
	terminal.Start(web.Command(t, "-cache", t.TempDir(), "http://slow.test/", "http://slow.test/2", "http://shop.test/"), 50, 40)
	terminal.WaitFor(`(?m)^2 pages waiting for slow\.test, next in 5\ds,\n  about 1m5\ds left \(Crawl-delay: 60, line 3\)\n(200|denied|failed)  `)
	terminal.Keys("C-c")
	screen := terminal.WaitFor(`exit 1`)
	for line := range strings.Lines(screen) {
		if n := len([]rune(strings.TrimRight(line, " \n"))); n > 50 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	wantMatches(t, "the screen", screen, `\n  slow\.test +0 +0 +1m +\ds old\n`, `\n  http://shop\.test/cart\n?  +line 2: Disallow: /cart\n`)
}

// TestHostileText checks that control characters and passwords from sites and from the command line
// are not printed, and that no colours are sent.
func TestHostileText(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\x7f"
	web := tooltest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /" + evil + "\nDisallow: /no" + evil + "\nDisallow: /*secrets\nSitemap: http://joe:secret@a.test/" + evil + "\n",
		"/": robotstest.Page("/"+url.PathEscape(evil), "/no"+evil, "/gone"+evil, "http://joe:secret@a.test/secrets?"+evil,
			"http://joe:secret@a.test/gone?"+url.QueryEscape(evil)),
	}})
	for _, args := range [][]string{{}, {"-json"}} {
		status, stdout, stderr := web.Run(t, "", append(args, "-delay=1ms", "http://joe:secret@a.test/?"+url.QueryEscape(evil), "http://a.test/")...)
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || strings.Contains(stdout+stderr, "secret@") {
			t.Errorf("%v: %q %q", args, stdout, stderr)
		}
		if status != 1 || !strings.Contains(stdout, "joe:xxxxx@a.test/gone") || !strings.Contains(stdout, `[2J`) {
			t.Errorf("%v: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
}
