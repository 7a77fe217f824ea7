package collectors

import (
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestFTP checks that ftp://host/robots.txt governs the ftp URLs of the host, that the robots.txt
// of http does not, and that both schemes share the pace of the host.
func TestFTP(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(2, "User-agent: *\nDisallow: /1\n")}, func(t *testing.T, web *robotstest.Web) {
		ftp := &kit.FTPServer{Began: time.Now(), Files: map[string]string{
			"/robots.txt": "User-agent: *\nCrawl-delay: 5\nDisallow: /closed\n", "/1": "one", "/closed/2": "two",
		}}
		c := kit.Start(t, web, []colly.CollectorOption{colly.Async()})
		c.Transport.RegisterProtocol("ftp", ftp)
		for _, u := range []string{"ftp://a.test/1", "ftp://a.test/closed/2", "http://a.test/2", "http://a.test/1", "ftp://a.test/gone"} {
			c.Visit(u)
			time.Sleep(time.Minute)
		}
		c.Wait()
		if got, want := strings.Join(ftp.Log, ", "), "0s /robots.txt, 5s /1, 4m0s /gone"; got != want {
			t.Errorf("requests by ftp: %s, want %s", got, want)
		}
		kit.WantSchedule(t, web, "a.test", "2m0s /robots.txt, 2m5s /2")
		if len(c.Denied) != 2 || c.Denied["ftp://a.test/closed/2"] == nil || c.Denied["http://a.test/1"] == nil {
			t.Errorf("denied: %v", c.Denied)
		}
	})
}

// TestFTPWithoutTransport checks that an ftp URL is denied if the transport does not speak ftp.
func TestFTPWithoutTransport(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": nil}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		err := c.Visit("ftp://a.test/x")
		if err == nil || !strings.Contains(err.Error(), "unsupported protocol scheme") {
			t.Errorf("got %v", err)
		}
		d, err := c.Robots.Check(t.Context(), "ftp://a.test/x")
		if err != nil || d.Allowed || d.Reason != report.ReasonUnreachable || d.RobotsURL != "ftp://a.test/robots.txt" {
			t.Errorf("got %v, %v", d, err)
		}
		if len(web.Log("")) > 0 {
			t.Errorf("the web got %d requests", len(web.Log("")))
		}
	})
}
