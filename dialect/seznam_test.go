package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// The texts that the facts below come from: Seznam's help, pages "Crawling control" (January 2025)
// and "Robots.txt", and the standard of 1994, which they name for the syntax.
const (
	crawlingPage = "Crawling control: "
	robotsPage   = "Robots.txt: "
	standard     = "1994: "
)

// seznamReadings are facts about Seznam. The readings that it shares with other dialects are in
// readings.
var seznamReadings = []reading{
	// Groups and names.
	{crawlingPage + "SeznamBot can be kept from a whole site", "seznam", "User-agent: SeznamBot|Disallow: /", "SeznamBot", "", "/ /a /robots.txt"},
	{robotsPage + "a file has a block for each robot", "seznam", "User-agent: SeznamBot|Disallow: /admin||User-agent: psbot|Disallow: /obrazky", "SeznamBot", "/obrazky", "/admin /admin/a"},
	{robotsPage + "a block of another robot does not apply", "seznam", "User-agent: psbot|Disallow: /obrazky", "SeznamBot", "/obrazky", ""},
	{robotsPage + "* names all robots", "seznam", "User-agent: *|Disallow: /a", "SeznamBot", "/b", "/a"},
	{robotsPage + "a block may name the robot by its User-Agent header", "seznam", "User-agent: Mozilla/5.0 (compatible; SeznamBot/4.0; +https://o-seznam.cz/napoveda/)|Disallow: /a", "SeznamBot", "/b", "/a"},
	{robotsPage + "the version of the header is ignored", "seznam", "User-agent: SeznamBot/3.2|Disallow: /a", "SeznamBot/4.0", "/b", "/a"},
	{robotsPage + "each line after the User-agent lines is a rule of the block", "seznam", "User-agent: SeznamBot|Request-rate: 1/5|User-agent: *|Disallow: /a", "SeznamBot", "/a", ""},
	{robotsPage + "Crawl-delay is also such a line", "seznam", "User-agent: SeznamBot|Crawl-delay: 5|User-agent: *|Disallow: /a", "SeznamBot", "/a", ""},
	{robotsPage + "Visit-time is also such a line", "seznam", "User-agent: SeznamBot|Visit-time: 0000-0100|User-agent: *|Disallow: /a", "SeznamBot", "/a", ""},
	{standard + "a blank line ends a record", "seznam", "User-agent: SeznamBot|Disallow: /a||Disallow: /b", "SeznamBot", "/b", "/a"},
	{standard + "a blank line after the User-agent line ends a record", "seznam", "User-agent: SeznamBot||Disallow: /b", "SeznamBot", "/b", ""},
	{standard + "a record without a rule is ignored", "seznam", "User-agent: SeznamBot||User-agent: *|Disallow: /b", "SeznamBot", "/a", "/b"},
	{standard + "a comment does not end a record", "seznam", "User-agent: SeznamBot|# x|Disallow: /a| # y|Disallow: /b", "SeznamBot", "/c", "/a /b"},
	{standard + "a record may name several robots", "seznam", "User-agent: psbot|User-agent: SeznamBot|Disallow: /a", "SeznamBot", "/b", "/a"},
	{standard + "a User-agent line after a rule begins a record", "seznam", "User-agent: SeznamBot|Disallow: /a|User-agent: psbot|Disallow: /b", "SeznamBot", "/b", "/a"},
	{standard + "the name is compared as a part, ignoring case", "seznam", "User-agent: seznam|Disallow: /a", "SeznamBot", "/b", "/a"},
	{standard + "a longer name does not match", "seznam", "User-agent: SeznamBotImages|Disallow: /a", "SeznamBot", "/a", ""},
	{standard + "all records that name the robot apply", "seznam", "User-agent: Seznam|Disallow: /a||User-agent: SeznamBot|Disallow: /b", "SeznamBot", "/c", "/a /b"},
	{standard + "* is for the robots that no record names", "seznam", "User-agent: *|Disallow: /||User-agent: SeznamBot|Disallow: /a", "SeznamBot", "/b", "/a"},
	{standard + "a rule outside of a record is ignored", "seznam", "Disallow: /a||User-agent: *|Disallow: /b", "SeznamBot", "/a", "/b"},
	{standard + "a rule after a blank line belongs to no record", "seznam", "User-agent: *|Disallow: /a||Allow: /a/b|Disallow: /c", "SeznamBot", "/c", "/a /a/b"},
	{standard + "unknown lines are ignored", "seznam", "User-agent: *|Noindex: /b|Disallow: /a", "SeznamBot", "/b", "/a"},
	{standard + "an empty file restricts nothing", "seznam", "", "SeznamBot", "/ /a", ""},

	// Rules.
	{crawlingPage + "an empty Disallow does not apply at all", "seznam", "User-agent: *|Disallow:", "SeznamBot", "/ /a", ""},
	{crawlingPage + "an empty Disallow does not override another rule", "seznam", "User-agent: *|Disallow:|Disallow: /a", "SeznamBot", "/b", "/a"},
	{crawlingPage + "an empty Allow does not apply at all", "seznam", "User-agent: *|Allow:|Disallow: /", "SeznamBot", "", "/ /a"},
	{crawlingPage + "Disallow: / denies everything", "seznam", "User-agent: *|Disallow: /", "SeznamBot", "", "/ /a"},
	{crawlingPage + "a rule is the beginning of the address", "seznam", "User-agent: *|Disallow: /archive/|Disallow: /abc", "SeznamBot", "/archive /ab", "/archive/ /archive/a /abc /abcd /abc/d"},
	{crawlingPage + "Allow permits a directory of a site that is denied", "seznam", "User-agent: *|Disallow: /|Allow: /A/", "SeznamBot", "/A/ /A/a", "/ /A /B"},
	{crawlingPage + "Disallow denies a part of a directory that is allowed", "seznam", "User-agent: *|Disallow: /|Allow: /A/|Disallow: /A/B/", "SeznamBot", "/A/ /A/a", "/ /A/B/ /A/B/c"},
	{crawlingPage + "the order of the rules does not matter", "seznam", "User-agent: *|Disallow: /A/B/|Allow: /A/|Disallow: /", "SeznamBot", "/A/ /A/a", "/ /A/B/ /A/B/c"},
	{crawlingPage + "an Allow alone is a rule", "seznam", "User-agent: SeznamBot|Allow: /a||User-agent: *|Disallow: /", "SeznamBot", "/a /b", ""},
	{crawlingPage + "a Disallow of a directory denies what is below it", "seznam", "User-agent: SeznamBot|Disallow: /discussion/", "SeznamBot", "/discussion", "/discussion/ /discussion/a"},
	{crawlingPage + "addresses are case-sensitive", "seznam", "User-agent: *|Disallow: /Archive", "SeznamBot", "/archive", "/Archive"},
	{robotsPage + "* replaces any string", "seznam", "User-agent: SeznamBot|Disallow: *.pdf$", "SeznamBot", "/a.pdf? /a.pdf1", "/a.pdf /b/c.pdf"},
	{robotsPage + "* may occur several times", "seznam", "User-agent: SeznamBot|Disallow: /a*b*c", "SeznamBot", "/ab", "/abc /a1b2c3"},
	{robotsPage + "$ is the end of the address", "seznam", "User-agent: SeznamBot|Disallow: /*/discussion/$", "SeznamBot", "/a/discussion/b /discussion/", "/a/discussion/"},
	{robotsPage + "$ after a literal path", "seznam", "User-agent: SeznamBot|Disallow: /discussion$", "SeznamBot", "/discussion-abc /discussion/", "/discussion"},
	{robotsPage + "the longer rule wins also with wildcards", "seznam", "User-agent: *|Disallow: /*.php|Allow: /index.php", "SeznamBot", "/index.php", "/a.php"},
	{crawlingPage + "an Allow of the same length wins", "seznam", "User-agent: *|Disallow: /a|Allow: /a", "SeznamBot", "/a", ""},
	{crawlingPage + "a rule without a slash never matches", "seznam", "User-agent: *|Disallow: a|Disallow: /b", "SeznamBot", "/a", "/b"},
	{crawlingPage + "/robots.txt is not special", "seznam", "User-agent: *|Disallow: /", "SeznamBot", "", "/robots.txt"},
	{crawlingPage + "a Sitemap in a record that is ignored does not change it", "seznam", "User-agent: SeznamBot|Sitemap: https://a.example/s.xml||User-agent: *|Disallow: /b", "SeznamBot", "/a", "/b"},
}

// TestSeznamSitemaps checks that a Sitemap counts also in a record that is ignored.
func TestSeznamSitemaps(t *testing.T) {
	file := "Sitemap: https://a.example/1\nUser-agent: psbot\nSitemap: https://a.example/2\n\nSitemap: https://a.example/3\n"
	if got := len(dialect.Seznam().Parse([]byte(file)).Sitemaps()); got != 3 {
		t.Errorf("%d sitemaps, want 3", got)
	}
}

// describe returns a schedule as text: the delay and the window of each line.
func describe(s *dialect.Schedule) string {
	if s == nil {
		return "none"
	}
	var parts []string
	for _, r := range s.Rates {
		parts = append(parts, fmt.Sprint(r.Delay, window(r.Window)))
	}
	for _, v := range s.Visits {
		parts = append(parts, "visit"+window(v.Window))
	}
	return strings.Join(parts, " ")
}

func window(w dialect.Window) string {
	if w == (dialect.Window{}) {
		return ""
	}
	clock := func(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }
	return "@" + clock(w.From) + "-" + clock(w.To)
}

// TestRates checks how the values of Request-rate and Visit-time are read.
func TestRates(t *testing.T) {
	for _, test := range []struct{ lines, want string }{
		{"Request-rate: 10/1m", "6s"},
		{"Request-rate: 1/10s", "10s"},
		{"Request-rate: 100/15m", "9s"},
		{"Request-rate: 400/1h", "9s"},
		{"Request-rate: 9000/1d", "9.6s"},
		{"Request-rate: 1/5", "5s"},
		{"Request-rate: 1/1M", "1m0s"},
		{"Request-rate: 300/1m", "200ms"},
		{"Request-rate: 3/1", "333.333334ms"},
		{"Request-rate: 10/1m 0600-1459", "6s@06:00-15:00"},
		{"Request-rate: 10/1m 1500-0559", "6s@15:00-06:00"},
		{"Request-rate: 10/1m\t0600 - 1459", "6s@06:00-15:00"},
		{"Request-rate: 10/1m 0000-2359", "6s"},
		{"Request-rate: 10/1m 0000-2400", "6s"},
		{"Request-rate: 10/1m 0100-0059", "6s"},
		{"Request-rate: 10/1m 0700-0700", "6s@07:00-07:01"},
		{"Request-rate: 10/1m # a comment", "6s"},
		{"REQUEST-RATE:10/1m", "6s"},
		{"Request-rate: 1/99999999999999999999d", "2562047h47m16.854775807s"},
		{"Request-rate: 99999999999/1", "1ns"},
		{"Request-rate: 10", "none"},
		{"Request-rate: 0/1m", "none"},
		{"Request-rate: 1/0", "none"},
		{"Request-rate: 1/m", "none"},
		{"Request-rate: 1/1w", "none"},
		{"Request-rate: -1/5", "none"},
		{"Request-rate: 1.5/5", "none"},
		{"Request-rate: 1 / 5", "none"},
		{"Request-rate: 1/5 600-1459", "none"},
		{"Request-rate: 1/5 0600", "none"},
		{"Request-rate: 1/5 0660-1459", "none"},
		{"Request-rate: 1/5 0600-2401", "none"},
		{"Request-rate: 1/5 2400-0600", "none"},
		{"Request-rate: 1/5 0600-1459 x", "none"},
		{"Request-rate:", "none"},
		{"Request-rate: 10/1m 0600-1459|Request-rate: 1/1s 1500-0559", "6s@06:00-15:00 1s@15:00-06:00"},
		{"Visit-time: 0600-0845", "visit@06:00-08:46"},
		{"Visit-time: 0100 - 0800", "visit@01:00-08:01"},
		{"Visit-time: 2300-0559", "visit@23:00-06:00"},
		{"Visit-time: 0000-2359", "visit"},
		{"Visit-time: morning", "none"},
		{"Visit-time: 06:00-08:45", "none"},
		{"Visit-time: 0600-0845|Request-rate: 1/5|Crawl-delay: 7", "5s visit@06:00-08:46"},
		{strings.Repeat("Request-rate: 1/5|", 69) + "Request-rate: 1/5", strings.TrimSpace(strings.Repeat("5s ", 64))},
	} {
		file := []byte("User-agent: *\n" + strings.ReplaceAll(test.lines, "|", "\n") + "\nDisallow: /x\n")
		for _, d := range dialect.All() {
			want := test.want
			if d == dialect.Temoto() {
				want = "none"
			}
			if got := describe(d.Parse(file).Group("x").WrittenSchedule()); got != want {
				t.Errorf("%s: %s: %s, want %s", d, test.lines, got, want)
			}
		}
	}
}

// TestScheduleOfGroup checks that the lines of all groups of a crawler count, wherever they are in
// these groups, and that only Seznam supports Request-rate.
func TestScheduleOfGroup(t *testing.T) {
	for _, test := range []struct{ file, rfc, seznam string }{
		{"Request-rate: 1/9|User-agent: x|Request-rate: 1/3|Crawl-delay: 1|Visit-time: 0000-0059", "3s visit@00:00-01:00", "3s"},
		{"User-agent: y|Request-rate: 1/3|User-agent: x|Disallow: /", "3s", "none"},
		{"User-agent: x|Disallow: /a|User-agent: y|Request-rate: 1/3", "none", "none"},
		{"User-agent: x|Request-rate: 1/3||User-agent: *|Request-rate: 1/5||User-agent: x|Request-rate: 1/7", "3s 5s 7s", "3s 7s"},
		{"User-agent: *|Request-rate: 1/8|Disallow:|User-agent: x|Disallow:", "none", "none"},
	} {
		file := []byte(strings.ReplaceAll(test.file, "|", "\n"))
		for _, d := range dialect.All() {
			want := "none"
			if d == dialect.Seznam() {
				want = test.seznam
			}
			if got := describe(d.Parse(file).Group("x").Schedule()); got != want {
				t.Errorf("%s: %s: %s, want %s", d, test.file, got, want)
			}
		}
		if got := describe(dialect.RFC9309().Parse(file).Group("x").WrittenSchedule()); got != test.rfc {
			t.Errorf("%s: written %s, want %s", test.file, got, test.rfc)
		}
	}
	group := dialect.Seznam().Parse([]byte("User-agent: Seznam\nCrawl-delay: 3\nRequest-rate: 1/5\nDisallow: /a*b\n")).Group("SeznamBot")
	delay, _ := group.WrittenDelay()
	if s := group.Schedule(); s.Rates[0].Line != 3 || group.Name() != "Seznam" || delay != 3*time.Second || group.DelayLine() != 2 {
		t.Errorf("%+v, group %q, delay %v of line %d", s, group.Name(), delay, group.DelayLine())
	}
}

// TestScheduleAt is a transcript of a schedule with a slow and a fast rate and a Visit-time that
// spans midnight.
func TestScheduleAt(t *testing.T) {
	const file = "User-agent: *\nRequest-rate: 10/1m 0600-1459\nRequest-rate: 1/1s 1500-0559\nRequest-rate: 1/2s\nVisit-time: 2230-1159\n"
	s := dialect.RFC9309().Parse([]byte(file)).Group("x").WrittenSchedule()
	for _, test := range []struct {
		at    string
		delay time.Duration
		line  int
		open  bool
		until string
	}{
		{"00:00:00", 2 * time.Second, 4, true, "06:00:00"},
		{"05:59:59", 2 * time.Second, 4, true, "06:00:00"},
		{"06:00:00", 6 * time.Second, 2, true, "12:00:00"},
		{"11:59:59", 6 * time.Second, 2, true, "12:00:00"},
		{"12:00:00", 6 * time.Second, 2, false, "15:00:00"},
		{"14:59:59", 6 * time.Second, 2, false, "15:00:00"},
		{"15:00:00", 2 * time.Second, 4, false, "22:30:00"},
		{"22:29:59", 2 * time.Second, 4, false, "22:30:00"},
		{"22:30:00", 2 * time.Second, 4, true, "06:00:00"},
		{"23:59:59", 2 * time.Second, 4, true, "06:00:00"},
	} {
		at, err := time.Parse(time.DateTime, "2026-11-22 "+test.at)
		if err != nil {
			t.Fatal(err)
		}
		at = at.In(time.FixedZone("elsewhere", -5*3600))
		rate, open, until := s.At(at)
		if rate.Delay != test.delay || rate.Line != test.line || open != test.open || until.UTC().Format(time.TimeOnly) != test.until || !until.After(at) || until.Sub(at) > 24*time.Hour {
			t.Errorf("%s: %v of line %d, open %v until %v, want %v of %d, %v until %s",
				test.at, rate.Delay, rate.Line, open, until, test.delay, test.line, test.open, test.until)
		}
	}
	if rate, open, until := (&dialect.Schedule{}).At(time.Now()); rate != (dialect.Rate{}) || !open || !until.IsZero() {
		t.Errorf("an empty schedule: %v, %v, %v", rate, open, until)
	}
	always := &dialect.Schedule{Rates: []dialect.Rate{{Delay: time.Second}}}
	if rate, open, until := always.At(time.Now()); rate.Delay != time.Second || !open || !until.IsZero() {
		t.Errorf("a rate for the whole day: %v, %v, %v", rate, open, until)
	}
}

// TestScheduleUntil checks, on random schedules, that nothing changes before the time that At
// returns.
func TestScheduleUntil(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	random := func() dialect.Window {
		return dialect.Window{From: time.Duration(r.IntN(1440)) * time.Minute, To: time.Duration(r.IntN(1441)) * time.Minute}
	}
	for range 300 {
		s := &dialect.Schedule{}
		for range 1 + r.IntN(3) {
			s.Rates = append(s.Rates, dialect.Rate{Delay: time.Duration(1+r.IntN(9)) * time.Second, Window: random()})
		}
		for range r.IntN(3) {
			s.Visits = append(s.Visits, dialect.Visit{Window: random()})
		}
		at := time.Date(2026, 2, 28, 0, r.IntN(1440), 0, 0, time.UTC)
		for range 20 {
			rate, open, until := s.At(at)
			if until.IsZero() {
				break
			}
			for step := at; step.Before(until); step = step.Add(time.Minute) {
				if rate2, open2, _ := s.At(step); rate2.Delay != rate.Delay || open2 != open {
					t.Fatalf("%+v: %v %v at %v, %v %v at %v, before %v", s, rate, open, at, rate2, open2, step, until)
				}
			}
			at = until
		}
	}
}
