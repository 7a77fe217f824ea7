package killtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// startURL is the first page of each web.
const startURL = "http://h0.test/p/0"

// A web is a set of sites with one access log. Page 0 leads to all others.
type web struct {
	listener net.Listener
	server   *http.Server
	pages    []page

	mu       sync.Mutex
	log      map[string]int // the number of complete responses, by URL
	requests int            // since begin
	trigger  int            // calls interrupt when requests has this value
	notify   func()
	last     time.Time // of the last request
	denied   []string  // disallowed URLs that were requested
}

// A page is a page of a web.
type page struct {
	host  string
	kind  kind
	links []string
}

// A kind says how the server answers a page.
type kind int

const (
	plain      kind = iota
	missing         // status 404; the page has no links
	redirected      // the links to the page lead to a redirect
	disallowed      // by robots.txt; the page has no links
)

// url returns the URL of page i, as other pages link to it.
func (w *web) url(i int) string {
	p := w.pages[i]
	folder := map[kind]string{plain: "p", missing: "missing", redirected: "r", disallowed: "closed"}[p.kind]
	return fmt.Sprintf("http://%s/%s/%d", p.host, folder, i)
}

// newWeb returns a web of n pages on some hosts.
func newWeb(r *rand.Rand, n int) (*web, error) {
	w := &web{log: make(map[string]int)}
	hosts := 1 + r.IntN(min(n/10, 64))
	parents := []int{0}
	for i := range n {
		p := page{host: fmt.Sprintf("h%d.test", r.IntN(hosts))}
		switch k := r.IntN(100); {
		case i == 0:
			p.host = "h0.test"
		case k < 5:
			p.kind = missing
		case k < 15:
			p.kind = redirected
		case k < 20:
			p.kind = disallowed
		}
		w.pages = append(w.pages, p)
		if i > 0 {
			parent := parents[max(0, len(parents)-1-r.IntN(min(len(parents), 40)))]
			w.pages[parent].links = append(w.pages[parent].links, w.url(i))
		}
		if p.kind == plain || p.kind == redirected {
			parents = append(parents, i)
		}
	}
	for range n { // more links, also back
		from := parents[r.IntN(len(parents))]
		w.pages[from].links = append(w.pages[from].links, w.url(r.IntN(n)))
	}
	var err error
	w.listener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.server = &http.Server{Handler: w}
	go w.server.Serve(w.listener)
	return w, nil
}

func (w *web) close() { w.server.Close() }

// delayOf returns the crawl delay of a host in seconds, or "" if it has none.
func delayOf(host string) string {
	switch host[len("h")] {
	case '1', '4':
		return "0.002"
	case '2':
		return "0.005"
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.Path
	if r.URL.Path == "/robots.txt" {
		fmt.Fprintln(out, "User-agent: *\nDisallow: /closed/")
		if d := delayOf(r.Host); d != "" {
			fmt.Fprintln(out, "Crawl-delay:", d)
		}
		return
	}
	w.asked(url)
	var folder string
	var i int
	fmt.Sscanf(strings.ReplaceAll(r.URL.Path, "/", " "), "%s %d", &folder, &i)
	switch folder {
	case "missing":
		http.NotFound(out, r)
	case "r":
		http.Redirect(out, r, fmt.Sprintf("/p/%d", i), http.StatusFound)
	default:
		out.Header().Set("Content-Type", "text/html")
		for _, link := range w.pages[i].links {
			fmt.Fprintf(out, "<a href=%q>x</a>\n", link)
		}
	}
	w.answered(url)
}

// asked records a request.
func (w *web) asked(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	w.last = time.Now()
	if strings.Contains(url, "/closed/") {
		w.denied = append(w.denied, url)
	}
	if w.requests == w.trigger {
		w.notify()
	}
}

func (w *web) answered(url string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log[url]++
}

// begin makes the web call notify when it has got a number of further requests. If it is 0, notify
// is not called.
func (w *web) begin(requests int, notify func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = 0
	w.trigger = requests
	w.notify = notify
	w.last = time.Now()
}

// quietFor returns the time since the last request.
func (w *web) quietFor() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// judge returns the URLs that were never answered, and the number of pages that were fetched again.
func (w *web) judge() (lost []string, again int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.pages {
		if p.kind == disallowed {
			continue
		}
		url := w.url(i)
		n := w.log[url]
		if n == 0 {
			lost = append(lost, url)
		}
		again += max(n-1, 0)
	}
	return lost, again
}
