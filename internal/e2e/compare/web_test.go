package compare

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

// A world has the hosts of a crawl and records the requests to them.
type world struct {
	seed    uint64
	rec     *record
	hosts   []*host
	proxies []string
	most    int  // requests that are answered; then every page is 404
	busy    bool // whether hosts may refuse pages several times

	mu    sync.Mutex
	asked map[string]int // requests so far, by method, scheme, host and URI
	total int
}

// A host has a site for http and https.
type host struct {
	name      string
	latency   time.Duration
	answers   map[string][]answer // by URI, with the scheme "https:" before it if both schemes differ
	throttles []throttle

	mu   sync.Mutex
	n    int         // requests for pages so far
	seen []time.Time // of those
}

// A throttle is a condition under which a host refuses pages.
type throttle struct {
	from, to int           // the numbers of the requests that are refused, or
	most     int           // the most requests
	per      time.Duration // in such a time
	status   int
	after    string // the value of Retry-After, or ""; "date" means a date
}

// An answer is what a host sends for a request.
type answer struct {
	status int
	header map[string]string
	body   string
	wait   time.Duration // before the header
	slow   time.Duration // between both halves of the body
	fate   fate
}

// A fate says how a response ends.
type fate int

const (
	whole  fate = iota
	drop        // the connection ends without a response
	cut         // the connection ends within the body
	hang        // there is no response for three hours, and then the connection ends
	hangIn      // there is a pause of ten hours within the body
)

func (w *world) sites() robotstest.Sites {
	sites := robotstest.Sites{}
	for _, h := range w.hosts {
		sites[h.name] = robotstest.Site{"*": func(out http.ResponseWriter, r *http.Request) { w.serve(h, out, r) }}
	}
	for _, name := range w.proxies {
		sites[name] = robotstest.Site{"*": http.StatusBadRequest}
	}
	return sites
}

// serve answers a request as it was drawn.
func (w *world) serve(h *host, out http.ResponseWriter, r *http.Request) {
	uri := r.URL.RequestURI()
	scheme := "http:"
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https:"
	}
	a, n := w.answer(h, r.Method, scheme, uri)
	body, _ := io.ReadAll(r.Body)
	if len(body) > 0 {
		w.rec.add("server", "%s body %q", h.name, body)
	}
	end := func(how string) { w.rec.add("server", "%s%s%s %d: %s", scheme, h.name, uri, n, how) }
	if !pause(r.Context(), h.latency+a.wait+fine(w.seed, h.name, scheme, uri, r.Method, n)) {
		end("the client has gone")
		panic(http.ErrAbortHandler)
	}
	switch a.fate {
	case hang:
		if !pause(r.Context(), 3*time.Hour) {
			end("the client has gone")
		}
		panic(http.ErrAbortHandler)
	case drop:
		panic(http.ErrAbortHandler)
	}
	for key, value := range a.header {
		out.Header().Set(key, value)
	}
	tag := a.header["ETag"]
	if tag != "" && r.Header.Get("If-None-Match") == tag {
		out.WriteHeader(http.StatusNotModified)
		return
	}
	if out.Header().Get("Retry-After") == "date" {
		out.Header().Set("Retry-After", time.Now().Add(7*time.Second).UTC().Format(http.TimeFormat))
	}
	w.send(out, r, a, end)
}

// send sends the status and the body of an answer.
func (w *world) send(out http.ResponseWriter, r *http.Request, a answer, end func(string)) {
	if a.fate == cut {
		out.Header().Set("Content-Length", fmt.Sprint(len(a.body)+100))
	}
	out.WriteHeader(a.status)
	if a.slow > 0 || a.fate == hangIn {
		io.WriteString(out, a.body[:len(a.body)/2])
		http.NewResponseController(out).Flush()
		if a.fate == hangIn {
			a.slow = 10 * time.Hour
		}
		if !pause(r.Context(), a.slow) {
			end("the client has gone within the body")
			panic(http.ErrAbortHandler)
		}
		a.body = a.body[len(a.body)/2:]
	}
	io.WriteString(out, a.body)
	if a.fate == cut {
		panic(http.ErrAbortHandler)
	}
}

// pause waits. It reports false if ctx has ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// answer returns the answer of a host to the next request for a URI, and the number of the request.
func (w *world) answer(h *host, method, scheme, uri string) (answer, int) {
	w.mu.Lock()
	key := method + scheme + h.name + uri
	n := w.asked[key]
	w.asked[key]++
	w.total++
	tooMany := w.total > w.most
	w.mu.Unlock()
	all := h.answers[scheme+uri]
	if all == nil {
		all = h.answers[uri]
	}
	special := strings.HasPrefix(uri, "/robots.txt") || strings.HasPrefix(uri, "/.well-known")
	if len(all) == 0 || tooMany && !special {
		return answer{status: http.StatusNotFound, body: "not found"}, n
	}
	if !special {
		if a, ok := h.throttled(); ok {
			return a, n
		}
	}
	return all[min(n, len(all)-1)], n
}

// throttled returns the answer to a page that the host refuses.
func (h *host) throttled() (answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	now := time.Now()
	h.seen = append(h.seen, now)
	for _, t := range h.throttles {
		recent := 0
		for _, at := range h.seen {
			if now.Sub(at) < t.per {
				recent++
			}
		}
		if t.most > 0 && recent <= t.most || t.most == 0 && (h.n < t.from || h.n >= t.to) {
			continue
		}
		a := answer{status: t.status, header: map[string]string{}, body: "slow down"}
		if t.after != "" {
			a.header["Retry-After"] = t.after
		}
		return a, true
	}
	return answer{}, false
}

// log records the access log of the web.
func (w *world) log(web *robotstest.Web) {
	for _, r := range web.Log("") {
		var header []string
		for _, key := range slices.Sorted(maps.Keys(r.Header)) {
			value := strings.Join(r.Header[key], ", ")
			if strings.HasPrefix(key, "Signature") && key != "Signature-Agent" {
				value = "(signed)" // contains a random number
			}
			header = append(header, key+": "+value)
		}
		w.rec.mu.Lock()
		w.rec.lines = append(w.rec.lines, line{r.Time.Sub(w.rec.began), fmt.Sprintf("access %s %s://%s%s by %q %q",
			r.Method, r.Scheme, r.Host, r.URI, r.Proxy, header)})
		w.rec.mu.Unlock()
	}
}

// names are the names of the hosts of a crawl. Some belong to one domain, have one address, or are
// private addresses.
var names = []string{"h0.test", "a.shop.test", "b.shop.test", "h3.test", "h4.test:8080", "127.0.0.1", "93.184.215.14", "10.1.2.3:8443"}

// paths are the paths of pages.
var paths = []string{"/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9", "/10", "/11", "/private/1", "/private/open", "/x.html",
	"/?q=1", "/?b=2&sid=7&a=1", "/%7Eann/%2F", "/a%20b", "/ä", "/dir/", "/dir/sub/x.pdf"}

// newWorld draws a world.
func newWorld(d draw, seed uint64, rec *record, busy bool) *world {
	w := &world{seed: seed, rec: rec, asked: make(map[string]int), most: 250, busy: busy, proxies: []string{"proxy.test:3128", "proxy2.test:3128"}}
	for _, name := range names[:2+d.IntN(4)] {
		w.hosts = append(w.hosts, &host{name: name})
	}
	for _, name := range names[6:] {
		if d.in(6) {
			w.hosts = append(w.hosts, &host{name: name})
		}
	}
	for _, h := range w.hosts {
		w.fill(d, h)
	}
	return w
}

// anywhere draws a URL of the world.
func (w *world) anywhere(d draw) string {
	switch d.IntN(60) {
	case 0:
		return pick(d, "http://127.0.0.1/1", "http://10.1.2.3:8443/", "http://gone.test/", "ftp://h0.test/x", "mailto:a@h0.test", "http://h0.test:99/", "https://[::1]/", "%zz")
	case 1:
		return "http://user:secret@" + pick(d, w.hosts...).name + pick(d, paths...)
	}
	return w.urlOf(d, pick(d, w.hosts...))
}

// urlOf draws a URL of a host.
func (w *world) urlOf(d draw, h *host) string {
	scheme := "http"
	if strings.HasSuffix(h.name, "8443") || !strings.Contains(h.name, ":") && d.in(4) {
		scheme = "https"
	}
	return scheme + "://" + h.name + pick(d, paths...)
}

// fill draws the site of a host.
func (w *world) fill(d draw, h *host) {
	h.latency = pick(d, 2*time.Millisecond, 20*time.Millisecond, 150*time.Millisecond, 900*time.Millisecond)
	h.answers = map[string][]answer{"/robots.txt": w.robots(d, h)}
	if d.in(5) {
		h.answers["https:/robots.txt"] = w.robots(d, h)
	}
	for _, p := range paths {
		h.answers[p] = w.pages(d, h)
	}
	for _, p := range []string{"/moved/1", "/moved/2"} {
		h.answers[p] = []answer{w.page(d, h)}
	}
	for _, p := range []string{"/map.xml", "/map2.xml", "/sitemap.xml"} {
		if p != "/sitemap.xml" || d.in(2) {
			h.answers[p] = w.sitemaps(d, h)
		}
	}
	h.answers["/index.xml"] = []answer{{status: 200, header: map[string]string{"Content-Type": "application/xml"},
		body: robotstest.SitemapIndex("http://"+h.name+"/map.xml", "http://"+h.name+"/map2.xml", "http://"+pick(d, w.hosts...).name+"/map.xml")}}
	if d.in(3) {
		h.answers["/.well-known/tdmrep.json"] = []answer{tdm(d)}
	}
	w.fillThrottles(d, h)
}

// fillThrottles draws when a host refuses pages. The plugin makes a back-off vary at random from
// the second incident on. If that is not fixed, only one host refuses one page.
func (w *world) fillThrottles(d draw, h *host) {
	one := func() throttle {
		from := 1 + d.IntN(12)
		return throttle{from: from, to: from + 1 + d.IntN(4), status: pick(d, 429, 429, 503), after: pick(d, "", "", "1", "4", "90", "date", "soon", "-3", "7200")}
	}
	if !w.busy {
		if h == w.hosts[0] && d.in(2) {
			t := one()
			t.to = t.from + 1
			h.throttles = []throttle{t}
		}
		return
	}
	for range d.IntN(4) {
		if d.in(3) {
			h.throttles = append(h.throttles, one())
		}
	}
	if d.in(8) {
		h.throttles = append(h.throttles, throttle{most: 1 + d.IntN(4), per: d.between(time.Second, 20*time.Second), status: pick(d, 429, 503), after: pick(d, "", "2", "15")})
	}
}

// pages draws the answers to the requests for a page.
func (w *world) pages(d draw, h *host) []answer {
	page := w.page(d, h)
	fail := func(a answer) []answer { return []answer{a, page} }
	switch d.IntN(28) {
	case 0, 1:
		return []answer{redirect(d, w.anywhere(d))}
	case 2:
		return []answer{redirect(d, pick(d, "/moved/1", "/moved/2", "1", "/private/1", "?q=1", "//"+h.name+"/0", "/2", ""))}
	case 3:
		return fail(answer{fate: drop})
	case 4:
		return []answer{{fate: drop}, {fate: drop}, page}
	case 5:
		return fail(answer{status: pick(d, 500, 502, 504)})
	case 6:
		return []answer{{status: pick(d, 404, 410, 400, 500)}}
	case 7:
		return []answer{{status: pick(d, 401, 403, 451), header: pick(d, nil, map[string]string{"WWW-Authenticate": "License error=\"invalid_request\""},
			map[string]string{"Accept-Signature": `sig1=("@authority" "signature-agent");created;expires;keyid;tag="web-bot-auth"`})}, page}
	case 8:
		return fail(answer{status: pick(d, 403, 200, 202), header: pick(d, map[string]string{"Cf-Mitigated": "challenge"}, map[string]string{"X-Amzn-Waf-Action": "challenge"})})
	case 9:
		page.slow = d.between(time.Second, 40*time.Second)
	case 10:
		page.wait = d.between(time.Second, 40*time.Second)
	case 11:
		return fail(answer{fate: hang})
	case 12:
		cutOff := page
		cutOff.fate = pick(d, cut, hangIn)
		return fail(cutOff)
	case 13, 14:
		if w.busy {
			status := pick(d, 429, 503)
			return []answer{{status: status, header: map[string]string{"Retry-After": pick(d, "3", "40", "date")}}, {status: status}, page}
		}
	case 15:
		page.header["Set-Cookie"] = "id=7; Path=/"
	}
	return []answer{page}
}

// redirect draws a redirect to a URL.
func redirect(d draw, to string) answer {
	return answer{status: pick(d, 301, 302, 302, 303, 307, 308), header: map[string]string{"Location": to}}
}

// pageHeaders are headers of some pages.
var pageHeaders = []struct {
	key    string
	values []string
}{
	{"X-Robots-Tag", []string{"noindex", "nofollow", "ExampleBot: nofollow, noarchive", "none"}},
	{"Content-Usage", []string{"train-ai=n", "search=y, ai-use=n"}},
	{"Content-Signal", []string{"ai-train=no, search=yes"}},
	{"Tdm-Reservation", []string{"1", "0"}},
	{"Link", []string{`<https://h0.test/license.xml>; rel="license"; type="application/rsl+xml"`}},
}

// page draws a page with links.
func (w *world) page(d draw, h *host) answer {
	var b bytes.Buffer
	a := answer{status: http.StatusOK, header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}
	head := ""
	if d.in(6) {
		head = fmt.Sprintf(`<meta name=%q content=%q>`, pick(d, "robots", "robots", "ExampleBot", "tdm-reservation"), pick(d, "noindex", "nofollow", "none", "noai, nofollow", "1", "max-snippet:5"))
	}
	fmt.Fprintf(&b, "<!doctype html><html><head><title>A page</title>%s</head><body>", head)
	for range d.IntN(6) {
		rel := ""
		if d.in(8) {
			rel = fmt.Sprintf(" rel=%q", pick(d, "nofollow", "ugc sponsored", "next"))
		}
		to := w.urlOf(d, h)
		switch d.IntN(6) {
		case 0:
			to = w.anywhere(d)
		case 1:
			to = pick(d, paths...)
		}
		fmt.Fprintf(&b, "<a href=%q%s>x</a>", to, rel)
	}
	b.WriteString(strings.Repeat("text ", d.IntN(400)))
	a.body = b.String()
	for _, h := range pageHeaders {
		if d.in(12) {
			a.header[h.key] = pick(d, h.values...)
		}
	}
	if d.in(4) {
		a.header["ETag"] = fmt.Sprintf(`"%x"`, hashOf(a.body))
	}
	if d.in(4) {
		a.header["Cache-Control"] = pick(d, "max-age=60", "max-age=86400", "no-store", "no-cache")
	}
	if d.in(4) {
		a.header["Last-Modified"] = "Fri, 31 Dec 1999 10:00:00 GMT"
	}
	return a
}

// tdm draws a TDMRep file.
func tdm(d draw) answer {
	return answer{status: pick(d, 200, 200, 200, 500), header: map[string]string{"Content-Type": "application/json"},
		body: pick(d, `[{"location":"/","tdm-reservation":1}]`, `[{"location":"/1*","tdm-reservation":1,"tdm-policy":"https://h0.test/p"},{"location":"/","tdm-reservation":0}]`, `{`)}
}

// sitemaps draws the answers to the requests for a sitemap.
func (w *world) sitemaps(d draw, h *host) []answer {
	var locs []string
	for range d.IntN(10) {
		loc := w.urlOf(d, h)
		if d.in(5) {
			loc = w.anywhere(d)
		}
		if d.in(2) {
			loc = pick(d, "1999-12-31", "2000-01-01T00:00:30Z", "1998-05-05") + " " + loc
		}
		locs = append(locs, loc)
	}
	a := answer{status: http.StatusOK, header: map[string]string{"Content-Type": "application/xml"}, body: robotstest.Sitemap(locs...)}
	switch d.IntN(12) {
	case 0:
		status := pick(d, 404, 500, 429, 503)
		if !w.busy {
			status = http.StatusNotFound
		}
		return []answer{{status: status}, a}
	case 1:
		return []answer{redirect(d, pick(d, "/map2.xml", w.anywhere(d)))}
	case 2:
		a.body = a.body[:len(a.body)*2/3]
	case 3:
		a.body = strings.Join(locs, "\n")
		a.header["Content-Type"] = "text/plain"
	case 4:
		a.body = string(robotstest.Gzip(a.body))
	case 5:
		a.slow = d.between(time.Second, 30*time.Second)
	case 6:
		a.fate = pick(d, drop, cut, hang)
		return []answer{a, {status: http.StatusOK, body: a.body}}
	}
	return []answer{a}
}
