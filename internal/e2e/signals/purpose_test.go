package signals

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// headers returns an answer with these headers and an HTML body.
func headers(body string, pairs ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Add(pairs[i], pairs[i+1])
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/html")
		}
		fmt.Fprint(w, body)
	}
}

// TestEnforceUsage checks which pages are requested, and when the TDMRep file is.
func TestEnforceUsage(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": kit.NoTrain, kit.TDMURI: 404, "/": "x", "/x": "x", "/open/1": "x", "/open/2": "x", "/closed": "x",
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, kit.Training()...)
		for _, path := range []string{"/", "/x", "/open/1", "/closed", "/open/2"} {
			c.Visit("http://a.test" + path)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s "+kit.TDMURI+", 20s /open/1, 30s /open/2")
		kit.WantDenied(t, c, "http://a.test/", report.ReasonUsage, 0)
		kit.WantDenied(t, c, "http://a.test/closed", report.ReasonRule, 5)
		denied := (*collyrobots.DeniedError)(nil)
		if err := c.Denied["http://a.test/x"]; !errors.As(err, &denied) {
			t.Fatalf("got %v", err)
		}
		want := "collyrobots: http://a.test/x denied: its owner disallows this use: train-ai in robots.txt, line 3 (rfc9309)"
		if denied.Error() != want {
			t.Errorf("got %q, want %q", denied, want)
		}
		s := c.Robots.Stats()
		if s.Decisions[report.ReasonUsage] != 2 || s.Totals.Denied != 3 || s.Usage.TrainAI != (report.UsageCounts{Allowed: 2}) {
			t.Errorf("got %+v", s)
		}
	})
}

// TestPurposes checks which purposes are denied by a site that allows search and nothing else.
func TestPurposes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		purpose []usage.Purpose
		allowed bool
	}{
		{"search alone decides about search", []usage.Purpose{usage.Search}, true},
		{"ai-use", []usage.Purpose{usage.AIUse}, false},
		{"train-ai", []usage.Purpose{usage.TrainAI}, false},
		{"search and train-ai", []usage.Purpose{usage.Search, usage.TrainAI}, false},
		{"search and train-ai as one value", []usage.Purpose{usage.Search | usage.TrainAI}, false},
	} {
		web := robotstest.New(t, robotstest.Sites{"a.test": {
			"/robots.txt": "User-agent: *\nDisallow:\nContent-Signal: search=yes, ai-input=no, ai-train=no\n", "/": "x",
		}})
		c := kit.Start(t, web, nil, collyrobots.Purpose(tc.purpose...), collyrobots.EnforceUsage(true))
		if err := c.Visit("http://a.test/"); (err == nil) != tc.allowed {
			t.Errorf("%s: got error %v, allowed should be %v", tc.name, err, tc.allowed)
		}
	}
}

// TestUsageOfDialects checks that the group that the dialect chooses has the preferences.
func TestUsageOfDialects(t *testing.T) {
	const file = "User-agent: *\nDisallow: /x\nContent-Usage: train-ai=n\n\nUser-agent: Example\nDisallow: /x\nContent-Signal: ai-train=yes\n"
	own := []dialect.Dialect{dialect.Original1994(), dialect.Temoto(), dialect.Seznam()} // compare a part of the name
	for _, d := range dialect.All() {
		web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": file, "/": "x"}})
		c := kit.Start(t, web, nil, kit.Training(collyrobots.Dialect(d))...)
		err := c.Visit("http://a.test/")
		want := false
		for _, o := range own {
			want = want || o == d
		}
		if (err == nil) != want {
			t.Errorf("%v: got error %v, allowed should be %v", d, err, want)
		}
	}
}

// TestPurposeAlone checks that a Purpose without EnforceUsage denies nothing and counts.
func TestPurposeAlone(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nContent-Usage: /x train-ai=n\n", "/x": "x", "/y": "x",
		"/z": headers("", "Content-Signal", "ai-train=no"),
	}})
	c := kit.Start(t, web, nil, collyrobots.Purpose(usage.TrainAI))
	for _, path := range []string{"/x", "/y", "/z"} {
		kit.Must(t, c.Visit("http://a.test"+path))
	}
	if got, want := c.Robots.Stats().Usage.TrainAI, (report.UsageCounts{Disallowed: 2, Unknown: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestNoPurpose checks that nothing is requested, denied or counted without the options, and that
// Usage and Check know the preferences of robots.txt all the same.
func TestNoPurpose(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoTrain, "/x": "x"}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		var terms usage.Terms
		c.OnResponse(func(r *colly.Response) { terms = c.Robots.Usage(r) })
		kit.Must(t, c.Visit("http://a.test/x"))
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /x")
		if got := c.Robots.Stats(); got.Usage != nil || got.LicenseRequired != 0 {
			t.Errorf("got %+v", got)
		}
		s := terms.Preferences.TrainAI
		if s.Preference != usage.Disallowed || s.Name != "robots.txt" || s.Line != 3 || len(s.Hash) != 32 {
			t.Errorf("got %+v", s)
		}
		d, err := c.Robots.Check(t.Context(), "http://a.test/x")
		kit.Must(t, err)
		text, err := json.Marshal(d)
		kit.Must(t, err)
		if want := `"usage":{"search":{"preference":"allowed","source":"robots.txt","line":3},"train-ai":{"preference":"disallowed","source":"robots.txt","line":3}}`; !strings.Contains(string(text), want) {
			t.Errorf("got %s, want %s in it", text, want)
		}
		var back collyrobots.Decision
		kit.Must(t, json.Unmarshal(text, &back))
		if back.Usage != d.Usage {
			t.Errorf("read back: %+v, want %+v", back.Usage, d.Usage)
		}
		d, err = c.Robots.Check(t.Context(), "http://a.test/closed")
		kit.Must(t, err)
		if text, _ := json.Marshal(d); strings.Contains(string(text), "usage") {
			t.Errorf("a page that must not be crawled has preferences: %s", text)
		}
	})
}

// TestUsageSources checks Plugin.Usage with all sources.
func TestUsageSources(t *testing.T) {
	page := `<html><head><title>t</title><meta name="TDM-Reservation" content="0"></head><body>x</body></html>`
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "License: https://a.test/l.xml\nUser-agent: *\nContent-Signal: search=yes,use=reference\nDisallow: /closed\n",
		kit.TDMURI:    `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.test/p"}]`,
		"/file":       "x",
		"/header":     headers("", "Tdm-Reservation", "0", "Link", `</l2>; rel="license"`, "Content-Usage", "search=n"),
		"/meta":       headers(page, "Tdm-Reservation", "1"),
		"/text":       headers(page, "Tdm-Reservation", "1", "Content-Type", "text/plain"),
		"/to":         http.RedirectHandler("/meta", http.StatusFound),
		"/pay": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `License error="invalid_request"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
	}})
	c := kit.Start(t, web, nil, collyrobots.Purpose(usage.AIUse), collyrobots.TDMRep(true))
	got := make(map[string]usage.Terms)
	note := func(r *colly.Response) { got[r.Request.URL.Path] = c.Robots.Usage(r) }
	c.OnHTML("html", func(e *colly.HTMLElement) { note(e.Response) })
	c.OnScraped(note)
	c.OnError(func(r *colly.Response, err error) { note(r) })
	var events []string
	stop := c.Robots.Listen(func(e *collyrobots.Event) {
		if e.Kind == report.EventLicense {
			events = append(events, fmt.Sprint(e.URL, " ", e.Status))
		}
	})
	defer stop()
	for _, path := range []string{"/file", "/header", "/to", "/text", "/pay"} {
		c.Visit("http://a.test" + path)
	}
	describe := func(terms usage.Terms) string {
		p := terms.Preferences
		return fmt.Sprintf("%v %s, %v %s, %v %s", p.Search.Preference, p.Search.Name, p.AIUse.Preference, p.AIUse.Name, terms.Use, terms.TDM.Policy)
	}
	for path, want := range map[string]string{
		"/file":   "allowed robots.txt, disallowed tdmrep.json, reference https://a.test/p",
		"/header": "disallowed Content-Usage, allowed tdm-reservation, reference https://a.test/p",
		"/meta":   "allowed robots.txt, allowed meta tdm-reservation, reference https://a.test/p",
		"/text":   "allowed robots.txt, disallowed tdm-reservation, reference https://a.test/p",
		"/pay":    "allowed robots.txt, disallowed tdmrep.json, reference https://a.test/p",
	} {
		if s := describe(got[path]); s != want {
			t.Errorf("%s: got  %s\nwant %s", path, s, want)
		}
	}
	if l := got["/header"].Licenses; len(l) != 2 || l[0].Line != 1 || len(l[0].Hash) != 32 || l[1].URL != "http://a.test/l2" {
		t.Errorf("got licenses %+v", l)
	}
	if !got["/pay"].LicenseRequired || got["/file"].LicenseRequired || c.Robots.Stats().LicenseRequired != 1 {
		t.Errorf("got %+v, %d responses that ask for a license", got["/pay"], c.Robots.Stats().LicenseRequired)
	}
	if n := strings.Count(c.Logged.String(), "asks for a license"); n != 1 {
		t.Errorf("%d log records, want 1: %s", n, c.Logged)
	}
	kit.Must(t, c.Robots.Close())
	if s := strings.Join(events, ", "); s != "http://a.test/pay 401" {
		t.Errorf("got events %s", s)
	}
}

// TestUsageAtTheTimeOfTheFetch checks that Usage uses the robots.txt that was in force when the
// page was requested (draft-ietf-aipref-attach, "When Preferences Apply").
func TestUsageAtTheTimeOfTheFetch(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nContent-Usage: train-ai=n\n", "/1": "x", "/2": "x"}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, []colly.CollectorOption{colly.Async()}, collyrobots.Purpose(usage.TrainAI))
		var before, after usage.Statement
		c.OnResponse(func(r *colly.Response) {
			if r.Request.URL.Path == "/2" {
				after = c.Robots.Usage(r).Preferences.TrainAI
				return
			}
			web.Set("a.test", "/robots.txt", "User-agent: *\n\nContent-Usage: train-ai=y\n")
			time.Sleep(25 * time.Hour)
			c.Visit("http://a.test/2")
			time.Sleep(time.Hour)
			before = c.Robots.Usage(r).Preferences.TrainAI
		})
		kit.Must(t, c.Visit("http://a.test/1"))
		c.Wait()
		if before.Preference != usage.Disallowed || before.Line != 2 || after.Preference != usage.Allowed || after.Line != 3 || before.Hash == after.Hash {
			t.Errorf("got %+v and %+v", before, after)
		}
	})
}

// TestUsageForHosts checks that purposes may differ between hosts, and that a host may be exempt.
func TestUsageForHosts(t *testing.T) {
	site := robotstest.Site{"/robots.txt": "User-agent: *\nContent-Usage: search=y, train-ai=n\n", "/": "x"}
	web := robotstest.New(t, robotstest.Sites{"a.test": site, "b.test": site, "c.test": site, "d.test": site})
	c := kit.Start(t, web, nil, collyrobots.Purpose(usage.TrainAI), collyrobots.TDMRep(true),
		collyrobots.ForHosts("*", collyrobots.EnforceUsage(true)),
		collyrobots.ForHosts("a.test", collyrobots.EnforceUsage(false)),
		collyrobots.ForHosts("b.test", collyrobots.Purpose(usage.Search)),
		collyrobots.ForHosts("c.test", kit.IgnoreRobots()))
	c.Impolite = true
	for _, host := range []string{"a", "b", "c", "d"} {
		c.Visit("http://" + host + ".test/")
	}
	kit.WantURIs(t, web, "a.test", "/robots.txt "+kit.TDMURI+" /")
	kit.WantURIs(t, web, "b.test", "/robots.txt "+kit.TDMURI+" /")
	kit.WantURIs(t, web, "c.test", "/")
	kit.WantURIs(t, web, "d.test", "/robots.txt "+kit.TDMURI)
}

func TestUsageOptionFaults(t *testing.T) {
	for _, tc := range []struct {
		opts []collyrobots.Option
		want string
	}{
		{[]collyrobots.Option{collyrobots.EnforceUsage(true)}, "collyrobots: EnforceUsage: needs the option Purpose"},
		{[]collyrobots.Option{collyrobots.Purpose()}, "collyrobots: Purpose: names no purpose"},
		{[]collyrobots.Option{collyrobots.Purpose(0)}, "collyrobots: Purpose: names no purpose"},
		{[]collyrobots.Option{collyrobots.Purpose(8)}, "collyrobots: Purpose: Purpose(8) is not a purpose of package usage"},
		{[]collyrobots.Option{collyrobots.ForHosts("a.test", collyrobots.EnforceUsage(true))}, `collyrobots: ForHosts: "a.test": EnforceUsage: needs the option Purpose`},
		{[]collyrobots.Option{collyrobots.Purpose(usage.Search), collyrobots.ForHosts("a.test", collyrobots.EnforceUsage(true))}, ""},
	} {
		p, err := collyrobots.New(tc.opts...)
		fault := (*collyrobots.OptionError)(nil)
		if tc.want == "" {
			kit.Must(t, err)
			p.Close()
		} else if !errors.As(err, &fault) || err.Error() != tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

// TestUsageShadow checks that shadows apply the preferences of their own group.
func TestUsageShadow(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nDisallow: /x\n\nUser-agent: Example\nContent-Usage: train-ai=n\nDisallow: /x\n", "/": "x",
	}})
	c := kit.Start(t, web, nil, kit.Training(collyrobots.Shadow(dialect.Google(), dialect.Seznam()))...)
	kit.Must(t, c.Visit("http://a.test/"))
	s := c.Robots.Stats().Shadows
	if s[0].Stricter+s[0].Laxer != 0 || s[1].Stricter != 1 || s[1].Differences[0].Shadow.Reason != report.ReasonUsage {
		t.Errorf("got %+v", s)
	}
}

// TestUsageOfClients checks Transport and Acquire.
func TestUsageOfClients(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoTrain, "/open/1": "x", "/open/2": "x", "/x": "x"}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web, kit.Training()...)
		next := web.Transport()
		defer next.CloseIdleConnections()
		client := &http.Client{Transport: p.Transport(next)}
		for _, path := range []string{"/x", "/open/1"} {
			resp, err := client.Do(kit.NewRequest(t, "http://a.test"+path))
			denied := (*collyrobots.DeniedError)(nil)
			if errors.As(err, &denied) != (path == "/x") {
				t.Errorf("%s: got error %v", path, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		}
		_, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/x"))
		if !kit.IsDenial(err) {
			t.Errorf("Acquire: got error %v", err)
		}
		turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/open/2"))
		kit.Must(t, err)
		turn.Answered(200, http.Header{"Content-Usage": {"train-ai=n"}})
		turn.End()
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s "+kit.TDMURI+", 20s /open/1")
		if got, want := p.Stats().Usage.TrainAI, (report.UsageCounts{Allowed: 1, Disallowed: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestWithPurpose checks that requests of one plugin, without options, are judged by their own purposes.
func TestWithPurpose(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoTrain, "/x": "x"}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web)
		next := web.Transport()
		defer next.CloseIdleConnections()
		client := &http.Client{Transport: p.Transport(next)}
		for purpose, allowed := range map[usage.Purpose]bool{0: true, usage.Search: true, usage.TrainAI: false, usage.Search | usage.TrainAI: false} {
			ctx := collyrobots.WithPurpose(t.Context(), purpose)
			decision, err := p.Check(ctx, "http://a.test/x")
			if err != nil || decision.Allowed != allowed {
				t.Errorf("%v: Check: got %+v, %v", purpose, decision, err)
			}
			resp, err := client.Do(kit.NewRequest(t, "http://a.test/x").WithContext(ctx))
			if kit.IsDenial(err) == allowed {
				t.Errorf("%v: Transport: got error %v", purpose, err)
			}
			if err == nil {
				resp.Body.Close()
			}
			turn, err := p.Acquire(ctx, kit.NewRequest(t, "http://a.test/x"))
			if kit.IsDenial(err) == allowed {
				t.Errorf("%v: Acquire: got error %v", purpose, err)
			}
			turn.End()
		}
	})
}

// TestUsageOfTurns checks that the terms of a turn have what robots.txt and the response say.
func TestUsageOfTurns(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoTrain}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web)
		turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/x"))
		kit.Must(t, err)
		if got := turn.Usage().Preferences; got.TrainAI.Line != 3 || got.AIUse.Preference != usage.Unknown {
			t.Errorf("before the response: got %+v", got)
		}
		turn.Answered(401, http.Header{"Content-Usage": {"ai-use=n"}, "Www-Authenticate": {"License"}})
		turn.End()
		got := turn.Usage()
		if got.Preferences.TrainAI.Hash != turn.Decision().Hash || got.Preferences.AIUse.Preference != usage.Disallowed || !got.LicenseRequired {
			t.Errorf("after the response: got %+v", got)
		}
		var none *collyrobots.Turn
		if got := none.Usage(); got.Preferences != (usage.Preferences{}) {
			t.Errorf("of no turn: got %+v", got)
		}
	})
}

// TestUsageAfterClose checks that Usage works after Close, and with odd arguments.
func TestUsageAfterClose(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nContent-Usage: train-ai=n\n", "/": "x"}})
	c := kit.Start(t, web, nil, collyrobots.Purpose(usage.TrainAI))
	var last *colly.Response
	c.OnResponse(func(r *colly.Response) { last = r })
	kit.Must(t, c.Visit("http://a.test/"))
	kit.Must(t, c.Robots.Close())
	if got := c.Robots.Usage(last).Preferences.TrainAI.Preference; got != usage.Disallowed {
		t.Errorf("got %v", got)
	}
	for _, r := range []*colly.Response{nil, {}, {Request: &colly.Request{}}} {
		if got := c.Robots.Usage(r); got.Preferences != (usage.Preferences{}) {
			t.Errorf("got %+v", got)
		}
	}
	var none *collyrobots.Plugin
	if got := none.Usage(last); got.Preferences != (usage.Preferences{}) {
		t.Errorf("got %+v", got)
	}
}
