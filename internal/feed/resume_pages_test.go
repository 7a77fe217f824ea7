package feed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// crash is like one run of crawls, but the process dies when it visits the page loc.
func crash(t *testing.T, w *world, o Options, loc string) (visited string) {
	t.Helper()
	records := &mortal{Store: o.Store}
	o.Store, o.Resume = records, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	visit := w.visit
	defer func() { w.visit = visit }()
	w.visit = func(e sitemap.Entry) Result {
		if e.Loc == loc {
			records.die()
			cancel()
			return Unfinished
		}
		if visit != nil {
			return visit(e)
		}
		return Done
	}
	w.start(o)
	w.crawl(ctx, "http://a.test", "http://a.test/index.xml")
	w.asks()
	return w.visits()
}

// TestNewestFirstKeepsAPageWithTwoDates checks that with NewestFirst, a page that two files list
// with different dates is not lost if the process dies after the pages around its second place were
// fetched.
func TestNewestFirstKeepsAPageWithTwoDates(t *testing.T) {
	const site = "http://a.test/"
	dated := []string{"1999-12-19 " + site + "x"}
	for i := range 10 {
		dated = append(dated, fmt.Sprintf("1999-12-%02d %sn%d", 20-i, site, i))
	}
	for _, order := range [][]string{{"a.xml", "b.xml"}, {"b.xml", "a.xml"}} {
		w := newWorld(map[string]any{
			site + "index.xml": index(site+order[0], site+order[1]),
			site + "a.xml":     urlset(site + "x"),
			site + "b.xml":     urlset(dated...),
		})
		o := Options{NewestFirst: true, MaxURLs: 100, Window: 1, Store: store.NewMemory()}
		first := crash(t, w, o, site+"n6")
		_, rest := crawls(t, w, o, 2, nil)
		both := strings.Fields(first + " " + rest[0])
		if n := count(both, "a.test/x"); n != 1 {
			t.Errorf("%v: /x was fetched %d times: %s, then %s", order, n, first, rest[0])
		}
		if rest[1] != "" {
			t.Errorf("%v: the last run fetched %s", order, rest[1])
		}
	}
}

// TestNewestFirstTakesTheNewestDateOfAPage checks that a page that is listed several times has its
// newest date.
func TestNewestFirstTakesTheNewestDateOfAPage(t *testing.T) {
	const site = "http://a.test/"
	var undated []string
	for i := range extraNewest + 10 {
		undated = append(undated, fmt.Sprint(site, "old", i))
	}
	w := newWorld(map[string]any{
		site + "index.xml": index(site+"all.xml", site+"news.xml"),
		site + "all.xml":   urlset(append(undated, site+"dropped", site+"both")...),
		site + "news.xml":  urlset("1999-12-01 "+site+"one", "1999-12-03 "+site+"both", "1999-12-02 "+site+"dropped"),
	})
	w.start(Options{NewestFirst: true, MaxURLs: 3})
	w.crawl(t.Context(), "http://a.test", site+"index.xml")
	w.want(t, "visited", strings.Join(w.visited, " "), site+"both "+site+"dropped "+site+"one")
}

// TestChangedPageThatAnotherFileLists checks that a page whose file has changed is fetched again,
// even if another file that is not done lists it and has not changed.
func TestChangedPageThatAnotherFileLists(t *testing.T) {
	const site = "http://a.test/"
	for name, options := range map[string]Options{"in order": {}, "newest first": {NewestFirst: true, MaxURLs: 100}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[string]any{
				site + "index.xml": index(site+"a.xml", site+"b.xml"),
				site + "a.xml":     urlset("1999-02-02 "+site+"x", site+"failing"),
				site + "b.xml":     urlset("1999-02-02 " + site + "x"),
			})
			w.visit = func(e sitemap.Entry) Result {
				if strings.Contains(e.Loc, "failing") {
					return Failed
				}
				return Done
			}
			options.Store, options.Window = store.NewMemory(), 1
			_, visited := crawls(t, w, options, 1, nil)
			runs := visited
			w.files[site+"b.xml"] = urlset("1999-03-03 "+site+"new", "1999-03-01 "+site+"x")
			runs = append(runs, crash(t, w, options, site+"new")) // which comes before /x
			_, visited = crawls(t, w, options, 2, nil)
			runs = append(runs, visited...)
			for run, want := range []int{1, 0, 1, 0} {
				if n := count(strings.Fields(runs[run]), "a.test/x"); n != want {
					t.Errorf("run %d fetched %s, with /x %d times", run, runs[run], want)
				}
			}
		})
	}
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}

// cutAt returns a file whose transfer fails after n bytes.
func cutAt(doc string, n int) func(context.Context, http.Header, time.Duration, *http.Response) {
	return func(_ context.Context, _ http.Header, _ time.Duration, resp *http.Response) {
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(doc[:n]), failure{io.ErrUnexpectedEOF}))
	}
}

// TestFileThatEndsEarlyOnce checks that a file that ends early, or is not a sitemap for one
// request, leaves its record unchanged: neither this run nor the next one fetches its pages again.
func TestFileThatEndsEarlyOnce(t *testing.T) {
	const site = "http://a.test/"
	doc := urlset(numberedURLs(site, 100)...)
	zipped := gzipped(doc)
	for name, file := range map[string]struct{ whole, bad any }{
		"transfer":       {doc, cutAt(doc, len(doc)*9/10)},
		"document":       {doc, doc[:len(doc)*9/10]},
		"gzip":           {zipped, zipped[:len(zipped)-20]},
		"nothing":        {doc, ""},
		"an HTML page":   {doc, "<html><body>We are back soon.</body></html>"},
		"no longer ends": {doc, strings.TrimSuffix(doc, "</urlset>")},
	} {
		for _, newest := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", newest), func(t *testing.T) {
				w := newWorld(map[string]any{site + "index.xml": file.whole})
				o := Options{Window: 1, Store: store.NewMemory()}
				if newest {
					o.NewestFirst, o.MaxURLs = true, 1000
				}
				key := "sitemap ScopeHost a.test a.test/index.xml"
				var before []byte
				_, visited := crawls(t, w, o, 4, func(run int, w *world, _ *Options) {
					w.files[site+"index.xml"] = file.whole
					switch run {
					case 1:
						w.files[site+"index.xml"] = file.bad
						before, _ = o.Store.Get(t.Context(), key)
					case 2:
						if after, _ := o.Store.Get(t.Context(), key); string(after) != string(before) || len(after) == 0 {
							t.Errorf("the record was\n%s and is\n%s", before, after)
						}
					}
				})
				for run, want := range []int{100, 0, 0, 0} {
					if n := len(strings.Fields(visited[run])); n != want {
						t.Errorf("run %d fetched %d pages, want %d", run, n, want)
					}
				}
			})
		}
	}
}

// TestFileThatIsCutOffAtFirst checks a file whose transfer was cut off when it was first read. When
// it is complete, its pages are not fetched again, unless the file has changed.
func TestFileThatIsCutOffAtFirst(t *testing.T) {
	const site = "http://a.test/"
	doc := urlset(numberedURLs(site, 100)...)
	other := strings.Replace(doc, "/50<", "/fifty<", 1)
	for name, test := range map[string]struct {
		then any
		want []int
	}{
		"whole":               {doc, []int{50, 50, 0}},
		"cut off later":       {cutAt(doc, strings.Index(doc, "/70<")), []int{50, 20, 0}},
		"cut off earlier":     {cutAt(doc, strings.Index(doc, "/30<")), []int{50, 0, 0}},
		"changed after that":  {other, []int{50, 50, 0}},
		"changed before that": {strings.Replace(doc, "/20<", "/twenty<", 1), []int{50, 100, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(nil)
			_, visited := crawls(t, w, Options{}, 3, func(run int, w *world, _ *Options) {
				w.files = map[string]any{site + "index.xml": cutAt(doc, strings.Index(doc, "/50<")-len("<loc>http://a.test"))}
				if run > 0 {
					w.files[site+"index.xml"] = test.then
				}
			})
			for run, want := range test.want {
				if n := len(strings.Fields(visited[run])); n != want {
					t.Errorf("run %d fetched %d pages, want %d", run, n, want)
				}
			}
		})
	}
}

// TestFileThatEndsEarlyInTheMiddleOfACrawl checks that a crawl that was interrupted also continues
// past a file that ends early.
func TestFileThatEndsEarlyInTheMiddleOfACrawl(t *testing.T) {
	const site = "http://a.test/"
	doc := urlset(numberedURLs(site, 100)...)
	w := newWorld(map[string]any{site + "index.xml": doc})
	seen := make(map[string]int)
	_, visited := crawls(t, w, Options{MaxURLs: 40, Window: 1}, 4, func(run int, w *world, _ *Options) {
		w.files[site+"index.xml"] = doc
		if run == 1 {
			w.files[site+"index.xml"] = cutAt(doc, len(doc)*6/10)
		}
	})
	for run := range visited {
		for _, loc := range strings.Fields(visited[run]) {
			seen[loc]++
		}
	}
	for i := range 100 {
		if loc := fmt.Sprint("a.test/", i); seen[loc] != 1 {
			t.Errorf("%s was fetched %d times", loc, seen[loc])
		}
	}
}

// TestSkippedPagesAreNotDone checks that pages that are denied, dropped or refused are not done.
// They are fetched when robots.txt, Keep or the collector allows them, and no other page is fetched
// again.
func TestSkippedPagesAreNotDone(t *testing.T) {
	const site = "http://a.test/"
	for name, skip := range map[string]func(w *world, o *Options, skips func(loc string) bool){
		"denied": func(w *world, _ *Options, skips func(string) bool) {
			w.allow = func(u *url.URL) (bool, Result) { return !skips(u.String()), Skipped }
		},
		"dropped": func(_ *world, o *Options, skips func(string) bool) {
			o.Keep = func(e sitemap.Entry) bool { return !skips(e.Loc) }
		},
		"refused": func(w *world, _ *Options, skips func(string) bool) {
			w.take = func(e sitemap.Entry) bool { return !skips(e.Loc) }
		},
	} {
		for _, newest := range []bool{false, true} {
			for _, async := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " newest first ", newest, " async ", async), func(t *testing.T) {
					w := newWorld(map[string]any{
						site + "index.xml": index(site+"a.xml", site+"b.xml"),
						site + "a.xml":     urlset(site+"1", "1999-05-05 "+site+"2", site+"3"),
						site + "b.xml":     urlset("1999-05-06 "+site+"2", site+"4", "1999-05-07 "+site+"5"),
					})
					w.async = async
					o := Options{}
					if newest {
						o.NewestFirst, o.MaxURLs = true, 1000
					}
					asked, visited := crawls(t, w, o, 6, func(run int, w *world, o *Options) {
						skip(w, o, func(loc string) bool {
							return run == 0 || run < 4 && strings.ContainsAny(loc, "25") || run == 5
						})
					})
					all := "a.test/a.xml a.test/b.xml a.test/index.xml"
					for run, want := range []string{"", "a.test/1 a.test/3 a.test/4", "", "", "a.test/2 a.test/5", ""} {
						if visited[run] != want {
							t.Errorf("run %d fetched %s, want %s", run, visited[run], want)
						}
						if asked[run] != all {
							t.Errorf("run %d asked for %s", run, asked[run])
						}
					}
				})
			}
		}
	}
}

// TestDeniedPageHasNotFailed checks that a page that was denied has not failed: it is not given up
// after three runs.
func TestDeniedPageHasNotFailed(t *testing.T) {
	const site = "http://a.test/"
	w := newWorld(map[string]any{site + "index.xml": urlset(site + "1")})
	w.visit = func(sitemap.Entry) Result { return Failed }
	_, visited := crawls(t, w, Options{}, 12, func(run int, w *world, _ *Options) {
		w.allow = func(*url.URL) (bool, Result) { return run%3 == 2, Skipped }
	})
	w.want(t, "visited", strings.Join(visited, ","), ",,a.test/1,,,a.test/1,,,a.test/1,,,")
}

// TestRecordsOfDeniedPagesAreSmall checks that the records of a site stay small even if many of its
// pages are denied, and that no other page is fetched twice.
func TestRecordsOfDeniedPagesAreSmall(t *testing.T) {
	const pages = 20_000
	for name, test := range map[string]struct {
		denies func(i int) bool
		most   int // bytes of the record
	}{
		"all":          {func(int) bool { return true }, 300},
		"every second": {func(i int) bool { return i%2 == 0 }, 28_000},
		"every tenth":  {func(i int) bool { return i%10 == 0 }, 6_000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(map[string]any{"http://a.test/index.xml": urlset(numberedURLs("http://a.test/", pages)...)})
			w.allow = func(u *url.URL) (bool, Result) {
				i := 0
				fmt.Sscan(u.Path[1:], &i)
				return !test.denies(i), Skipped
			}
			s := store.NewMemory()
			_, visited := crawls(t, w, Options{Store: s, Window: 4 * pages}, 2, nil)
			want := len(slices.DeleteFunc(slices.Collect(upTo(pages)), test.denies))
			if first, second := len(strings.Fields(visited[0])), len(strings.Fields(visited[1])); first != want || second != 0 {
				t.Errorf("%d and then %d pages were fetched, want %d and 0", first, second, want)
			}
			val, err := s.Get(t.Context(), "sitemap ScopeHost a.test a.test/index.xml")
			if err != nil || len(val) == 0 || len(val) > test.most {
				t.Errorf("a record of %d bytes, %v", len(val), err)
			}
		})
	}
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// TestNewestFirstAndAFileThatEndsEarly checks that with NewestFirst, an interrupted crawl loses no
// page in a run when the file ends early.
func TestNewestFirstAndAFileThatEndsEarly(t *testing.T) {
	const site = "http://a.test/"
	var entries []string
	for i := range 40 { // the oldest are at the beginning
		entries = append(entries, fmt.Sprintf("1999-01-%02d %s%d", 1+i/2, site, i))
	}
	doc := urlset(entries...)
	for _, first := range []any{doc, cutAt(doc, len(doc)/2)} {
		w := newWorld(map[string]any{site + "index.xml": first})
		o := Options{NewestFirst: true, MaxURLs: 10, Window: 1, Store: store.NewMemory()}
		_, visited := crawls(t, w, o, 3, func(run int, w *world, o *Options) {
			switch run {
			case 1:
				w.files[site+"index.xml"] = cutAt(doc, len(doc)/3)
			case 2:
				w.files[site+"index.xml"] = doc
				o.MaxURLs = 100
			}
		})
		fetched := strings.Fields(strings.Join(visited, " "))
		for i := range 40 {
			if loc := fmt.Sprint("a.test/", i); !slices.Contains(fetched, loc) {
				t.Errorf("%s was not fetched", loc)
			}
		}
	}
}
