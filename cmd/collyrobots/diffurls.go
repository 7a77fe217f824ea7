package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/readings"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/sitemap"
)

// verdicts returns the changes of the decisions about the URLs of the list and of the sitemaps.
func (c *comparison) verdicts(ctx context.Context, stdin io.Reader, stderr io.Writer) (changes []change, err error) {
	var urls []string
	if c.urls != "" {
		urls, err = input.List(c.urls, stdin)
		if err != nil {
			return nil, err
		}
	}
	before := c.dialect.Parse(c.old.body).Group(c.tokens...)
	after := c.dialect.Parse(c.new.body).Group(c.tokens...)
	compare := func(u string) {
		sent := readings.SentURL(u)
		old := before.DecideURL(sent)
		new := after.DecideURL(sent)
		if old.Allowed != new.Allowed {
			changes = append(changes, change{
				Kind: "verdict", URL: u,
				Old: verdict(old.Allowed), OldLine: old.Rule.Line,
				New: verdict(new.Allowed), NewLine: new.Rule.Line,
			})
		}
	}
	for _, u := range urls {
		if !strings.HasPrefix(u, "/") {
			u, err = input.URL(u)
			if err != nil {
				return nil, err
			}
		}
		compare(u)
	}
	if c.sitemaps {
		err = c.walkSitemaps(ctx, stderr, compare)
	}
	return changes, err
}

// walkSitemaps calls f with each URL in the sitemaps that the files list. The requests for sitemaps
// obey the robots.txt in force. The error lists the sitemaps that could not be read.
func (c *comparison) walkSitemaps(ctx context.Context, stderr io.Writer, f func(u string)) error {
	robots, err := collyrobots.New(
		collyrobots.Dialect(c.dialect), collyrobots.ProductToken(c.tokens...),
		collyrobots.MinDelay(time.Second), collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer robots.Close()
	client := &http.Client{Transport: robots.Transport(nil)}
	progress := term.NewDisplay(stderr)
	defer progress.Close()
	var faults []error
	seen := 0
	for _, loc := range c.sitemapURLs() {
		for entry, err := range sitemap.Walk(ctx, loc, opener(client, c.tokens[0])) {
			switch {
			case err != nil:
				faults = append(faults, fmt.Errorf("%s: %w", loc, err))
			case !entry.Index:
				seen++
				f(entry.Loc)
				progress.Show(fmt.Sprintf("%s read from sitemaps", term.Number(seen, "URL")))
			}
		}
	}
	return errors.Join(faults...)
}

// sitemapURLs returns the URLs of the sitemaps that one of the files lists.
func (c *comparison) sitemapURLs() (list []string) {
	for _, text := range []robotsText{c.old, c.new} {
		for _, loc := range c.dialect.Parse(text.body).Sitemaps() {
			u, err := url.Parse(text.url)
			if err == nil {
				u, err = u.Parse(loc)
			}
			if err == nil && u.Host != "" && !slices.Contains(list, u.String()) {
				list = append(list, u.String())
			}
		}
	}
	return list
}

// opener returns a function that fetches sitemaps.
func opener(client *http.Client, token string) sitemap.Opener {
	return func(ctx context.Context, loc string) (body io.ReadCloser, finalURL string, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, loc, nil)
		if err != nil {
			return nil, "", err
		}
		req.Header.Set("User-Agent", token+"/1.0 (+https://github.com/collyrobots/collyrobots)")
		resp, err := client.Do(req)
		if err != nil {
			return nil, "", err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, "", fmt.Errorf("status %d", resp.StatusCode)
		}
		return resp.Body, resp.Request.URL.String(), nil
	}
}
