package compare

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

// tokens are the names of crawlers in robots.txt.
var tokens = []string{"*", "ExampleBot", "OtherBot", "examplebot-news", "ThirdBot", "Googlebot"}

// patterns are the values of Allow and Disallow.
var patterns = []string{"/1", "/private", "/private/open", "/*.html$", "/?q=", "/2$", "/3", "/dir/", "/dir/sub", "*sid=", "/%7Eann", "/ä", "/a b", "/a%20b", "/$", "",
	"/*/", "/5", "/7", "/*.pdf", "*"}

// body draws the text of a robots.txt.
func (w *world) body(d draw, h *host) string {
	var b strings.Builder
	if d.in(6) {
		b.WriteString(pick(d, "\ufeff", "<html>not a file</html>\n", "Disallow: /4\n", "# a comment\n\n", "\x00\x01\n", "Crawl-delay: 2\n"))
	}
	for _, names := range groupNames(d) {
		for _, name := range names {
			fmt.Fprintf(&b, "%s: %s\n", pick(d, "User-agent", "User-agent", "user-agent ", "Useragent"), name)
		}
		w.group(d, h, &b)
	}
	for range d.IntN(3) {
		fmt.Fprintf(&b, "Sitemap: http://%s%s\n", pick(d, h, h, h, pick(d, w.hosts...)).name, pick(d, "/map.xml", "/map.xml", "/map2.xml", "/index.xml", "/none.xml"))
	}
	text := b.String()
	switch d.IntN(20) {
	case 0:
		text = strings.ReplaceAll(text, "\n", "\r")
	case 1:
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case 2:
		text = strings.Repeat("# "+strings.Repeat("x", 1000)+"\n", 5) + text
	case 3:
		text = ""
	}
	return text
}

// groupNames draws the names of the groups of a robots.txt.
func groupNames(d draw) (groups [][]string) {
	groups = append(groups, []string{"*"})
	for range d.IntN(3) {
		groups = append(groups, some(d, 1+d.IntN(2), tokens...))
	}
	if d.in(3) {
		groups[0], groups[len(groups)-1] = groups[len(groups)-1], groups[0]
	}
	return groups
}

// group draws the lines of a group.
func (w *world) group(d draw, h *host, b *strings.Builder) {
	for range d.IntN(4) {
		fmt.Fprintf(b, "%s: %s\n", pick(d, "Disallow", "Disallow", "Allow", "disallow", "Noindex"), pick(d, patterns...))
	}
	if d.in(25) {
		b.WriteString("Disallow: /\n")
	}
	lines := []string{
		"Crawl-delay: " + pick(d, "0.3", "0.5", "1", "1", "2.5", "3", "7", "abc", "-1", "45", "3600"),
		"Request-rate: " + pick(d, "1/2", "10/1m", "1/5s 0600-1800", "0/0"),
		"Visit-time: " + pick(d, "0000-1200", "2200-0559", "1000-1100"),
		"Content-Usage: " + pick(d, "train-ai=n", "/1 ai-use=n", "search=n", "/dir train-ai=y"),
		"Content-Signal: " + pick(d, "ai-train=no", "search=yes, ai-input=no", "/1 ai-train=no"),
		"License: https://" + h.name + "/license.xml",
		"Clean-param: " + pick(d, "sid", "sid&a /", "a"),
		"Host: " + h.name,
	}
	for i, line := range lines {
		if i == 0 && d.in(2) || i > 0 && d.in(9) {
			b.WriteString(line + "\n")
		}
	}
}

// robots draws the answers to the requests for a robots.txt.
func (w *world) robots(d draw, h *host) []answer {
	file := func() answer {
		a := answer{status: http.StatusOK, header: map[string]string{"Content-Type": "text/plain"}, body: w.body(d, h)}
		if d.in(3) {
			a.header["Cache-Control"] = pick(d, "max-age=5", "max-age=30", "max-age=600", "no-store", "no-cache")
		}
		if d.in(3) {
			a.header["ETag"] = fmt.Sprintf(`"%x"`, hashOf(a.body))
		}
		return a
	}
	all := []answer{file()}
	if d.in(3) {
		all = append(all, file())
	}
	first := all[0]
	kind := d.IntN(24)
	if !w.busy && 2 <= kind && kind <= 4 {
		kind = 5
	}
	switch kind {
	case 0:
		return []answer{{status: pick(d, 404, 410, 400)}}
	case 1:
		return []answer{{status: pick(d, 401, 403, 451)}}
	case 2:
		return append([]answer{{status: pick(d, 500, 502, 503, 599)}}, all...)
	case 3:
		return append([]answer{{status: 503, header: map[string]string{"Retry-After": pick(d, "2", "60", "date")}}}, all...)
	case 4:
		return append([]answer{{status: 429, header: map[string]string{"Retry-After": pick(d, "", "5", "300")}}}, all...)
	case 5:
		return []answer{{status: 500}}
	case 6:
		return append([]answer{redirect(d, pick(d, "/moved/robots.txt", "/robots.txt?1", "http://"+pick(d, w.hosts...).name+"/robots.txt", "https://"+h.name+"/robots.txt", "http://10.9.9.9/robots.txt", "/robots.txt"))}, all...)
	case 7:
		return append([]answer{{fate: drop}}, all...)
	case 8:
		return append([]answer{{fate: hang}}, all...)
	case 9:
		broken := first
		broken.fate = pick(d, cut, hangIn)
		return append([]answer{broken}, all...)
	case 10:
		all[0].slow = d.between(time.Second, 20*time.Second)
	case 11:
		all[0].wait = d.between(time.Second, 20*time.Second)
	case 12:
		return append(all, answer{status: pick(d, 500, 404, 403)}, first)
	case 13:
		all[0].header["Content-Encoding"] = "gzip"
		all[0].body = string(robotstest.Gzip(first.body))
	}
	return all
}
