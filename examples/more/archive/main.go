// Command archive visits pages and writes WARC 1.1 files of them, for archives and researchers:
//
//	archive -dir crawl -max 100 https://example.com/
//
// The files have a request and a response record for each request that was sent, also for robots.txt. For
// each page, also for one that was denied, a metadata record has the decision as JSON: whether the page was
// allowed, and by which line of which robots.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"

	"github.com/PuerkitoBio/goquery"

	"github.com/collyrobots/collyrobots"
)

func main() {
	dir := flag.String("dir", ".", "the folder of the WARC files")
	most := flag.Int("max", 100, "how many pages are requested")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &spider{most: *most, options: []collyrobots.Option{collyrobots.Polite()}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // the archive has the bodies as they were sent
	err := s.run(ctx, *dir, transport, flag.Args())
	fmt.Printf("%d pages, %d denied\n", s.pages, s.denied)
	if err != nil {
		log.Fatal(err)
	}
}

// agent is the name of the crawler.
const agent = "ExampleArchiver/1.0 (+https://example.com/bot)"

// A spider visits pages and the pages of the same hosts that they link to.
type spider struct {
	most    int
	options []collyrobots.Option

	robots  *collyrobots.Plugin
	archive *archive
	client  *http.Client
	pages   int // that have a response
	denied  int
}

// run visits pages from start on. It requests them with next, and writes WARC files to dir.
func (s *spider) run(ctx context.Context, dir string, next http.RoundTripper, start []string) (err error) {
	s.archive = newArchive(dir, next)
	defer func() { err = errors.Join(err, s.archive.close()) }()
	s.robots, err = collyrobots.New(s.options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.robots.Close()) }()
	s.client = &http.Client{Transport: s.robots.Transport(s.archive)}
	seen := make(map[string]bool)
	for waiting := start; len(waiting) > 0 && len(seen) < s.most && ctx.Err() == nil; waiting = waiting[1:] {
		page := waiting[0]
		if seen[page] {
			continue
		}
		seen[page] = true
		links, err := s.visit(ctx, page)
		if err != nil {
			return err
		}
		waiting = append(waiting, links...)
	}
	return ctx.Err()
}

// visit requests a page and returns its links. The error is one of the archive.
func (s *spider) visit(ctx context.Context, page string) (links []string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		log.Print(err)
		return nil, nil
	}
	req.Header.Set("User-Agent", agent)
	resp, err := s.client.Do(req)
	var denied *collyrobots.DeniedError
	switch {
	case errors.As(err, &denied):
		s.denied++
		return nil, s.archive.writeDecision(denied.Decision)
	case err != nil:
		log.Print(err)
		return nil, s.archive.fault()
	}
	defer resp.Body.Close()
	s.pages++
	decision, err := s.robots.Check(collyrobots.WithUserAgent(ctx, agent), resp.Request.URL.String())
	if err != nil {
		return nil, err
	}
	return linksOf(resp), errors.Join(s.archive.writeDecision(decision), s.archive.fault())
}

// linksOf returns the links of a page to pages of its host.
func linksOf(resp *http.Response) (links []string) {
	page, err := goquery.NewDocumentFromReader(resp.Body)
	if err != nil {
		return nil
	}
	for _, a := range page.Find("a[href]").EachIter() {
		to, err := resp.Request.URL.Parse(a.AttrOr("href", ""))
		if err == nil && to.Host == resp.Request.URL.Host && to.Scheme == resp.Request.URL.Scheme {
			links = append(links, withoutFragment(to))
		}
	}
	return links
}

// withoutFragment returns a URL without its fragment, which names a part of the same page.
func withoutFragment(u *url.URL) string {
	page := *u
	page.Fragment = ""
	return page.String()
}
