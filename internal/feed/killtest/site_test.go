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

// refused returns a pattern of the pages that the collector does not visit in a life.
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

// kinds are the kinds of pages; the kind is the beginning of the path. The first kind is the most
// frequent. The effect of a kind that begins with "first" applies only in the first life, and the
// effect of a kind that begins with "then" only in later lives.
var kinds = []string{
	"page", "page", "page", "page", "page", "page", "slow", "moved", "gone", "failing", "reset", "denied", "old", "dropped", "refused",
	"firstdenied", "firstdropped", "firstrefused", "thendenied", "thendropped", "thenrefused",
}

// A page is a page that a sitemap lists.
type page struct {
	kind string
	cut  bool // a file that lists the page, or the index, is cut off in one life; the page may be fetched again
	// in says what happens to the file: nothing (""), "changes" (its pages may be fetched again),
	// or "vanishes" (its pages need not be fetched)
	in string
}

// wanted reports whether the page must be processed. Pages that fail need not be.
func (p page) wanted() bool {
	return slices.Contains([]string{"page", "slow", "moved", "gone"}, p.kind) || p.opens()
}

// opens reports whether the page may only be fetched after the first life.
func (p page) opens() bool { return strings.HasPrefix(p.kind, "first") }

// closes reports whether the page may only be fetched in the first life.
func (p page) closes() bool { return strings.HasPrefix(p.kind, "then") }

// fails reports whether each run tries the page.
func (p page) fails() bool { return p.kind == "failing" || p.kind == "reset" }

// sites are the sites of a trial, under http and https, and the requests that they have received.
type sites struct {
	*rand.Rand
	http, https *httptest.Server
	lives       int
	seeds       []string
	pages       map[string]page                  // the pages by URL
	files       map[string]func(life int) string // the sitemaps by host and path; "" means status 500
	cuts        map[string]cut                   // the transfers that are cut off, by host and path

	mu    sync.Mutex
	tries map[string]int   // the transfers of each file in cuts in this life
	asked []map[string]int // for each life, the number of requests for each page
	total int              // the number of requests for pages in this life
	at    int              // the number of requests after which then is called
	then  func()
	quiet *time.Timer // fires if no request comes at all
}

// A cut says how the transfers of a file are cut off.
type cut struct {
	life  int
	tries int     // the number of transfers that are cut off in that life
	after float64 // the part of the bytes that is sent
}

// newSites returns random sites. Their state depends on the life of the spider.
func newSites(r *rand.Rand, lives int) *sites {
	s := &sites{
		Rand:  r,
		lives: lives,
		pages: make(map[string]page),
		files: make(map[string]func(int) string),
		cuts:  make(map[string]cut),
	}
	for i := range 1 + r.IntN(3) {
		s.add(fmt.Sprintf("s%d.test", i))
	}
	s.http = httptest.NewUnstartedServer(s)
	s.https = httptest.NewUnstartedServer(s)
	for _, server := range []*httptest.Server{s.http, s.https} {
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections end when a spider is killed
	}
	s.http.Start()
	s.https.StartTLS()
	return s
}

func (s *sites) close() {
	s.http.Close()
	s.https.Close()
}

// add creates a site. Its index names files that change, appear and vanish between two lives. A
// second sitemap does not change.
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
			if s.IntN(3) == 0 { // a page may be in several files or in none
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
	changing := s.list(host, "changes")
	late := s.list(host, "")
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
			return "" // the file is not available yet
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

// cutSome cuts off some sitemaps of a host: either for a whole life that is not the last one, or so
// that the second or third try gets the complete file.
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

// redate returns an entry with a new date.
func (s *sites) redate(entry string) string {
	if strings.HasPrefix(entry, "2019") {
		return entry
	}
	return s.date() + entry[strings.Index(entry, "http"):]
}

// date returns a random date for an entry, or "".
func (s *sites) date() string {
	if s.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf("2022-01-%02d ", 1+s.IntN(28))
}

func always(text string) func(int) string { return func(int) string { return text } }

// page creates a page of a host and returns its entry.
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

// list creates a few pages of one file.
func (s *sites) list(host, in string) (entries []string) {
	for range 2 + s.IntN(20) {
		entries = append(entries, s.page(host, in))
	}
	return entries
}

// patience is how long a life may pass without a request. The total time is not limited, because it
// depends on the machine.
const patience = time.Minute

// begin begins a life. It calls then when the given number of pages has been requested, if that
// happens in this life.
func (s *sites) begin(pages int, then func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, make(map[string]int))
	s.tries = make(map[string]int)
	s.total = 0
	s.at = pages
	s.then = then
	s.quiet = time.NewTimer(patience)
}

// note records a request for a page in a life, which may have ended.
func (s *sites) note(life int, loc string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[life][loc]++
	if life != len(s.asked)-1 {
		return
	}
	s.total++
	if s.total == s.at {
		go s.then()
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

// cutNow returns the part of a file after which this transfer is cut off, or 1 if it is not cut
// off.
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

// serveFile serves a part of a sitemap or a robots.txt. Some files have a validator.
func serveFile(w http.ResponseWriter, r *http.Request, text string, part float64) {
	if text == "" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if len(text)%2 == 0 {
		tag := fmt.Sprintf(`"%d"`, len(text))
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
