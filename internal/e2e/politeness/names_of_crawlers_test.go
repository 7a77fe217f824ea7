package politeness

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// crawlerName returns the name of a crawler, which consists of letters.
func crawlerName(i int) string {
	return "Bot" + string([]byte{'a' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26)})
}

// robotsForNames returns a robots.txt that denies /private to every second of n names.
func robotsForNames(n int) string {
	var text strings.Builder
	for i := 0; i < n; i += 2 {
		fmt.Fprintf(&text, "User-agent: %s\nDisallow: /private\n\n", crawlerName(i))
	}
	return text.String()
}

// getAs requests a URL for a crawler with a name through a client.
func getAs(t *testing.T, client *http.Client, url, name string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	kit.Must(t, err)
	req.Header.Set("User-Agent", name+"/1.0")
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
}

// wantPrivate checks that only the crawlers that may have requested /private, according to
// robotsForNames, and each of them times times.
func wantPrivate(t *testing.T, web *robotstest.Web, host string, n, times int) {
	t.Helper()
	asked := make(map[string]int)
	for _, r := range web.Log(host) {
		if r.URI == "/private" {
			name, _, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
			asked[name]++
		}
	}
	for i := range n {
		want := i % 2 * times
		if got := asked[crawlerName(i)]; got != want {
			t.Errorf("%s has requested /private %d times, want %d", crawlerName(i), got, want)
		}
	}
}

// TestManyCrawlerNames checks that each of many crawlers with one plugin obeys the group for its own
// name, also if there are more names than readers are kept, and that the site does not get a request
// for robots.txt for each name.
func TestManyCrawlerNames(t *testing.T) {
	for _, n := range []int{33, 70, 1300} {
		if kit.UnderRace && n > 1000 {
			continue // one request after the other
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": robotsForNames(n), "/private": "x"}})
			robots, err := collyrobots.New(kit.Quiet())
			kit.Must(t, err)
			defer robots.Close()
			next := web.Transport()
			defer next.CloseIdleConnections()
			client := &http.Client{Transport: robots.Transport(next)}
			for range 2 {
				for i := range n {
					getAs(t, client, "http://a.test/private", crawlerName(i))
				}
			}
			wantPrivate(t, web, "a.test", n, 2)
			if asked := kit.CountURI(web, "/robots.txt"); asked != 2 {
				t.Errorf("robots.txt was requested %d times, want 2", asked)
			}
		})
	}
}

// TestManyCrawlerNamesAtOnce checks crawlers that visit a site at the same moment. The names after
// the first share one fetch, however long it takes, and whether the host has a delay.
func TestManyCrawlerNamesAtOnce(t *testing.T) {
	const n = 70
	for _, delay := range []time.Duration{0, 10 * time.Second} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/private": "x"}, "b.test": {"/robots.txt": 404, "/": "x"}}, func(t *testing.T, web *robotstest.Web) {
			web.Set("a.test", "/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(5 * time.Second)
				fmt.Fprint(w, robotsForNames(n))
			})
			robots, err := collyrobots.New(kit.Quiet(), collyrobots.MinDelay(delay))
			kit.Must(t, err)
			defer robots.Close()
			next := web.Transport()
			defer next.CloseIdleConnections()
			client := &http.Client{Transport: robots.Transport(next)}
			for i := range n {
				getAs(t, client, "http://b.test/", crawlerName(i)) // now all names are known
			}
			for i := range n {
				go getAs(t, client, "http://a.test/private", crawlerName(i))
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			wantPrivate(t, web, "a.test", n, 1)
			if asked := kit.CountURI(web, "/robots.txt"); asked != 1 {
				t.Errorf("delay %v: robots.txt was requested %d times, want once", delay, asked)
			}
			if gap := web.Log("a.test").MinGap(); gap < delay {
				t.Errorf("gap %v, want at least %v", gap, delay)
			}
		})
	}
}
