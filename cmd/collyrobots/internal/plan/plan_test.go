package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { tooltest.MainOf(m, "../..", "plan") }

// listing returns a sitemap of n pages of a host.
func listing(host string, n int, day string) string {
	var locs []string
	for i := range n {
		locs = append(locs, strings.TrimLeft(fmt.Sprintf("%s http://%s/%d", day, host, i), " "))
	}
	return robotstest.Sitemap(locs...)
}

func someSites() robotstest.Sites {
	recently := time.Now().AddDate(0, 0, -2).Format(time.DateOnly)
	return robotstest.Sites{
		"slow.test": {
			"/robots.txt": "User-agent: *\nDisallow: /1\nCrawl-delay: 1.5\nSitemap: http://slow.test/map.xml\n",
			"/map.xml":    listing("slow.test", 1200, "2020-01-01"),
		},
		"shop.test": {
			"/robots.txt":  "User-agent: *\nDisallow: /*0$\n",
			"/sitemap.xml": listing("shop.test", 300, recently),
		},
		"bare.test":   {"/robots.txt": "User-agent: *\nDisallow: /x\n"},
		"closed.test": {"/robots.txt": "User-agent: *\nDisallow: /\n"},
		"busy.test":   {"/robots.txt": 503},
	}
}

// TestPlan checks the plan for sites with long delays, without sitemaps, and without a response.
func TestPlan(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	status, out, progress := web.Run(t, "", "slow.test", "shop.test", "bare.test", "closed.test", "busy.test", "gone.test")
	t.Log("\n" + out)
	if status != 0 {
		t.Errorf("status %d\n%s", status, progress)
	}
	for _, want := range []string{
		`^The crawl takes at least 22m14s for 1,159 known pages if all 6 hosts are crawled at once; the pages of 3 hosts are not known\.\nChecked 6 hosts in .*, 2 without a response\. Planned crawl: ExampleBot/1\.0, dialect rfc9309, at least 250ms between`,
		`\n  slow\.test +1,200 +311 +889 +1\.5s +3 +22m14s\n`,
		`\n  shop\.test +300 +30 +270 +250ms +- +1m8s\n`,
		`\n  bare\.test +0 +0 +- +250ms +- +- +no sitemap\n`,
		`\n  closed\.test +0 +0 +- +250ms +- +- +start page denied: line 2: Disallow: /; no sitemap\n`,
		`\n  busy\.test +- +- +- +- +- +- +unreachable: .*503 through the proxy 127\.0\.0\.1:\d+\n`,
		`\n  gone\.test +- +- +- +- +- +- +unreachable: `,
		`\n  crawl +1 at once +2 at once +5 at once +all 6\n  as planned +≥23m21s +≥22m14s +≥22m14s +≥22m14s\n`,
		`\n  only pages changed in the last 7 days \(Feed\.Since\) +≥1m8s +≥1m8s`,
		`\n  at most 100 pages per host \(MaxPagesPerHost\) +≥2m55s +≥2m30s +≥2m30s +≥2m30s\n`,
		`\n  delays of at most 1s \(ask the owners\) +≥15m57s +≥14m49s`,
		`\n  slow\.test: ask the owner for a shorter delay than 1\.5s \(line 3 of its robots\.txt\): with 1s per page it takes 14m49s instead of 22m14s\.\n`,
		`\n  slow\.test takes 22m14s: 889 pages, with a delay of 1\.5s \(line 3 of its robots\.txt\)\.\n`,
		`\n  Without slow\.test, all hosts in parallel take at least 1m8s\.\n`,
		`\n  closed\.test: robots\.txt denies the start page, and no sitemap lists an allowed page; ask the owner`,
		`\n  busy\.test and gone\.test: no response; try again later`,
		`\n  bare\.test: no sitemap lists pages`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the plan does not match %s", want)
		}
	}
	if n := strings.Count(progress, "\n"); n != 6 || !regexp.MustCompile(`(?m)^\d of 6  shop\.test  270 pages, 1m8s$`).MatchString(progress) {
		t.Errorf("progress:\n%s", progress)
	}
	wantPolite(t, web)
}

// wantPolite checks that only robots.txt and sitemaps were requested, each once, and that the
// delays were kept.
func wantPolite(t *testing.T, web *tooltest.World) {
	t.Helper()
	robotstest.Verify(t, web.Web, dialect.RFC9309())
	requests := make(map[string]int)
	for _, r := range web.Log("") {
		requests[r.Host+r.URI]++
		if r.URI != "/robots.txt" && !strings.Contains(r.URI, "map") {
			t.Errorf("request for %s%s", r.Host, r.URI)
		}
	}
	for what, n := range requests {
		if n > 1 {
			t.Errorf("%d requests for %s, want 1", n, what)
		}
	}
}

// TestNarrow checks that no line is too long for a terminal of 50 columns.
func TestNarrow(t *testing.T) {
	t.Parallel()
	tmux := tooltest.NewTerminal(t)
	web := tooltest.New(t, someSites())
	screen := tmux.Run(web.Command(t, "slow.test", "shop.test", "a-host-with-a-long-name.example.test"), 50, 60)
	t.Log("\n" + screen)
	for line := range strings.Lines(screen) {
		if n := len([]rune(strings.TrimRight(line, " \n"))); n > 50 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{`  slow\.test +889 +1\.5s +22m14s\n`, `  a-host-?[^ ]*… `, `  as planned +≥23m21s +≥22m14s`, `exit 0`} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("the screen does not match %s", want)
		}
	}
	if strings.Contains(screen, "checking") {
		t.Error("the progress was not removed")
	}
}

// TestLive checks the progress on a terminal, and the plan after Ctrl-C.
func TestLive(t *testing.T) {
	t.Parallel()
	tmux := tooltest.NewTerminal(t)
	sites := someSites()
	sites["stuck.test"] = robotstest.Site{"/robots.txt": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
	web := tooltest.New(t, sites)
	tmux.Start(web.Command(t, "shop.test", "stuck.test"), 70, 30)
	tmux.WaitFor(`1 of 2 hosts checked, 300 pages listed\nchecking stuck\.test for`)
	tmux.Keys("C-c")
	screen := tmux.WaitFor(`exit 1`)
	for _, want := range []string{`Interrupted: the plan covers only`, `  shop\.test .* 1m8s`, `  stuck\.test .*interrupted`, `plan: interrupted after 1 of 2 hosts`} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("the screen does not match %s:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "checking") {
		t.Errorf("the progress was not removed:\n%s", screen)
	}
}

// TestJSON checks the JSON of a plan.
func TestJSON(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	status, out, _ := web.Run(t, "", "-json", "-max=500", "-delay=100ms", "-agent=NamedBot/2.0", "slow.test", "shop.test", "gone.test")
	if !strings.Contains(out, `"min_delay": 0.1,`) || !strings.Contains(out, `"delay": 1.5,`) {
		t.Errorf("got %s, want delays of 0.1 and 1.5 seconds", out)
	}
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || status != 0 {
		t.Fatal(status, err, out)
	}
	if p.Agent != "NamedBot/2.0" || p.Dialect != "rfc9309" || p.Max != 500 || len(p.Hosts) != 3 || len(p.Schedules) == 0 {
		t.Fatalf("got %+v", p)
	}
	const second = term.Seconds(time.Second)
	wantHosts := []host{
		{
			Host: "slow.test", URL: "http://slow.test/", Robots: "http://slow.test/robots.txt", Status: 200, Allowed: true, Reason: "no rule matches",
			Listed: 1200, Denied: 311, Old: 889, Pages: 500, Delay: second * 3 / 2, Asked: true, Line: 3, Time: 750 * second,
		},
		{
			Host: "shop.test", URL: "http://shop.test/", Robots: "http://shop.test/robots.txt", Status: 200, Allowed: true, Reason: "no rule matches",
			Listed: 300, Denied: 30, Pages: 270, Delay: second / 10, Time: 27 * second,
		},
	}
	for i, want := range wantHosts {
		if *p.Hosts[i] != want {
			t.Errorf("got %+v, want %+v", *p.Hosts[i], want)
		}
	}
	if h := p.Hosts[2]; h.Error == "" || h.Host != "gone.test" {
		t.Errorf("got %+v, want gone.test with an error", h)
	}
	want := []total{{SideBySide: 1, Time: 777 * second}, {SideBySide: 2, Time: 750 * second}, {SideBySide: 3, Time: 750 * second}}
	if got := p.Schedules[0].Totals; !slices.Equal(got, want) {
		t.Errorf("got the totals %+v, want %+v", got, want)
	}
}

// TestManyHosts checks the plan for 500 hosts from a file that has one of them twice. Half of the hosts do
// not exist.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	sites := make(robotstest.Sites)
	file := "# hosts to plan\n\nh001.test\nHTTP://H001.TEST/page\n"
	for i := range 500 {
		name := fmt.Sprintf("h%03d.test", i)
		file += "http://" + name + "/\n"
		if i%2 == 0 {
			sites[name] = robotstest.Site{"/robots.txt": "User-agent: *\nDisallow: /0\n", "/sitemap.xml": listing(name, 1+i/10, "")}
		}
	}
	web := tooltest.New(t, sites)
	status, out, _ := web.Run(t, file, "-from=-", "-delay=20ms", "-rows=10")
	if status != 0 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		"Checked 500 hosts in .*, 250 without a response", `\n  h498\.test +50 +1 +49 +20ms`, `\n  h001\.test .*unreachable`, `\n  480 more hosts; -rows 0 shows all\n`,
		`\n  crawl +1 at once +2 at once +5 at once +10 at once +20 at once +all 500\n`, `h001\.test and 249 more hosts: no response`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the plan does not match %s:\n%s", want, out)
		}
	}
	if !strings.Contains(out, "  as planned") || strings.Count(out, "\n") > 60 {
		t.Errorf("the plan is longer than a page:\n%s", out)
	}
	wantPolite(t, web)
}

// TestInterrupted checks the plan after SIGTERM.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	sites := someSites()
	reached := make(chan struct{}, 1)
	sites["stuck.test"] = robotstest.Site{
		"/robots.txt": "User-agent: *\nSitemap: http://stuck.test/map1\nSitemap: http://stuck.test/map2\n",
		"/map1":       listing("stuck.test", 2000, ""),
		"/map2": func(_ http.ResponseWriter, r *http.Request) {
			reached <- struct{}{}
			<-r.Context().Done()
		},
	}
	web := tooltest.New(t, sites)
	cmd := web.Command(t, "-parallel=1", "shop.test", "stuck.test", "slow.test")
	var out, stderr bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-reached
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v\n%s", cmd.ProcessState, stderr.String())
	}
	for _, want := range []string{
		`Interrupted: the plan covers only`, `\n  shop\.test +300 +30 +270 `,
		`\n  stuck\.test +[\d,]+ +0 +(≥[\d,]+|\?) .*interrupted before all`, `\n  slow\.test .*interrupted before it was checked\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the plan does not match %s:\n%s", want, out.String())
		}
	}
}

// TestUnread checks the plan for hosts whose sitemaps cannot be read within the time limit, or at
// all.
func TestUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, robotstest.Sites{
			"slow.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 120\nSitemap: http://slow.test/map.xml\n", "/map.xml": listing("slow.test", 5, "")},
			"long.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 0.6\nSitemap: /map1\nSitemap: /map2\nSitemap: /map3\n",
				"/map1": listing("long.test", 3, ""), "/map2": listing("long.test", 5, ""), "/map3": listing("long.test", 7, "")},
			"broken.test": {"/robots.txt": "Sitemap: /map.xml\nSitemap: /a\nSitemap: /b", "/map.xml": listing("broken.test", 1, ""), "/a": "<html>", "/b": 500},
			"mute.test":   {"/robots.txt": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		})
		j, err := parse([]string{"-look=1s", "http://slow.test", "http://long.test", "http://broken.test/page", "http://mute.test"}, nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		j.transport = web.Transport()
		p, err := j.plan(t.Context(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.write(&out, j); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`  slow\.test +0 +0 +\? +2m +2 +\? +sitemaps not read: the next request may start only 2m0s after robots\.txt, but -look is 1s\n`,
			`  long\.test +3 +0 +≥3 +600ms +2 +≥1\.8s +not all sitemaps were read within 1s`,
			`  broken\.test +1 +0 +1 .* 2 errors in sitemaps: .*broken\.test/a.*not a sitemap\n`,
			`  mute\.test .* no response within 1s\n`,
			`  slow\.test: with its delay of 2m \(line 2 of its robots\.txt\), 1,000 pages take 33h20m`,
			`slow\.test and long\.test: not all pages were counted; use a longer -look`,
		} {
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("the plan does not match %s:\n%s", want, out.String())
			}
		}
	})
}

// TestWWW checks that the pages of a site are counted that redirects to its host with www., and
// that the rules of that host apply.
func TestWWW(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{
		"a.test":     {"/robots.txt": robotstest.Redirect("http://www.a.test/robots.txt"), "/sitemap.xml": listing("www.a.test", 20, "")},
		"www.a.test": {"/robots.txt": "User-agent: *\nDisallow: /1\n"},
	})
	if _, out, _ := web.Run(t, "", "http://a.test"); !regexp.MustCompile(`\n  a\.test +20 +11 +9 +250ms `).MatchString(out) {
		t.Error(out)
	}
}

// TestArguments checks that each mistake on the command line is reported on one line, with exit
// status 2.
func TestArguments(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("# nothing\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		want string
		args []string
	}{
		{"no URL given", nil},
		{"/does/not/exist", []string{"-from=/does/not/exist"}},
		{"is a directory", []string{"-from=/"}},
		{"no URL given", []string{"-from", empty}},
		{`"what is this?" is not a host`, []string{"-from=-"}},
		{`unknown name "bing", want one of [rfc9309 google`, []string{"-dialect=bing", "a.test"}},
		{"-look 1ms is less than 1s", []string{"-look=1ms", "a.test"}},
		{"-parallel 0 is less than 1", []string{"-parallel=0", "a.test"}},
		{"-delay 0s is less than 1ms", []string{"-delay=0", "a.test"}},
		{"MaxPagesPerHost: -1 is negative", []string{"-max=-1", "a.test"}},
		{"Jitter: -1 is not between 0 and 1", []string{"-jitter=-1", "a.test"}},
		{"Jitter: NaN is not between 0 and 1", []string{"-jitter=NaN", "a.test"}},
		{"MaxRate: -1 is negative or not a number", []string{"-max-rate=-1", "a.test"}},
		{"-rows -1 is negative", []string{"-rows=-1", "a.test"}},
		{`-pace-by: use host, domain or address`, []string{"-pace-by=server", "a.test"}},
		{`-hours 22:00: want a window such as 22:00-06:00`, []string{"-hours=22:00", "a.test"}},
		{`CrawlHours: "25:00" is not a time of day`, []string{"-hours=22:00-25:00", "a.test"}},
		{`-fast`, []string{"-fast", "a.test"}},
		{"-max: flags must come before the arguments", []string{"a.test", "-max", "7"}},
		{`"ftp://a.test/" is not a host`, []string{"ftp://a.test/"}},
		{`"a\x1b[1m" is not a host`, []string{"a\x1b[1m"}},
		{`"http://xxxxx@a.test:x/" is not a host`, []string{"http://joe:secret@a.test:x/"}},
	} {
		var stdout, stderr strings.Builder
		status := Run(t.Context(), test.args, strings.NewReader("\nwhat is this?\n"), &stdout, &stderr)
		errs := stderr.String()
		if status != 2 || stdout.Len() > 0 || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "collyrobots plan: ") || !strings.Contains(errs, test.want) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.args, status, stdout.String(), errs)
		}
	}
}

// TestHostileText checks that control characters and passwords from sites, a file and the command
// line are not printed.
func TestHostileText(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\x7f"
	web := tooltest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nUser-agent: Example" + evil + "\nDisallow: /" + evil + "\nDisallow: /*" + evil + "\nDisallow: /\n" +
			"Sitemap: http://joe:secret@a.test/" + evil + "\n",
		"/sitemap.xml": "<urlset><url><loc>" + evil + "</loc></url></urlset>",
	}})
	for _, args := range [][]string{{}, {"-json"}} {
		_, stdout, stderr := web.Run(t, "http://joe:secret@a.test/"+url.PathEscape(evil)+"\n", append(args, "-from=-", "-agent=Example/1")...)
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || strings.Contains(stdout+stderr, "secret") || !strings.Contains(stdout, "a.test") {
			t.Errorf("%v: %q %q", args, stdout, stderr)
		}
	}
}

// TestHours checks a plan for a crawl that runs only at some hours, which begin three hours after
// the plan.
func TestHours(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, someSites())
	now := time.Now().UTC()
	window := now.Add(3*time.Hour).Format("15:04") + "-" + now.Add(5*time.Hour).Format("15:04")
	status, out, progress := web.Run(t, "", "-json", "-hours", window, "-zone", "UTC", "slow.test", "shop.test")
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s", status, err, progress)
	}
	if p.Hours != window+" UTC" {
		t.Errorf("hours %q", p.Hours)
	}
	for i, work := range []time.Duration{889 * 1500 * time.Millisecond, 270 * 250 * time.Millisecond} {
		wait := time.Duration(p.Hosts[i].Time) - work
		if wait < 2*time.Hour+55*time.Minute || wait > 3*time.Hour {
			t.Errorf("%s takes %v, want about three hours more than %v", p.Hosts[i].Host, time.Duration(p.Hosts[i].Time), work)
		}
	}
	wait := time.Duration(p.Schedules[0].Totals[0].Time) - 889*1500*time.Millisecond - 270*250*time.Millisecond
	if wait < 2*time.Hour+55*time.Minute || wait > 3*time.Hour {
		t.Errorf("one after the other, the hosts wait for %v, want about three hours", wait)
	}
}

// TestGroups checks a plan for hosts that share one pace: the longest delay applies to all of them,
// and they are crawled one after the other.
func TestGroups(t *testing.T) {
	t.Parallel()
	sites := robotstest.Sites{
		"one.shop.test":   {"/robots.txt": "User-agent: *\nCrawl-delay: 1\n", "/sitemap.xml": listing("one.shop.test", 100, "")},
		"two.shop.test":   {"/robots.txt": 404, "/sitemap.xml": listing("two.shop.test", 20, "")},
		"alone.test":      {"/robots.txt": 404, "/sitemap.xml": listing("alone.test", 40, "")},
		"three.shop.test": {"/robots.txt": 503},
	}
	web := tooltest.New(t, sites)
	hosts := []string{"one.shop.test", "two.shop.test", "alone.test", "three.shop.test"}
	status, out, progress := web.Run(t, "", append([]string{"-pace-by", "domain"}, hosts...)...)
	t.Log("\n" + out)
	if status != 0 {
		t.Errorf("status %d\n%s", status, progress)
	}
	for _, want := range []string{
		`\n  one\.shop\.test +100 +0 +100 +1s +2 +1m40s +shares its pace with 1 other host \(shop\.test\): 2m together\n`,
		`\n  two\.shop\.test +20 +0 +20 +1s +2 +20s +shares its pace with 1 other host \(shop\.test\): 2m together\n`,
		`\n  alone\.test +40 +0 +40 +250ms +- +10s *\n`,
		`\n  as planned +≥2m10s +≥2m +≥2m\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the plan does not match %s", want)
		}
	}
	wantPolite(t, web)
	_, out, _ = web.Run(t, "", append([]string{"-json", "-pace-by", "host"}, hosts...)...)
	var p plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Hosts[0].Group != "" || time.Duration(p.Hosts[1].Delay) != 250*time.Millisecond {
		t.Errorf("by host: %v\n%s", err, out)
	}
}
