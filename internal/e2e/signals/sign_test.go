package signals

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/usage"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// signingKey is a key for tests.
var signingKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

const botKeys = "https://bot.test" + webbotauth.DirectoryPath

func newSigner(t testing.TB, profile webbotauth.Profile) *webbotauth.Signer {
	t.Helper()
	s, err := webbotauth.NewSigner(signingKey, botKeys, profile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newVerifier returns a verifier for the requests of newSigner.
func newVerifier() *kit.Signatures {
	return &kit.Signatures{Keys: []ed25519.PublicKey{signingKey.Public().(ed25519.PublicKey)}}
}

// verify verifies a request of an access log. It must have been signed in the same second as the
// server received it, and with a nonce of its own.
func verify(v *kit.Signatures, r robotstest.Request) error {
	input := r.Header.Get("Signature-Input")
	if created := fmt.Sprintf(";created=%d;", r.Time.Unix()); !strings.Contains(input, created) {
		return fmt.Errorf("want %s in Signature-Input: %s", created, input)
	}
	return v.Verify(r, r.Time)
}

// wantSigned verifies every request of the access log.
func wantSigned(t *testing.T, web *robotstest.Web, profile webbotauth.Profile) {
	t.Helper()
	v := newVerifier()
	for _, r := range web.Log("") {
		err := verify(v, r)
		if err != nil {
			t.Errorf("%v %s://%s%s: %v", r.Elapsed, r.Scheme, r.Host, r.URI, err)
		}
	}
}

// unsignedHeaders fails the test if a program can see a signature.
func unsignedHeaders(t *testing.T, where string, h http.Header) {
	t.Helper()
	for _, name := range []string{"Signature", "Signature-Input", "Signature-Agent"} {
		if h.Get(name) != "" {
			t.Errorf("%s: the program sees %s", where, name)
		}
	}
}

// signedSites are sites on which a crawl makes requests of all kinds. The delay of a.test is longer
// than a signature of the profile Cloudflare is valid.
func signedSites() robotstest.Sites {
	const robots = "User-agent: *\nCrawl-delay: 200\nDisallow: /denied\n"
	throttled := 0
	return robotstest.Sites{
		"a.test": {
			"/robots.txt":     robotstest.Redirect("/robots2.txt"),
			"/robots2.txt":    robots + "Sitemap: http://a.test/map.xml\n",
			"/map.xml":        robotstest.SitemapIndex("http://a.test/map2.xml"),
			"/map2.xml":       robotstest.Sitemap("http://a.test/listed?a=b%20c"),
			"/listed?a=b%20c": robotstest.Page(),
			"/":               robotstest.Page(),
			"/moved":          robotstest.Redirect("https://b.test/to"),
			"/dropped":        kit.DropFirst(robotstest.Page()),
			"/throttled": http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
				throttled++
				if throttled == 1 {
					out.WriteHeader(http.StatusServiceUnavailable)
				}
			}),
		},
		"b.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 50\n",
			"/to":         robotstest.Redirect("/there"),
			"/there":      kit.DropFirst(robotstest.Page()),
		},
		"c.test:8080": {"/robots.txt": 404, "/x": robotstest.Page()},
	}
}

// TestEveryRequestIsSigned crawls in both profiles and verifies every request in the access log.
func TestEveryRequestIsSigned(t *testing.T) { kit.ForEachClient(t, testEveryRequestIsSigned) }

func testEveryRequestIsSigned(t *testing.T, start kit.Starter) {
	for _, profile := range []webbotauth.Profile{webbotauth.Draft, webbotauth.Cloudflare} {
		t.Run(profile.String(), func(t *testing.T) {
			kit.InBubble(t, signedSites(), func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil,
					collyrobots.SignRequests(newSigner(t, profile)),
					collyrobots.RetryThrottled(1),
					collyrobots.MaxBackOff(0),
					collyrobots.FollowSitemaps(collyrobots.Feed{}),
				)
				c.OnResponse(func(r *colly.Response) { unsignedHeaders(t, r.Request.URL.String(), *r.Request.Headers) })
				for _, u := range []string{
					"http://a.test/", "http://a.test/moved", "http://a.test/dropped", "http://a.test/throttled",
					"http://a.test/denied", "http://c.test:8080/x", "https://b.test/there?q#f",
				} {
					err := c.Visit(u)
					if err != nil && !errors.Is(err, colly.ErrRobotsTxtBlocked) && !strings.Contains(err.Error(), "Not Found") {
						t.Errorf("%s: %v", u, err)
					}
				}
				c.Wait()
				if c.Client != nil {
					for _, err := range c.Robots.Pages(t.Context(), collyrobots.Feed{}, "http://a.test") {
						kit.Must(t, err)
					}
				}
				wantSigned(t, web, profile)
				if got, want := *c.Robots.Stats().Signatures, (report.SignatureStats{Signed: len(web.Log(""))}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				all := kit.URIsOf(web.Log(""))
				for _, want := range []string{"/robots.txt", "/robots2.txt", "/map.xml", "/map2.xml", "/moved", "/to", "/there", "/dropped /dropped", "/throttled /throttled"} {
					if !strings.Contains(all+" ", want+" ") {
						t.Errorf("no request for %s: %s", want, all)
					}
				}
			})
		})
	}
}

// TestRetryIsSignedAgain checks that the headers that Colly's Retry keeps have no signature, so
// that the retry gets one of its own.
func TestRetryIsSignedAgain(t *testing.T) {
	failed := false
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 1000\n",
		"/": http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			if !failed {
				failed = true
				out.WriteHeader(http.StatusInternalServerError)
			}
		}),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.SignRequests(newSigner(t, webbotauth.Draft)))
		c.OnError(func(r *colly.Response, _ error) {
			unsignedHeaders(t, "OnError", *r.Request.Headers)
			kit.Must(t, r.Request.Retry())
		})
		c.Visit("http://a.test/")
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 16m40s /, 33m20s /")
		wantSigned(t, web, webbotauth.Draft)
	})
}

// TestNothingIsSignedByDefault checks a crawl without the option, and one whose program signs its
// requests itself.
func TestNothingIsSignedByDefault(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil)
		kit.Must(t, c.Visit("http://a.test/1"))
		for _, r := range web.Log("") {
			unsignedHeaders(t, r.URI, r.Header)
		}
	})
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.SignRequests(newSigner(t, webbotauth.Draft)))
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("Signature", "own=:AA==:")
			r.Headers.Set("Signature-Input", "own=()")
		})
		kit.Must(t, c.Visit("http://a.test/1"))
		for _, r := range web.Log("") {
			own := r.Header.Get("Signature-Input") == "own=()" && r.Header.Get("Signature-Agent") == ""
			if own != (r.URI == "/1") {
				t.Errorf("%s: header %v", r.URI, r.Header)
			}
		}
	})
}

// TestPrivateAddressGetsNoSignature checks that a request that the guard refuses reaches neither
// its server nor a transport with a signature, also if the address is known only when there is a
// connection.
func TestPrivateAddressGetsNoSignature(t *testing.T) {
	kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
		kit.InBubble(t, robotstest.Sites{
			"a.test":   {"/robots.txt": kit.NoDenys, "/1": robotstest.Redirect("http://10.0.0.1/"), "/2": robotstest.Redirect("http://in.test/")},
			"10.0.0.1": {"*": robotstest.Page()},
			"in.test":  {"*": robotstest.Page()},
		}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.SignRequests(newSigner(t, webbotauth.Draft)))
			n := kit.MovingNames(c.Transport)
			n.Set("in.test", kit.InternalIP)
			for _, path := range []string{"/1", "/2"} {
				err := c.Visit("http://a.test" + path)
				private := (*report.PrivateNetworkError)(nil)
				if !errors.As(err, &private) {
					t.Errorf("%s: error %v, want a *PrivateNetworkError", path, err)
				}
			}
			kit.WantURIs(t, web, "a.test", "/robots.txt /1 /2")
			kit.WantURIs(t, web, "10.0.0.1", "")
			kit.WantURIs(t, web, "in.test", "")
			wantSigned(t, web, webbotauth.Draft)
		})
	})
}

// asks returns a handler that answers 403 and asks for a signature until a request has a valid one.
func asks(v *kit.Signatures, accept string, answer string) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if v.Verify(robotstest.Request{Method: r.Method, Host: r.Host, URI: r.RequestURI, Header: r.Header}, time.Now()) == nil && strings.Contains(r.Header.Get("Signature-Input"), accept) {
			fmt.Fprint(out, answer)
			return
		}
		out.Header().Set("Accept-Signature", `sig=("@authority");tag="web-bot-auth"`+accept)
		out.WriteHeader(http.StatusForbidden)
	}
}

// whenAsked returns a Signer that signs only requests to sites that ask for it.
func whenAsked(t *testing.T) *webbotauth.Signer {
	s := newSigner(t, webbotauth.Draft)
	s.WhenAsked = true
	return s
}

// TestWhenAsked checks that only the site that asks gets signatures, that the rules of its
// robots.txt hold, and that a request is sent again in its turn.
func TestWhenAsked(t *testing.T) {
	kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
		v := newVerifier()
		const robots = "User-agent: *\nCrawl-delay: 10\nDisallow: /denied\n"
		kit.InBubble(t, robotstest.Sites{
			"a.test": {"/robots.txt": asks(v, "", robots), "/1": asks(v, "", "<p>"), "/2": asks(v, "", "<p>"), "/denied": "<p>"},
			"b.test": {"/robots.txt": robots, "/1": asks(v, "", "<p>"), "/2": asks(v, "", "<p>")},
			"c.test": {"/robots.txt": robots, "/1": robotstest.Page(), "/2": 403},
		}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.SignRequests(whenAsked(t)))
			for _, host := range []string{"a.test", "b.test", "c.test"} {
				kit.Must(t, c.Visit("http://"+host+"/1"))
				web.Reset()
				err := c.Visit("http://" + host + "/2")
				if (err != nil) != (host == "c.test") {
					t.Errorf("%s: error %v", host, err)
				}
				for _, r := range web.Log("") {
					signed := r.Header.Get("Signature") != ""
					if signed == (host == "c.test") {
						t.Errorf("%s%s: signed %v", host, r.URI, signed)
					}
				}
				if n := len(web.Log("")); n != 1 {
					t.Errorf("%s: %d requests for /2, want 1", host, n)
				}
			}
			if err := c.Visit("http://a.test/denied"); !errors.Is(err, colly.ErrRobotsTxtBlocked) {
				t.Errorf("/denied: error %v", err)
			}
			if log := c.Logged.String(); log != "" {
				t.Errorf("logged: %s", log)
			}
			stats := c.Robots.Stats().Signatures
			if stats.Signed == 0 || stats.Failed != 0 || stats.Asked != 2 || stats.Hosts != 2 {
				t.Errorf("got %+v", *stats)
			}
		})
	})
}

// TestSignaturesInEvents compares the events with the access log.
func TestSignaturesInEvents(t *testing.T) {
	v := newVerifier()
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/1": asks(v, "", "<p>"), "/2": asks(v, "", "<p>")},
		"b.test": {"*": robotstest.Page()},
	}, func(t *testing.T, web *robotstest.Web) {
		signed := ""
		c := kit.Start(t, web, nil, collyrobots.SignRequests(whenAsked(t)), collyrobots.OnEvent(func(e *collyrobots.Event) {
			if e.Kind == report.EventAnswered {
				signed += fmt.Sprint(" ", e.URL, " ", e.Signed)
			}
		}))
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.Must(t, c.Visit("http://b.test/"))
		kit.Must(t, c.Visit("http://a.test/2"))
		kit.Must(t, c.Robots.Close())
		want := ""
		for _, r := range web.Log("") {
			want += fmt.Sprint(" http://", r.Host, r.URI, " ", r.Header.Get("Signature") != "")
		}
		if signed != want || !strings.Contains(want, "a.test/2 true") || !strings.Contains(want, "b.test/ false") {
			t.Errorf("the events say%s, the access log says%s", signed, want)
		}
		if s := c.Robots.Stats().Signatures; s.Signed != 2 || s.Asked != 1 || s.Hosts != 1 {
			t.Errorf("got %+v", *s)
		}
	})
}

// TestWhenAskedKeepsTheDelay checks the instants of the requests that are sent again.
func TestWhenAskedKeepsTheDelay(t *testing.T) {
	kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
		v := newVerifier()
		kit.InBubble(t, robotstest.Sites{
			"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 10\n", "/1": asks(v, "", "<p>"), "/2": asks(v, "", "<p>")},
		}, func(t *testing.T, web *robotstest.Web) {
			c := start(t, web, nil, collyrobots.SignRequests(whenAsked(t)))
			kit.Must(t, c.Visit("http://a.test/1"))
			kit.Must(t, c.Visit("http://a.test/2"))
			kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 10s /1, 20s /1, 30s /2")
			if s := c.Robots.Stats().Hosts[0]; s.Requests != 4 {
				t.Errorf("Stats: %d requests, want 4", s.Requests)
			}
		})
	})
}

// TestNonceOfTheSite checks that a request is sent again once with the nonce that a site asks for,
// in both modes.
func TestNonceOfTheSite(t *testing.T) {
	for name, signer := range map[string]*webbotauth.Signer{"always": newSigner(t, webbotauth.Draft), "when asked": whenAsked(t)} {
		t.Run(name, func(t *testing.T) {
			v := newVerifier()
			kit.InBubble(t, robotstest.Sites{
				"a.test": {"/robots.txt": kit.NoDenys, "/1": asks(v, `;nonce="n1"`, "<p>"), "*": 403},
			}, func(t *testing.T, web *robotstest.Web) {
				c := kit.Start(t, web, nil, collyrobots.SignRequests(signer))
				kit.Must(t, c.Visit("http://a.test/1"))
				c.Visit("http://a.test/2")
				c.Visit("http://a.test/3")
				kit.WantURIs(t, web, "a.test", "/robots.txt /1 /1 /2 /3")
				for i, r := range web.Log("a.test") {
					used := strings.Contains(r.Header.Get("Signature-Input"), `;nonce="n1";`)
					if used != (i == 2) {
						t.Errorf("request %d, %s: has the nonce %v", i, r.URI, used)
					}
				}
			})
		})
	}
}

// TestSiteThatNeverAccepts checks a site that asks for signatures and accepts none: each request is
// sent again at most once, and then the program gets the response.
func TestSiteThatNeverAccepts(t *testing.T) {
	for accept, want := range map[string]string{
		`sig=("@authority")`:           "/robots.txt /1 /1 /2",
		`sig=("@authority");nonce="n"`: "/robots.txt /1 /1 /2 /2",
	} {
		kit.ForEachClient(t, func(t *testing.T, start kit.Starter) {
			never := http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Accept-Signature", accept)
				out.WriteHeader(http.StatusForbidden)
			})
			kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": kit.NoDenys, "*": never}}, func(t *testing.T, web *robotstest.Web) {
				c := start(t, web, nil, collyrobots.SignRequests(whenAsked(t)))
				c.Visit("http://a.test/1")
				c.Visit("http://a.test/2")
				kit.WantURIs(t, web, "a.test", want)
			})
		})
	}
}

// TestRequestsThatAreNotSentAgain checks a request whose body can be read only once, and a host
// that is not to be requested for an hour. The program gets the response of both.
func TestRequestsThatAreNotSentAgain(t *testing.T) {
	busy := http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "3600")
		out.WriteHeader(http.StatusServiceUnavailable)
	})
	v := newVerifier()
	kit.InBubble(t, robotstest.Sites{
		"a.test": {"/robots.txt": kit.NoDenys, "/post": asks(v, "", "<p>")},
		"b.test": {"/robots.txt": kit.NoDenys, "/slow": afterTime(time.Minute, asks(v, "", "<p>")), "/busy": busy},
	}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web, collyrobots.SignRequests(whenAsked(t)))
		resp, err := client.Post("http://a.test/post", "text/plain", io.MultiReader(strings.NewReader("x")))
		kit.Must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("/post: status %d", resp.StatusCode)
		}
		kit.WantURIs(t, web, "a.test", "/robots.txt /post")

		var wg sync.WaitGroup
		wg.Go(func() {
			resp, err := client.Get("http://b.test/slow")
			kit.Must(t, err)
			resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("/slow: status %d", resp.StatusCode)
			}
		})
		time.Sleep(time.Second)
		resp, err = client.Get("http://b.test/busy")
		kit.Must(t, err)
		resp.Body.Close()
		wg.Wait()
		kit.WantURIs(t, web, "b.test", "/robots.txt /slow /busy")
	})
}

// afterTime returns a handler that waits before it answers.
func afterTime(d time.Duration, answer http.HandlerFunc) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		answer(out, r)
	}
}

// TestThrottledRequestIsNotSentAgain checks a site that asks for another signature with 429: the
// program gets the response, and the next request is signed.
func TestThrottledRequestIsNotSentAgain(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": {
		"/robots.txt": kit.NoDenys,
		"/1": http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Accept-Signature", `sig=("@authority");nonce="n"`)
			out.WriteHeader(http.StatusTooManyRequests)
		}),
		"/2": robotstest.Page(),
	}}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.SignRequests(whenAsked(t)))
		c.Visit("http://a.test/1")
		kit.Must(t, c.Visit("http://a.test/2"))
		kit.WantURIs(t, web, "a.test", "/robots.txt /1 /2")
		last := web.Log("a.test")[2]
		if !strings.Contains(last.Header.Get("Signature-Input"), `;nonce="n";`) {
			t.Errorf("/2: header %v", last.Header)
		}
		kit.Must(t, verify(newVerifier(), last))
	})
}

// TestAcquireDoesNotSign checks that Acquire leaves the request alone, that the program can sign
// it, and that a response that asks for a signature ends the Turn like any other.
func TestAcquireDoesNotSign(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(3, "User-agent: *\nCrawl-delay: 5\n")}, func(t *testing.T, web *robotstest.Web) {
		signer := newSigner(t, webbotauth.Draft)
		p, _ := kit.NewRobots(t, web, collyrobots.SignRequests(signer), collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}))
		req, err := http.NewRequest("GET", "http://a.test/1", nil)
		kit.Must(t, err)
		turn, err := p.Acquire(t.Context(), req)
		kit.Must(t, err)
		unsignedHeaders(t, "Acquire", req.Header)
		kit.Must(t, signer.Sign(req))
		resp, err := web.Transport().RoundTrip(req)
		kit.Must(t, err)
		resp.Body.Close()
		turn.Answered(http.StatusForbidden, http.Header{"Accept-Signature": {`sig=("@authority");nonce="n"`}})
		began := time.Now()
		time.AfterFunc(30*time.Second, turn.End)
		next, err := p.Acquire(t.Context(), req)
		kit.Must(t, err)
		next.End()
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("the next Turn came after %v, and not at the end of the first one", waited)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 5s /1")
		wantSigned(t, web, webbotauth.Draft)
	})
}

// TestRequestThatCannotBeSigned checks that such a request is sent without a signature, and that
// this is logged once.
func TestRequestThatCannotBeSigned(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(5, kit.NoDenys)}, func(t *testing.T, web *robotstest.Web) {
		c := kit.StartClient(t, web, nil, collyrobots.SignRequests(newSigner(t, webbotauth.Draft)))
		c.Impolite = true // the access log has a path that Verify does not know
		for range 2 {
			req, err := http.NewRequest("GET", "http://a.test/1", nil)
			kit.Must(t, err)
			req.URL.Opaque = "/ü"
			resp, err := c.Client.Do(req)
			kit.Must(t, err)
			resp.Body.Close()
		}
		if n := strings.Count(c.Logged.String(), "a request cannot be signed"); n != 1 {
			t.Errorf("logged %d times: %s", n, c.Logged)
		}
		if got, want := *c.Robots.Stats().Signatures, (report.SignatureStats{Signed: 1, Failed: 2}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestFTPIsNotSigned checks that a transport that speaks ftp gets no signatures.
func TestFTPIsNotSigned(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": nil}, func(t *testing.T, web *robotstest.Web) {
		p, _ := kit.NewRobots(t, web, collyrobots.SignRequests(newSigner(t, webbotauth.Draft)))
		requests := 0
		ftp := &kit.FTPServer{Began: time.Now(), Files: map[string]string{"/1": "one"}}
		client := &http.Client{Transport: p.Transport(kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
			requests++
			unsignedHeaders(t, req.URL.String(), req.Header)
			return ftp.RoundTrip(req)
		}))}
		_, err := kit.Get(client, "ftp://a.test/1")
		kit.Must(t, err)
		if requests != 2 {
			t.Errorf("%d requests, want 2", requests)
		}
	})
}

// TestSignerFaults checks the faults of the option.
func TestSignerFaults(t *testing.T) {
	for _, s := range []*webbotauth.Signer{nil, new(webbotauth.Signer)} {
		_, err := collyrobots.New(collyrobots.SignRequests(s))
		fault := (*collyrobots.OptionError)(nil)
		if !errors.As(err, &fault) || fault.Option != "SignRequests" {
			t.Errorf("SignRequests(%v): error %v", s, err)
		}
	}
}

// TestCard checks what the options say about a crawler.
func TestCard(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []collyrobots.Option
		want webbotauth.Bot
	}{
		{
			name: "defaults",
			want: webbotauth.Bot{ProductToken: "ExampleBot", ObeysRobots: true, RateControl: "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without"},
		},
		{
			name: "a token and a delay",
			opts: []collyrobots.Option{collyrobots.ProductToken("XBot", "Bot"), collyrobots.MinDelay(10 * time.Second)},
			want: webbotauth.Bot{ProductToken: "XBot", ObeysRobots: true, RateControl: "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without", Rate: "at most one request to a host every 10s"},
		},
		{
			name: "a host with a shorter delay",
			opts: []collyrobots.Option{collyrobots.MinDelay(10 * time.Second), collyrobots.ForHosts("a.test", collyrobots.MinDelay(time.Second))},
			want: webbotauth.Bot{ProductToken: "ExampleBot", ObeysRobots: true, RateControl: "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without", Rate: "at most one request to a host every 1s"},
		},
		{
			name: "a host that is not obeyed",
			opts: []collyrobots.Option{collyrobots.ForHosts("a.test", kit.IgnoreRobots())},
			want: webbotauth.Bot{ProductToken: "ExampleBot", RateControl: "status 429 or 503, with Retry-After or without"},
		},
		{
			name: "another dialect",
			opts: []collyrobots.Option{collyrobots.Dialect(dialect.Original1994())},
			want: webbotauth.Bot{ProductToken: "ExampleBot", RateControl: "status 429 or 503, with Retry-After or without"},
		},
		{
			name: "purposes",
			opts: []collyrobots.Option{collyrobots.Purpose(usage.TrainAI), collyrobots.ForHosts("a.test", collyrobots.Purpose(usage.Search))},
			want: webbotauth.Bot{ProductToken: "ExampleBot", ObeysRobots: true, RateControl: "Crawl-delay in robots.txt; status 429 or 503, with Retry-After or without", Purpose: "search, train-ai"},
		},
		{
			name: "a dry run",
			opts: []collyrobots.Option{collyrobots.DryRun(true), collyrobots.MinDelay(time.Second)},
			want: webbotauth.Bot{ProductToken: "ExampleBot"},
		},
	} {
		c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		p, err := c.WithRobots(tc.opts...)
		kit.Must(t, err)
		tc.want.UserAgent = "ExampleBot/1.0"
		tc.want.Trigger = "crawler"
		tc.want.KnownURLs = []string{"/robots.txt"}
		got := p.Card()
		if fmt.Sprint(got) != fmt.Sprint(webbotauth.Card{Bot: tc.want}) {
			t.Errorf("%s: got %+v, want %+v", tc.name, got.Bot, tc.want)
		}
		_, err = got.JSON()
		kit.Must(t, err)
		kit.Must(t, p.Close())
	}
	p, err := collyrobots.New()
	kit.Must(t, err)
	defer p.Close()
	if bot := p.Card().Bot; bot.UserAgent != "" || bot.ProductToken != "" || !bot.ObeysRobots {
		t.Errorf("without a collector: %+v", bot)
	}
	if got := new(collyrobots.Plugin).Card(); !slices.Equal(got.Bot.KnownURLs, nil) {
		t.Errorf("zero Plugin: %+v", got)
	}
}
