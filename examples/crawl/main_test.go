package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/demo"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { tooltest.Main(m) }

// TestDemo crawls the demo sites in a bubble, and checks the output and the access log.
func TestDemo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(demo.Server)
		sites := make(robotstest.Sites)
		for host := range demo.Sites {
			sites[host] = robotstest.Site{"*": d.ServeHTTP}
		}
		web := robotstest.New(t, sites)
		var out bytes.Buffer
		s := &spider{urls: demo.Starts(), depth: 3, delay: 250 * time.Millisecond, out: &out, transport: web.Transport()}
		if err := s.crawl(t.Context()); err != nil {
			t.Fatal(err)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
		for _, want := range []string{
			"\n200  http://slow.test/1\n", "denied  collyrobots: http://slow.test/admin denied: \"Disallow: /admin\", line 3 of http://slow.test/robots.txt, group \"*\" (rfc9309)\n", "200  http://maps.test/film/1\n",
			"denied  collyrobots: http://down.test/ denied: ", "\nhost        pages  denied  delay  smallest gap\n", "\ndown.test   0      1       250ms  -\n", "\nslow.test   5 ",
		} {
			if !strings.Contains("\n"+out.String(), want) {
				t.Errorf("the output does not contain %q:\n%s", want, out.String())
			}
		}
	})
}

// TestProgram runs the program as the README does.
func TestProgram(t *testing.T) {
	t.Parallel()
	status, out, errs := (*tooltest.World)(nil).Run(t, "", "-depth=1")
	if status != 0 || strings.Contains(errs, "crawl:") || !strings.HasPrefix(out, "No URLs given: crawling 5 demo sites on this machine.\n") {
		t.Errorf("status %d, errors %q, output\n%s", status, errs, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "wild.test ") {
		t.Errorf("the output does not end with the table:\n%s", out)
	}
	status, _, errs = (*tooltest.World)(nil).Run(t, "", "example.test")
	if status != 1 || !strings.HasPrefix(errs, "crawl: ") {
		t.Errorf("without a scheme: status %d, errors %q", status, errs)
	}
}
