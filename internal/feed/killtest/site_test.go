package killtest

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

// refused are pages that the collector does not visit.
var refused = regexp.MustCompile("/refused")

// kinds are what a page may be, by the beginning of its path; the first comes more often.
var kinds = []string{"page", "page", "page", "page", "slow", "moved", "gone", "failing", "reset", "denied", "old", "dropped", "refused"}

// A page is one that a sitemap lists.
type page struct {
	kind string
	in   string // what becomes of the file: "": nothing, "changes": its pages may come again, "vanishes": they need not come
}

// wanted reports whether the page is to be dealt with, and not tried again and again.
func (p page) wanted() bool {
	return slices.Contains([]string{"page", "slow", "moved", "gone"}, p.kind)
}

// fails reports whether the page is tried by each run.
func (p page) fails() bool { return p.kind == "failing" || p.kind == "reset" }

// sites are some sites under http and https, and what they were asked for.
type sites struct {
	*rand.Rand
	http, https *httptest.Server
	seeds       []string
	pages       map[string]page                  // by URL
	files       map[string]func(life int) string // sitemaps by host and path; "": 500

	mu    sync.Mutex
	asked []map[string]int // by life, pages by URL
	total int              // requests for pages in this life
	at    int              // of these, on which
	then  func()           // is called
	quiet *time.Timer      // runs out if nothing at all is asked for
}

// newSites returns random sites. The life of a spider says in which state they are.
func newSites(r *rand.Rand) *sites {
	s := &sites{Rand: r, pages: make(map[string]page), files: make(map[string]func(int) string)}
	for i := range 1 + r.IntN(3) {
		s.add(fmt.Sprintf("s%d.test", i))
	}
	s.http, s.https = httptest.NewUnstartedServer(s), httptest.NewUnstartedServer(s)
	for _, server := range []*httptest.Server{s.http, s.https} {
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections end with the spiders
	}
	s.http.Start()
	s.https.StartTLS()
	return s
}

func (s *sites) close() {
	s.http.Close()
	s.https.Close()
}

// add makes a site whose index names files that change, come and go between two lives, beside one
// that does not.
func (s *sites) add(host string) {
	scheme := []string{"http", "https"}[s.IntN(2)]
	site := scheme + "://" + host
	s.seeds = append(s.seeds, site+"/")
	var all []string
	for range 1 + s.IntN(100) {
		all = append(all, s.page(host, ""))
	}
	var children []string
	for i := range 1 + s.IntN(5) {
		child := fmt.Sprintf("/map%d.xml", i)
		var part []string
		for _, entry := range all {
			if s.IntN(3) == 0 { // in several, or in none
				part = append(part, entry)
			}
		}
		s.files[host+child] = always(robotstest.Sitemap(part...))
		dated := []string{"", "2021-05-01 "}[s.IntN(2)]
		children = append(children, dated+site+child)
	}
	s.files[host+"/new.xml"] = always(robotstest.Sitemap(s.list(host, "")...))
	s.files[host+"/old.xml"] = always(robotstest.Sitemap(s.list(host, "vanishes")...))
	s.files[host+"/else.xml"] = always(robotstest.Sitemap(s.list("else."+host, "")...))
	changing, late := s.list(host, "changes"), s.list(host, "")
	s.files[host+"/changes.xml"] = func(life int) string {
		return robotstest.Sitemap(changing[min(2-2*min(life, 1), len(changing)):]...)
	}
	s.files[host+"/late.xml"] = func(life int) string {
		if life == 0 {
			return "" // it cannot be had yet
		}
		return robotstest.Sitemap(late...)
	}
	s.files[host+"/index.xml"] = func(life int) string {
		first := []string{"/old.xml", "/new.xml"}[min(life, 1)]
		return robotstest.SitemapIndex(append([]string{site + first, site + "/changes.xml", site + "/late.xml", site + "/else.xml"}, children...)...)
	}
	s.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.files[host+"/rest.xml"] = always(robotstest.Sitemap(all...))
	roots := []string{site + "/index.xml", site + "/rest.xml"}
	if s.IntN(2) == 0 {
		slices.Reverse(roots)
	}
	robots := "User-agent: *\nDisallow: /denied\nSitemap: " + strings.Join(roots, "\nSitemap: ") + "\n"
	s.files[host+"/robots.txt"] = always(robots)
}

func always(text string) func(int) string { return func(int) string { return text } }

// page makes a page of a host, and returns its entry.
func (s *sites) page(host, in string) string {
	kind := kinds[s.IntN(len(kinds))]
	loc := fmt.Sprintf("%s://%s/%s%d", []string{"http", "https"}[s.IntN(2)], host, kind, len(s.pages))
	date := []string{"", fmt.Sprintf("2022-01-%02d ", 1+s.IntN(28))}[s.IntN(2)]
	if kind == "old" {
		date = "2019-01-01 "
	}
	if strings.HasPrefix(host, "else.") {
		kind = "out of scope"
	}
	s.pages[loc] = page{kind, in}
	return date + loc
}

// list makes a few pages that are in one file.
func (s *sites) list(host, in string) (entries []string) {
	for range 2 + s.IntN(20) {
		entries = append(entries, s.page(host, in))
	}
	return entries
}

// patience is how long a life may ask for nothing: how long it takes in all is the machine's matter.
const patience = time.Minute

// begin begins a life: then is called when so many pages have been asked for, if that is before it
// ends.
func (s *sites) begin(pages int, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, make(map[string]int))
	s.total, s.at, s.then = 0, pages, then
	s.quiet = time.NewTimer(patience)
}

// note notes that a page was asked for in a life, which may be over.
func (s *sites) note(life int, loc string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[life][loc]++
	if life == len(s.asked)-1 {
		if s.total++; s.total == s.at {
			go s.then()
		}
	}
}

// ServeHTTP serves all sites.
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.quiet.Reset(patience)
	s.mu.Unlock()
	var life int
	if _, err := fmt.Sscanf(r.UserAgent(), "ExampleBot/%d", &life); err != nil {
		panic(err)
	}
	if file, ok := s.files[r.Host+r.URL.Path]; ok {
		serveFile(w, r, file(life))
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/to/") {
		return
	}
	loc := "http://" + r.Host + r.URL.Path
	if r.TLS != nil {
		loc = "https" + loc[len("http"):]
	}
	s.note(life, loc)
	time.Sleep(2 * time.Millisecond)
	switch s.pages[loc].kind {
	case "slow":
		time.Sleep(150 * time.Millisecond)
	case "moved":
		http.Redirect(w, r, "/to"+r.URL.Path, http.StatusFound)
	case "gone":
		w.WriteHeader(http.StatusNotFound)
	case "failing":
		w.WriteHeader(http.StatusInternalServerError)
	case "reset":
		panic(http.ErrAbortHandler)
	}
}

// serveFile serves a sitemap or a robots.txt, some with a validator.
func serveFile(w http.ResponseWriter, r *http.Request, text string) {
	if text == "" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if tag := fmt.Sprintf(`"%d"`, len(text)); len(text)%2 == 0 {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	fmt.Fprint(w, text)
}
