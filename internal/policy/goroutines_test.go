package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

// TestSharedFile checks, with the race detector, that goroutines can share a parsed file and a group, as
// those do that use the same policy.
func TestSharedFile(t *testing.T) {
	var file strings.Builder
	file.WriteString("User-agent: *\nSitemap: http://a.test/s.xml\n")
	for n := range 100 {
		fmt.Fprintf(&file, "Disallow: /section%d/*sort=\nDisallow: /*?param%d=\n", n, n)
	}
	for _, d := range dialect.All() {
		rules := d.Parse([]byte(file.String()))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				group := rules.Group("ExampleBot", fmt.Sprint("Bot-", i))
				for range 50 {
					group.Decide("/%7e" + fmt.Sprint(i) + "/directory/products?page=3")
					group.Decide("/a?param0=1")
					rules.Sitemaps()
				}
				if group.Decide("/a?param0=1").Allowed && d != dialect.Original1994() {
					t.Errorf("%s: /a?param0=1 is allowed", d)
				}
			})
		}
		wg.Wait()
	}
}
