package feed

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// TestPageThatHasChanged checks that a page that an earlier run has fetched is fetched again if a
// file says that it has changed since then, also if an earlier run has not read that file.
func TestPageThatHasChanged(t *testing.T) {
	const site = "http://a.test/"
	for name, newest := range map[string]bool{"in the order of the files": false, "newest first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(map[string]any{
					site + "index.xml": index(site+"a.txt", site+"b.xml"),
					site + "a.txt":     strings.Join([]string{site + "1", site + "2", site + "3", site + "4"}, "\n"),
					site + "b.xml":     urlset("1999-05-05 "+site+"1", "2000-01-02 "+site+"2", site+"3", "2000-01-02 "+site+"4", site+"5"),
				})
				options := Options{Window: 1}
				if newest {
					options.NewestFirst = true
					options.MaxURLs = 100
					delete(w.files, site+"b.xml") // with NewestFirst, all files are read before the first page
				}
				_, visited := crawls(t, w, options, 5, func(run int, w *world, o *Options) {
					w.visit = nil
					switch run {
					case 0:
						w.visit = func(e sitemap.Entry) Result {
							if strings.HasSuffix(e.Loc, "/4") {
								return Unfinished
							}
							return Done
						}
					case 1:
						time.Sleep(47 * time.Hour)
						w.files[site+"b.xml"] = urlset("1999-05-05 "+site+"1", "2000-01-02 "+site+"2", site+"3", "2000-01-02 "+site+"4", site+"5")
					case 3:
						w.files[site+"index.xml"] = index(site+"a.txt", site+"b.xml", site+"c.xml")
						w.files[site+"c.xml"] = urlset("2000-01-02T12:00:00Z "+site+"1", "2000-01-03T12:00:00Z "+site+"2", "1999-12-31T12:00:00Z "+site+"5")
					}
					time.Sleep(time.Minute)
				})
				for run, want := range []string{"a.test/1 a.test/2 a.test/3 a.test/4", "a.test/2 a.test/4 a.test/5", "", "a.test/1 a.test/2", ""} {
					if visited[run] != want {
						t.Errorf("run %d fetched %q, want %q", run, visited[run], want)
					}
				}
			})
		})
	}
}
