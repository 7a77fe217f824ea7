package kit

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// Hang is a handler that never answers.
func Hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Drop is a handler that closes the connection without a response.
func Drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// DropFirst returns a handler that closes the connection of the first request without a response,
// and answers the other requests.
func DropFirst(answer string) http.HandlerFunc {
	var asked atomic.Bool
	return func(out http.ResponseWriter, r *http.Request) {
		if !asked.Swap(true) {
			Drop(out, r)
		}
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, answer)
	}
}

// RobotsFor returns a handler for a robots.txt that is fresh for maxAge.
func RobotsFor(maxAge time.Duration, text string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Cache-Control", fmt.Sprintf("max-age=%.0f", maxAge.Seconds()))
		io.WriteString(out, text)
	}
}

// SlowSite asks for a delay of 200 ms, and redirects one page to another, because redirects count
// as requests.
func SlowSite() robotstest.Site {
	slow := robotstest.Pages(6, "User-agent: *\nCrawl-delay: 0.2\n")
	slow["/0"] = robotstest.Redirect("/next")
	slow["/next"] = robotstest.Page()
	return slow
}

// Slowly answers after d, and counts the requests that it handles at once.
func Slowly(d time.Duration, under, most *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
		}
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
}

const (
	TDMURI  = "/.well-known/tdmrep.json"
	NoTrain = "User-agent: *\nCrawl-delay: 10\nContent-Usage: /\ttrain-ai=n, search=y\nContent-Usage: /open train-ai=y\nDisallow: /closed\n"
)

// Training are the options of a crawl for the training of models.
func Training(more ...collyrobots.Option) []collyrobots.Option {
	return append([]collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true), collyrobots.TDMRep(true)}, more...)
}

// Permitted is a permission that has not ended in any test.
var Permitted = collyrobots.Permission{By: "the owner", Reference: "a contract", Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}

// IgnoreRobots returns the option IgnoreRobots with Permitted.
func IgnoreRobots() collyrobots.HostOption { return collyrobots.IgnoreRobots(Permitted) }

// Shop returns a site whose pages are found only through its sitemaps.
func Shop() robotstest.Sites {
	return robotstest.Sites{
		"shop.test": {
			"/robots.txt":   "User-agent: *\nDisallow: /cart\nSitemap: http://shop.test/index.xml\nSitemap: http://cdn.test/shop.xml\n",
			"/":             robotstest.Page(),
			"/index.xml":    robotstest.SitemapIndex("http://shop.test/a.xml", "http://shop.test/b.xml.gz", "http://shop.test/gone.xml"),
			"/a.xml":        robotstest.Sitemap("http://shop.test/1", "2020-01-01 http://shop.test/2", "http://shop.test/cart/3", "http://else.test/4"),
			"/b.xml.gz":     robotstest.Gzip(robotstest.Sitemap("2024-05-01 http://shop.test/5", "http://shop.test/1")),
			"/1":            robotstest.Page(),
			"/2":            robotstest.Page(),
			"/5":            robotstest.Page(),
			"/6":            robotstest.Page(),
			"/cart/3":       robotstest.Page(),
			"/other/denied": robotstest.Page(),
		},
		"cdn.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\n",
			"/shop.xml":   robotstest.Redirect("/moved.xml"),
			"/moved.xml":  robotstest.Sitemap("http://shop.test/6", "http://cdn.test/7"),
			"/7":          robotstest.Page(),
		},
		"else.test": {"/robots.txt": NoDenys, "/4": robotstest.Page()},
	}
}

// Takes returns a handler that answers after d.
func Takes(d time.Duration, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(d)
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(answer))
	}
}

const (
	ReservedAll = `[{"location": "/", "tdm-reservation": 1}]`
	FreeAll     = `[{"location": "/", "tdm-reservation": 0}]`
	TenSeconds  = "User-agent: *\nCrawl-delay: 10\n"
)
