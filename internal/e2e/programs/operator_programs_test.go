package programs

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
)

// quietOptions are options of an operator that change nothing for sites that allow everything, do
// not refuse requests, and have fewer pages than the limits.
var quietOptions = []struct {
	name    string
	options func() []collyrobots.Option
	fails   bool // they also change nothing for sites that fail
}{
	{name: "limits", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.MaxPagesPerHost(10000), collyrobots.StopAfterRefusals(10000)}
	}},
	{name: "hours and response time", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.CrawlHours("00:00", "23:59", time.UTC), collyrobots.AdaptiveDelay(0.0001)}
	}},
	{name: "groups", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain)}
	}},
	{name: "unreadable robots.txt", options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll), collyrobots.WhenForbidden(collyrobots.AllowAll)}
	}},
	{name: "robots.txt of the operator", options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.ForHosts("*", collyrobots.RobotsTxt([]byte{}))}
	}},
	{name: "conditional requests", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true}), collyrobots.Store(store.NewMemory())}
	}},
	{name: "usage", options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true)}
	}},
	{name: "robots tags", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.EnforceNofollow(true)}
	}},
	{name: "events", fails: true, options: func() []collyrobots.Option {
		return []collyrobots.Option{collyrobots.OnEveryEvent(func(*collyrobots.Event) {})}
	}},
	{name: "all of them", options: func() []collyrobots.Option {
		return slices.Concat(
			[]collyrobots.Option{collyrobots.MaxPagesPerHost(10000), collyrobots.StopAfterRefusals(10000), collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true}), collyrobots.Store(store.NewMemory())},
			[]collyrobots.Option{collyrobots.CrawlHours("00:00", "23:59", time.UTC), collyrobots.AdaptiveDelay(0.0001), collyrobots.PaceBy(collyrobots.ByDomain)},
			[]collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.AllowAll), collyrobots.WhenForbidden(collyrobots.AllowAll)},
			[]collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true), collyrobots.EnforceNofollow(true)},
			[]collyrobots.Option{collyrobots.OnEveryEvent(func(*collyrobots.Event) {})})
	}},
	{name: "strict options in a dry run", options: func() []collyrobots.Option {
		elsewhere := time.FixedZone("UTC+5", 5*3600)
		return slices.Concat(
			[]collyrobots.Option{collyrobots.DryRun(true), collyrobots.MaxPagesPerHost(2), collyrobots.StopAfterRefusals(1), collyrobots.Revalidate(collyrobots.Revalidation{SkipFresh: true}), collyrobots.Store(store.NewMemory())},
			[]collyrobots.Option{collyrobots.CrawlHours("00:00", "00:01", elsewhere), collyrobots.AdaptiveDelay(3), collyrobots.PaceBy(collyrobots.ByDomain)},
			[]collyrobots.Option{collyrobots.WhenUnreachable(collyrobots.DenyAll), collyrobots.WhenForbidden(collyrobots.DenyAll)},
			[]collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true), collyrobots.EnforceNofollow(true)})
	}},
}

// TestProgramsAreTheSameWithQuietOptions checks that the programs behave with each set of options
// as without the plugin, and the strict programs as with Colly's built-in check.
func TestProgramsAreTheSameWithQuietOptions(t *testing.T) {
	for _, set := range quietOptions {
		t.Run(set.name, func(t *testing.T) {
			for _, x := range programs {
				t.Run(x.name, func(t *testing.T) {
					said, seen := x.result(t, false)
					withSaid, withSeen := x.once(t, setting{options: set.options()})
					compare(t, said, withoutTDM(withSaid), seen, withoutTDM(withSeen))
				})
			}
			for _, x := range strictPrograms {
				if !set.fails {
					break
				}
				t.Run("strict/"+x.name, func(t *testing.T) {
					said, seen := x.builtIn(t)
					options := append(set.options(), collyrobots.Dialect(dialect.Temoto()))
					withSaid, withSeen := x.once(t, setting{builtIn: true, options: options})
					compare(t, said, withSaid, seen, withSeen)
				})
			}
		})
	}
}

// withoutTDM returns lines without those about TDMRep files.
func withoutTDM(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, kit.TDMURI) })
}

// TestFailingProgramsWithQuietOptions checks that the failing programs behave with each set of
// options as without it.
func TestFailingProgramsWithQuietOptions(t *testing.T) {
	for _, set := range quietOptions {
		if !set.fails {
			continue
		}
		t.Run(set.name, func(t *testing.T) {
			for _, x := range failingPrograms {
				t.Run(x.name, func(t *testing.T) { x.checkEnds(t, set.options()...) })
			}
		})
	}
}

// TestTransportEndsTDMRequest checks that the pages of a site are requested although the transport
// of the program has panicked or has ended its goroutine at the request for the TDMRep file.
func TestTransportEndsTDMRequest(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, "*": robotstest.Page()}}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, kit.Training()...)
				inner := web.Transport()
				ended := false
				c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path == kit.TDMURI && !ended {
						ended = true
						end()
					}
					return inner.RoundTrip(r)
				}))
				for i := range 3 {
					done := make(chan struct{})
					go func() {
						defer close(done)
						c.Visit(fmt.Sprint("http://a.test/", i))
					}()
					<-done
				}
				if len(c.Pages) < 2 {
					t.Errorf("%d pages were requested, want at least 2:\n%s", len(c.Pages), web.Log("a.test"))
				}
			})
		})
	}
}

// TestSetStorageAfterAttach checks that a warning is logged if links with nofollow count as visited.
func TestSetStorageAfterAttach(t *testing.T) {
	for _, options := range [][]collyrobots.Option{nil, {collyrobots.EnforceNofollow(true)}, {collyrobots.EnforceNofollow(true), collyrobots.DryRun(true)}} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"*": "x"}}, func(t *testing.T, web *robotstest.Web) {
			c := kit.Start(t, web, nil, options...)
			kit.Must(t, c.SetStorage(&storage.InMemoryStorage{}))
			c.Visit("http://a.test/")
			if got := strings.Contains(c.Logged.String(), "SetStorage was called after Attach"); got != (len(options) == 1) {
				t.Errorf("%d options: the log is %s", len(options), c.Logged)
			}
		})
	}
}
