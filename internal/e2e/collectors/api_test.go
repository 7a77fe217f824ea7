package collectors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/pacer"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// pages is the type that Plugin.Pages returns.
type pages = iter.Seq2[sitemap.Entry, error]

// These are the names that other programs compile against. A change of one of these lines breaks
// them.
var (
	_ func(...collyrobots.Option) (*collyrobots.Plugin, error)                         = collyrobots.New
	_ func(*collyrobots.Plugin, *colly.Collector) error                                = (*collyrobots.Plugin).Attach
	_ func(*colly.Collector, ...collyrobots.Option) (*collyrobots.Plugin, error)       = collyrobots.WithRobots
	_ func(*collyrobots.Plugin, context.Context, string) (collyrobots.Decision, error) = (*collyrobots.Plugin).Check
	_ func(*collyrobots.Plugin) collyrobots.Stats                                      = (*collyrobots.Plugin).Stats
	_ func(*collyrobots.Plugin) error                                                  = (*collyrobots.Plugin).Close
	_ func(...colly.CollectorOption) *collyrobots.Collector                            = collyrobots.NewCollector
	_ func(*colly.Collector) *collyrobots.Collector                                    = collyrobots.Wrap
	_ func(*collyrobots.Collector, ...collyrobots.Option) (*collyrobots.Plugin, error) = (*collyrobots.Collector).WithRobots
	_ func(*collyrobots.Collector) *collyrobots.Collector                              = (*collyrobots.Collector).Clone
	_ func(dialect.Dialect) collyrobots.HostOption                                     = collyrobots.Dialect
	_ func(...string) collyrobots.HostOption                                           = collyrobots.ProductToken
	_ func(time.Duration) collyrobots.HostOption                                       = collyrobots.MinDelay
	_ func(time.Duration) collyrobots.HostOption                                       = collyrobots.MaxCrawlDelay
	_ func(time.Duration) collyrobots.HostOption                                       = collyrobots.SkipCrawlDelayAbove
	_ func(bool) collyrobots.HostOption                                                = collyrobots.HonorDelays
	_ func(collyrobots.Feed) collyrobots.Option                                        = collyrobots.FollowSitemaps
	_ func(func(*colly.Request, error)) collyrobots.Option                             = collyrobots.OnDenied
	_ func(store.Store) collyrobots.Option                                             = collyrobots.Store
	_ func(*slog.Logger) collyrobots.Option                                            = collyrobots.Logger
	_ func(*http.Client) collyrobots.Option                                            = collyrobots.RobotsClient
	_ func(collyrobots.Permission) collyrobots.HostOption                              = collyrobots.IgnoreRobots
	_ func(bool) collyrobots.Option                                                    = collyrobots.DryRun
	_ func(bool) collyrobots.HostOption                                                = collyrobots.DelayFromEnd
	_ func(collyrobots.Access) collyrobots.Option                                      = collyrobots.PrivateNetworks
	_ func(pacer.Pacer) collyrobots.Option                                             = collyrobots.SharedPace
	_ func(int, int) collyrobots.Option                                                = collyrobots.ShardByHost
	_ func(string, int) (int, error)                                                   = collyrobots.ShardOf
	_ error                                                                            = &report.PaceError{Host: "", Since: time.Time{}, Err: nil}
	_ error                                                                            = &report.ShardError{URL: "", Shard: 0, Of: 0}
	_ error                                                                            = &report.PrivateNetworkError{URL: "", Address: "", From: ""}
	_ func(*webbotauth.Signer) collyrobots.Option                                      = collyrobots.SignRequests
	_ func(*collyrobots.Plugin) webbotauth.Card                                        = (*collyrobots.Plugin).Card
	_ func(...usage.Purpose) collyrobots.HostOption                                    = collyrobots.Purpose
	_ func(bool) collyrobots.HostOption                                                = collyrobots.EnforceUsage
	_ func(context.Context, usage.Purpose) context.Context                             = collyrobots.WithPurpose
	_ func(*collyrobots.Turn) usage.Terms                                              = (*collyrobots.Turn).Usage
	_ func(*collyrobots.Plugin, *colly.Response) usage.Terms                           = (*collyrobots.Plugin).Usage
	_ usage.Preferences                                                                = collyrobots.Decision{}.Usage
	_ func(int) collyrobots.HostOption                                                 = collyrobots.MaxInFlightPerHost
	_ func(...dialect.Dialect) collyrobots.Option                                      = collyrobots.Shadow
	_ func(string, ...collyrobots.HostOption) collyrobots.Option                       = collyrobots.ForHosts
	_ *report.RobotsChange                                                             = collyrobots.Event{}.Change
	_ func(func(*collyrobots.Event)) collyrobots.Option                                = collyrobots.OnEvent
	_ func(*collyrobots.Plugin, func(*collyrobots.Event)) func()                       = (*collyrobots.Plugin).Listen
	_ func(*collyrobots.Plugin, context.Context, collyrobots.Feed, ...string) pages    = (*collyrobots.Plugin).Pages
	_ queue.Storage                                                                    = (*collyrobots.SitemapQueue)(nil)
	_                                                                                  = collyrobots.DeniedError{Decision: collyrobots.Decision{}}
	_ error                                                                            = (*collyrobots.DeniedError)(nil)
	_ error                                                                            = (*collyrobots.OptionError)(nil)
	_                                                                                  = []error{collyrobots.ErrAttached, collyrobots.ErrClosed, collyrobots.ErrRedirectWait, collyrobots.ErrLeaseEnded}
	_ report.RobotsStatus                                                              = report.RobotsState{}.RobotsStatus
	_ func(io.Reader, *url.URL) *sitemap.Reader                                        = sitemap.NewReader
	_ func(*sitemap.Reader) iter.Seq2[sitemap.Entry, error]                            = (*sitemap.Reader).All
	_ func(context.Context, string, sitemap.Opener) iter.Seq2[sitemap.Entry, error]    = sitemap.Walk
	_ sitemap.Opener                                                                   = func(context.Context, string) (io.ReadCloser, string, error) { return nil, "", nil }
	_                                                                                  = []func() dialect.Dialect{dialect.RFC9309, dialect.Google, dialect.CocCoc, dialect.Original1994, dialect.Temoto, dialect.Yandex, dialect.Seznam}
	_ func(string) (dialect.Dialect, bool)                                             = dialect.ByName
	_ func(*url.URL) (*url.URL, error)                                                 = dialect.Locate
	_ func(*url.URL) string                                                            = dialect.Target
	_ func(string) string                                                              = dialect.TokenOf
	_ fmt.Stringer                                                                     = dialect.Dialect{}
	_                                                                                  = map[dialect.Dialect]bool{} // comparable
	_                                                                                  = dialect.Rule{Allow: true, Pattern: "/", Line: 1}
	_                                                                                  = sitemap.Entry{Loc: "", LastMod: time.Time{}, ChangeFreq: "", Priority: 0, Index: false}
)

var _ = collyrobots.Feed{
	Window: 1, Since: time.Time{}, Keep: func(sitemap.Entry) bool { return true }, Sink: func(context.Context, sitemap.Entry) error { return nil }, MaxURLs: 1,
}

var _ = collyrobots.Decision{
	URL: "", Authority: "", RobotsURL: "", Allowed: true, Reason: report.Reason(""), Dialect: dialect.Dialect{}, Group: "", Rule: dialect.Rule{},
	Status: 0, Fetched: time.Time{}, Expires: time.Time{}, CrawlDelay: 0, Delay: 0,
}

func _(body []byte) (allowed bool, delay time.Duration, ok bool, sitemaps []string, rule dialect.Rule) {
	rules := dialect.CocCoc().Parse(body)
	group := rules.Group("ExampleBot", "Bot")
	decision := group.Decide("/")
	delay, ok = group.CrawlDelay()
	return decision.Allowed, delay, ok, rules.Sitemaps(), decision.Rule
}

// TestEveryFaultIsReported checks that New reports all faults of the options at once, and names the
// option of each.
func TestEveryFaultIsReported(t *testing.T) {
	for _, tc := range []struct {
		name   string
		opts   []collyrobots.Option
		faults string // the Option of each fault, in order
		says   []string
	}{
		{
			"three faults of a Feed", []collyrobots.Option{
				collyrobots.Store(store.NewMemory()), collyrobots.FollowSitemaps(collyrobots.Feed{Window: -1, NewestFirst: true, Scope: "hosts"}),
			},
			"FollowSitemaps FollowSitemaps FollowSitemaps", []string{"Window", "MaxURLs", `"hosts" is not a valid Scope`},
		},
		{"MaxCrawlDelay and SkipCrawlDelayAbove", []collyrobots.Option{collyrobots.MaxCrawlDelay(-1), collyrobots.SkipCrawlDelayAbove(-2)}, "MaxCrawlDelay SkipCrawlDelayAbove", []string{"-1ns", "-2ns"}},
		{
			"two invalid tokens", []collyrobots.Option{collyrobots.ProductToken("Example Bot", "ExampleBot", "ExampleBot/1.0")},
			"ProductToken ProductToken", []string{`"Example Bot"`, `"ExampleBot/1.0"`},
		},
		{
			"several options", []collyrobots.Option{collyrobots.MinDelay(-1), collyrobots.HostOption{}, collyrobots.MaxCrawlDelay(-1), collyrobots.OnDenied(nil)},
			"MinDelay Option MaxCrawlDelay OnDenied", []string{"-1ns", "number 2"},
		},
	} {
		_, err := collyrobots.New(tc.opts...)
		var names []string
		for _, fault := range kit.FaultsOf(err) {
			names = append(names, fault.Option)
		}
		if got := strings.Join(names, " "); got != tc.faults {
			t.Errorf("%s: got faults of %s, want %s: %v", tc.name, got, tc.faults, err)
		}
		for _, s := range tc.says {
			if !strings.Contains(fmt.Sprint(err), s) {
				t.Errorf("%s: %v does not contain %s", tc.name, err, s)
			}
		}
	}
}

// TestSecondPluginIsRefused checks that a collector with a plugin gets no second plugin, however
// the second one is attached.
func TestSecondPluginIsRefused(t *testing.T) {
	attach := func(c *colly.Collector) error {
		p, err := collyrobots.New()
		if err != nil {
			return err
		}
		defer p.Close()
		return p.Attach(c)
	}
	withRobots := func(c *colly.Collector) error { _, err := collyrobots.WithRobots(c); return err }
	wrap := func(c *colly.Collector) error { _, err := collyrobots.Wrap(c).WithRobots(); return err }
	for name, second := range map[string]func(c *colly.Collector) error{
		"New and Attach": attach, "WithRobots": withRobots, "Wrap and WithRobots": wrap,
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nCrawl-delay: 10")}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil)
				clone := c.Clone()
				for what, target := range map[string]*colly.Collector{"the collector": c.Collector.Collector, "a clone": clone.Collector} {
					if err := second(target); !errors.Is(err, collyrobots.ErrAttached) {
						t.Errorf("a second plugin on %s: got %v, want ErrAttached", what, err)
					}
					if err := c.Robots.Attach(target); err != nil {
						t.Errorf("the same plugin on %s again: got %v, want no error", what, err)
					}
				}
				if _, err := clone.WithRobots(); !errors.Is(err, collyrobots.ErrAttached) {
					t.Errorf("WithRobots of a clone returned %v, want ErrAttached", err)
				}
				c.Visit("http://a.test/0")
				clone.Visit("http://a.test/1")
				kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /0, 20s /1")
				if s := c.Robots.Stats().Hosts[0]; s.Pages != 2 {
					t.Errorf("Stats counts %d pages, want 2", s.Pages)
				}
				other := colly.NewCollector() // without a plugin
				other.WithTransport(c.Transport)
				p, err := collyrobots.WithRobots(other)
				kit.Must(t, err)
				kit.Must(t, p.Close())
			})
		})
	}
}

// TestCloneNeverPanics clones a Collector whose embedded collector was replaced or is nil.
func TestCloneNeverPanics(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, "User-agent: *\nDisallow: /0")})
	for name, replace := range map[string]func(c *collyrobots.Collector){
		"another collector": func(c *collyrobots.Collector) { c.Collector = colly.NewCollector() },
		"nil":               func(c *collyrobots.Collector) { c.Collector = nil },
		"no change":         func(*collyrobots.Collector) {},
	} {
		c := kit.Start(t, web, nil)
		replace(c.Collector)
		clone := c.Clone()
		if clone == nil {
			t.Errorf("%s: Clone returned nil", name)
		}
		if name != "another collector" {
			continue
		}
		// The clone is attached to the plugin of its parent.
		clone.WithTransport(web.Transport())
		clone.Visit("http://a.test/0")
		if _, err := clone.WithRobots(); !errors.Is(err, collyrobots.ErrAttached) {
			t.Errorf("%s: the clone is not attached: %v", name, err)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt")
	}
	var zero collyrobots.Collector
	if zero.Clone() == nil {
		t.Error("Clone of a zero Collector returned nil")
	}
	if _, err := zero.WithRobots(); err == nil {
		t.Error("WithRobots of a zero Collector returned no error")
	}
}

// TestUnsupportedColly attaches a collector without a backend, and checks the error and that the
// collector is unchanged.
func TestUnsupportedColly(t *testing.T) {
	c := &colly.Collector{}
	p, err := collyrobots.WithRobots(c)
	if p != nil || !errors.Is(err, collyrobots.ErrUnsupportedColly) {
		t.Errorf("WithRobots returned %v, %v, want ErrUnsupportedColly", p, err)
	}
	want := "collyrobots: unsupported version of Colly: the collector has no backend; make it with colly.NewCollector"
	if fmt.Sprint(err) != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
	if c.IgnoreRobotsTxt || c.Context != nil {
		t.Errorf("the collector has changed: IgnoreRobotsTxt is %t, Context is %v", c.IgnoreRobotsTxt, c.Context)
	}
}

// TestZeroPlugin checks that the errors of a zero Plugin say how to create one.
func TestZeroPlugin(t *testing.T) {
	var p collyrobots.Plugin
	if err := p.Attach(colly.NewCollector()); err == nil || !strings.Contains(err.Error(), "use New") {
		t.Errorf("Attach returned %v, want an error that names New", err)
	}
	if _, err := p.Check(t.Context(), "http://a.test/"); err == nil || !strings.Contains(err.Error(), "use New") {
		t.Errorf("Check returned %v, want an error that names New", err)
	}
	for _, err := range p.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
		if err == nil || !strings.Contains(err.Error(), "use New") {
			t.Errorf("Pages returned %v, want an error that names New", err)
		}
	}
	if _, err := p.SitemapQueue(&queue.InMemoryQueueStorage{}, collyrobots.Feed{}, "http://a.test/"); err == nil {
		t.Error("SitemapQueue returned no error")
	}
	if s := p.Stats(); len(s.Hosts) != 0 {
		t.Errorf("got stats %+v, want none", s)
	}
	p.Close()
}

// TestPagesThatEndEarly checks that no more sitemaps are read when the loop or the context ends.
func TestPagesThatEndEarly(t *testing.T) {
	sites := robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 10\nSitemap: http://a.test/1.xml\nSitemap: http://a.test/2.xml",
		"/1.xml":      robotstest.Sitemap("http://a.test/1", "http://a.test/2"),
		"/2.xml":      robotstest.Sitemap("http://a.test/3"),
	}}
	t.Run("break", func(t *testing.T) {
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil)
			for e, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{}, "http://a.test/") {
				if e.Loc != "http://a.test/1" || err != nil {
					t.Errorf("got page %v and error %v", e, err)
				}
				break
			}
			kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1.xml")
		})
	})
	t.Run("context", func(t *testing.T) {
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			c := kit.Start(t, web, nil)
			n, last := 0, error(nil)
			for _, err := range c.Robots.Pages(ctx, collyrobots.Feed{}, "http://a.test/") {
				last = err
				if err == nil {
					n++
				}
			}
			if n != 2 || !errors.Is(last, context.DeadlineExceeded) || time.Since(began) != 15*time.Second {
				t.Errorf("got %d pages, then error %v after %v", n, last, time.Since(began))
			}
			kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1.xml")
		})
	})
	t.Run("nothing to read", func(t *testing.T) {
		web := robotstest.New(t, sites)
		c := kit.Start(t, web, nil)
		for name, pages := range map[string]pages{
			"a bad Feed": c.Robots.Pages(t.Context(), collyrobots.Feed{Window: -1}, "http://a.test/"),
			"a bad URL":  c.Robots.Pages(t.Context(), collyrobots.Feed{}, "a.test"),
		} {
			errs := 0
			for e, err := range pages {
				errs++
				if err == nil {
					t.Errorf("%s: got page %v, want none", name, e)
				}
			}
			if errs != 1 {
				t.Errorf("%s: got %d errors, want 1", name, errs)
			}
		}
		kit.WantURIs(t, web, "a.test", "")
	})
}

// TestErrorsOfPagesHaveThePrefixOnce checks that the text of each error from Pages begins with the
// name of the package, and does not repeat it.
func TestErrorsOfPagesHaveThePrefixOnce(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"d.test": {"/robots.txt": "Sitemap: http://d.test/gone.xml\n"}})
	c := kit.Start(t, web, nil, collyrobots.ShardByHost(2, 1))
	var got []string
	for _, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{}, "http://d.test/", "http://b.test/") {
		got = append(got, err.Error())
	}
	want := []string{
		"collyrobots: http://d.test/gone.xml: sitemap answered with status 404",
		"collyrobots: cannot read the sitemaps of http://b.test/: the host of http://b.test/ belongs to shard 0 of 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got errors %q, want %q", got, want)
	}
}
