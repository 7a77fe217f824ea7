package collectors

import (
	"fmt"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

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
