package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// crawls crawls a site several times with the same store. It returns the requests and the visits of
// each run. If change is not nil, it changes the world before each run.
func crawls(t *testing.T, w *world, o Options, n int, change func(run int, w *world, o *Options)) (asked, visited []string) {
	t.Helper()
	o.Resume = true
	if o.Store == nil {
		o.Store = store.NewMemory()
	}
	for run := range n {
		if change != nil {
			change(run, w, &o)
		}
		w.start(o)
		w.crawl(t.Context(), "http://a.test", "http://a.test/index.xml")
		asked, visited = append(asked, w.asks()), append(visited, w.visits())
	}
	return asked, visited
}

// withETag responds with a document, or with 304.
func withETag(doc string) func(context.Context, http.Header, time.Duration, *http.Response) {
	return func(_ context.Context, h http.Header, _ time.Duration, resp *http.Response) {
		tag := fmt.Sprintf(`"%d"`, len(doc))
		resp.Header.Set("ETag", tag)
		if h.Get("If-None-Match") == tag {
			resp.StatusCode = http.StatusNotModified
			return
		}
		resp.Body = body(doc)
	}
}

func TestResume(t *testing.T) {
	const site = "http://a.test/"
	for _, test := range []struct {
		name    string
		files   map[string]any
		options Options
		change  func(run int, w *world, o *Options)
		asked   []string
		visited []string
	}{
		{
			name: "files that have not changed are skipped",
			files: map[string]any{
				site + "index.xml": index(site+"map.xml", site+"etag.xml"),
				site + "map.xml":   urlset(site+"1", site+"2"),
				site + "etag.xml":  withETag(urlset(site + "3")),
			},
			change: func(run int, w *world, _ *Options) {
				if run == 2 {
					w.files[site+"map.xml"] = urlset(site+"1", site+"2", site+"4")
				}
			},
			asked:   []string{"a.test/etag.xml a.test/index.xml a.test/map.xml", "a.test/etag.xml 304 a.test/index.xml a.test/map.xml", "a.test/etag.xml 304 a.test/index.xml a.test/map.xml"},
			visited: []string{"a.test/1 a.test/2 a.test/3", "", "a.test/1 a.test/2 a.test/4"},
		},
		{
			name:  "a file becomes a redirect to one with the same ETag",
			files: map[string]any{site + "index.xml": withETag(urlset(site + "1"))},
			change: func(run int, w *world, _ *Options) {
				if run == 1 {
					w.files[site+"index.xml"] = "-> " + site + "map.xml"
					w.files[site+"map.xml"] = withETag(urlset(site + "2"))
				}
			},
			asked:   []string{"a.test/index.xml", "a.test/index.xml 302 a.test/map.xml", "a.test/index.xml 302 a.test/map.xml"},
			visited: []string{"a.test/1", "a.test/2", ""},
		},
		{
			name: "the lastmod of an index saves requests",
			files: map[string]any{
				site + "index.xml": index("1998-01-01 "+site+"a.xml", "1998-01-01 "+site+"b.xml", "1999-12-31T12:00:00Z "+site+"new.xml"),
				site + "a.xml":     urlset(site + "a"), site + "b.xml": urlset(site + "b"), site + "new.xml": urlset(site + "new"),
			},
			change: func(run int, w *world, _ *Options) {
				if run == 2 {
					w.files[site+"index.xml"] = index("1998-01-01 "+site+"a.xml", "1998-01-02 "+site+"b.xml", site+"new.xml")
				}
			},
			asked:   []string{"a.test/a.xml a.test/b.xml a.test/index.xml a.test/new.xml", "a.test/index.xml a.test/new.xml", "a.test/b.xml a.test/index.xml a.test/new.xml", "a.test/index.xml a.test/new.xml"},
			visited: []string{"a.test/a a.test/b a.test/new", "", "", ""},
		},
		{
			name: "files of an index are added and removed",
			files: map[string]any{
				site + "index.xml": index(site + "a.xml"),
				site + "a.xml":     urlset(site+"1", site+"2"), site + "b.xml": urlset(site+"2", site+"3"),
			},
			change: func(run int, w *world, _ *Options) {
				switch run {
				case 1:
					w.files[site+"index.xml"] = index(site+"a.xml", site+"b.xml")
				case 2:
					w.files[site+"index.xml"] = index(site + "b.xml")
				}
			},
			asked:   []string{"a.test/a.xml a.test/index.xml", "a.test/a.xml a.test/a.xml a.test/b.xml a.test/index.xml", "a.test/b.xml a.test/index.xml"},
			visited: []string{"a.test/1 a.test/2", "a.test/3", ""},
		},
		{
			name:  "Since changes",
			files: map[string]any{site + "index.xml": urlset("1997-01-01 "+site+"1997", "1999-01-01 "+site+"1999")},
			change: func(run int, _ *world, o *Options) {
				o.Since = time.Date([]int{1998, 1999, 1996}[run], 1, 1, 0, 0, 0, 0, time.UTC)
			},
			asked:   []string{"a.test/index.xml", "a.test/index.xml", "a.test/index.xml"},
			visited: []string{"a.test/1999", "", "a.test/1997 a.test/1999"},
		},
		{
			name:    "Scope changes",
			files:   map[string]any{site + "index.xml": urlset(site+"1", "http://www.a.test/2")},
			change:  func(run int, _ *world, o *Options) { o.Scope = []Scope{ScopeHost, ScopeWWW, ScopeWWW}[run] },
			asked:   []string{"a.test/index.xml", "a.test/index.xml", "a.test/index.xml"},
			visited: []string{"a.test/1", "a.test/1 www.a.test/2", ""},
		},
		{
			name:    "MaxURLs in each run",
			files:   map[string]any{site + "index.xml": urlset(numberedURLs(site, 5)...)},
			options: Options{MaxURLs: 2},
			asked:   slices.Repeat([]string{"a.test/index.xml"}, 4),
			visited: []string{"a.test/0 a.test/1", "a.test/2 a.test/3", "a.test/4", ""},
		},
		{
			name: "NewestFirst with the pages that are left",
			files: map[string]any{
				site + "index.xml": index(site+"a.xml", site+"b.xml"),
				site + "a.xml":     urlset("1991-01-01 "+site+"91", "1995-01-01 "+site+"95", site+"undated"),
				site + "b.xml":     urlset("1993-01-01 "+site+"93", "1994-01-01 "+site+"94", "1991-01-01 "+site+"91"),
			},
			options: Options{NewestFirst: true, MaxURLs: 2},
			asked:   []string{"a.test/a.xml a.test/b.xml a.test/index.xml", "a.test/a.xml a.test/b.xml a.test/index.xml", "a.test/a.xml a.test/b.xml a.test/index.xml", "a.test/a.xml a.test/b.xml a.test/index.xml"},
			visited: []string{"a.test/94 a.test/95", "a.test/91 a.test/93", "a.test/undated", ""},
		},
		{
			name: "NewestFirst with a page that is listed twice and left",
			files: map[string]any{
				site + "index.xml": index(site+"a.xml", site+"b.xml"),
				site + "a.xml":     urlset("1995-01-01 "+site+"95", "1991-01-01 "+site+"91"),
				site + "b.xml":     urlset("1994-01-01 "+site+"94", "1991-01-01 "+site+"91"),
			},
			options: Options{NewestFirst: true, MaxURLs: 2},
			asked:   slices.Repeat([]string{"a.test/a.xml a.test/b.xml a.test/index.xml"}, 3),
			visited: []string{"a.test/94 a.test/95", "a.test/91", ""},
		},
		{
			name:  "a file that is cut off until it is complete",
			files: map[string]any{site + "index.xml": "<urlset><url><loc>" + site + "1</loc></url><url><loc>" + site + "2"},
			change: func(run int, w *world, _ *Options) {
				if run == 2 {
					w.files[site+"index.xml"] = urlset(site+"1", site+"2")
				}
			},
			asked:   slices.Repeat([]string{"a.test/index.xml"}, 4),
			visited: []string{"a.test/1", "", "a.test/1 a.test/2", ""},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where it is the year 2000
				asked, visited := crawls(t, newWorld(test.files), test.options, len(test.asked), test.change)
				for run := range test.asked {
					if asked[run] != test.asked[run] || visited[run] != test.visited[run] {
						t.Errorf("run %d\nasked for %s\nwant      %s\nvisited   %s\nwant      %s", run, asked[run], test.asked[run], visited[run], test.visited[run])
					}
				}
			})
		})
	}
}

// TestRecordOfTheFuture checks that a record that a wrong clock has dated in the future saves no
// request.
func TestRecordOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where it is the year 2000
		const key = "sitemap ScopeHost a.test a.test/a.xml"
		s := store.NewMemory()
		w := newWorld(map[string]any{"http://a.test/index.xml": index("1999-12-31 http://a.test/a.xml"), "http://a.test/a.xml": urlset("http://a.test/1")})
		asked, visited := crawls(t, w, Options{Store: s}, 4, func(run int, w *world, _ *Options) {
			if run == 1 {
				err := s.Update(t.Context(), key, 0, func(old []byte) ([]byte, error) {
					r := make(map[string]any)
					if err := json.Unmarshal(old, &r); err != nil || r["Done"] != true {
						t.Errorf("%s, %v", old, err)
					}
					r["Read"] = time.Now().Add(400 * 24 * time.Hour).Unix()
					return json.Marshal(r)
				})
				if err != nil {
					t.Fatal(err)
				}
				w.files["http://a.test/a.xml"] = urlset("http://a.test/1", "http://a.test/2")
			}
			time.Sleep(48 * time.Hour)
		})
		w.want(t, "asked", strings.Join(asked, ", "), "a.test/a.xml a.test/index.xml, a.test/a.xml a.test/index.xml, a.test/index.xml, a.test/index.xml")
		w.want(t, "visited", strings.Join(visited, ", "), "a.test/1, a.test/1 a.test/2, , ")
	})
}

// TestFailedPageIsTriedAgain checks that three runs try a page that fails, and that it is then counted
// as given up.
func TestFailedPageIsTriedAgain(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/index.xml": urlset(numberedURLs("http://a.test/", 3)...)})
	w.visit = func(e sitemap.Entry) Result {
		if e.Loc == "http://a.test/1" {
			return Failed
		}
		return Done
	}
	givenUp := 0
	_, visited := crawls(t, w, Options{}, 5, func(_ int, w *world, _ *Options) {
		if w.feed != nil {
			givenUp += w.feed.Count(GivenUp)
		}
	})
	if givenUp != 1 {
		t.Errorf("%d pages were given up", givenUp)
	}
	if got, want := strings.Join(visited, ", "), "a.test/0 a.test/1 a.test/2, a.test/1, a.test/1, , "; got != want {
		t.Errorf("visited %s, want %s", got, want)
	}
}

// TestRecordsAreSmall checks that the record of a site is small if the site is down, or if every
// second page fails.
func TestRecordsAreSmall(t *testing.T) {
	for name, fails := range map[string]func(i int) bool{
		"all":          func(int) bool { return true },
		"every second": func(i int) bool { return i%2 == 0 },
	} {
		s := store.NewMemory()
		w := newWorld(map[string]any{"http://a.test/index.xml": urlset(numberedURLs("http://a.test/", 6_000)...)})
		i := 0
		w.visit = func(sitemap.Entry) Result {
			i++
			if fails(i) {
				return Failed
			}
			return Done
		}
		_, visited := crawls(t, w, Options{Store: s}, 2, nil)
		val, err := s.Get(t.Context(), "sitemap ScopeHost a.test a.test/index.xml")
		if err != nil || len(val) == 0 || len(val) > 40_000 {
			t.Errorf("%s: a record of %d bytes, %v", name, len(val), err)
		}
		if first, second := strings.Fields(visited[0]), strings.Fields(visited[1]); len(first) != 6_000 || len(second) < 3_000 {
			t.Errorf("%s: %d and then %d pages were visited", name, len(first), len(second))
		}
	}
}

// A counting is a store that counts the writes.
type counting struct {
	store.Store
	writes int
	err    error
}

func (c *counting) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	c.writes++
	if c.err != nil {
		return c.err
	}
	return c.Store.Update(ctx, key, ttl, f)
}

func TestFewRecordsAreWritten(t *testing.T) {
	s := &counting{Store: store.NewMemory()}
	w := newWorld(map[string]any{"http://a.test/index.xml": urlset(numberedURLs("http://a.test/", 1600)...)})
	crawls(t, w, Options{Store: s, Window: 64}, 1, nil)
	if s.writes > 1600/16+1 {
		t.Errorf("%d records for 1600 pages", s.writes)
	}
}

// TestStoreThatFails checks that a store that fails costs only the next run its place.
func TestStoreThatFails(t *testing.T) {
	s := &counting{Store: store.NewMemory(), err: errors.New("disk full")}
	w := newWorld(map[string]any{"http://a.test/index.xml": urlset(numberedURLs("http://a.test/", 100)...)})
	w.async = true
	_, visited := crawls(t, w, Options{Store: s, Window: 2}, 2, nil)
	for run := range visited {
		if n := len(strings.Fields(visited[run])); n != 100 {
			t.Errorf("run %d: %d pages", run, n)
		}
	}
	if !strings.Contains(w.log.String(), "disk full") {
		t.Errorf("log: %s", w.log.String())
	}
}

// TestResumeOfPages checks that a page from Pages is done when the loop calls Done, however late,
// and from any goroutine.
func TestResumeOfPages(t *testing.T) {
	w := newWorld(map[string]any{"http://a.test/map.xml": urlset(numberedURLs("http://a.test/", 100)...)})
	s := store.NewMemory()
	sites := slices.Values([]Site{{authority("http://a.test"), []string{"http://a.test/map.xml"}}})
	var late []*Page
	n := 0
	for p, err := range w.start(Options{Resume: true, Store: s}).feed.Pages(t.Context(), w, sites) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if n == 50 {
			break
		}
		late = append(late, p)
	}
	for _, p := range late[10:] {
		p.Done(Done)
	}
	w.feed.Flush()
	var got []string
	for p := range w.start(Options{Resume: true, Store: s}).feed.Pages(t.Context(), w, sites) {
		got = append(got, p.Loc)
		p.Done(Done)
	}
	want := append(numberedURLs("http://a.test/", 10), numberedURLs("http://a.test/", 100)[49:]...)
	if !slices.Equal(got, want) {
		t.Errorf("the second run got %v, want %v", got, want)
	}
	for p := range w.start(Options{Resume: true, Store: s}).feed.Pages(t.Context(), w, sites) {
		t.Errorf("the third run got %s", p.Loc)
	}
}
