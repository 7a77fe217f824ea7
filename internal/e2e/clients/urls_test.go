package clients_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestUnusualURLs passes unusual URLs through each door of the plugin. Each door answers at once: with a
// denial, because the host does not exist, or with the reason why no request can be sent.
func TestUnusualURLs(t *testing.T) {
	for _, test := range kit.UnusualURLs {
		t.Run(fmt.Sprintf("%.40q", test.URL), func(t *testing.T) {
			for name, door := range map[string]func(*testing.T, *kit.Crawl, string) error{
				"Check": checks, "Acquire": acquires, "Transport": transports,
			} {
				synctest.Test(t, func(t *testing.T) {
					c := startStrict(t, robotstest.Sites{})
					wantReason(t, name, test, door(t, c, test.URL))
				})
			}
			for name, site := range map[string]robotstest.Site{
				"Visit":        {},
				"link":         {"/": robotstest.Page(test.URL, "/last")},
				"redirect":     {"/": robotstest.Page("/moved", "/last"), "/moved": movedTo(test.URL)},
				"sitemap":      {"/robots.txt": "Sitemap: " + test.URL + "\nSitemap: http://ok.test/last.txt\n", "/last.txt": "http://ok.test/last\n"},
				"sitemap page": {"/robots.txt": "Sitemap: http://ok.test/urls.txt\n", "/urls.txt": test.URL + "\nhttp://ok.test/last\n"},
				"robots.txt":   {"/robots.txt": movedTo(test.URL), "/last": ""},
			} {
				synctest.Test(t, func(t *testing.T) { crawls(t, name, test.URL, site) })
			}
		})
	}
}

// movedTo returns a handler that redirects to a URL, which need not be valid.
func movedTo(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{to}
		w.WriteHeader(http.StatusFound)
	}
}

func startStrict(t *testing.T, sites robotstest.Sites) *kit.Crawl {
	c := kit.Start(t, robotstest.New(t, sites), nil, collyrobots.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	c.Impolite = true
	return c
}

func checks(t *testing.T, c *kit.Crawl, raw string) error {
	_, err := c.Robots.Check(t.Context(), raw)
	return err
}

func acquires(t *testing.T, c *kit.Crawl, raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	req := (&http.Request{URL: u, Header: http.Header{}, Method: http.MethodGet}).WithContext(t.Context())
	turn, err := c.Robots.Acquire(t.Context(), req)
	turn.End()
	return err
}

func transports(_ *testing.T, c *kit.Crawl, raw string) error {
	resp, err := (&http.Client{Transport: c.Robots.Transport(c.Transport)}).Get(raw)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// wantReason checks the error of a door. Acquire and Transport leave URLs of other schemes to the
// client, and package net/url rejects some URLs before they get there.
func wantReason(t *testing.T, door string, test kit.UnusualURL, err error) {
	t.Helper()
	var unusable *dialect.URLError
	var denied *collyrobots.DeniedError
	var parse *url.Error
	switch {
	case test.Reason == "" && (err == nil && door == "Check" || errors.As(err, &denied)):
	case errors.As(err, &parse) && parse.Op == "parse":
	case errors.As(err, &unusable) && strings.Contains(unusable.Reason, test.Reason) && test.Reason != "":
	case test.Reason == kit.NotWeb && (door == "Check" && err != nil || door == "Acquire" && err == nil || door == "Transport" && err != nil):
	default:
		t.Errorf("%s: got error %v, want one with %q", door, err, test.Reason)
	}
}

// crawls visits a site that leads to a URL, and checks that only the pages of the site were requested.
func crawls(t *testing.T, door, raw string, site robotstest.Site) {
	if site["/"] == nil {
		site["/"] = robotstest.Page()
	}
	site["/last"] = robotstest.Page()
	web := robotstest.New(t, robotstest.Sites{"ok.test": site})
	c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}), collyrobots.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	c.Impolite = true
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	if door == "Visit" {
		err := c.Visit(raw)
		if err == nil {
			t.Errorf("%s: no error", door)
		}
		c.Visit("http://ok.test/last")
	}
	c.Visit("http://ok.test/")
	c.Wait()
	paths := kit.URIsOf(web.Log("ok.test"))
	if door != "robots.txt" && !strings.Contains(paths, "/last") {
		t.Errorf("%s: the page after it was not requested: %s", door, paths)
	}
	if len(web.Log("")) != len(web.Log("ok.test")) {
		t.Errorf("%s: requests to other hosts:\n%s", door, web.Log(""))
	}
}
