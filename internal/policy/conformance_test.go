package policy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
)

// clause is one of the shared conformance clauses about responses to GET /robots.txt.
type clause struct {
	ID, Dialect, Kind, Clause, Ambiguous string
	Input                                struct {
		Events []struct {
			At    int
			Reply clauseReply
		}
		AskAt         int  `json:"ask_at"`
		SiteAvailable bool `json:"site_available"`
		FirstRequest  bool `json:"first_request"`
		Refetch       bool
		RobotsGen     [][2]any `json:"robots_gen"`
		Ask           string
		RobotsURL     string `json:"robots_url"`
		URL           string
	}
	Expect struct {
		State, Body, Verdict string
		Requests             int
		Applies              *bool
		NotFor               string   `json:"not_for"`
		RobotsURL            string   `json:"robots_url"`
		NoHeaders            []string `json:"no_headers"`
	}
}

type clauseReply struct {
	Status    int
	Body      string
	BodyB64   string `json:"body_b64"`
	Headers   map[string]string
	Error     string
	Redirects int
	Code      int
	Then      *clauseReply
	To        string
}

func (r clauseReply) answer() func(*http.Request) (*http.Response, error) {
	switch {
	case r.Redirects > 0:
		return redirects(r.Redirects, max(r.Code, 301), r.To, r.Then.answer())
	case r.Error == "timeout":
		return hang
	case r.Error == "chunked" || r.Error == "reset":
		return cut(200, closed)
	case r.Error != "":
		return refuse
	}
	body := r.Body
	if raw, err := base64.StdEncoding.DecodeString(r.BodyB64); err == nil && len(raw) > 0 {
		body = string(raw)
	}
	var header []string
	for name, value := range r.Headers {
		header = append(header, name, value)
	}
	return reply(r.Status, body, header...)
}

// TestConformance checks every dialect against the shared clauses. An ambiguous clause is
// interpreted as dialects.md does. Where that differs from the example of the clause, the table
// below has the reason.
func TestConformance(t *testing.T) {
	differing := map[string]string{
		"HR-063": "RFC 9309, section 2.3.1.4, is a MUST: the copy is not used before 30 days",
		"HK-009": "RFC 9309 applies where the text of 1994 says nothing",
		"HK-012": "RFC 9309 applies where the text of 1994 says nothing",
		"HG-047": "a copy that is less than a day old is not fetched again, so nothing fails",
		"HG-058": "a copy that is less than a day old is not fetched again, so nothing fails",
		"HC-067": "Coc Coc names no limit, so that of RFC 9309 applies: 500 KiB",
	}
	for _, c := range clauses(t) {
		t.Run(c.Dialect+"/"+c.ID, func(t *testing.T) {
			if differing[c.ID] != "" && c.Ambiguous != "" {
				t.Skip("ambiguous, interpreted differently: ", differing[c.ID])
			}
			d := dialectOf(t, c.Dialect)
			t.Log(c.Clause)
			switch {
			case c.Input.Events != nil:
				synctest.Test(t, func(t *testing.T) { c.timeline(t, d) })
			case c.Input.RobotsGen != nil:
				c.limit(t, d)
			case c.Input.Refetch:
				synctest.Test(t, func(t *testing.T) { c.refetch(t, d) })
			case c.Input.FirstRequest:
				c.first(t, d)
			default:
				c.scope(t, d)
			}
		})
	}
}

func clauses(t *testing.T) []clause {
	t.Helper()
	path := shared(t, "conformance/http_clauses.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skip("no shared conformance clauses: ", err)
	}
	var file struct{ Clauses []clause }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Clauses) == 0 {
		t.Fatal("no clauses")
	}
	return file.Clauses
}

// shared returns the path of a file in a directory named shared in one of the directories above the
// test.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		path := filepath.Join(dir, "shared", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("no shared/%s above the test's directory", name)
		}
		dir = filepath.Dir(dir)
	}
}

func dialectOf(t *testing.T, name string) dialect.Dialect {
	t.Helper()
	if name == "1994" {
		name = "original1994"
	}
	d, ok := dialect.ByName(name)
	if !ok {
		t.Fatalf("no dialect %q", name)
	}
	return d
}

func (c clause) timeline(t *testing.T, d dialect.Dialect) {
	start := time.Now()
	crawl := newCrawler(t, under(d), nil)
	defer crawl.Close()
	until := func(seconds int) { time.Sleep(time.Until(start.Add(time.Duration(seconds) * time.Second))) }
	for _, e := range c.Input.Events {
		until(e.At)
		crawl.site.says(e.Reply.answer())
		crawl.get(t)
		if c.Input.SiteAvailable {
			crawl.Answered(crawl.page)
		}
	}
	until(c.Input.AskAt)
	p := crawl.get(t)
	rule := "/x"
	if c.Expect.Body == "BODY2" {
		rule = "/z"
	}
	if got := state(p, rule); got != c.Expect.State {
		t.Errorf("got state %s, want %s: %v, status %d, %v", got, c.Expect.State, p.RobotsStatus, p.Status(), p.Err())
	}
	if c.Expect.Requests != 0 && crawl.site.asked() != c.Expect.Requests {
		t.Errorf("%d requests, want %d", crawl.site.asked(), c.Expect.Requests)
	}
	if c.Expect.NotFor != "" {
		c.notFor(t, crawl)
	}
}

// notFor checks that the rules do not apply to the authority that a redirect led to.
func (c clause) notFor(t *testing.T, crawl *crawler) {
	crawl.site.says(reply(404, ""))
	p, err := crawl.ask(context.Background(), authority(c.Expect.NotFor+"/x"))
	if err != nil || !allows(p, "/x") {
		t.Errorf("%s: got %+v, %v, want everything allowed", c.Expect.NotFor, p, err)
	}
}

func state(p *policy.Policy, rule string) string {
	switch {
	case p.RobotsStatus == policy.SiteDown:
		return "site_down"
	case p.RobotsStatus == policy.Unreachable:
		return "disallow_all"
	case allows(p, rule) && allows(p, "/y"):
		return "allow_all"
	case !allows(p, rule) && allows(p, "/y"):
		return "follow"
	default:
		return fmt.Sprintf("%s allowed: %t, /y allowed: %t", rule, allows(p, rule), allows(p, "/y"))
	}
}

func (c clause) limit(t *testing.T, d dialect.Dialect) {
	var body strings.Builder
	for _, part := range c.Input.RobotsGen {
		body.WriteString(strings.Repeat(part[0].(string), int(part[1].(float64))))
	}
	p := newCrawler(t, under(d), reply(200, body.String())).get(t)
	if want := c.Expect.Verdict; want != "either" && allows(p, c.Input.Ask) != (want == "allow") {
		t.Errorf("%s allowed: %t, want %s", c.Input.Ask, allows(p, c.Input.Ask), want)
	}
}

func (c clause) refetch(t *testing.T, d dialect.Dialect) {
	crawl := newCrawler(t, under(d), reply(200, closed, "ETag", `"a"`, "Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT"))
	defer crawl.Close()
	crawl.get(t)
	time.Sleep(25 * time.Hour)
	crawl.get(t)
	if crawl.site.asked() != 2 {
		t.Fatalf("%d requests, want 2", crawl.site.asked())
	}
	for _, name := range c.Expect.NoHeaders {
		if got := crawl.site.last().Header.Values(name); got != nil {
			t.Errorf("the request has %s: %q", name, got)
		}
	}
}

func (c clause) first(t *testing.T, d dialect.Dialect) {
	crawl := newCrawler(t, under(d), reply(200, closed))
	crawl.get(t)
	if req := crawl.site.last(); req.Method != http.MethodGet || req.URL.Path != "/robots.txt" {
		t.Errorf("got %s %s, want GET /robots.txt", req.Method, req.URL)
	}
}

func (c clause) scope(t *testing.T, d dialect.Dialect) {
	crawl := newCrawler(t, under(d), reply(200, closed))
	p, err := crawl.ask(context.Background(), authority(c.Input.URL))
	if err != nil {
		t.Fatal(err)
	}
	if c.Expect.RobotsURL != "" && p.RobotsURL() != c.Expect.RobotsURL {
		t.Errorf("robots.txt at %s, want %s", p.RobotsURL(), c.Expect.RobotsURL)
	}
	if c.Expect.Applies == nil {
		return
	}
	// The file at robots_url applies if it is the robots.txt of its own URL and of the page.
	own, err := dialect.Locate(parse(c.Input.RobotsURL))
	if err != nil {
		t.Fatal(err)
	}
	is := strings.HasSuffix(c.Input.RobotsURL, "/robots.txt") && parse(c.Input.RobotsURL).Path == "/robots.txt"
	if applies := is && own.String() == p.RobotsURL(); applies != *c.Expect.Applies {
		t.Errorf("applies: got %t (robots.txt is %s), want %t", applies, p.RobotsURL(), *c.Expect.Applies)
	}
}
