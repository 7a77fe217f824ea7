package collyrobots_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// The names that other programs compile against: whoever changes one of these lines breaks them.
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
	_ func(dialect.Dialect) collyrobots.Option                                         = collyrobots.Dialect
	_ func(...string) collyrobots.Option                                               = collyrobots.ProductToken
	_ func(time.Duration) collyrobots.Option                                           = collyrobots.MinDelay
	_ func(time.Duration, collyrobots.Over) collyrobots.Option                         = collyrobots.MaxDelay
	_ func() collyrobots.Option                                                        = collyrobots.HonorCrawlDelay
	_ func(collyrobots.Feed) collyrobots.Option                                        = collyrobots.FollowSitemaps
	_ func(func(*colly.Request, error)) collyrobots.Option                             = collyrobots.OnDenied
	_ func(store.Store) collyrobots.Option                                             = collyrobots.Store
	_ func(*slog.Logger) collyrobots.Option                                            = collyrobots.Logger
	_ func(*http.Client) collyrobots.Option                                            = collyrobots.HTTPClient
	_                                                                                  = []collyrobots.Over{collyrobots.Clamp, collyrobots.Skip}
	_                                                                                  = collyrobots.DisallowedError{Decision: collyrobots.Decision{}}
	_ error                                                                            = (*collyrobots.DisallowedError)(nil)
	_ func(io.Reader, *url.URL) *sitemap.Reader                                        = sitemap.NewReader
	_ func(*sitemap.Reader) iter.Seq2[sitemap.Entry, error]                            = (*sitemap.Reader).All
	_ func(context.Context, string, sitemap.Opener) iter.Seq2[sitemap.Entry, error]    = sitemap.Walk
	_ sitemap.Opener                                                                   = func(context.Context, string) (io.ReadCloser, string, error) { return nil, "", nil }
	_                                                                                  = []func() dialect.Dialect{dialect.RFC9309, dialect.Google, dialect.CocCoc, dialect.Original1994, dialect.Temoto}
	_ func(string) (dialect.Dialect, bool)                                             = dialect.ByName
	_ func(*url.URL) (*url.URL, error)                                                 = dialect.Locate
	_ func(*url.URL) string                                                            = dialect.Target
	_ func(string) string                                                              = dialect.ProductToken
	_ fmt.Stringer                                                                     = dialect.Dialect{}
	_                                                                                  = map[dialect.Dialect]bool{} // comparable
	_                                                                                  = dialect.Rule{Allow: true, Pattern: "/", Line: 1}
	_                                                                                  = sitemap.Entry{Loc: "", LastMod: time.Time{}, ChangeFreq: "", Priority: 0, Index: false}
)

var _ = collyrobots.Feed{
	Window: 1, Since: time.Time{}, Keep: func(sitemap.Entry) bool { return true }, Sink: func(string) error { return nil }, MaxURLs: 1,
}

var _ = collyrobots.Decision{
	URL: "", Authority: "", RobotsURL: "", Allowed: true, Reason: collyrobots.Reason(""), Dialect: "", Group: "", Rule: dialect.Rule{},
	Status: 0, Fetched: time.Time{}, Expires: time.Time{}, CrawlDelay: 0, Delay: 0,
}

func _(body []byte) (allowed bool, delay time.Duration, ok bool, sitemaps []string, rule dialect.Rule) {
	rules := dialect.CocCoc().Parse(body)
	group := rules.Group("ExampleBot", "Bot")
	decision := group.Decide("/")
	delay, ok = group.CrawlDelay()
	return decision.Allowed, delay, ok, rules.Sitemaps(), decision.Rule
}
