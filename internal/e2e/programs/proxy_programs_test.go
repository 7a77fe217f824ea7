package programs

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/proxy"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// proxyURLs are the proxies of the programs in proxyPrograms.
var proxyURLs = []string{"http://proxy0.test:3128", "http://proxy1.test:3128", "http://proxy2.test:3128"}

// exitFails returns a function that answers requests through proxy0 with a status, as a proxy does
// that cannot reach the site.
func exitFails(code int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !isFromProxy(r, "proxy0.test") {
			return false
		}
		w.WriteHeader(code)
		return true
	}
}

// isFromProxy reports whether a request was sent to this proxy.
func isFromProxy(r *http.Request, name string) bool {
	local := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return strings.HasPrefix(local.String(), name)
}

// behindProxies returns a library that can be reached through proxies. If exit is not nil, it may
// answer in place of a site.
func behindProxies(exit func(w http.ResponseWriter, r *http.Request) bool) func() robotstest.Sites {
	return func() robotstest.Sites {
		sites := robotstest.Sites{}
		for host, site := range library() {
			served := robotstest.Site{}
			for path, page := range site {
				served[path] = func(w http.ResponseWriter, r *http.Request) {
					if exit == nil || !exit(w, r) {
						answers(page.(string))(w, r)
					}
				}
			}
			served["/robots.txt"] = func(w http.ResponseWriter, r *http.Request) {
				if exit == nil || !exit(w, r) {
					w.WriteHeader(http.StatusNotFound)
				}
			}
			sites[host] = served
		}
		for _, u := range proxyURLs {
			sites[strings.TrimPrefix(u, "http://")] = nil
		}
		return sites
	}
}

// retryNext retries each page that no proxy or site has answered with a page, at most ten times.
func retryNext(p *kit.Run, c *colly.Collector, before func()) {
	c.OnError(func(r *colly.Response, err error) {
		tries, _ := r.Ctx.GetAny("tries").(int)
		denied := (*collyrobots.DeniedError)(nil)
		if errors.As(err, &denied) && denied.Decision.Reason == report.ReasonRule || tries == 10 {
			return
		}
		r.Ctx.Put("tries", tries+1)
		if before != nil {
			before()
		}
		r.Request.Retry()
	})
}

// rotating returns a program that visits pages through all proxies and retries those that fail.
func rotating(options ...colly.CollectorOption) func(p *kit.Run) {
	return func(p *kit.Run) {
		c := got(p, p.Collector(options...))
		rotate, err := proxy.RoundRobinProxySwitcher(proxyURLs...)
		kit.Must(p.T, err)
		c.SetProxyFunc(rotate)
		retryNext(p, c, func() { time.Sleep(time.Second) })
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
		visitEach(c, someOf("b.test")...)
		c.Wait()
	}
}

// through returns a transport that uses one proxy.
func through(p *kit.Run, proxyURL string) *http.Transport {
	u, err := url.Parse(proxyURL)
	kit.Must(p.T, err)
	t := p.Web.Transport()
	t.Proxy = http.ProxyURL(u)
	return t
}

// proxyPrograms use proxies, some of which fail.
var proxyPrograms = []program{
	{name: "rotates proxies, one of which answers 503, in parallel", sites: behindProxies(exitFails(503)), exit: exitFails(503), unordered: true, rotates: true, run: rotating(colly.Async())},
	{name: "rotates proxies, one of which asks for a password", sites: behindProxies(exitFails(407)), exit: exitFails(407), unordered: true, rotates: true, run: rotating()},
	{name: "has one collector for each proxy in parallel, the first of which is a bad exit", sites: behindProxies(exitFails(502)), exit: exitFails(502), unordered: true, run: func(p *kit.Run) {
		var group sync.WaitGroup
		for _, u := range proxyURLs {
			c := got(p, p.Collector())
			kit.Must(p.T, c.SetProxy(u))
			p.Attach(c)
			group.Go(func() { visitEach(c, someOf("a.test")...) })
		}
		group.Wait()
	}},
	{name: "has a proxy with a password for one site and none for another", sites: behindProxies(nil), run: func(p *kit.Run) {
		c := got(p, p.Collector())
		c.SetProxyFunc(func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "a.test" {
				return url.Parse("http://user:secret@proxy1.test:3128")
			}
			return nil, nil
		})
		p.Attach(c)
		visitEach(c, someOf("a.test")...)
		visitEach(c, someOf("b.test")...)
		for _, r := range p.Web.Log("") {
			if r.Header.Get("Proxy-Authorization") != "" && r.Proxy == "" {
				p.Errorf("%s%s got the password of the proxy", r.Host, r.URI)
			}
		}
	}},
	{name: "has a client for each proxy", sites: behindProxies(exitFails(503)), exit: exitFails(503), run: func(p *kit.Run) {
		for _, u := range proxyURLs {
			client := &http.Client{Transport: wrap(p, through(p, u))}
			for _, page := range someOf("a.test") {
				p.Say("%s", get(p, client, page, "ExampleBot/1.0"))
			}
		}
	}},
	{name: "changes the proxy of its client after an error", sites: behindProxies(exitFails(407)), exit: exitFails(407), run: func(p *kit.Run) {
		client := &http.Client{Transport: wrap(p, through(p, proxyURLs[0]))}
		for _, page := range someOf("a.test") {
			result := get(p, client, page, "ExampleBot/1.0")
			if !strings.HasPrefix(result, "200") {
				client = &http.Client{Transport: wrap(p, through(p, proxyURLs[1]))}
				result = get(p, client, page, "ExampleBot/1.0")
			}
			p.Say("%s", result)
		}
	}},
}

// wrap returns a transport of the plugin, or next without the plugin.
func wrap(p *kit.Run, next http.RoundTripper) http.RoundTripper {
	if p.Plugin == nil {
		return next
	}
	return p.Plugin.Transport(next)
}

// get requests a page with a client and returns its status and URL, or "no page" if it fails or
// is not found behind a proxy.
func get(p *kit.Run, client *http.Client, page, agent string) string {
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, page, nil)
	kit.Must(p.T, err)
	r.Header.Set("User-Agent", agent)
	response, err := client.Do(r)
	if err != nil {
		return "no page " + page
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "no page " + page
	}
	return fmt.Sprintf("200 %s", page)
}
