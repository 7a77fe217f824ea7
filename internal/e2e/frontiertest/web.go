package frontiertest

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/robotstest"
)

const rules = "User-agent: *\nDisallow: /closed\nCrawl-delay: 2\n"

// site returns a function that returns a.test with rules and answers.
func site(answers func() robotstest.Site) func() robotstest.Sites {
	return func() robotstest.Sites {
		pages := answers()
		pages["/robots.txt"] = rules
		pages["/closed"] = robotstest.Page()
		return robotstest.Sites{"a.test": pages}
	}
}

// tree returns a site of which each page links to two others, in four levels.
func tree() robotstest.Site {
	pages := robotstest.Site{"/": robotstest.Page("/1", "/2", "/closed")}
	for i := 1; i < 8; i++ {
		links := []string{"/", fmt.Sprint("/", i), "/closed"}
		if i < 4 {
			links = append(links, fmt.Sprint("/", 2*i+1), fmt.Sprint("/", 2*i+2))
		}
		pages[fmt.Sprint("/", i)] = robotstest.Page(links...)
	}
	pages["/8"] = robotstest.Page()
	return pages
}

// shop returns a site with two categories, their products, and a review of each product.
func shop() robotstest.Site {
	pages := robotstest.Site{"/": robotstest.Page("/c/1", "/c/2", "/closed")}
	for c := 1; c < 3; c++ {
		pages[fmt.Sprint("/c/", c)] = robotstest.Page(fmt.Sprintf("/p/%d1", c), fmt.Sprintf("/p/%d2", c))
		for p := 1; p < 3; p++ {
			pages[fmt.Sprintf("/p/%d%d", c, p)] = robotstest.Page(fmt.Sprintf("/r/%d%d", c, p))
			pages[fmt.Sprintf("/r/%d%d", c, p)] = robotstest.Page()
		}
	}
	return pages
}

// listed returns a site whose first page links to the pages 1 to n, which have no links.
func listed(n int) robotstest.Site {
	var links []string
	pages := make(robotstest.Site)
	for i := 1; i <= n; i++ {
		links = append(links, fmt.Sprint("/", i))
		pages[links[i-1]] = robotstest.Page()
	}
	pages["/"] = robotstest.Page(append(links, "/closed")...)
	return pages
}

// with returns a site with other answers for some pages.
func with(pages robotstest.Site, answers robotstest.Site) robotstest.Site {
	for path, answer := range answers {
		pages[path] = answer
	}
	return pages
}

// firstly answers n requests as first does, and the others with an empty page.
func firstly(n int, first http.HandlerFunc) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) <= int64(n) {
			first(w, r)
			return
		}
		html("")(w, r)
	}
}

// html answers with a document.
func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<html><body>"+body+"</body></html>")
	}
}

// typed answers with a content type.
func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, http.StatusText(code), code) }
}

// drop closes the connection without a response.
func drop(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
