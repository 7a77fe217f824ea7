package collectors

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

type options = []collyrobots.Option

// An optionCase has calls of one option.
type optionCase struct {
	valid   collyrobots.Option
	text    string  // the text of valid
	needs   options // what valid needs
	off     options // valid calls with zero values
	invalid options // calls that New reports
	perHost bool    // whether it may be given inside ForHosts
}

// everyOption has a case for each option. Every number and duration is tried with zero, a negative
// value and, if it is a float, NaN and an infinity.
func everyOption(t *testing.T) map[string]optionCase {
	onRequest := func(*colly.Request) {}
	onEvent := func(*collyrobots.Event) {}
	stored := options{collyrobots.Store(store.NewMemory())}
	shared := kit.Shared(t)
	nan, inf := math.NaN(), math.Inf(1)
	return map[string]optionCase{
		"Polite":       {valid: collyrobots.Polite(), text: "Polite()", perHost: true},
		"Dialect":      {valid: collyrobots.Dialect(dialect.Google()), text: "Dialect(google)", perHost: true},
		"ProductToken": {valid: collyrobots.ProductToken("A-B", "A"), text: `ProductToken("A-B", "A")`, invalid: options{collyrobots.ProductToken()}, perHost: true},
		"HonorDelays":  {valid: collyrobots.HonorDelays(true), text: "HonorDelays(true)", off: options{collyrobots.HonorDelays(false)}, perHost: true},
		"IgnoreRobots": {
			valid: kit.IgnoreRobots(), text: "IgnoreRobots(permission of the owner (a contract) until 2100-01-01 00:00 UTC)", perHost: true,
			invalid: options{
				collyrobots.IgnoreRobots(collyrobots.Permission{}),
				collyrobots.IgnoreRobots(collyrobots.Permission{By: " ", Reference: "x", Until: time.Now()}),
				collyrobots.IgnoreRobots(collyrobots.Permission{By: "x", Reference: "a\nb", Until: time.Now()}),
				collyrobots.IgnoreRobots(collyrobots.Permission{By: "x", Reference: strings.Repeat("x", 501), Until: time.Now()}),
				collyrobots.IgnoreRobots(collyrobots.Permission{By: "x", Reference: "\xff", Until: time.Now()}),
				collyrobots.IgnoreRobots(collyrobots.Permission{By: "x", Reference: "y"}),
			},
		},
		"RobotsTxt": {
			valid: collyrobots.RobotsTxt([]byte("secret")), text: "RobotsTxt(...)",
			invalid: options{collyrobots.RobotsTxt(nil)}, perHost: true,
		},
		"WhenUnreachable": {
			valid: collyrobots.WhenUnreachable(collyrobots.DenyAll), text: "WhenUnreachable(deny_all)",
			invalid: options{collyrobots.WhenUnreachable(0), collyrobots.WhenUnreachable(3)}, perHost: true,
		},
		"WhenForbidden": {
			valid: collyrobots.WhenForbidden(collyrobots.AllowAll), text: "WhenForbidden(allow_all)",
			invalid: options{collyrobots.WhenForbidden(0), collyrobots.WhenForbidden(3)}, perHost: true,
		},
		"MinDelay": {
			valid: collyrobots.MinDelay(time.Second), text: "MinDelay(1s)",
			off: options{collyrobots.MinDelay(0)}, invalid: options{collyrobots.MinDelay(-1)}, perHost: true,
		},
		"MaxCrawlDelay": {
			valid: collyrobots.MaxCrawlDelay(time.Second), text: "MaxCrawlDelay(1s)",
			off: options{collyrobots.MaxCrawlDelay(0)}, invalid: options{collyrobots.MaxCrawlDelay(-1)}, perHost: true,
		},
		"SkipCrawlDelayAbove": {
			valid: collyrobots.SkipCrawlDelayAbove(time.Second), text: "SkipCrawlDelayAbove(1s)",
			off: options{collyrobots.SkipCrawlDelayAbove(0)}, invalid: options{collyrobots.SkipCrawlDelayAbove(-1)}, perHost: true,
		},
		"Jitter": {
			valid: collyrobots.Jitter(0.25), text: "Jitter(0.25)", off: options{collyrobots.Jitter(0)},
			invalid: options{collyrobots.Jitter(-1), collyrobots.Jitter(nan), collyrobots.Jitter(inf)}, perHost: true,
		},
		"AdaptiveDelay": {
			valid: collyrobots.AdaptiveDelay(1.5), text: "AdaptiveDelay(1.5)", off: options{collyrobots.AdaptiveDelay(0)},
			invalid: options{collyrobots.AdaptiveDelay(-1), collyrobots.AdaptiveDelay(nan), collyrobots.AdaptiveDelay(inf)}, perHost: true,
		},
		"DelayFromEnd": {valid: collyrobots.DelayFromEnd(true), text: "DelayFromEnd(true)", off: options{collyrobots.DelayFromEnd(false)}, perHost: true},
		"MaxInFlightPerHost": {
			valid: collyrobots.MaxInFlightPerHost(2), text: "MaxInFlightPerHost(2)",
			off: options{collyrobots.MaxInFlightPerHost(0)}, invalid: options{collyrobots.MaxInFlightPerHost(-1)}, perHost: true,
		},
		"MaxBackOff": {
			valid: collyrobots.MaxBackOff(time.Minute), text: "MaxBackOff(1m0s)",
			off: options{collyrobots.MaxBackOff(0)}, invalid: options{collyrobots.MaxBackOff(-1)}, perHost: true,
		},
		"RetryThrottled": {
			valid: collyrobots.RetryThrottled(2), text: "RetryThrottled(2)",
			off: options{collyrobots.RetryThrottled(0)}, invalid: options{collyrobots.RetryThrottled(-1)}, perHost: true,
		},
		"Retry": {
			valid: collyrobots.Retry(collyrobots.Retries{Max: 2, Statuses: []int{500}, Wait: time.Minute}), text: "Retry(Retries{Max: 2, Statuses: [500], Wait: 1m0s})",
			invalid: options{
				collyrobots.Retry(collyrobots.Retries{Max: -1}), collyrobots.Retry(collyrobots.Retries{Wait: -1}),
				collyrobots.Retry(collyrobots.Retries{Wait: 25 * time.Hour}),
				collyrobots.Retry(collyrobots.Retries{Statuses: []int{500, 200}}),
			},
			perHost: true,
		},
		"CrawlHours": {
			valid: collyrobots.CrawlHours("22:00", "06:00", time.UTC), text: `CrawlHours("22:00", "06:00", UTC)`,
			invalid: options{collyrobots.CrawlHours("22:00", "06:00", nil), collyrobots.CrawlHours("6:00", "6:00", time.UTC), collyrobots.CrawlHours("24:00", "", time.UTC)},
			perHost: true,
		},
		"PaceBy": {
			valid: collyrobots.PaceBy(collyrobots.ByDomain), text: "PaceBy(domain)",
			off: options{collyrobots.PaceBy(collyrobots.ByHost)}, invalid: options{collyrobots.PaceBy(3)}, perHost: true,
		},
		"MaxRate": {
			valid: collyrobots.MaxRate(2.5, 10), text: "MaxRate(2.5, 10)",
			off: options{collyrobots.MaxRate(0, 0), collyrobots.MaxRate(rate.Inf, 0)},
			invalid: options{
				collyrobots.MaxRate(-1, 1), collyrobots.MaxRate(rate.Limit(nan), 1),
				collyrobots.MaxRate(1, 0), collyrobots.MaxRate(1, -1), collyrobots.MaxRate(0, -1),
			},
		},
		"MaxPages": {
			valid: collyrobots.MaxPages(2), text: "MaxPages(2)",
			off: options{collyrobots.MaxPages(0)}, invalid: options{collyrobots.MaxPages(-1)},
		},
		"MaxPagesPerHost": {
			valid: collyrobots.MaxPagesPerHost(2), text: "MaxPagesPerHost(2)",
			off: options{collyrobots.MaxPagesPerHost(0)}, invalid: options{collyrobots.MaxPagesPerHost(-1)}, perHost: true,
		},
		"StopAfterRefusals": {
			valid: collyrobots.StopAfterRefusals(2), text: "StopAfterRefusals(2)",
			off: options{collyrobots.StopAfterRefusals(0)}, invalid: options{collyrobots.StopAfterRefusals(-1)}, perHost: true,
		},
		"Purpose": {
			valid: collyrobots.Purpose(usage.Search, usage.TrainAI), text: "Purpose(search|train-ai)",
			invalid: options{collyrobots.Purpose(), collyrobots.Purpose(128)}, perHost: true,
		},
		"EnforceUsage":    {valid: collyrobots.EnforceUsage(true), text: "EnforceUsage(true)", off: options{collyrobots.EnforceUsage(false)}, needs: options{collyrobots.Purpose(usage.Search)}, perHost: true},
		"TDMRep":          {valid: collyrobots.TDMRep(true), text: "TDMRep(true)", off: options{collyrobots.TDMRep(false)}, perHost: true},
		"EnforceNofollow": {valid: collyrobots.EnforceNofollow(true), text: "EnforceNofollow(true)", off: options{collyrobots.EnforceNofollow(false)}, perHost: true},
		"Revalidate": {
			valid: collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true, OnUnchanged: onRequest}),
			text:  "Revalidate(Revalidation{SkipFresh: true, OnUnchanged: ...})", needs: stored,
			off: options{collyrobots.Revalidate(collyrobots.Revalidation{})}, perHost: true,
		},
		"ForHosts": {
			valid: collyrobots.ForHosts("*.test", collyrobots.MinDelay(time.Second), collyrobots.HonorDelays(true)),
			text:  `ForHosts("*.test", MinDelay(1s), HonorDelays(true))`,
			invalid: options{
				collyrobots.ForHosts(""), collyrobots.ForHosts("http://a.test"), collyrobots.ForHosts("A.test"), collyrobots.ForHosts("["),
				collyrobots.ForHosts("a.test", collyrobots.HostOption{}),
			},
		},
		"HostOptions": {
			valid: collyrobots.HostOptions(func(string) []collyrobots.HostOption { return nil }), text: "HostOptions(...)",
			invalid: options{collyrobots.HostOptions(nil)},
		},
		"FollowSitemaps": {
			valid: collyrobots.FollowSitemaps(collyrobots.Feed{MaxURLs: 5}), text: "FollowSitemaps(...)", off: options{collyrobots.FollowSitemaps(collyrobots.Feed{})},
			invalid: options{collyrobots.FollowSitemaps(collyrobots.Feed{Window: -1}), collyrobots.FollowSitemaps(collyrobots.Feed{MaxURLs: -1})},
		},
		"Frontier": {
			valid: collyrobots.Frontier(kit.NewMemoryStore()), text: "Frontier(*kit.MemoryStore)", invalid: options{collyrobots.Frontier(nil)},
		},
		"Store":        {valid: collyrobots.Store(store.NewMemory()), text: "Store(*store.memory)", invalid: options{collyrobots.Store(nil)}},
		"Shadow":       {valid: collyrobots.Shadow(dialect.Google(), dialect.Yandex()), text: "Shadow(google, yandex)", invalid: options{collyrobots.Shadow()}},
		"DryRun":       {valid: collyrobots.DryRun(true), text: "DryRun(true)", off: options{collyrobots.DryRun(false)}},
		"OnDenied":     {valid: collyrobots.OnDenied(func(*colly.Request, error) {}), text: "OnDenied(...)", invalid: options{collyrobots.OnDenied(nil)}},
		"OnEvent":      {valid: collyrobots.OnEvent(onEvent), text: "OnEvent(...)", invalid: options{collyrobots.OnEvent(nil)}},
		"OnEveryEvent": {valid: collyrobots.OnEveryEvent(onEvent), text: "OnEveryEvent(...)", invalid: options{collyrobots.OnEveryEvent(nil)}},
		"Logger":       {valid: collyrobots.Logger(slog.Default()), text: "Logger(...)", invalid: options{collyrobots.Logger(nil)}},
		"RobotsClient": {valid: collyrobots.RobotsClient(new(http.Client)), text: "RobotsClient(...)", invalid: options{collyrobots.RobotsClient(nil)}},
		"PrivateNetworks": {
			valid: collyrobots.PrivateNetworks(collyrobots.DenyAll), text: "PrivateNetworks(deny_all)",
			invalid: options{collyrobots.PrivateNetworks(0), collyrobots.PrivateNetworks(3)},
		},
		"SharedPace": {valid: collyrobots.SharedPace(shared), text: "SharedPace(*kit.MemoryPacer)", invalid: options{collyrobots.SharedPace(nil)}},
		"ShardByHost": {
			valid: collyrobots.ShardByHost(3, 1), text: "ShardByHost(3, 1)",
			invalid: options{collyrobots.ShardByHost(0, 0), collyrobots.ShardByHost(-1, 0), collyrobots.ShardByHost(3, -1), collyrobots.ShardByHost(3, 3)},
		},
		"SignRequests": {valid: collyrobots.SignRequests(newSigner(t)), text: "SignRequests(...)", invalid: options{collyrobots.SignRequests(nil)}},
	}
}

// forHost returns a ForHosts for a.test. All of opts are HostOptions.
func forHost(opts ...collyrobots.Option) collyrobots.Option {
	inner := make([]collyrobots.HostOption, len(opts))
	for i, o := range opts {
		inner[i] = o.(collyrobots.HostOption)
	}
	return collyrobots.ForHosts("a.test", inner...)
}

// TestEveryOption checks the texts of all options, what they accept, and what ForHosts accepts.
func TestEveryOption(t *testing.T) {
	cases := everyOption(t)
	for _, name := range constructors(t) {
		if _, ok := cases[name]; !ok {
			t.Errorf("everyOption has no case for %s", name)
		}
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := test.valid.String(); got != test.text {
				t.Errorf("the text is %s, want %s", got, test.text)
			}
			for _, o := range append(test.off, test.valid) {
				if err := newError(append(test.needs, o)...); err != nil && name != "RobotsTxt" {
					t.Errorf("%v: %v", o, err)
				}
				if _, ok := o.(collyrobots.HostOption); ok != test.perHost {
					t.Errorf("%v is a HostOption: %v", o, ok)
				}
				if !test.perHost {
					continue
				}
				if err := newError(append(test.needs, forHost(o))...); err != nil {
					t.Errorf("%v inside ForHosts: %v", o, err)
				}
			}
			for _, o := range test.invalid {
				wantFault(t, newError(o), name)
				if test.perHost {
					wantFault(t, newError(forHost(o)), name)
				}
			}
		})
	}
}

// constructors returns the names of the functions of the root package that return an Option.
func constructors(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../../*.go")
	kit.Must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		kit.Must(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() || f.Type.Results == nil {
				continue
			}
			result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
			if ok && (result.Name == "Option" || result.Name == "HostOption") {
				names = append(names, f.Name.Name)
			}
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d options found: %v", len(names), names)
	}
	return names
}

// newSigner returns a Signer.
func newSigner(t *testing.T) *webbotauth.Signer {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	s, err := webbotauth.NewSigner(key, "https://bot.test"+webbotauth.DirectoryPath, webbotauth.Draft)
	kit.Must(t, err)
	return s
}

// newError returns the error of New.
func newError(opts ...collyrobots.Option) error {
	p, err := collyrobots.New(append(opts, collyrobots.Logger(slog.New(slog.DiscardHandler)))...)
	if err == nil {
		p.Close()
	}
	return err
}

// wantFault checks that an error of New has a fault of an option.
func wantFault(t *testing.T, err error, option string) {
	t.Helper()
	isOf := func(f *collyrobots.OptionError) bool { return f.Option == option }
	if !slices.ContainsFunc(kit.FaultsOf(err), isOf) {
		t.Errorf("got %v, want an OptionError of %s", err, option)
	}
}

// TestSwitchedOff crawls a host with an option that is switched off in ForHosts, or by a later
// option. The host must get the same requests as without the option. It must get others with the
// option alone, because the option has an effect on this site.
func TestSwitchedOff(t *testing.T) {
	google := options{collyrobots.Dialect(dialect.Google())}
	trains := options{collyrobots.Purpose(usage.TrainAI)}
	for _, test := range []struct {
		on, off collyrobots.Option
		needs   options
	}{
		{on: collyrobots.MinDelay(20 * time.Second), off: collyrobots.MinDelay(0)},
		{on: collyrobots.MaxCrawlDelay(5 * time.Second), off: collyrobots.MaxCrawlDelay(0)},
		{on: collyrobots.SkipCrawlDelayAbove(5 * time.Second), off: collyrobots.SkipCrawlDelayAbove(0)},
		{on: collyrobots.Jitter(1), off: collyrobots.Jitter(0)},
		{on: collyrobots.AdaptiveDelay(50), off: collyrobots.AdaptiveDelay(0)},
		{on: collyrobots.MaxInFlightPerHost(3), off: collyrobots.MaxInFlightPerHost(0)},
		{on: collyrobots.RetryThrottled(1), off: collyrobots.RetryThrottled(0)},
		{on: collyrobots.StopAfterRefusals(1), off: collyrobots.StopAfterRefusals(0)},
		{on: collyrobots.MaxPagesPerHost(2), off: collyrobots.MaxPagesPerHost(0)},
		{on: collyrobots.HonorDelays(true), off: collyrobots.HonorDelays(false), needs: google},
		{on: collyrobots.DelayFromEnd(true), off: collyrobots.DelayFromEnd(false)},
		{on: collyrobots.EnforceUsage(true), off: collyrobots.EnforceUsage(false), needs: trains},
		{on: collyrobots.EnforceNofollow(true), off: collyrobots.EnforceNofollow(false)},
		{on: collyrobots.TDMRep(true), off: collyrobots.TDMRep(false)},
		{on: collyrobots.DryRun(true), off: collyrobots.DryRun(false)},
	} {
		t.Run(test.on.String(), func(t *testing.T) {
			crawl := func(more ...collyrobots.Option) string {
				return crawled(t, append(slices.Clip(test.needs), more...)...)
			}
			without := crawl()
			if got := crawl(test.on, test.off); got != without {
				t.Errorf("with a later %v: %s\nwithout the option: %s", test.off, got, without)
			}
			if with := crawl(test.on); with == without {
				t.Errorf("%v has no effect: %s", test.on, with)
			}
			if test.on.String() == "DryRun(true)" {
				return // no option of hosts
			}
			if got := crawl(test.on, forHost(test.off)); got != without {
				t.Errorf("with %v for the host: %s\nwithout the option: %s", test.off, got, without)
			}
		})
	}
}

// crawled crawls a site and returns the requests that it got.
func crawled(t *testing.T, opts ...collyrobots.Option) (requests string) {
	site := robotstest.Site{
		"/robots.txt": "User-agent: *\nCrawl-delay: 10\nDisallow: /x\nContent-Usage: /2 train-ai=n\n",
		"/links":      `<html><a rel="nofollow" href="/nofollow">`,
		"/slow": func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(15 * time.Second)
			fmt.Fprint(w, "x")
		},
		"/refused": http.StatusForbidden,
		"/busy":    http.StatusServiceUnavailable,
		"*":        "x",
	}
	kit.InBubble(t, robotstest.Sites{"a.test": site}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, opts...)
		c.Impolite = true // MaxCrawlDelay shortens the delay
		c.SetRequestTimeout(time.Minute)
		c.OnHTML("a", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
		for _, page := range []string{"slow", "1", "refused", "2", "links", "x", "busy"} {
			c.Visit("http://a.test/" + page)
			time.Sleep(time.Millisecond)
		}
		c.Wait()
		for _, r := range web.Log("a.test") {
			requests += fmt.Sprintf("%v %s, ", r.Elapsed, r.URI)
		}
	})
	return requests
}

// TestContradictions checks that New reports options that contradict each other in one
// list, and that ForHosts may replace what was given before.
func TestContradictions(t *testing.T) {
	ignore := kit.IgnoreRobots()
	file := collyrobots.RobotsTxt([]byte("User-agent: *\n"))
	for _, test := range []struct {
		option string
		opts   options
	}{
		{"RobotsTxt", options{ignore, file}},
		{"RobotsTxt", options{file, ignore}},
		{"WhenUnreachable", options{file, collyrobots.WhenUnreachable(collyrobots.DenyAll)}},
		{"WhenForbidden", options{file, collyrobots.WhenForbidden(collyrobots.DenyAll)}},
		{"MaxCrawlDelay", options{collyrobots.MinDelay(2 * time.Second), collyrobots.MaxCrawlDelay(time.Second)}},
		{"SkipCrawlDelayAbove", options{collyrobots.MinDelay(2 * time.Second), collyrobots.SkipCrawlDelayAbove(time.Second)}},
		{"MaxCrawlDelay", options{collyrobots.SkipCrawlDelayAbove(time.Second), collyrobots.MaxCrawlDelay(time.Second)}},
		{"MaxCrawlDelay", options{collyrobots.Polite(), collyrobots.MaxCrawlDelay(time.Millisecond)}},
	} {
		wantFault(t, newError(forHost(test.opts...)), test.option)
		var levels options // the same options, the last of them inside ForHosts
		for i, o := range test.opts {
			if i == len(test.opts)-1 {
				o = forHost(o)
			}
			levels = append(levels, o)
		}
		err := newError(levels...)
		if err != nil && !strings.Contains(err.Error(), "can only be used inside ForHosts or HostOptions") {
			t.Errorf("%v: %v", levels, err)
		}
		if test.option != "RobotsTxt" && !strings.Contains(fmt.Sprint(test.opts), "RobotsTxt") {
			wantFault(t, newError(test.opts...), test.option)
		}
	}
	if err := newError(ignore, collyrobots.HonorDelays(true), collyrobots.TDMRep(true), collyrobots.WhenForbidden(collyrobots.DenyAll)); err != nil {
		t.Errorf("options that apply when the permission has ended: %v", err)
	}
}

// TestOptionsAreLogged checks that New logs the options in force at debug level, in one record
// without secrets.
func TestOptionsAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	denied := collyrobots.OnDenied(func(*colly.Request, error) {})
	p, err := collyrobots.New(collyrobots.Logger(logger),
		collyrobots.Polite(), collyrobots.MinDelay(2*time.Second), collyrobots.Jitter(0), collyrobots.HonorDelays(true), denied, denied,
		collyrobots.SignRequests(newSigner(t)),
		collyrobots.ForHosts("a.test", collyrobots.RobotsTxt([]byte("User-agent: *\nDisallow: /secret\n")), collyrobots.MinDelay(0)),
		collyrobots.ForHosts("b.test", collyrobots.MaxPagesPerHost(5)))
	kit.Must(t, err)
	kit.Must(t, p.Close())
	var record struct {
		Level   string
		Msg     string
		Options map[string]string
	}
	kit.Must(t, json.Unmarshal(log.Bytes(), &record))
	want := map[string]string{
		"Logger": "...", "MinDelay": "2s", "Jitter": "0", "AdaptiveDelay": "1", "StopAfterRefusals": "5", "RetryThrottled": "3", "HonorDelays": "true",
		"OnDenied": "...; ...", "SignRequests": "...",
		"ForHosts": `"a.test", RobotsTxt(...), MinDelay(0s); "b.test", MaxPagesPerHost(5)`,
	}
	if record.Level != "DEBUG" || record.Msg != "options of the plugin" || fmt.Sprint(record.Options) != fmt.Sprint(want) {
		t.Errorf("got %s", log.String())
	}
	if got := (collyrobots.HostOption{}).String(); got != "HostOption{}" {
		t.Errorf("the text of the zero HostOption is %s", got)
	}
}
