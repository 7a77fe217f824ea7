package denial

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestDryRunReportsFirstDenial checks that in a dry run OnDenied is called once for a page that
// would be denied in OnRequest or in OnRequestHeaders, also if its robots.txt changes between the
// two. The page waits for the slot of a LimitRule in between.
func TestDryRunReportsFirstDenial(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          int32
	}{
		"denied, then allowed": {first: "User-agent: *\nDisallow: /1\n", second: "", want: 1},
		"allowed, then denied": {first: "", second: "User-agent: *\nDisallow: /1\n", want: 1},
		"denied twice":         {first: "User-agent: *\nDisallow: /1\n", second: "User-agent: *\nDisallow: /1\n", want: 1},
		"allowed":              {},
	} {
		t.Run(name, func(t *testing.T) {
			var reads atomic.Int32
			robots := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=5")
				if reads.Add(1) == 1 {
					io.WriteString(w, test.first)
				} else {
					io.WriteString(w, test.second)
				}
			}
			slow := func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }
			sites := robotstest.Sites{"a.test": {"/robots.txt": robots, "/slow": slow, "/1": robotstest.Page()}}
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				var called atomic.Int32
				c := kit.Start(t, web, kit.Async, collyrobots.DryRun(true), collyrobots.OnDenied(func(r *colly.Request, _ error) {
					if r.URL.Path == "/1" {
						called.Add(1)
					}
				}))
				c.Impolite = true
				kit.Must(t, c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 1}))
				c.SetRequestTimeout(0)
				c.Visit("http://a.test/slow")
				time.Sleep(time.Second)
				c.Visit("http://a.test/1")
				c.Wait()
				if called.Load() != test.want || reads.Load() < 2 {
					t.Errorf("OnDenied was called %d times, want %d; robots.txt was read %d times", called.Load(), test.want, reads.Load())
				}
			})
		})
	}
}
