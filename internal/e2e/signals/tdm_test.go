package signals

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
)

// tdmAnswers are answers to requests for a TDMRep file, what they mean for the first page, and how
// long they are kept.
var tdmAnswers = []struct {
	name   string
	answer any
	denied bool
	life   time.Duration
}{
	{"reserved", kit.ReservedAll, true, 24 * time.Hour},
	{"not reserved", kit.FreeAll, false, 24 * time.Hour},
	{"first match counts", `[{"location": "/other", "tdm-reservation": 1}, {"location": "/1", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 0}]`, true, 24 * time.Hour},
	{"empty list", `[]`, false, 24 * time.Hour},
	{"404", 404, false, 24 * time.Hour},
	{"410", 410, false, 24 * time.Hour},
	{"401", 401, false, 24 * time.Hour},
	{"403", 403, false, 24 * time.Hour},
	{"204", 204, false, 24 * time.Hour},
	{"408", 408, false, time.Hour},
	{"500", 500, false, time.Hour},
	{"502", 502, false, time.Hour},
	{"HTML", "<!DOCTYPE html><html><body>Not found</body></html>", false, 24 * time.Hour},
	{"object", `{"location": "/", "tdm-reservation": 1}`, false, 24 * time.Hour},
	{"cut JSON", `[{"location": "/", "tdm-reserv`, false, 24 * time.Hour},
	{"empty body", "", false, 24 * time.Hour},
	{"broken connection", http.HandlerFunc(kit.Drop), false, time.Hour},
	{"no response", http.HandlerFunc(kit.Hang), false, time.Hour},
	{"body that never ends", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "[")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}), false, time.Hour},
	{"50 MB", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `[{"location": "/", "tdm-reservation": 1}`)
		blanks := strings.Repeat(" ", 1<<20)
		for range 50 {
			if _, err := fmt.Fprint(w, blanks); err != nil {
				return
			}
		}
		fmt.Fprint(w, "]")
	}), false, 24 * time.Hour},
	{"50 MB in few compressed bytes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		for range 50 {
			if _, err := z.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}), false, 24 * time.Hour},
	{"redirect", http.RedirectHandler("/tdm.json", http.StatusFound), true, 24 * time.Hour},
	{"redirect to another site", http.RedirectHandler("http://b.test/tdm.json", http.StatusMovedPermanently), true, 24 * time.Hour},
	{"redirect to a denied URL", http.RedirectHandler("http://b.test/closed", http.StatusFound), false, 24 * time.Hour},
	{"redirect to a private address", http.RedirectHandler("http://10.0.0.1/tdm.json", http.StatusFound), false, time.Hour},
	{"redirect to another scheme", http.RedirectHandler("ftp://a.test/x", http.StatusFound), false, 24 * time.Hour},
	{"redirect without a target", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(302) }), false, 24 * time.Hour},
	{"redirect to itself", http.RedirectHandler(kit.TDMURI, http.StatusFound), false, 24 * time.Hour},
}

// TestTDMAnswers checks each answer: whether it denies the page, when the file is requested again,
// and that all requests keep the delay of the host.
func TestTDMAnswers(t *testing.T) {
	for _, tc := range tdmAnswers {
		t.Run(tc.name, func(t *testing.T) {
			kit.InBubble(t, robotstest.Sites{
				"a.test":   {"/robots.txt": kit.TenSeconds, kit.TDMURI: tc.answer, "/tdm.json": kit.ReservedAll, "/1": "x", "/2": "x", "/3": "x"},
				"b.test":   {"/robots.txt": kit.TenSeconds + "Disallow: /closed\n", "/tdm.json": kit.ReservedAll, "/closed": kit.ReservedAll},
				"10.0.0.1": {"*": kit.ReservedAll},
			}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, kit.Training()...)
				err := c.Visit("http://a.test/1")
				if denied := kit.IsDenial(err); denied != tc.denied {
					t.Errorf("got error %v, denied should be %v", err, tc.denied)
				}
				began := time.Now()
				first := kit.CountURI(web, kit.TDMURI)
				time.Sleep(tc.life - 2*time.Minute)
				c.Visit("http://a.test/2")
				if n := kit.CountURI(web, kit.TDMURI); n != first {
					t.Errorf("requested again within %v: %d requests after %d", time.Since(began), n, first)
				}
				time.Sleep(3 * time.Minute)
				c.Visit("http://a.test/3")
				if n := kit.CountURI(web, kit.TDMURI); n != 2*first {
					t.Errorf("not requested again after %v: %d requests after %d", time.Since(began), n, first)
				}
				if gap := web.Log("a.test").MinGap(); gap < 10*time.Second {
					t.Errorf("gap %v: %v", gap, web.Log("a.test"))
				}
				if n := len(web.Log("10.0.0.1")); n != 0 {
					t.Errorf("%d requests to a private address", n)
				}
			})
		})
	}
}

// TestTDMDenied checks that the file is not requested if robots.txt denies it, and that it is
// requested when robots.txt allows it.
func TestTDMDenied(t *testing.T) {
	for _, dryRun := range []bool{false, true} {
		kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /.well-known/\n", kit.TDMURI: kit.ReservedAll, "*": "x"}}, func(t *testing.T, web *robotstest.Web) {
			opts := kit.Training()
			if dryRun {
				opts = append(opts, collyrobots.DryRun(true))
			}
			c := kit.Start(t, web, nil, opts...)
			c.Impolite = dryRun
			kit.Must(t, c.Visit("http://a.test/1"))
			web.Set("a.test", "/robots.txt", kit.TenSeconds)
			kit.Must(t, c.Visit("http://a.test/2"))
			time.Sleep(25 * time.Hour)
			err := c.Visit("http://a.test/3")
			if (err != nil) == dryRun {
				t.Errorf("got error %v", err)
			}
			if n := c.Robots.Stats().Totals.Denied; n != 1 {
				t.Errorf("%d requests denied, want 1: the TDMRep file does not count", n)
			}
			want := "/robots.txt /1 /2 /robots.txt " + kit.TDMURI
			if dryRun {
				want += " /3"
			}
			kit.WantURIs(t, web, "a.test", want)
		})
	}
}

// TestTDMKeepsGoodCopy checks that the last good copy applies while the file cannot be read.
func TestTDMKeepsGoodCopy(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, kit.TDMURI: kit.ReservedAll, "*": "x"}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, kit.Training()...)
		c.Visit("http://a.test/1")
		web.Set("a.test", kit.TDMURI, 500)
		time.Sleep(25 * time.Hour)
		c.Visit("http://a.test/2")
		web.Set("a.test", kit.TDMURI, 404)
		time.Sleep(2 * time.Hour)
		c.Visit("http://a.test/3")
		kit.WantDenied(t, c, "http://a.test/1", report.ReasonUsage, 0)
		kit.WantDenied(t, c, "http://a.test/2", report.ReasonUsage, 0)
		if len(c.Denied) != 2 || kit.CountURI(web, "/3") != 1 {
			t.Errorf("denied: %v", c.Denied)
		}
	})
}

// TestTDMFileBeforeHeader checks that the file is enforced although the header of the page, which
// is not known yet, would override it, and that the header is enforced in neither direction.
func TestTDMFileBeforeHeader(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{
		"a.test": {kit.TDMURI: kit.ReservedAll, "*": withHeaders("x", "tdm-reservation: 0")},
		"b.test": {kit.TDMURI: kit.FreeAll, "*": withHeaders("x", "tdm-reservation: 1")},
	}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, kit.Training()...)
		var said []usage.Preference
		c.OnResponse(func(r *colly.Response) {
			said = append(said, c.Robots.Usage(r).Preferences.Of(usage.TrainAI).Preference)
		})
		if err := c.Visit("http://a.test/1"); !kit.IsDenial(err) {
			t.Errorf("the error is %v", err)
		}
		kit.Must(t, c.Visit("http://b.test/1"))
		kit.WantURIs(t, web, "a.test", "/robots.txt "+kit.TDMURI)
		kit.WantURIs(t, web, "b.test", "/robots.txt "+kit.TDMURI+" /1")
		if len(said) != 1 || said[0] != usage.Disallowed {
			t.Errorf("got %v", said)
		}
	})
}

// TestTDMOfSchemes checks that http and https have files of their own and share the delay of the
// host.
func TestTDMOfSchemes(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, kit.TDMURI: kit.FreeAll, "*": "x"}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, kit.Training()...)
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.Must(t, c.Visit("https://a.test/1"))
		kit.WantPace(t, web, "a.test", 10*time.Second, 6)
		if n := kit.CountURI(web, kit.TDMURI); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestTDMContextEnds checks that a page whose context ends while it reads the file fails, and that
// another page then reads it.
func TestTDMContextEnds(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, kit.TDMURI: kit.FreeAll, "/1": "x"}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web, kit.Training()...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		failed := make(chan error)
		go func() {
			_, err := p.Acquire(ctx, kit.NewRequest(t, "http://a.test/1"))
			failed <- err
		}()
		time.Sleep(time.Second)
		turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/1"))
		kit.Must(t, err)
		turn.End()
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s "+kit.TDMURI)
	})
}

// TestTDMClose checks that Close ends the wait for the file.
func TestTDMClose(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, kit.TDMURI: kit.FreeAll, "*": "x"}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, kit.Training()...)
		for i := range 3 {
			kit.Must(t, c.Visit(fmt.Sprintf("http://a.test/%d", i)))
		}
		time.Sleep(5 * time.Second)
		kit.Must(t, c.Robots.Close())
		c.Wait()
		for url, err := range c.Errs {
			if !errors.Is(err, collyrobots.ErrClosed) {
				t.Errorf("%s: got error %v", url, err)
			}
		}
		if len(c.Errs) != 3 {
			t.Errorf("got errors %v", c.Errs)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt")
	})
}

// TestTDMCheck checks that Check requests the file and that its decision is that of the crawl.
func TestTDMCheck(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.TenSeconds, kit.TDMURI: kit.ReservedAll}}, func(t *testing.T, web *robotstest.Web) {
		p := kit.NewTurns(t, web, kit.Training()...)
		for range 2 {
			d, err := p.Check(t.Context(), "http://a.test/1")
			kit.Must(t, err)
			s := d.Usage.TrainAI
			if d.Allowed || d.Reason != report.ReasonUsage || s.Preference != usage.Disallowed || s.Name != "tdmrep.json" {
				t.Errorf("got %+v", d)
			}
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s "+kit.TDMURI)
	})
}

// TestTDMEvents checks the kind of the request in events, and that the crawler has its name.
func TestTDMEvents(t *testing.T) {
	var agent string
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "/1": "x", kit.TDMURI: func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		http.NotFound(w, r)
	}}})
	var kinds []string
	c := kit.Start(t, web, nil, kit.Training(collyrobots.OnEvent(func(e *collyrobots.Event) {
		if e.Kind == report.EventStarted {
			kinds = append(kinds, string(e.RequestKind))
		}
	}))...)
	kit.Must(t, c.Visit("http://a.test/1"))
	kit.Must(t, c.Robots.Close())
	if got := strings.Join(kinds, " "); got != "robots tdmrep page" || agent != "ExampleBot/1.0" {
		t.Errorf("got %s, agent %q", got, agent)
	}
}

// TestTDMIsOptional checks that the file is requested only with the option TDMRep, with or without a
// Purpose, and that headers and meta elements are read without it.
func TestTDMIsOptional(t *testing.T) {
	const meta = `<html><head><meta name="tdm-reservation" content="1"></head></html>`
	site := robotstest.Site{kit.TDMURI: kit.ReservedAll, "/header": withHeaders("x", "tdm-reservation: 1"), "/meta": meta, "/plain": "x"}
	web := robotstest.New(t, robotstest.Sites{"a.test": site, "b.test": site, "c.test": site})
	c := kit.Start(t, web, nil,
		collyrobots.ForHosts("a.test", collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true)),
		collyrobots.ForHosts("b.test", collyrobots.TDMRep(true)),
		collyrobots.ForHosts("c.test", collyrobots.TDMRep(true), collyrobots.Purpose(usage.TrainAI), collyrobots.EnforceUsage(true)))
	names := make(map[string]string)
	c.OnResponse(func(r *colly.Response) {
		names[r.Request.URL.Host+r.Request.URL.Path] = c.Robots.Usage(r).Preferences.TrainAI.Name
	})
	for _, host := range []string{"a", "b", "c"} {
		for _, path := range []string{"/header", "/meta", "/plain"} {
			c.Visit("http://" + host + ".test" + path)
		}
	}
	kit.WantURIs(t, web, "a.test", "/robots.txt /header /meta /plain")
	kit.WantURIs(t, web, "b.test", "/robots.txt "+kit.TDMURI+" /header /meta /plain")
	kit.WantURIs(t, web, "c.test", "/robots.txt "+kit.TDMURI)
	for page, want := range map[string]string{
		"a.test/header": "tdm-reservation", "a.test/meta": "meta tdm-reservation", "a.test/plain": "",
		"b.test/header": "tdm-reservation", "b.test/meta": "meta tdm-reservation", "b.test/plain": "tdmrep.json",
	} {
		if names[page] != want {
			t.Errorf("%s: the source is %q, want %q", page, names[page], want)
		}
	}
}
