package politeness

import (
	"fmt"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestEachCollectorHasItsOwnName has two collectors with different names that share a plugin. Each
// must obey the group for its own name, and the host must get requests at the longer of the two
// delays.
func TestEachCollectorHasItsOwnName(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: OneBot\nDisallow: /one\nCrawl-delay: 1\n\nUser-agent: TwoBot\nDisallow: /two\nCrawl-delay: 10\n",
		"*":           robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		one := kit.Start(t, web, []colly.CollectorOption{colly.UserAgent("OneBot/1.0")})
		one.Impolite = true // when OneBot reads the file, the delay for TwoBot is not known
		two := one.Clone()
		two.UserAgent = "TwoBot/1.0"
		for i := range 4 {
			one.Visit("http://a.test/one")
			two.Visit("http://a.test/two")
			kit.Must(t, one.Visit(fmt.Sprint("http://a.test/two?", i)))
			kit.Must(t, two.Visit(fmt.Sprint("http://a.test/one?", i)))
		}
		log := web.Log("a.test")
		if got, want := kit.URIsOf(log), "/robots.txt /robots.txt /two?0 /one?0 /two?1 /one?1 /two?2 /one?2 /two?3 /one?3"; got != want {
			t.Errorf("requests to a.test: %s, want %s", got, want)
		}
		if gap := log[2:].MinGap(); gap < 10*time.Second {
			t.Errorf("%v between two requests, TwoBot asks for 10 s", gap)
		}
	})
}
