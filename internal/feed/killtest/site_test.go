package killtest

import (
	"fmt"
	"io"
	"log"
	"maps"
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

// refused returns what matches the pages that the collector does not visit in a life.
func refused(life int) *regexp.Regexp {
	if life == 0 {
		return regexp.MustCompile("/(refused|firstrefused)")
	}
	return regexp.MustCompile("/(refused|thenrefused)")
}

// dropped reports whether Keep drops a page in a life.
func dropped(loc string, life int) bool {
	return strings.Contains(loc, "/dropped") || strings.Contains(loc, []string{"/firstdropped", "/thendropped"}[min(life, 1)])
}

// robots returns the rules of all sites in a life.
func robots(life int) string {
	return "User-agent: *\nDisallow: /denied\nDisallow: " + []string{"/firstdenied", "/thendenied"}[min(life, 1)] + "\n"
}

// kinds are what a page may be, by the beginning of its path; the first comes more often. What begins
// with "first" is only so in the first life, and with "then" in all that follow.
var kinds = []string{
	"page", "page", "page", "page", "page", "page", "slow", "moved", "gone", "failing", "reset", "denied", "old", "dropped", "refused",
	"firstdenied", "firstdropped", "firstrefused", "thendenied", "thendropped", "thenrefused",
}

// A page is one that a sitemap lists.
type page struct {
	kind string
	cut  bool   // a file that lists it, or the index, is cut off in one life: the page may be fetched again
	in   string // what becomes of the file: "": nothing, "changes": its pages may come again, "vanishes": they need not come
}

// wanted reports whether the page is to be dealt with, and not tried again and again.
func (p page) wanted() bool {
	return slices.Contains([]string{"page", "slow", "moved", "gone"}, p.kind) || p.opens()
}

// opens reports whether the page may only be fetched after the first life.
func (p page) opens() bool { return strings.HasPrefix(p.kind, "first") }

// closes reports whether the page may only be fetched in the first life.
func (p page) closes() bool { return strings.HasPrefix(p.kind, "then") }

// fails reports whether the page is tried by each run.
func (p page) fails() bool { return p.kind == "failing" || p.kind == "reset" }

// sites are some sites under http and https, and what they were asked for.
type sites struct {
	*rand.Rand
	http, https *httptest.Server
	lives       int
	seeds       []string
	pages       map[string]page                  // by URL
	files       map[string]func(life int) string // sitemaps by host and path; "": 500
	cuts        map[string]cut                   // transfers that are cut off, by host and path

	mu    sync.Mutex
	tries map[string]int   // of what is in cuts, in this life
	asked []map[string]int // by life, pages by URL
	total int              // requests for pages in this life
	at    int              // of these, on which
	then  func()           // is called
	quiet *time.Timer      // runs out if nothing at all is asked for
}

// A cut is how transfers of a file are cut off.
type cut struct {
	life  int
	tries int     // in that life
	after float64 // of the bytes
}

// newSites returns random sites. The life of a spider says in which state they are.
func newSites(r *rand.Rand, lives int) *sites {
	s := &sites{Rand: r, lives: lives, pages: make(map[string]page), files: make(map[string]func(int) string), cuts: make(map[string]cut)}
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
				part = append(part, s.redate(entry))
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
	for _, entry := range changing {
		if s.IntN(3) == 0 {
			all = append(all, s.redate(entry))
		}
	}
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
	s.cutSome(host)
	s.files[host+"/robots.txt"] = func(life int) string {
		return robots(life) + "Sitemap: " + strings.Join(roots, "\nSitemap: ") + "\n"
	}
}

// cutSome cuts some sitemaps of a host off: for a whole life that is not the last one, or so that the
// second or the third try gets the whole file.
func (s *sites) cutSome(host string) {
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		if !strings.HasPrefix(file, host+"/") || s.IntN(4) > 0 {
			continue
		}
		c := cut{life: s.IntN(s.lives), tries: 1 + s.IntN(2), after: s.Float64()}
		if c.life < s.lives-1 && s.IntN(2) == 0 {
			c.tries = 1000
			for loc, p := range s.pages {
				if strings.Contains(s.files[file](c.life), loc+"<") || strings.Contains(loc, "://"+host) && strings.HasSuffix(file, "/index.xml") {
					p.cut = true
					s.pages[loc] = p
				}
			}
		}
		s.cuts[file] = c
	}
}

// redate returns an entry with another date.
func (s *sites) redate(entry string) string {
	if strings.HasPrefix(entry, "2019") {
		return entry
	}
	return s.date() + entry[strings.Index(entry, "http"):]
}

// date returns a date for an entry, or none.
func (s *sites) date() string {
	if s.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf("2022-01-%02d ", 1+s.IntN(28))
}

func always(text string) func(int) string { return func(int) string { return text } }

// page makes a page of a host, and returns its entry.
func (s *sites) page(host, in string) string {
	kind := kinds[s.IntN(len(kinds))]
	loc := fmt.Sprintf("%s://%s/%s%d", []string{"http", "https"}[s.IntN(2)], host, kind, len(s.pages))
	date := s.date()
	if kind == "old" {
		date = "2019-01-01 "
	}
	if strings.HasPrefix(host, "else.") {
		kind = "out of scope"
	}
	s.pages[loc] = page{kind: kind, in: in}
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
	s.tries = make(map[string]int)
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
		serveFile(w, r, file(life), s.cutNow(life, r.Host+r.URL.Path))
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

// cutNow returns the part of a file after which this transfer of it is cut off; 1 if it is not.
func (s *sites) cutNow(life int, file string) float64 {
	c, ok := s.cuts[file]
	if !ok || life != c.life {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries[file] == c.tries {
		return 1
	}
	s.tries[file]++
	return c.after
}

// serveFile serves a part of a sitemap or a robots.txt, some with a validator.
func serveFile(w http.ResponseWriter, r *http.Request, text string, part float64) {
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
	if part == 1 {
		fmt.Fprint(w, text)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	fmt.Fprint(w, text[:int(part*float64(len(text)))])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
