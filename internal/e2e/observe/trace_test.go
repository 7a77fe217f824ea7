package observe

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/store"
)

// TestEventRobots checks that each fetch of a robots.txt has an event with the change, and also a
// copy from the store.
func TestEventRobots(t *testing.T) {
	text, status := "User-agent: *\nDisallow: /x\n", 200
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", fmt.Sprintf("%q", text))
		if status == 200 && r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(status)
		if status == 200 {
			w.Write([]byte(text))
		}
	}, "/": ""}, "empty.test": {"/robots.txt": ""}, "none.test": {"/robots.txt": 404}, "down.test": {"/robots.txt": kit.Drop}}, func(t *testing.T, web *robotstest.Web) {
		kept := store.NewMemory()
		h := kit.Hear(report.EventRobots)
		c := kit.Start(t, web, nil, h.On(), collyrobots.Store(kept))
		look := func() {
			_, err := c.Robots.Check(t.Context(), "http://a.test/")
			kit.Must(t, err)
			time.Sleep(2 * time.Minute)
		}
		look()
		look() // 304
		text += "Crawl-delay: 2\n"
		look()
		status = 500
		look()
		for _, host := range []string{"empty", "none", "down"} {
			c.Robots.Check(t.Context(), "http://"+host+".test/")
		}
		recalled := kit.Hear(report.EventRobots)
		other := kit.Start(t, web, nil, recalled.On(), collyrobots.Store(kept))
		other.Robots.Check(t.Context(), "http://empty.test/")
		h.Want(t, `
0s robots a.test/robots.txt 200 rules a92d 27 bytes
2m0s robots a.test/robots.txt 200 rules a92d
4m0s robots a.test/robots.txt 200 rules 30a4 42 bytes rules -> rules
6m0s robots a.test/robots.txt 500 unreachable rules -> unreachable (robots.txt answered with status 500)
8m0s robots empty.test/robots.txt 200 rules e3b0 0 bytes
8m0s robots none.test/robots.txt 404 no_robots
8m0s robots down.test/robots.txt unreachable (no response: Get "http://down.test/robots.txt": EOF)
`)
		recalled.Want(t, `
0s robots empty.test/robots.txt 200 rules stored e3b0 0 bytes
`)
	})
}
