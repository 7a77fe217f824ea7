package plan

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// TestProgressInFile checks that, if the output is not a terminal, there is a line for each host,
// and a line every ten seconds while none is done.
func TestProgressInFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, 3)
		p.begin("a.test")
		p.begin("b\x1b[1m.test")
		p.listed(1234)
		time.Sleep(25 * time.Second)
		p.end(&host{Host: "b\x1b[1m.test", Error: "no\nanswer"})
		time.Sleep(9 * time.Second)
		p.end(&host{Host: "a.test", Listed: 1234, Pages: 1200, Time: term.Seconds(time.Hour)})
		p.begin("c.test")
		p.end(&host{Host: "c.test", Unread: "the sitemaps are not read"})
		p.close()
		const want = `10s  0 of 3 hosts checked, 1,234 pages listed; checking a.test for 10s, and 1 more
20s  0 of 3 hosts checked, 1,234 pages listed; checking a.test for 20s, and 1 more
1 of 3  b\x1b[1m.test  no\nanswer
2 of 3  a.test  1,200 pages, 1h
3 of 3  c.test  the sitemaps are not read
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}
