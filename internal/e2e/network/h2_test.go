package network

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The tests of this file use an HTTP/2 server that writes single frames. The server of net/http
// cannot send these sequences.

// A peer is an HTTP/2 server for all hosts. It answers with a page, unless its script answers.
type peer struct {
	robots string                                                     // the robots.txt of all hosts
	script func(c *peerConn, stream uint32, url string, nth int) bool // reports whether it has handled the request

	mu    sync.Mutex
	began time.Time
	asked []string // the requests, such as "1s a.test/path"
	cert  tls.Certificate
}

// A peerConn is a connection to a peer.
type peerConn struct {
	*http2.Framer
	net.Conn
	todo chan func() // writes frames
}

func newPeer(t *testing.T, robots string) *peer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	like := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, like, like, key.Public(), key)
	kit.Must(t, err)
	return &peer{robots: robots, cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, began: time.Now()}
}

// start returns a crawl whose https requests all go to p.
func (p *peer) start(t *testing.T, start kit.Starter, collector []colly.CollectorOption, opts ...collyrobots.Option) *kit.Crawl {
	c := start(t, robotstest.New(t, nil), collector, opts...)
	c.Transport.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close() }) // a stream may still be open when idle connections are closed
		go p.serve(tls.Server(far, &tls.Config{Certificates: []tls.Certificate{p.cert}, NextProtos: []string{"h2"}}))
		conn := tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		return conn, conn.HandshakeContext(ctx)
	}
	c.Transport.ForceAttemptHTTP2 = true
	t.Cleanup(c.Transport.CloseIdleConnections)
	return c
}

func (p *peer) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	c := &peerConn{Framer: http2.NewFramer(conn, conn), Conn: conn, todo: make(chan func(), 1000)}
	defer close(c.todo)
	go func() {
		for f := range c.todo {
			f()
		}
	}()
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.todo <- func() { c.WriteSettings() }
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.todo <- func() { c.WriteSettingsAck() }
			}
		case *http2.MetaHeadersFrame:
			p.ask(c, f.StreamID, f.PseudoValue("authority")+f.PseudoValue("path"))
		}
	}
}

func (p *peer) ask(c *peerConn, stream uint32, url string) {
	p.mu.Lock()
	p.asked = append(p.asked, fmt.Sprint(time.Since(p.began).Round(time.Millisecond), " ", url))
	nth := 0
	for _, line := range p.asked {
		if strings.HasSuffix(line, " "+url) {
			nth++
		}
	}
	p.mu.Unlock()
	if strings.HasSuffix(url, "/robots.txt") {
		c.answer(stream, "text/plain", p.robots)
	} else if p.script == nil || !p.script(c, stream, url, nth) {
		c.answer(stream, "text/html", robotstest.Page())
	}
}

func (c *peerConn) headers(stream uint32, end bool, fields ...string) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for kv := range slices.Chunk(fields, 2) {
		enc.WriteField(hpack.HeaderField{Name: kv[0], Value: kv[1]})
	}
	c.todo <- func() {
		c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
	}
}

func (c *peerConn) answer(stream uint32, kind, body string) {
	c.headers(stream, false, ":status", "200", "content-type", kind)
	c.todo <- func() { c.WriteData(stream, true, []byte(body)) }
}

func (p *peer) log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// A behaviour is how the server handles a request.

type behaviour func(c *peerConn, stream uint32)

func reset(code http2.ErrCode) behaviour {
	return func(c *peerConn, stream uint32) { c.todo <- func() { c.WriteRSTStream(stream, code) } }
}

// goAway sends GOAWAY, which says that no request of the connection will be answered.
func goAway(c *peerConn, _ uint32) { c.todo <- func() { c.WriteGoAway(0, http2.ErrCodeNo, nil) } }

func hangUp(c *peerConn, _ uint32) { c.todo <- func() { c.Close() } }

func begins(c *peerConn, stream uint32) {
	c.headers(stream, false, ":status", "200", "content-type", "text/html")
	c.todo <- func() { c.WriteData(stream, false, []byte("some")) }
}

func hints(c *peerConn, stream uint32) {
	c.headers(stream, false, ":status", "103", "link", "</a.css>")
}

func then(do ...behaviour) behaviour {
	return func(c *peerConn, stream uint32) {
		for _, b := range do {
			b(c, stream)
		}
	}
}

// TestBehavioursOfHTTP2Servers checks that a request that net/http sends again waits for the delay
// and is counted, and that the next page keeps the delay, whatever the server does.
func TestBehavioursOfHTTP2Servers(t *testing.T) { kit.ForEachClient(t, testBehavioursOfHTTP2Servers) }

func testBehavioursOfHTTP2Servers(t *testing.T, start kit.Starter) {
	refuse := reset(http2.ErrCodeRefusedStream)
	for name, tc := range map[string]struct {
		do    behaviour // for the page
		times int       // how often the server does it before it answers
		asked int       // the number of requests for the page
		fails bool
	}{
		"refuse":              {refuse, 1, 2, false},
		"hint and refuse":     {then(hints, refuse), 1, 2, false},
		"go away":             {goAway, 1, 2, false},
		"go away and hang up": {then(goAway, hangUp), 1, 2, false},
		"go away, 20 times":   {goAway, 20, 21, false},
		"go away, 150 times":  {goAway, 150, 100, true},
		"hang up":             {hangUp, 1, 1, true},
		"hang up in the body": {then(begins, hangUp), 1, 1, true},
		"reset in the body":   {then(begins, reset(http2.ErrCodeInternal)), 1, 1, true},
		"hang":                {func(*peerConn, uint32) {}, 1, 1, true},
		"hint and hang":       {hints, 1, 1, true},
		"hang in the body":    {begins, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, "User-agent: *\nCrawl-delay: 2\n")
				p.script = func(c *peerConn, stream uint32, url string, nth int) bool {
					if url == "a.test/page" && nth <= tc.times {
						tc.do(c, stream)
						return true
					}
					return false
				}
				c := p.start(t, start, nil)
				c.SetRequestTimeout(time.Second)
				if err := c.Visit("https://a.test/page"); (err != nil) != tc.fails {
					t.Error(err)
				}
				kit.Must(t, c.Visit("https://a.test/next"))
				want := []string{"0s a.test/robots.txt"}
				for i := range tc.asked {
					want = append(want, fmt.Sprint(time.Duration(2*i+2)*time.Second, " a.test/page"))
				}
				want = append(want, fmt.Sprint(time.Duration(2*tc.asked+2)*time.Second, " a.test/next"))
				if got := p.log(); !slices.Equal(got, want) {
					t.Errorf("got requests\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if s := c.Robots.Stats().Hosts[0]; s.Requests != len(want) || s.MinGap.Round(time.Millisecond) != 2*time.Second {
					t.Errorf("got stats %+v, want %d requests, 2s apart", s, len(want))
				}
			})
		})
	}
}

// TestRefusedRequestDelaysNoOtherHost checks that requests do not wait for the delay of another
// host. net/http holds a lock of the transport while it requests a connection.
func TestRefusedRequestDelaysNoOtherHost(t *testing.T) {
	kit.ForEachClient(t, testRefusedRequestDelaysNoOtherHost)
}

func testRefusedRequestDelaysNoOtherHost(t *testing.T, start kit.Starter) {
	p := newPeer(t, "")
	p.script = func(c *peerConn, stream uint32, url string, nth int) bool {
		if url != "a.test/page" || nth > 1 {
			return false
		}
		reset(http2.ErrCodeRefusedStream)(c, stream)
		return true
	}
	refused := make(chan bool, 1)
	c := p.start(t, start, kit.Async, collyrobots.ForHosts("a.test", collyrobots.MinDelay(2*time.Second)), collyrobots.OnEvent(func(e *collyrobots.Event) {
		if e.Kind == report.EventAnswered && e.Err != nil {
			refused <- true
		}
	}))
	kit.Must(t, c.Visit("https://a.test/page"))
	<-refused
	kit.Must(t, c.Visit("https://b.test/page"))
	c.Wait()
	p.wantAsked(t, "a.test/robots.txt a.test/page b.test/robots.txt b.test/page a.test/page")
}

// TestConcurrentAttemptsDelayNoOtherHost checks the same for a RoundTripper that sends a request
// several times at once.
func TestConcurrentAttemptsDelayNoOtherHost(t *testing.T) {
	kit.ForEachClient(t, testConcurrentAttemptsDelayNoOtherHost)
}

func testConcurrentAttemptsDelayNoOtherHost(t *testing.T, start kit.Starter) {
	p := newPeer(t, "")
	first := make(chan func(), 1) // answers the first attempt
	made, later := make(chan bool), make(chan bool, 10)
	p.script = func(c *peerConn, stream uint32, url string, nth int) bool {
		switch url {
		case "a.test/page":
			if nth > 1 {
				return false
			}
			first <- func() { c.answer(stream, "text/html", robotstest.Page()) }
			close(made)
			return true
		case "b.test/page":
			(<-first)()
		}
		return false
	}
	c := p.start(t, start, kit.Async, collyrobots.ForHosts("a.test", collyrobots.MinDelay(3*time.Second)))
	var attempts sync.WaitGroup
	c.WithTransport(kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/robots.txt" || r.URL.Host != "a.test" {
			return c.Transport.RoundTrip(r)
		}
		answers := make(chan *http.Response, 3)
		for i := range 3 {
			attempts.Go(func() {
				ctx := r.Context()
				if i > 0 {
					<-made
					ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { later <- true }}) // called before the plugin's own trace
				}
				resp, _ := c.Transport.RoundTrip(r.Clone(ctx))
				answers <- resp
			})
		}
		return <-answers, nil
	}))
	kit.Must(t, c.Visit("https://a.test/page"))
	<-later // another attempt begins to wait
	kit.Must(t, c.Visit("https://b.test/page"))
	c.Wait()
	attempts.Wait()
	p.wantAsked(t, "a.test/robots.txt a.test/page b.test/robots.txt b.test/page")
}

// wantAsked compares the requests to p, in order.
func (p *peer) wantAsked(t *testing.T, want string) {
	t.Helper()
	var got []string
	for _, line := range p.log() {
		got = append(got, strings.Fields(line)[1])
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got requests %v, want %s", p.log(), want)
	}
}
