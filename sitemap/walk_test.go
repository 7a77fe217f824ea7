package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A site serves sitemaps. docs maps a URL to a document or to "-> URL" for a redirect. The site
// records the URLs that are fetched and counts the bodies that are open.
type site struct {
	docs    map[string]string
	fetched []string
	open    int
}

var errStatus = errors.New("status 404")

func (s *site) Open(ctx context.Context, loc string) (io.ReadCloser, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	s.fetched = append(s.fetched, loc)
	doc, ok := s.docs[loc]
	if to, moved := strings.CutPrefix(doc, "-> "); moved {
		loc = to
		doc, ok = s.docs[to]
	}
	if !ok {
		return nil, loc, errStatus
	}
	s.open++
	return &body{strings.NewReader(doc), s}, loc, nil
}

type body struct {
	io.Reader
	site *site
}

func (b *body) Close() error { b.site.open--; return nil }

func index(locs ...string) string {
	return "<sitemapindex><sitemap><loc>" + strings.Join(locs, "</loc></sitemap><sitemap><loc>") + "</loc></sitemap></sitemapindex>"
}

func pages(locs ...string) string {
	return "<urlset><url><loc>" + strings.Join(locs, "</loc></url><url><loc>") + "</loc></url></urlset>"
}

// walked returns the pages of a walk with the files that they came from, and the errors.
func (s *site) walked(t *testing.T, w Walker, root string) (got, errs string) {
	t.Helper()
	var locs, faults []string
	for e, err := range w.Walk(t.Context(), root, s.Open) {
		if err != nil {
			var se *Error
			if !errors.As(err, &se) || se.URL == "" {
				t.Fatalf("error of type %T, URL %q: %v", err, se.URL, err)
			}
			faults = append(faults, se.URL+" "+summary(se))
			continue
		}
		if e.Index {
			t.Errorf("%s is not a page", e.Loc)
		}
		locs = append(locs, e.Loc+" "+e.Sitemap+" "+e.Root)
	}
	if s.open != 0 {
		t.Errorf("%d bodies left open", s.open)
	}
	return strings.Join(locs, "\n"), strings.Join(faults, "\n")
}

// chain returns n indexes and a sitemap. Each index names the next one, and the last index names
// the sitemap.
func chain(n int) map[string]string {
	docs := map[string]string{}
	for i := range n {
		docs[fmt.Sprintf("http://e.test/%d", i)] = index(fmt.Sprintf("/%d", i+1))
	}
	docs[fmt.Sprintf("http://e.test/%d", n)] = pages("/page")
	return docs
}

// wideIndex returns an index that names n sitemaps with one page each.
func wideIndex(n int) map[string]string {
	docs := map[string]string{}
	var locs []string
	for i := range n {
		locs = append(locs, fmt.Sprintf("/s%d", i))
		docs[fmt.Sprintf("http://e.test/s%d", i)] = pages(fmt.Sprintf("/p%d", i))
	}
	docs["http://e.test/0"] = index(locs...)
	return docs
}

// TestWalk walks small sites from http://e.test/0.
func TestWalk(t *testing.T) {
	const visited = "entry loc sitemap was already read in this walk"
	for _, c := range []struct {
		name    string
		docs    map[string]string
		limits  Limits
		want    string // page, sitemap and root of each entry
		errs    string
		fetched int
	}{
		{"no index", map[string]string{"http://e.test/0": pages("/1", "/2")}, Limits{},
			"http://e.test/1 http://e.test/0 http://e.test/0\nhttp://e.test/2 http://e.test/0 http://e.test/0", "", 1},
		{"index", map[string]string{
			"http://e.test/0":   index("/a/s", "http://x.test/s"),
			"http://e.test/a/s": pages("1"), "http://x.test/s": "http://x.test/2"}, Limits{},
			"http://e.test/a/1 http://e.test/a/s http://e.test/0\nhttp://x.test/2 http://x.test/s http://e.test/0", "", 3},
		{"redirects", map[string]string{
			"http://e.test/0": "-> http://www.e.test/m/", "http://www.e.test/m/": index("s"),
			"http://www.e.test/m/s": "-> http://c.test/d/s", "http://c.test/d/s": pages("1")}, Limits{},
			"http://c.test/d/1 http://c.test/d/s http://www.e.test/m/", "", 2},
		{"an index that names itself", map[string]string{"http://e.test/0": index("/0", "HTTP://E.test:80/0#x", "/s"), "http://e.test/s": pages("/1")}, Limits{},
			"http://e.test/1 http://e.test/s http://e.test/0", "http://e.test/0 " + visited + "\nhttp://e.test/0 " + visited, 2},
		{"a loop", map[string]string{"http://e.test/0": index("/a"), "http://e.test/a": index("/b"), "http://e.test/b": index("/0", "/a", "/s"), "http://e.test/s": pages("/1")}, Limits{},
			"http://e.test/1 http://e.test/s http://e.test/0", "http://e.test/b " + visited + "\nhttp://e.test/b " + visited, 4},
		{"a loop by redirect", map[string]string{"http://e.test/0": index("/a"), "http://e.test/a": "-> http://e.test/0"}, Limits{},
			"", "http://e.test/a file sitemap was already read in this walk", 2},
		{"different spellings of one URL", map[string]string{"http://e.test/0": index("/%7Ea%2fb", "/~a%2Fb"), "http://e.test/%7Ea%2fb": pages("/1")}, Limits{},
			"http://e.test/1 http://e.test/%7Ea%2fb http://e.test/0", "http://e.test/0 " + visited, 2},
		{"too many nested indexes", chain(10), Limits{}, "", "http://e.test/3 file limit Depth", 4},
		{"as many nested indexes as allowed", chain(3), Limits{}, "http://e.test/page http://e.test/3 http://e.test/0", "", 4},
		{"Limits.Depth", chain(10), Limits{Depth: 1}, "", "http://e.test/1 file limit Depth", 2},
		{"a child is missing", map[string]string{"http://e.test/0": index("/a", "/s"), "http://e.test/s": pages("/1")}, Limits{},
			"http://e.test/1 http://e.test/s http://e.test/0", "http://e.test/a file status 404", 3},
		{"the root is missing", nil, Limits{}, "", "http://e.test/0 file status 404", 1},
		{"a child is HTML", map[string]string{"http://e.test/0": index("/a", "/s"), "http://e.test/a": "<html>", "http://e.test/s": pages("/1")}, Limits{},
			"http://e.test/1 http://e.test/s http://e.test/0", "http://e.test/a file not a sitemap", 3},
		{"a child is cut", map[string]string{"http://e.test/0": index("/a", "/s"), "http://e.test/a": "<urlset><loc>/2</loc>", "http://e.test/s": pages("/1")}, Limits{},
			"http://e.test/2 http://e.test/a http://e.test/0\nhttp://e.test/1 http://e.test/s http://e.test/0", "http://e.test/a file unexpected EOF", 3},
		{"pages in an index", map[string]string{"http://e.test/0": "<sitemapindex><url><loc>/1</loc></url></sitemapindex>"}, Limits{},
			"http://e.test/1 http://e.test/0 http://e.test/0", "", 1},
		{"Limits.Children", wideIndex(5), Limits{Children: 1}, "http://e.test/p0 http://e.test/s0 http://e.test/0", "http://e.test/0 file limit Children", 2},
		{"Limits.Files", wideIndex(5), Limits{Files: 2}, "http://e.test/p0 http://e.test/s0 http://e.test/0", "http://e.test/s1 file limit Files", 2},
		{"Limits.URLs", wideIndex(5), Limits{URLs: 1}, "http://e.test/p0 http://e.test/s0 http://e.test/0", "http://e.test/s1 file limit URLs", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &site{docs: c.docs}
			got, errs := s.walked(t, Walker{Limits: c.limits}, "http://e.test/0")
			if got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			if errs != c.errs {
				t.Errorf("errors:\n%s\nwant:\n%s", errs, c.errs)
			}
			if len(s.fetched) != c.fetched {
				t.Errorf("fetched %q, want %d", s.fetched, c.fetched)
			}
		})
	}
}

// TestWalkMany walks an index of 10,000 sitemaps. Each page must be returned after as few fetches
// as possible, and only the index and one sitemap may be open at a time.
func TestWalkMany(t *testing.T) {
	s := &site{docs: wideIndex(10_000)}
	n := 0
	for e, err := range Walk(t.Context(), "http://e.test/0", s.Open) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if len(s.fetched) != n+1 || s.open != 2 {
			t.Fatalf("%s: %d fetched and %d open at page %d", e.Loc, len(s.fetched), s.open, n)
		}
	}
	if n != 10_000 || s.open != 0 {
		t.Errorf("%d pages, %d open", n, s.open)
	}
}

// TestWalkStops ends walks early. No body may stay open.
func TestWalkStops(t *testing.T) {
	t.Run("by the consumer", func(t *testing.T) {
		s := &site{docs: wideIndex(5)}
		for range Walk(t.Context(), "http://e.test/0", s.Open) {
			break
		}
		if s.open != 0 || len(s.fetched) != 2 {
			t.Errorf("%d open, fetched %q", s.open, s.fetched)
		}
	})
	t.Run("by a panic", func(t *testing.T) {
		s := &site{docs: wideIndex(5)}
		func() {
			defer func() { recover() }()
			for range Walk(t.Context(), "http://e.test/0", s.Open) {
				panic("stop")
			}
		}()
		if s.open != 0 {
			t.Errorf("%d open", s.open)
		}
	})
	t.Run("by its context", func(t *testing.T) {
		s := &site{docs: wideIndex(5)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var errs []error
		for _, err := range Walk(ctx, "http://e.test/0", s.Open) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			n++
			cancel()
		}
		if n != 1 || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || s.open != 0 || len(s.fetched) != 2 {
			t.Errorf("%d pages, errors %v, %d open, fetched %q", n, errs, s.open, s.fetched)
		}
	})
	t.Run("while a file is opened", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &site{docs: wideIndex(5)}
		var errs []error
		for _, err := range Walk(ctx, "http://e.test/0", func(ctx context.Context, loc string) (io.ReadCloser, string, error) {
			if loc == "http://e.test/s1" {
				cancel()
				return nil, "", errStatus
			}
			return s.Open(ctx, loc)
		}) {
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || s.open != 0 {
			t.Errorf("%v, %d open", errs, s.open)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		s := &site{docs: wideIndex(5)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, err := range Walk(ctx, "http://e.test/0", s.Open) {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if s.fetched != nil {
			t.Errorf("fetched %q", s.fetched)
		}
	})
}

// A hanging body returns its data and then blocks until its context is done.
type hanging struct {
	io.Reader
	ctx context.Context
}

func (h *hanging) Read(p []byte) (int, error) {
	if n, _ := h.Reader.Read(p); n > 0 {
		return n, nil
	}
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (h *hanging) Close() error { return nil }

// TestWalkTime walks sitemaps of servers that do not respond or stop sending. The walk must abort
// them after Limits.Time, not counting the time that the consumer takes, and continue with the next
// sitemap.
func TestWalkTime(t *testing.T) {
	open := func(ctx context.Context, loc string) (io.ReadCloser, string, error) {
		switch loc {
		case "http://e.test/0":
			return io.NopCloser(strings.NewReader(index("/no-answer", "/no-end", "/s"))), loc, nil
		case "http://e.test/no-answer":
			<-ctx.Done()
			return nil, "", ctx.Err()
		case "http://e.test/no-end":
			time.Sleep(time.Minute)
			return &hanging{strings.NewReader("<urlset><url><loc>/1</loc></url>" + strings.Repeat(" ", 1024)), ctx}, loc, nil
		}
		return io.NopCloser(strings.NewReader(pages("/2"))), loc, nil
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var log []string
		for e, err := range (Walker{Limits: Limits{Time: 2 * time.Minute}}).Walk(t.Context(), "http://e.test/0", open) {
			at := time.Since(start)
			if err != nil {
				var se *Error
				errors.As(err, &se)
				log = append(log, fmt.Sprint(at, " ", se.URL, " ", summary(se)))
				continue
			}
			log = append(log, fmt.Sprint(at, " ", e.Loc))
			time.Sleep(time.Hour)
		}
		want := "2m0s http://e.test/no-answer file limit Time\n3m0s http://e.test/1\n" +
			"1h4m0s http://e.test/no-end file limit Time\n1h4m0s http://e.test/2"
		if got := strings.Join(log, "\n"); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		var errs []error
		for _, err := range Walk(ctx, "http://e.test/no-end", open) {
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", errs, time.Since(start))
		}
	})
}

// TestKey checks which spellings of a URL have the same key.
func TestKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"http://e.test", "http://e.test/", true},
		{"http://e.test/a", "HTTP://E.TEST:80/a#x", true},
		{"https://e.test:443/a", "https://e.test/a", true},
		{"http://e.test/%7ea%c3%a9", "http://e.test/~a%C3%A9", true},
		{"http://e.test/é", "http://e.test/%C3%A9", true},
		{"http://e.test/a?b", "http://e.test/a?%62", true},
		{"http://e.test/a", "https://e.test/a", false},
		{"http://e.test/a", "http://e.test:8080/a", false},
		{"http://e.test/a", "http://e.test/A", false},
		{"http://e.test/a", "http://e.test/a/", false},
		{"http://e.test/a/b", "http://e.test/a%2Fb", false},
		{"http://e.test/a?b", "http://e.test/a%3Fb", false},
		{"http://e.test/a?", "http://e.test/a?b", false},
		{"http://e.test/%", "http://e.test/%2", false},
	} {
		if same := keyOf(c.a) == keyOf(c.b); same != c.same {
			t.Errorf("%s and %s: %v, want %v", c.a, c.b, same, c.same)
		}
	}
}
