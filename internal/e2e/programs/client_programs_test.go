package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The programs in clientPrograms are in the style of public Go crawlers that use an http.Client.

// A clientRun is one run of such a program.
type clientRun struct {
	*kit.Run
	client *http.Client
	ctx    context.Context
}

// byClient returns a function that runs a program with a client.
func byClient(run func(p *clientRun)) func(p *kit.Run) {
	return func(p *kit.Run) { run(&clientRun{Run: p, client: p.Client(), ctx: p.Context()}) }
}

// TestClientPrograms checks that each program has the same output and the same requests with the
// plugin and without it if robots.txt allows everything, and that it makes no request that a strict
// robots.txt denies.
func TestClientPrograms(t *testing.T) {
	for _, x := range clientPrograms {
		t.Run(x.name, func(t *testing.T) {
			x.sites = clientSites
			x.closed = "User-agent: *\nDisallow: /closed\nDisallow: /missing\nDisallow: /private\nCrawl-delay: 7\n"
			x.options = func(*kit.Run) []collyrobots.Option {
				return []collyrobots.Option{collyrobots.ProductToken("ExampleBot")}
			}
			x.isSame(t)
			x.obeys(t)
		})
	}
}

// request returns a request of the program.
func (p *clientRun) request(method, url string) *http.Request {
	req, err := http.NewRequestWithContext(p.ctx, method, url, nil)
	kit.Must(p.T, err)
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	return req
}

// page requests a page, prints the result, and returns the URLs of its links.
func (p *clientRun) page(url string) []string {
	resp, err := p.client.Do(p.request(http.MethodGet, url))
	if err != nil {
		p.Say("%s: %s", url, outcome(err))
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	p.Say("%s: %d, %s, %d bytes, %v", url, resp.StatusCode, resp.Request.URL, len(text), err)
	return linksIn(resp.Request.URL, string(text))
}

// linksIn returns the URLs of the links of a page.
func linksIn(page *url.URL, text string) (links []string) {
	for _, link := range kit.Hrefs.FindAllStringSubmatch(text, -1) {
		to, err := page.Parse(link[1])
		if err == nil {
			links = append(links, to.String())
		}
	}
	return links
}

// clientSites returns the sites of clientPrograms.
func clientSites() robotstest.Sites {
	echo := func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }
	tagged := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, "text")
	}
	login := func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/"})
		http.Redirect(w, r, "/members", http.StatusSeeOther)
	}
	members := func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session"); err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		io.WriteString(w, robotstest.Page("/1"))
	}
	large := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "large", time.Unix(1, 0), bytes.NewReader(make([]byte, 50000)))
	}
	return robotstest.Sites{
		"a.test": {
			"/":          robotstest.Page("/1", "/2", "/moved", "/gone", "/closed", "http://b.test/"),
			"/1":         robotstest.Page("/", "/2", "/3"),
			"/2":         robotstest.Page("/1", "/closed/2"),
			"/3":         robotstest.Page(),
			"/moved":     robotstest.Redirect("http://b.test/target"),
			"/to-closed": robotstest.Redirect("/closed"),
			"/loop":      robotstest.Redirect("/loop"),
			"/gone":      410,
			"/drop":      kit.Drop,
			"/closed":    robotstest.Page(),
			"/closed/2":  robotstest.Page(),
			"/echo":      echo,
			"/tagged":    tagged,
			"/login":     login,
			"/members":   members,
			"/large":     large,
			"/silent":    kit.Hang,
		},
		"b.test": {"/": robotstest.Page("/private", "/target"), "/target": robotstest.Page("/private"), "/private": robotstest.Page()},
	}
}

// retrying returns a client that sends each request up to three times, as
// hashicorp/go-retryablehttp does: it sends the same *http.Request again, with a new body.
func retrying(next http.RoundTripper) http.RoundTripper {
	return kit.RoundTripper(func(req *http.Request) (resp *http.Response, err error) {
		for try := range 3 {
			if try > 0 {
				time.Sleep(time.Second)
				if req.GetBody != nil {
					req.Body, err = req.GetBody()
					if err != nil {
						return nil, err
					}
				}
			}
			resp, err = next.RoundTrip(req)
			if errors.Is(err, colly.ErrRobotsTxtBlocked) || err == nil && resp.StatusCode < 500 {
				return resp, err
			}
			if err == nil && try < 2 {
				resp.Body.Close()
			}
		}
		return resp, err
	})
}

var clientPrograms = []program{
	{name: "a loop over a list", run: byClient(func(p *clientRun) {
		for _, path := range []string{"/", "/1", "/2", "/closed", "/gone", "/moved", "/missing", "/to-closed"} {
			p.page("http://a.test" + path)
		}
	})},
	{name: "a recursive crawler", run: byClient(func(p *clientRun) {
		visited := make(map[string]bool)
		var visit func(url string, depth int)
		visit = func(url string, depth int) {
			if visited[url] || depth > 3 {
				return
			}
			visited[url] = true
			for _, link := range p.page(url) {
				visit(link, depth+1)
			}
		}
		visit("http://a.test/", 0)
	})},
	{name: "a recursive crawler with open bodies", run: byClient(func(p *clientRun) {
		visited := make(map[string]bool)
		var visit func(url string)
		visit = func(url string) {
			if visited[url] {
				return
			}
			visited[url] = true
			resp, err := p.client.Do(p.request(http.MethodGet, url))
			if err != nil {
				p.Say("%s: %s", url, outcome(err))
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			p.Say("%s: %d bytes, %v", url, len(text), err)
			for _, link := range linksIn(resp.Request.URL, string(text)) {
				visit(link)
			}
		}
		visit("http://a.test/")
	})},
	{name: "a queue with a goroutine for each host", parallel: true, run: byClient(func(p *clientRun) { // like fetchbot
		queues := make(map[string]chan string)
		var group sync.WaitGroup
		for _, link := range []string{"http://a.test/", "http://b.test/", "http://a.test/1", "http://a.test/closed", "http://b.test/private", "http://b.test/target"} {
			to, err := url.Parse(link)
			kit.Must(p.T, err)
			queue, open := queues[to.Host]
			if !open {
				queue = make(chan string, 100)
				queues[to.Host] = queue
				group.Go(func() {
					for link := range queue {
						p.page(link)
					}
				})
			}
			queue <- link
		}
		for _, queue := range queues {
			close(queue)
		}
		group.Wait()
	})},
	{name: "a pool of workers", parallel: true, run: byClient(func(p *clientRun) { // like gleaner
		links := make(chan string)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for link := range links {
					p.page(link)
				}
			})
		}
		for _, path := range []string{"/", "/1", "/2", "/3", "/closed", "/closed/2", "/gone", "/moved", "/to-closed"} {
			links <- "http://a.test" + path
		}
		close(links)
		group.Wait()
	})},
	{name: "a goroutine for each link", parallel: true, run: byClient(func(p *clientRun) {
		var visited sync.Map
		var group sync.WaitGroup
		var visit func(link string)
		visit = func(link string) {
			_, before := visited.LoadOrStore(link, true)
			if before {
				return
			}
			group.Go(func() {
				for _, next := range p.page(link) {
					visit(next)
				}
			})
		}
		visit("http://a.test/")
		group.Wait()
	})},
	{name: "a link checker", run: byClient(func(p *clientRun) { // it closes no body of HEAD
		for _, path := range []string{"/1", "/2", "/gone", "/missing", "/closed", "/moved", "/drop"} {
			resp, err := p.client.Do(p.request(http.MethodHead, "http://a.test"+path))
			if err != nil {
				p.Say("%s: %s", path, outcome(err))
				continue
			}
			p.Say("%s: %d %d", path, resp.StatusCode, resp.ContentLength)
			if resp.StatusCode >= 400 {
				p.page("http://a.test" + path)
			}
		}
	})},
	{name: "an archiver", parallel: true, run: byClient(func(p *clientRun) { // another goroutine writes the body
		type file struct {
			name string
			body io.ReadCloser
		}
		files := make(chan file)
		var group sync.WaitGroup
		group.Go(func() {
			for f := range files {
				n, err := io.Copy(io.Discard, f.body)
				f.body.Close()
				p.Say("%s: %d bytes, %v", f.name, n, err)
			}
		})
		for _, path := range []string{"/large", "/1", "/closed", "/large?2", "/2"} {
			resp, err := p.client.Do(p.request(http.MethodGet, "http://a.test"+path))
			if err != nil {
				p.Say("%s: %s", path, outcome(err))
				continue
			}
			files <- file{name: path, body: resp.Body}
		}
		close(files)
		group.Wait()
	})},
	{name: "a monitor with ETags", run: byClient(func(p *clientRun) {
		tag := ""
		for range 3 {
			req := p.request(http.MethodGet, "http://a.test/tagged")
			if tag != "" {
				req.Header.Set("If-None-Match", tag)
			}
			resp, err := p.client.Do(req)
			kit.Must(p.T, err)
			tag = resp.Header.Get("ETag")
			p.Say("%d %s", resp.StatusCode, tag)
			if resp.StatusCode == http.StatusOK {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			time.Sleep(time.Hour)
		}
	})},
	{name: "a client with retries around the plugin", run: byClient(func(p *clientRun) {
		p.client.Transport = retrying(p.client.Transport)
		for _, path := range []string{"/1", "/drop", "/closed", "/2"} {
			p.page("http://a.test" + path)
		}
		resp, err := p.client.Post("http://a.test/echo", "text/plain", strings.NewReader("hello"))
		kit.Must(p.T, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		p.Say("%s %v", text, err)
	})},
	{name: "the same request again and again", run: byClient(func(p *clientRun) {
		req := p.request(http.MethodGet, "http://a.test/1")
		for range 3 {
			resp, err := p.client.Do(req)
			kit.Must(p.T, err)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			p.Say("%d %s", resp.StatusCode, resp.Request.URL)
		}
	})},
	{name: "the same request in several goroutines", run: byClient(func(p *clientRun) {
		req := p.request(http.MethodGet, "http://a.test/1")
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				resp, err := p.client.Do(req)
				if err != nil {
					p.Say("%s", outcome(err))
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				p.Say("%d bytes, %v", len(text), err)
			})
		}
		group.Wait()
	})},
	{name: "a login with cookies", run: byClient(func(p *clientRun) {
		jar, err := cookiejar.New(nil)
		kit.Must(p.T, err)
		p.client.Jar = jar
		resp, err := p.client.PostForm("http://a.test/login", url.Values{"name": {"x"}})
		kit.Must(p.T, err)
		resp.Body.Close()
		p.Say("%d %s %s", resp.StatusCode, resp.Request.Method, resp.Request.URL)
		for _, link := range p.page("http://a.test/members") {
			p.page(link)
		}
	})},
	{name: "a check of redirects", run: byClient(func(p *clientRun) {
		p.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
			p.Say("%s after %d, from %s", req.URL, len(via), req.Response.Request.URL)
			if len(via) > 2 {
				return errors.New("too many")
			}
			return nil
		}
		for _, path := range []string{"/moved", "/loop", "/to-closed"} {
			p.page("http://a.test" + path)
		}
		p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		p.page("http://a.test/moved")
	})},
	{name: "a download in parts", run: byClient(func(p *clientRun) {
		for i := range 3 {
			req := p.request(http.MethodGet, "http://a.test/large")
			req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", i*1000, i*1000+999))
			resp, err := p.client.Do(req)
			kit.Must(p.T, err)
			n, err := io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			p.Say("%d %s %d %v", resp.StatusCode, resp.Header.Get("Content-Range"), n, err)
		}
	})},
	{name: "a deadline for each page", run: byClient(func(p *clientRun) {
		for _, path := range []string{"/1", "/silent", "/2"} {
			ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
			resp, err := p.client.Do(p.request(http.MethodGet, "http://a.test"+path).WithContext(ctx))
			if err != nil {
				p.Say("%s: %s, context %v", path, outcome(err), ctx.Err())
			} else {
				n, err := io.Copy(io.Discard, resp.Body)
				p.Say("%s: %d %v", path, n, err)
				resp.Body.Close()
			}
			cancel()
		}
	})},
	{name: "a crawl that is canceled", parallel: true, run: byClient(func(p *clientRun) {
		ctx, cancel := context.WithCancel(p.ctx)
		p.ctx = ctx
		time.AfterFunc(90*time.Second, cancel)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { p.page("http://a.test/silent") })
		}
		group.Wait()
	})},
}
