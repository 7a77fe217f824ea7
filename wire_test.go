package collyrobots_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
)

// A wire is a web inside a testing/synctest bubble: the same hosts and the same access log, a real net/http server and a real
// http.Transport, but the connections are pipes in memory and take no time. So the log's instants are exact, and a
// crawl delay of hours costs nothing.
//
// Every host answers on http and, with a certificate of a private CA, on https. A host whose name begins with "proxy" is a
// proxy to all others.
type wire struct {
	*web
	began   time.Time
	roots   *x509.CertPool // of the private CA
	conns   chan net.Conn  // what the server accepts
	dialled *dialled
}

// dialled is where connections were opened to, in order.
type dialled struct {
	mu    sync.Mutex
	hosts []string
}

// onWire runs f in a bubble with the hosts of sites.
func onWire(t *testing.T, sites map[string]site, f func(t *testing.T, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWire(t, sites)) })
}

func newWire(t *testing.T, sites map[string]site) *wire {
	w := &wire{web: &web{sites: sites}, began: time.Now(), conns: make(chan net.Conn), dialled: new(dialled)}
	w.roots, _ = privateCA()
	server := &http.Server{Handler: w, ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(pipes{w.conns, make(chan struct{}), new(sync.Once)})
	t.Cleanup(func() { server.Close() })
	w.client = w.transport(t)
	return w
}

// transport returns one that reaches the wire's hosts and trusts their CA.
func (w *wire) transport(t *testing.T) *http.Transport {
	transport := &http.Transport{DialContext: w.dialPipe, TLSClientConfig: &tls.Config{RootCAs: w.roots}, MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

func (w *wire) dialPipe(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	w.dialled.mu.Lock()
	w.dialled.hosts = append(w.dialled.hosts, host)
	w.dialled.mu.Unlock()
	near, far := net.Pipe()
	return connTo{near, host}, w.accept(ctx, far, host, port)
}

// accept hands a connection that was opened to a host to the server.
func (w *wire) accept(ctx context.Context, conn net.Conn, host, port string) error {
	conn = connTo{conn, host}
	if port == "443" {
		_, certificate := privateCA()
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	select {
	case w.conns <- conn:
		return nil
	case <-ctx.Done():
		conn.Close()
		return ctx.Err()
	}
}

// connTo is a connection that was opened to a host. Its address is the host's name.
type connTo struct {
	net.Conn
	host string
}

func (c connTo) LocalAddr() net.Addr { return &net.UnixAddr{Name: c.host} }

// SetWriteDeadline is what TLS calls before it says goodbye, for which it allows 5 s. Two ends that do so at once would wait for each
// other, under locks that stop the bubble's clock. Here the connection just ends.
func (c connTo) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		t = time.Now()
	}
	return c.Conn.SetWriteDeadline(t)
}

// ServeHTTP notes the method and the scheme as headers of the hit, and answers as the web does, or as a proxy. The host is the one that
// the connection was opened to, whatever the Host field says.
func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		w.tunnel(out, r)
		return
	}
	r.Header["Method"], r.Header["Scheme"] = []string{r.Method}, []string{"http"}
	if r.TLS != nil {
		r.Header["Scheme"] = []string{"https"}
	}
	if host := strings.ToLower(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()); !strings.HasPrefix(host, "proxy") {
		r.Host = host
	}
	r.RequestURI = r.URL.RequestURI() // a proxy is asked for the whole URL
	w.web.serve(out, r)
}

// tunnel lets the proxy's connection become one to the host that was asked for.
func (w *wire) tunnel(out http.ResponseWriter, r *http.Request) {
	conn, _, err := out.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	host, port, _ := net.SplitHostPort(r.Host)
	w.accept(r.Context(), conn, host, port)
}

// schedule is the access log of a host as text: when each request came, to the millisecond, and what it asked for.
func (w *wire) schedule(host string) string {
	var lines []string
	for _, h := range w.hits(host) {
		lines = append(lines, fmt.Sprintf("%v %s", h.at.Sub(w.began).Round(time.Millisecond), h.uri))
	}
	return strings.Join(lines, "\n")
}

// wantSchedule compares the access log of a host with want, in which ", " may stand for a line's end.
func (w *wire) wantSchedule(t *testing.T, host, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), ", ", "\n")
	if got := w.schedule(host); got != want {
		t.Errorf("%s was asked for\n%s\nwant\n%s", host, got, want)
	}
}

// wantPace fails the test unless a host was asked n times, every gap being the delay to the microsecond: never sooner, which is
// the promise, and never later, which is the cost.
func (w *wire) wantPace(t *testing.T, host string, delay time.Duration, n int) {
	t.Helper()
	hits := w.hits(host)
	if len(hits) != n {
		t.Errorf("%s was asked %d times, want %d:\n%s", host, len(hits), n, w.schedule(host))
	}
	for i := 1; i < len(hits); i++ {
		if gap := hits[i].at.Sub(hits[i-1].at); gap.Round(time.Microsecond) != delay {
			t.Errorf("%s: %v between %s and %s, want %v", host, gap, hits[i-1].uri, hits[i].uri, delay)
		}
	}
}

// wantNoSooner is wantPace for a crawl that something else slows down.
func (w *wire) wantNoSooner(t *testing.T, host string, delay time.Duration, n int) {
	t.Helper()
	if got := len(w.hits(host)); got != n {
		t.Errorf("%s was asked %d times, want %d:\n%s", host, got, n, w.schedule(host))
	}
	if gap := w.minGap(host); gap < delay-time.Microsecond {
		t.Errorf("%s was asked twice within %v, want %v:\n%s", host, gap, delay, w.schedule(host))
	}
}

// privateCA makes a CA that no system trusts, and a certificate of it for the hosts under .test.
var privateCA = sync.OnceValues(func() (*x509.CertPool, tls.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"*.test"},
		NotBefore:    time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), // a bubble begins in 2000
		NotAfter:     time.Date(2990, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return roots, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// pipes is a listener for connections in memory.
type pipes struct {
	conns  <-chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Slow hosts wait side by side, not one after the other, and the crawl ends when the slowest one's last page may be sent.
func TestThreeHostsAreCrawledAtTheIdealPace(t *testing.T) {
	for name, limit := range map[string]*colly.LimitRule{
		"no LimitRule":  nil,
		"parallelism 1": {DomainGlob: "*", Parallelism: 1},
		"parallelism 2": {DomainGlob: "*", Parallelism: 2},
		"per domain":    {DomainRegexp: `^[ab]\.test$`, Parallelism: 3},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, map[string]site{
				"a.test": pages(60, "User-agent: *\nCrawl-delay: 1"),
				"b.test": pages(30, "User-agent: *\nCrawl-delay: 2"),
				"c.test": pages(20, "User-agent: *\nCrawl-delay: 3"),
			}, func(t *testing.T, w *wire) {
				c := w.start(t, async).follow()
				limited(t, c, limit)
				for _, host := range []string{"a", "b", "c"} {
					c.Visit("http://" + host + ".test/")
				}
				c.Wait()
				w.wantPace(t, "a.test", 1*time.Second, 62)
				w.wantPace(t, "b.test", 2*time.Second, 32)
				w.wantPace(t, "c.test", 3*time.Second, 22)
			})
		})
	}
}

func limited(t *testing.T, c *crawl, rules ...*colly.LimitRule) {
	t.Helper()
	for _, r := range rules {
		if r == nil {
			continue
		}
		if err := c.Limit(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever Colly's own limits do to a crawl, no URL is lost and no gap is too short.
func TestNoLimitRuleShortensAGap(t *testing.T) {
	const ms = time.Millisecond
	for name, rules := range map[string][]*colly.LimitRule{
		"none":                     nil,
		"* parallelism 1":          {{DomainGlob: "*", Parallelism: 1}},
		"* parallelism 2":          {{DomainGlob: "*", Parallelism: 2}},
		"* short delay":            {{DomainGlob: "*", Delay: 50 * ms}},
		"* long delay":             {{DomainGlob: "*", Delay: 1700 * ms, Parallelism: 2}},
		"* random delay":           {{DomainGlob: "*", RandomDelay: 700 * ms, Parallelism: 2}},
		"* delay and random delay": {{DomainGlob: "*", Delay: 300 * ms, RandomDelay: 300 * ms}},
		"per domain": {
			{DomainGlob: "slow.*", Parallelism: 4, RandomDelay: 400 * ms},
			{DomainRegexp: `^middle\.`, Delay: 200 * ms},
			{DomainGlob: "*", Parallelism: 8},
		},
	} {
		for mode, options := range map[string][]colly.CollectorOption{"sync": nil, "async": async} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				slow := pages(8, "User-agent: *\nCrawl-delay: 1")
				slow["/0"], slow["/hop"] = redirect("/hop"), redirect("/end")
				slow["/end"] = page()
				onWire(t, map[string]site{
					"slow.test":   slow,
					"middle.test": pages(8, "User-agent: *\nCrawl-delay: 0.4"),
					"fast.test":   pages(30, noDenys),
				}, func(t *testing.T, w *wire) {
					c := w.start(t, options).follow()
					limited(t, c, rules...)
					for _, host := range []string{"slow", "middle", "fast"} {
						c.Visit("http://" + host + ".test/")
					}
					c.Wait()
					w.wantNoSooner(t, "slow.test", time.Second, 12)
					w.wantNoSooner(t, "middle.test", 400*ms, 10)
					w.wantNoSooner(t, "fast.test", 0, 32)
					if len(c.errs)+len(c.denied) > 0 || len(c.pages) != 9+9+31 {
						t.Errorf("%d pages, errors %v, denied %v", len(c.pages), c.errs, c.denied)
					}
				})
			})
		}
	}
}

// While the hosts that have to wait do so, the fast host's pages go out at the instant in which they are found.
func TestAFastHostWaitsForNobody(t *testing.T) {
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, parallelism := range []int{1, 2, 50} {
		t.Run(fmt.Sprint("parallelism ", parallelism), func(t *testing.T) {
			onWire(t, map[string]site{
				"hour.test":   pages(20, "User-agent: *\nCrawl-delay: 3600"),
				"silent.test": {"/robots.txt": silent},
				"fast.test":   pages(100, noDenys),
			}, func(t *testing.T, w *wire) {
				c := w.start(t, async).follow()
				limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: parallelism})
				for i := range 20 {
					c.Visit(fmt.Sprint("http://hour.test/", i))
					c.Visit(fmt.Sprint("http://silent.test/", i))
				}
				time.Sleep(time.Second)
				c.Visit("http://fast.test/")
				c.Wait()
				fast := w.hits("fast.test")
				if last := fast[len(fast)-1].at.Sub(w.began); len(fast) != 102 || last != time.Second {
					t.Errorf("fast.test was asked %d times, the last time at %v; want 102 and 1s", len(fast), last)
				}
				w.wantNoSooner(t, "hour.test", time.Hour, 21)
				if asked := w.uris("silent.test"); strings.ReplaceAll(asked+" ", "/robots.txt ", "") != "" || len(c.denied) != 20 {
					t.Errorf("silent.test was asked for %q, %d of 20 denied", asked, len(c.denied))
				}
			})
		})
	}
}

// The crawl delay is between starts: a server that takes its time, or more than the delay, is not asked sooner for that.
func TestASlowServerIsNotAskedSooner(t *testing.T) {
	for _, takes := range []time.Duration{300 * time.Millisecond, 2500 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			a := pages(6, "User-agent: *\nCrawl-delay: 1")
			for path, answer := range a {
				a[path] = http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
					time.Sleep(takes)
					if path != "/robots.txt" {
						out.Header().Set("Content-Type", "text/html")
					}
					io.WriteString(out, answer.(string))
				})
			}
			onWire(t, map[string]site{"a.test": a}, func(t *testing.T, w *wire) {
				c := w.start(t, async).follow()
				limited(t, c, &colly.LimitRule{DomainGlob: "*", Parallelism: 2})
				c.Visit("http://a.test/")
				c.Wait()
				w.wantNoSooner(t, "a.test", time.Second, 8)
			})
		})
	}
}
