package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	oldRules = "User-agent: *\nDisallow: /a\nDisallow: /b # comment\nCrawl-delay: 5\nSitemap: https://a.test/1.xml\n\nUser-agent: Foo\nDisallow: /\n"
	newRules = "User-agent: *\nDisallow: /b\nAllow: /b/c\n\nCrawl-delay: 10\nSitemap: https://a.test/2.xml\n"
)

func TestDiff(t *testing.T) {
	before := fileOf(t, oldRules)
	after := fileOf(t, newRules)
	const all = `User-agent: *
  - Disallow: /a (line 2)
  + Allow: /b/c (line 3)
  - Crawl-delay 5s (line 4)
  + Crawl-delay 10s (line 5)
User-agent: Foo
  + Disallow: /b (line 2)
  + Allow: /b/c (line 3)
  - Disallow: / (line 8)
  + Crawl-delay 10s (line 5)
Sitemaps:
  - https://a.test/1.xml
  + https://a.test/2.xml
`
	for _, test := range []struct {
		name   string
		args   []string
		stdin  string
		status int
		out    string
	}{
		{"changes", []string{before, after}, "", 1, all + "Changes: 5 rules, 2 delays, 2 sitemaps, 0 verdicts\n"},
		{"the same file", []string{before, before}, "", 0, "No changes between " + before + " and " + before + "\n"},
		{"standard input", []string{before, "-"}, strings.ReplaceAll(oldRules, "\n", "\r\n") + "# end", 0, "No changes between " + before + " and standard input\n"},
		{"URLs", []string{"-urls", "-", before, after}, "/a\na.test/b/c\nhttps://a.test/x\n", 1,
			all + "Verdicts:\n  ! /a: allowed, was denied (line 2)\n  ! https://a.test/b/c: allowed (line 3), was denied (line 3)\nChanges: 5 rules, 2 delays, 2 sitemaps, 2 verdicts\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, errs := call(t, test.stdin, append([]string{"diff"}, test.args...)...)
			if status != test.status || out != test.out || errs != "" {
				t.Errorf("status %d\n%s%swant %d\n%s", status, out, errs, test.status, test.out)
			}
		})
	}
	_, out, _ := call(t, "", "diff", "-json", before, after)
	if first, _, _ := strings.Cut(out, "\n"); first != `{"kind":"rule","crawler":"*","old":"Disallow: /a","old_line":2}` || strings.Count(out, "\n") != 9 {
		t.Error(out)
	}
}

// TestDiffSitemaps checks the decisions about the pages in the sitemaps of a site.
func TestDiffSitemaps(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("User-agent: *\nDisallow: /old\nSitemap: /s.xml\n"))
	})
	mux.HandleFunc("/s.xml", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("<urlset><url><loc>/old/1</loc></url><url><loc>/new/1</loc></url><url><loc>/x</loc></url></urlset>"))
	})
	after := fileOf(t, "User-agent: *\nDisallow: /new\nSitemap: /s.xml\n")
	status, out, errs := call(t, "", "diff", "-sitemaps", server.URL, after)
	for _, want := range []string{"/old/1: allowed, was denied (line 2)\n", "/new/1: denied (line 2), was allowed\n", "2 verdicts\n"} {
		if status != 1 || !strings.Contains(out, want) {
			t.Errorf("status %d\n%s%s", status, out, errs)
		}
	}
	mux.HandleFunc("/t.xml", http.NotFound)
	status, _, errs = call(t, "", "diff", "-sitemaps", server.URL, fileOf(t, "Sitemap: "+server.URL+"/t.xml\n"))
	if status != 2 || !strings.Contains(errs, "/t.xml: ") || !strings.Contains(errs, "status 404") {
		t.Errorf("status %d, %s", status, errs)
	}
}
