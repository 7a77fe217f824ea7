package feed

import (
	"fmt"
	"strings"
	"testing"
)

// TestOnce checks that a file is read only once, even if several sites or files name it, unless
// another reading has more pages in scope.
func TestOnce(t *testing.T) {
	all := urlset("http://a.test/1", "http://b.test/2", "http://cdn.test/3")
	for _, test := range []struct {
		name    string
		files   map[string]any
		offers  []string // a site, and its sitemaps
		asked   string
		visited string
	}{
		{"named twice", map[string]any{"http://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml http://a.test/map.xml"},
			"a.test/map.xml", "a.test/1"},
		{"under http and https", map[string]any{"http://a.test/map.xml": urlset("http://a.test/1"), "https://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml", "https://a.test https://a.test/map.xml"},
			"a.test/map.xml", "a.test/1"},
		{"under https, since http is not there", map[string]any{"https://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml", "https://a.test https://a.test/map.xml"},
			"a.test/map.xml 404 https://a.test/map.xml", "a.test/1"},
		{"both at once, since http is not there", map[string]any{"https://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml https://a.test/map.xml"},
			"a.test/map.xml 404 https://a.test/map.xml", "a.test/1"},
		{"with a fragment or another way of writing", map[string]any{"http://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml http://A.test:80/map.xml"},
			"a.test/map.xml", "a.test/1"},
		{"not there", nil,
			[]string{"http://a.test http://a.test/map.xml http://a.test/map.xml", "http://b.test http://a.test/map.xml"},
			"a.test/map.xml 404", ""},
		{"redirects to one that was read", map[string]any{"http://a.test/map.xml": urlset("http://a.test/1"), "http://a.test/old.xml": "-> /map.xml"},
			[]string{"http://a.test http://a.test/map.xml", "https://a.test http://a.test/old.xml"},
			"a.test/map.xml a.test/old.xml 302", "a.test/1"},
		{"redirects to itself under https", map[string]any{"http://a.test/map.xml": "-> https://a.test/map.xml", "https://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/map.xml", "https://a.test https://a.test/map.xml"},
			"a.test/map.xml 302 https://a.test/map.xml", "a.test/1"},
		{"an index that names itself and others twice", map[string]any{"http://a.test/index.xml": index("http://a.test/index.xml", "https://a.test/index.xml", "http://a.test/map.xml", "http://a.test/map.xml"), "http://a.test/map.xml": urlset("http://a.test/1")},
			[]string{"http://a.test http://a.test/index.xml"},
			"a.test/index.xml a.test/map.xml", "a.test/1"},
		{"by another site, which may list more in it", map[string]any{"http://cdn.test/map.xml": all},
			[]string{"http://a.test http://cdn.test/map.xml", "http://b.test http://cdn.test/map.xml", "http://a.test http://cdn.test/map.xml"},
			"cdn.test/map.xml cdn.test/map.xml", "a.test/1 b.test/2 cdn.test/3"},
		{"by another site at once", map[string]any{"http://cdn.test/map.xml": all, "http://a.test/index.xml": index("http://cdn.test/map.xml")},
			[]string{"http://a.test http://a.test/index.xml http://cdn.test/map.xml"},
			"a.test/index.xml cdn.test/map.xml", "a.test/1 cdn.test/3"},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, " ", together), func(t *testing.T) {
				w := newWorld(test.files).start(Options{})
				for _, offer := range test.offers {
					f := strings.Fields(offer)
					w.feed.Offer(authority(f[0]), f[1:])
					if !together {
						w.feed.Run(t.Context(), w)
					}
				}
				w.feed.Run(t.Context(), w)
				w.want(t, "asked for", w.asks(), test.asked)
				w.want(t, "visited", w.visits(), test.visited)
			})
		}
	}
}
