package clients

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The error of a request that is not sent has its type, inside the *url.Error of http.Client.
func TestTheErrorsOfAClient(t *testing.T) {
	private := robotstest.Redirect("http://10.0.0.1/")
	sites := robotstest.Sites{
		"a.test": {
			"/robots.txt": "User-agent: *\nDisallow: /closed\n",
			"/closed":     robotstest.Page(),
			"/moved":      robotstest.Redirect("/closed"),
			"/private":    private,
		},
		"10.0.0.1": robotstest.Pages(1, ""),
	}
	isA := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for name, test := range map[string]struct {
		url     string
		options []collyrobots.Option
		before  func(p *collyrobots.Plugin, client *http.Client)
		want    func(error) bool
	}{
		"denied":                          {url: "http://a.test/closed", want: isA(new(*collyrobots.DeniedError))},
		"redirect to a denied":            {url: "http://a.test/moved", want: isA(new(*collyrobots.DeniedError))},
		"redirect into a private network": {url: "http://a.test/private", want: isA(new(*report.PrivateNetworkError))},
		"another shard": {
			url:     "http://a.test/",
			options: []collyrobots.Option{otherShard("http://a.test/")},
			want:    isA(new(*report.ShardError)),
		},
		"closed": {
			url:    "http://a.test/",
			before: func(p *collyrobots.Plugin, _ *http.Client) { p.Close() },
			want:   func(err error) bool { return errors.Is(err, collyrobots.ErrClosed) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
				p, client := kit.NewRobots(t, web, test.options...)
				if test.before != nil {
					test.before(p, client)
				}
				_, err := kit.Get(client, test.url)
				outer := (*url.Error)(nil)
				if !test.want(err) || !errors.As(err, &outer) {
					t.Errorf("got error %v of type %T", err, err)
				}
				if uris := kit.URIsOf(web.Log("10.0.0.1")) + kit.URIsOf(web.Log("a.test")); strings.Contains(uris, "closed") || len(web.Log("10.0.0.1")) > 0 {
					t.Errorf("the servers were asked for %s", uris)
				}
			})
		})
	}
	t.Run("the Pacer fails", func(t *testing.T) {
		kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
			sharing := kit.Shared(t)
			sharing.Err = errors.New("down")
			_, client := kit.NewRobots(t, web, collyrobots.SharedPace(sharing))
			_, err := kit.Get(client, "http://a.test/")
			if !isA(new(*report.PaceError))(err) {
				t.Errorf("got error %v", err)
			}
		})
	})
}

// otherShard returns the option of a process that does not crawl the host of a URL.
func otherShard(url string) collyrobots.Option {
	index, err := collyrobots.ShardOf(url, 2)
	if err != nil {
		panic(err)
	}
	return collyrobots.ShardByHost(2, 1-index)
}

// A collector and a client that share a plugin share the pace and robots.txt.
func TestACollectorAndAClientShareOnePace(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(20, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, kit.Async, collyrobots.ProductToken("ExampleBot"))
		client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
		defer client.CloseIdleConnections()
		var group sync.WaitGroup
		for i := range 10 {
			c.Visit(fmt.Sprintf("http://a.test/%d", i))
			group.Go(func() {
				_, err := kit.Get(client, fmt.Sprintf("http://a.test/%d", 10+i))
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		c.Wait()
		log := web.Log("a.test")
		if len(log) != 21 || log.MinGap() != time.Second || strings.Count(kit.URIsOf(log), "robots.txt") != 1 {
			t.Errorf("the smallest gap is %v in\n%v", log.MinGap(), log)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
	})
}

// The sitemaps of a site that only a client has visited are not fed to a collector.
func TestTheSitemapsOfAClient(t *testing.T) {
	sites := robotstest.Sites{
		"a.test": robotstest.Pages(9, ""),
		"b.test": {"/robots.txt": "Sitemap: http://b.test/map.xml\n", "/map.xml": robotstest.Sitemap("http://b.test/1"), "*": robotstest.Page()},
	}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		c := kit.Start(t, web, nil, collyrobots.FollowSitemaps(collyrobots.Feed{}))
		client := &http.Client{Transport: c.Robots.Transport(web.Transport())}
		defer client.CloseIdleConnections()
		_, err := kit.Get(client, "http://b.test/2")
		kit.Must(t, err)
		kit.Must(t, c.Visit("http://a.test/1"))
		kit.WantURIs(t, web, "b.test", "/robots.txt /2")
	})
}

// A body that is neither read nor closed does not block its host forever.
func TestABodyThatIsNeverReadExpires(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web)
		resp, err := client.Get("http://a.test/1")
		kit.Must(t, err)
		defer resp.Body.Close()
		_, err = kit.Get(client, "http://a.test/2")
		kit.Must(t, err)
		kit.WantURIs(t, web, "a.test", "/robots.txt /1 /2")
	})
}

// A countingTransport is a RoundTripper that counts the calls of its methods.
type countingTransport struct {
	http.RoundTripper
	requests, closed atomic.Int32
}

func (r *countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r.requests.Add(1)
	return r.RoundTripper.RoundTrip(req)
}

func (r *countingTransport) CloseIdleConnections() { r.closed.Add(1) }

// body is the body of a request.
type body struct {
	io.Reader
	closed atomic.Int32
}

func (b *body) Close() error {
	b.closed.Add(1)
	return nil
}

// Transport keeps the contract of http.RoundTripper: it closes the body of each request, does not
// change the request, and passes CloseIdleConnections on.
func TestTheContractOfARoundTripper(t *testing.T) {
	sites := robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nDisallow: /closed\n", "/closed": 200, "/drop": kit.Drop, "*": 200}}
	kit.InBubble(t, sites, func(t *testing.T, web *robotstest.Web) {
		p, _ := kit.NewRobots(t, web)
		next := &countingTransport{RoundTripper: web.Transport()}
		rt := p.Transport(next)
		for _, path := range []string{"/", "/closed", "/drop"} {
			b := &body{Reader: strings.NewReader("x")}
			req, err := http.NewRequest(http.MethodPost, "http://a.test"+path, b)
			kit.Must(t, err)
			req.Header.Set("User-Agent", "ExampleBot/1.0")
			before := req.Clone(req.Context())
			resp, err := rt.RoundTrip(req)
			if (err == nil) != (path == "/") {
				t.Errorf("%s: got error %v", path, err)
			}
			if err == nil {
				resp.Body.Close()
			}
			if b.closed.Load() == 0 {
				t.Errorf("%s: the body of the request was not closed", path)
			}
			if !reflect.DeepEqual(req.Header, before.Header) || *req.URL != *before.URL || req.Host != before.Host || req.Context() != before.Context() {
				t.Errorf("%s: the request was changed", path)
			}
		}
		(&http.Client{Transport: rt}).CloseIdleConnections()
		if next.closed.Load() != 1 {
			t.Errorf("CloseIdleConnections of next was called %d times", next.closed.Load())
		}
		web.Transport().CloseIdleConnections()
		next.RoundTripper.(*http.Transport).CloseIdleConnections()
	})
}

// A transport between two transports of one plugin changes the URL of each page, or makes a request
// of its own first. Each request that is sent is judged by its own URL, and keeps the delay.
func TestLayersBetweenTransportsOfOnePlugin(t *testing.T) {
	const robots = "User-agent: *\nCrawl-delay: 2\nDisallow: /*secret\n"
	addKey := func(key string) func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			keyed := req.Clone(req.Context())
			keyed.URL.RawQuery = key
			return next.RoundTrip(keyed)
		}
	}
	fetch := func(url string) func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			extra, err := http.NewRequestWithContext(req.Context(), http.MethodGet, url, nil)
			if err != nil {
				return nil, err
			}
			extra.Header = req.Header
			resp, err := next.RoundTrip(extra)
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
			return next.RoundTrip(req)
		}
	}
	for name, test := range map[string]struct {
		layer   func(next http.RoundTripper, req *http.Request) (*http.Response, error)
		options []collyrobots.Option
		want    string
		other   string // the requests to www.a.test
		pages   int
		denied  bool
	}{
		"a key": {layer: addKey("key=1"), want: "0s /robots.txt, 2s /0?key=1, 4s /1?key=1, 6s /2?key=1", pages: 3},
		"a key and a budget": {
			layer: addKey("key=1"), options: []collyrobots.Option{collyrobots.MaxPagesPerHost(3)},
			want: "0s /robots.txt, 2s /0?key=1, 4s /1?key=1, 6s /2?key=1", pages: 3,
		},
		"a denied key": {layer: addKey("secret"), want: "0s /robots.txt", denied: true},
		"a token": {
			layer: fetch("http://a.test/token"), pages: 3,
			want: "0s /robots.txt, 2s /token, 4s /0, 6s /token, 8s /1, 10s /token, 12s /2",
		},
		"a denied token": {layer: fetch("http://a.test/secret"), want: "0s /robots.txt", denied: true},
		"a token by https": {
			layer: fetch("https://a.test/token"), pages: 3,
			want: "0s /robots.txt, 4s /robots.txt, 6s /token, 8s /0, 10s /token, 12s /1, 14s /token, 16s /2",
		},
		"a token of another host of the group": {
			layer: fetch("http://www.a.test/token"), pages: 3,
			options: []collyrobots.Option{collyrobots.PaceBy(collyrobots.ByDomain)},
			want:    "0s /robots.txt, 8s /0, 12s /1, 16s /2",
			other:   "4s /robots.txt, 6s /token, 10s /token, 14s /token",
		},
	} {
		for _, kind := range []string{"client", "collector"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, robots), "www.a.test": robotstest.Pages(9, robots)}, func(t *testing.T, web *robotstest.Web) {
					web.Set("a.test", "*", "text")
					web.Set("www.a.test", "*", "text")
					p, _ := kit.NewRobots(t, web, test.options...)
					next := web.Transport()
					defer next.CloseIdleConnections()
					inner := p.Transport(next)
					layer := kit.RoundTripper(func(req *http.Request) (*http.Response, error) {
						if req.URL.Path == "/robots.txt" {
							return inner.RoundTrip(req)
						}
						return test.layer(inner, req)
					})
					c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
					c.WithTransport(layer)
					kit.Must(t, p.Attach(c))
					client := &http.Client{Transport: p.Transport(layer), Timeout: time.Minute}
					for i := range 3 {
						url := fmt.Sprintf("http://a.test/%d", i)
						err := c.Visit
						if kind == "client" {
							err = func(url string) error { _, err := kit.Get(client, url); return err }
						}
						if err := err(url); errors.Is(err, colly.ErrRobotsTxtBlocked) != test.denied || err != nil && !test.denied {
							t.Errorf("%s: got error %v", url, err)
						}
					}
					if test.denied {
						if got := kit.URIsOf(web.Log("a.test")); got != "/robots.txt" {
							t.Errorf("a.test got %s", got)
						}
					} else {
						kit.WantSchedule(t, web, "a.test", test.want)
						kit.WantSchedule(t, web, "www.a.test", test.other)
					}
					if got := p.Stats().Totals.Pages; got != test.pages {
						t.Errorf("got %d pages, want %d", got, test.pages)
					}
				})
			})
		}
	}
}

// A program makes every client polite by replacing http.DefaultTransport, also with two plugins. A
// collector without a transport of its own, and the robots.txt of a Turn, go the same way.
func TestTheDefaultTransport(t *testing.T) {
	kit.InBubble(t, robotstest.Sites{"a.test": robotstest.Pages(9, "User-agent: *\nCrawl-delay: 1\n")}, func(t *testing.T, web *robotstest.Web) {
		before := http.DefaultTransport
		defer func() { http.DefaultTransport = before }()
		next := web.Transport()
		defer next.CloseIdleConnections()
		http.DefaultTransport = next
		p, _ := kit.NewRobots(t, web)
		second, _ := kit.NewRobots(t, web, kit.IgnoreRobots())
		http.DefaultTransport = p.Transport(nil)
		http.DefaultTransport = second.Transport(nil)
		turn, err := p.Acquire(t.Context(), kit.NewRequest(t, "http://a.test/0"))
		kit.Must(t, err)
		turn.End()
		_, err = kit.Get(http.DefaultClient, "http://a.test/1")
		kit.Must(t, err)
		c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
		kit.Must(t, p.Attach(c))
		kit.Must(t, c.Visit("http://a.test/2"))
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 2s /1, 3s /2")
	})
}

// Misuse is an error.
func TestMisuseOfATransport(t *testing.T) {
	zero := new(collyrobots.Plugin)
	_, err := kit.Get(&http.Client{Transport: zero.Transport(nil)}, "http://a.test/")
	if err == nil || !strings.Contains(err.Error(), "zero value") {
		t.Errorf("a zero Plugin: got error %v", err)
	}
	(&http.Client{Transport: zero.Transport(nil)}).CloseIdleConnections()
	p, err := collyrobots.New()
	kit.Must(t, err)
	defer p.Close()
	for name, req := range map[string]*http.Request{"nil": nil, "no URL": {}} {
		_, err := p.Transport(nil).RoundTrip(req)
		if !errors.Is(err, collyrobots.ErrNilRequest) {
			t.Errorf("%s: RoundTrip returned %v", name, err)
		}
		_, err = p.Acquire(t.Context(), req)
		if !errors.Is(err, collyrobots.ErrNilRequest) {
			t.Errorf("%s: Acquire returned %v", name, err)
		}
	}
}

// RetryThrottled sends a request of a client again, with its body.
func TestRetryThrottledOfAClient(t *testing.T) {
	var tries atomic.Int32
	answer := func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Write(text)
	}
	kit.InBubble(t, robotstest.Sites{"a.test": {"/robots.txt": 404, "/": answer}}, func(t *testing.T, web *robotstest.Web) {
		_, client := kit.NewRobots(t, web, collyrobots.RetryThrottled(1))
		resp, err := client.Post("http://a.test/", "text/plain", strings.NewReader("hello"))
		kit.Must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if string(text) != "hello" || err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("got %d, %q, %v", resp.StatusCode, text, err)
		}
		kit.WantSchedule(t, web, "a.test", "0s /robots.txt, 0s /, 7s /")
	})
}

// A transport between a collector and a transport of the plugin may send requests of its own with the
// context of a page, even when the page is over. Its record may be that of another page by then, so this
// test is for the race detector.
func TestInnerRequestsAfterTheEndOfAPage(t *testing.T) {
	p, err := collyrobots.New(kit.Quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	inner := p.Transport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x")), Request: r}, nil
	}))
	var others sync.WaitGroup
	hedging := kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		others.Go(func() {
			for range 20 {
				if resp, err := inner.RoundTrip(r.Clone(r.Context())); err == nil {
					resp.Body.Close()
				}
			}
		})
		return inner.RoundTrip(r)
	})
	c := colly.NewCollector(colly.AllowURLRevisit())
	c.WithTransport(hedging)
	if err := p.Attach(c); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := c.Visit("http://a.test/"); err != nil {
			t.Fatal(err)
		}
	}
	others.Wait()
}
