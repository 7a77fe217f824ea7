package collectors

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestClonesAndOtherCollectorsShareThePace(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(6, "User-agent: *\nCrawl-delay: 2\nDisallow: /5")}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		clone := c.Clone()
		other := colly.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/2.0"))
		other.WithTransport(c.Transport)
		for range 2 {
			if err := c.Robots.Attach(other); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 {
			[]*colly.Collector{c.Collector.Collector, clone.Collector, other}[i%3].Visit(fmt.Sprintf("http://a.test/%d", i))
		}
		c.Wait()
		clone.Wait()
		other.Wait()
		kit.WantNoSooner(t, web, "a.test", 2*time.Second, 6)
		if _, err := c.WithRobots(); !errors.Is(err, collyrobots.ErrAttached) {
			t.Errorf("a second WithRobots returned %v, want ErrAttached", err)
		}
	})
}

// TestCollectorsOfOnePluginShareThePace checks that all collectors of a plugin share the pace,
// whichever client they use. This also applies to a clone of Colly's own Clone that is not
// attached, because it has the same client.
func TestCollectorsOfOnePluginShareThePace(t *testing.T) {
	sites := robotstest.Sites{"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 1\nDisallow: /19"), "proxy.test:3128": nil}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async)
		own := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		own.WithTransport(web.Transport())
		kit.Must(t, c.Robots.Attach(own))
		own.WithTransport(web.Transport()) // after Attach
		proxied := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.Async())
		proxied.WithTransport(web.Transport())
		kit.Must(t, proxied.SetProxy("http://proxy.test:3128"))
		kit.Must(t, c.Robots.Attach(proxied))
		plain := c.Collector.Collector.Clone()
		all := []*colly.Collector{c.Collector.Collector, c.Clone().Collector, own, proxied, plain}
		c.Visit("http://a.test/") // installs the plugin in the client before another collector uses it
		c.Wait()
		for i := range 20 {
			all[i%len(all)].Visit(fmt.Sprint("http://a.test/", i))
		}
		for _, collector := range all {
			collector.Wait()
		}
		kit.WantPace(t, web, "a.test", time.Second, 2+19)
	})
}
