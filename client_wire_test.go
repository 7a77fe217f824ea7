package collyrobots_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A starter is a function like start.
type starter func(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *crawl

// forEachClient calls f twice: with start, and with a starter whose crawls send their requests by
// an http.Client.
func forEachClient(t *testing.T, f func(t *testing.T, start starter)) {
	t.Run("collector", func(t *testing.T) { f(t, start) })
	t.Run("http.Client", func(t *testing.T) { f(t, startClient) })
}

// startClient is like start, but the crawl sends its requests by an http.Client.
func startClient(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *crawl {
	t.Helper()
	c := start(t, web, collector, opts...)
	c.client = &http.Client{Transport: c.robots.Transport(c.transport)}
	return c
}

// WithTransport is like colly.Collector.WithTransport.
func (c *crawl) WithTransport(rt http.RoundTripper) {
	c.Collector.WithTransport(rt)
	if c.client != nil {
		c.client.Transport = c.robots.Transport(rt)
	}
}

// SetRequestTimeout is like colly.Collector.SetRequestTimeout. The timeout of an http.Client would
// include the wait, so here it limits the time until the headers are there, and that of the body.
func (c *crawl) SetRequestTimeout(timeout time.Duration) {
	c.Collector.SetRequestTimeout(timeout)
	if c.client != nil {
		c.timeout = timeout
		c.transport.ResponseHeaderTimeout = timeout
	}
}

// Visit is like colly.Collector.Visit.
func (c *crawl) Visit(url string) error {
	if c.client == nil {
		return c.Collector.Visit(url)
	}
	return c.do(http.MethodGet, url, nil, "")
}

// Post is like colly.Collector.Post.
func (c *crawl) Post(to string, form map[string]string) error {
	if c.client == nil {
		return c.Collector.Post(to, form)
	}
	values := make(url.Values)
	for name, value := range form {
		values.Set(name, value)
	}
	return c.do(http.MethodPost, to, strings.NewReader(values.Encode()), "application/x-www-form-urlencoded")
}

// Wait is like colly.Collector.Wait.
func (c *crawl) Wait() {
	c.requests.Wait()
	c.Collector.Wait()
}

// follow makes the crawl visit the links of each page.
func (c *crawl) follow() *crawl {
	c.follows = true
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c
}

// do sends a request with client, in a goroutine of its own if the collector is asynchronous.
func (c *crawl) do(method, url string, body io.Reader, contentType string) error {
	if c.Async {
		c.requests.Go(func() { c.fetch(method, url, body, contentType) })
		return nil
	}
	return c.fetch(method, url, body, contentType)
}

// fetch sends a request with client and records the result.
func (c *crawl) fetch(method, url string, body io.Reader, contentType string) error {
	page, text, err := c.exchange(method, url, body, contentType)
	c.note(func() {
		if err == nil {
			c.pages = append(c.pages, page.String())
			return
		}
		c.errs[url] = err
		if isRefusal(err) {
			c.denied[url] = err
		}
	})
	if err == nil && c.follows {
		c.followLinks(page, text)
	}
	return err
}

// followLinks visits the links of a page that were not visited before.
func (c *crawl) followLinks(page *url.URL, text string) {
	for _, link := range hrefs.FindAllStringSubmatch(text, -1) {
		to, err := page.Parse(link[1])
		if err != nil {
			continue
		}
		_, before := c.visited.LoadOrStore(to.String(), true)
		if !before {
			c.Visit(to.String())
		}
	}
}

var hrefs = regexp.MustCompile(`<a href="([^"]*)"`)

// exchange sends a request with client, and returns the URL and the body of the response. Like a
// collector it returns an error for each status other than 200 to 202.
func (c *crawl) exchange(method, to string, body io.Reader, contentType string) (page *url.URL, text string, err error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if c.timeout > 0 {
		defer time.AfterFunc(c.timeout, cancel).Stop()
	}
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, "", err
	}
	if resp.StatusCode > http.StatusAccepted {
		return nil, "", errors.New(http.StatusText(resp.StatusCode))
	}
	return resp.Request.URL, string(read), nil
}

// isRefusal reports whether the plugin has refused a request with err.
func isRefusal(err error) bool {
	private := (*collyrobots.PrivateNetworkError)(nil)
	return errors.Is(err, colly.ErrRobotsTxtBlocked) || errors.Is(err, collyrobots.ErrRedirectWait) ||
		errors.Is(err, collyrobots.ErrClosed) || errors.As(err, &private)
}
