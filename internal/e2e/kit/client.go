package kit

import (
	"context"
	"errors"
	"io"
	"log/slog"
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

// A Starter is a function like Start.
type Starter func(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *Crawl

// ForEachClient calls f twice: with Start, and with a starter whose crawls send their requests by
// an http.Client.
func ForEachClient(t *testing.T, f func(t *testing.T, start Starter)) {
	t.Run("collector", func(t *testing.T) { f(t, Start) })
	t.Run("http.Client", func(t *testing.T) { f(t, StartClient) })
}

// StartClient is like Start, but the crawl sends its requests by an http.Client.
func StartClient(t testing.TB, web *robotstest.Web, collector []colly.CollectorOption, opts ...collyrobots.Option) *Crawl {
	t.Helper()
	c := Start(t, web, collector, opts...)
	c.Client = &http.Client{Transport: c.Robots.Transport(c.Transport)}
	return c
}

// WithTransport is like colly.Collector.WithTransport.
func (c *Crawl) WithTransport(rt http.RoundTripper) {
	c.Collector.WithTransport(rt)
	if c.Client != nil {
		c.Client.Transport = c.Robots.Transport(rt)
	}
}

// SetRequestTimeout is like colly.Collector.SetRequestTimeout. The timeout of an http.Client would
// include the wait, so here it limits the time until the headers are there, and that of the body.
func (c *Crawl) SetRequestTimeout(timeout time.Duration) {
	c.Collector.SetRequestTimeout(timeout)
	if c.Client != nil {
		c.timeout = timeout
		c.Transport.ResponseHeaderTimeout = timeout
	}
}

// Visit is like colly.Collector.Visit.
func (c *Crawl) Visit(url string) error {
	if c.Client == nil {
		return c.Collector.Visit(url)
	}
	return c.do(http.MethodGet, url, nil, "")
}

// Post is like colly.Collector.Post.
func (c *Crawl) Post(to string, form map[string]string) error {
	if c.Client == nil {
		return c.Collector.Post(to, form)
	}
	values := make(url.Values)
	for name, value := range form {
		values.Set(name, value)
	}
	return c.do(http.MethodPost, to, strings.NewReader(values.Encode()), "application/x-www-form-urlencoded")
}

// Wait is like colly.Collector.Wait.
func (c *Crawl) Wait() {
	c.requests.Wait()
	c.Collector.Wait()
}

// Follow makes the crawl visit the links of each page.
func (c *Crawl) Follow() *Crawl {
	c.follows = true
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	return c
}

// do sends a request with client, in a goroutine of its own if the collector is asynchronous.
func (c *Crawl) do(method, url string, body io.Reader, contentType string) error {
	if c.Async {
		c.requests.Go(func() { c.fetch(method, url, body, contentType) })
		return nil
	}
	return c.fetch(method, url, body, contentType)
}

// fetch sends a request with client and records the result.
func (c *Crawl) fetch(method, url string, body io.Reader, contentType string) error {
	page, text, err := c.exchange(method, url, body, contentType)
	c.Note(func() {
		if err == nil {
			c.Pages = append(c.Pages, page.String())
			return
		}
		c.Errs[url] = err
		if isRefusal(err) {
			c.Denied[url] = err
		}
	})
	if err == nil && c.follows {
		c.followLinks(page, text)
	}
	return err
}

// followLinks visits the links of a page that were not visited before.
func (c *Crawl) followLinks(page *url.URL, text string) {
	for _, link := range Hrefs.FindAllStringSubmatch(text, -1) {
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

// Hrefs matches the links of a page of robotstest.
var Hrefs = regexp.MustCompile(`<a href="([^"]*)"`)

// exchange sends a request with client, and returns the URL and the body of the response. Like a
// collector it returns an error for each status other than 200 to 202.
func (c *Crawl) exchange(method, to string, body io.Reader, contentType string) (page *url.URL, text string, err error) {
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
	resp, err := c.Client.Do(req)
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
	return IsDenial(err) || errors.Is(err, collyrobots.ErrRedirectWait) ||
		errors.Is(err, collyrobots.ErrClosed) || errors.As(err, &private)
}

// NewRobots returns a plugin without a collector, and a client that uses it.
func NewRobots(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) (*collyrobots.Plugin, *http.Client) {
	t.Helper()
	opts = append([]collyrobots.Option{
		collyrobots.Logger(slog.New(slog.DiscardHandler)),
		collyrobots.ProductToken("ExampleBot"),
	}, opts...)
	p, err := collyrobots.New(opts...)
	Must(t, err)
	t.Cleanup(func() { Must(t, p.Close()) })
	next := web.Transport()
	t.Cleanup(next.CloseIdleConnections)
	return p, &http.Client{Transport: p.Transport(next)}
}

// Get makes a GET request and returns the body of the response.
func Get(client *http.Client, url string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// NewRequest returns a GET request.
func NewRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	Must(t, err)
	req.Header.Set("User-Agent", "ExampleBot/1.0")
	return req
}

// NewTurns returns a plugin that requests robots.txt from web.
func NewTurns(t *testing.T, web *robotstest.Web, opts ...collyrobots.Option) *collyrobots.Plugin {
	t.Helper()
	next := web.Transport()
	t.Cleanup(next.CloseIdleConnections)
	p, _ := NewRobots(t, web, append(opts, collyrobots.RobotsClient(&http.Client{Transport: next}))...)
	return p
}
