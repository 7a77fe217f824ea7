package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

const output = `200 http://slow.test/1
Get "http://slow.test/admin": collyrobots: denied: "Disallow: /admin", line 3 of http://slow.test/robots.txt, group "*" (rfc9309)
200 http://slow.test/2
200 http://moved.test/new
Get "http://wild.test/brochure.pdf": collyrobots: denied: "Disallow: /*.pdf$", line 4 of http://wild.test/robots.txt, group "*" (rfc9309)
200 http://wild.test/a?print=no
`

// TestProgram runs the program.
func TestProgram(t *testing.T) {
	status, stdout, stderr := (*tooltest.World)(nil).Run(t, "")
	if status != 0 || stdout != output || stderr != "" {
		t.Errorf("status %d, printed\n%s%s\nwant\n%s", status, stdout, stderr, output)
	}
}

// TestFetch fetches the pages in a bubble, where the times of the requests are exact.
func TestFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := make(robotstest.Sites)
		for host := range demo.Sites {
			sites[host] = robotstest.Site{"/robots.txt": new(demo.Server), "*": new(demo.Server)}
		}
		web := robotstest.New(t, sites)
		robots, err := collyrobots.New(collyrobots.MinDelay(250 * time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		defer robots.Close()
		var out bytes.Buffer
		fetch(&http.Client{Transport: robots.Transport(web.Transport())}, &out)
		if out.String() != output {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), output)
		}
		for host, want := range map[string]string{
			"slow.test":  "0s /robots.txt, 1s /1, 2s /2",
			"moved.test": "2s /robots.txt, 2.25s /old, 2.5s /new, 2.75s /brochure",
			"wild.test":  "2.75s /robots.txt, 3s /a?print=no",
			"down.test":  "",
		} {
			if got := strings.Join(web.Log(host).Schedule(), ", "); got != want {
				t.Errorf("requests to %s: got %q, want %q", host, got, want)
			}
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}
