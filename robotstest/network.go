package robotstest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A network connects the transports of a web to its server. It is the listener of the server and
// creates the connections.
type network struct {
	pair   func(context.Context) (near, far net.Conn, err error) // creates the two ends of a connection
	bubble bool                                                  // whether connections are in memory and take no time
	conns  chan net.Conn                                         // connections for the server to accept
	closed chan struct{}
	once   sync.Once // closes closed
	below  *loopback // nil in a bubble
	late   *lateness // nil in a bubble
}

func newNetwork() (*network, error) {
	n := &network{conns: make(chan net.Conn), closed: make(chan struct{}), bubble: inBubble()}
	if n.bubble {
		n.pair = func(context.Context) (net.Conn, net.Conn, error) {
			near, far := net.Pipe()
			return pipe{near}, pipe{far}, nil
		}
		return n, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("robotstest: %w", err)
	}
	n.below = &loopback{Listener: listener}
	n.pair = n.below.pair
	n.late = measureLateness()
	return n, nil
}

// inBubble reports whether the caller runs in a bubble of testing/synctest. No function of Go says
// so, but the first line of a stack trace does, as in "goroutine 7 [running, synctest bubble 1]:". If
// a version of Go writes another text, most bubbles are recognized by their clock, which begins in
// 2000.
func inBubble() bool {
	if time.Now().Year() < 2020 {
		return true
	}
	trace := make([]byte, 200)
	trace = trace[:runtime.Stack(trace, false)]
	line, _, _ := bytes.Cut(trace, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}

// A loopback creates connections over the loopback interface, one at a time.
type loopback struct {
	net.Listener
	mu sync.Mutex
}

func (l *loopback) pair(ctx context.Context) (near, far net.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	near, err = new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	for {
		far, err = l.Accept() // does not block, because the connection exists already
		if err != nil {
			near.Close()
			return nil, nil, err
		}
		if far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		far.Close() // the connection of another program
	}
}

// Accept, Close and Addr implement net.Listener for the server.
func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.conns:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() {
		close(n.closed)
		if n.below != nil {
			n.below.Close()
			n.late.stop()
		}
	})
	return nil
}

func (n *network) Addr() net.Addr { return address{} }

// transport returns a transport whose connections lead to w.
func (n *network) transport(w *Web) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, target string) (net.Conn, error) {
			return n.dial(ctx, w, target)
		},
		TLSClientConfig:     &tls.Config{RootCAs: sharedAuthority().pool},
		MaxIdleConnsPerHost: 8,
	}
}

// dial opens a connection to a host and port of w.
func (n *network) dial(ctx context.Context, w *Web, target string) (net.Conn, error) {
	to, port, err := addressOf(target)
	if err != nil {
		return nil, err
	}
	if !w.has(to.host) {
		return nil, &net.DNSError{Err: "the web has no such host", Name: to.host, IsNotFound: true}
	}
	near, far, err := n.pair(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.hand(ctx, far, to, port); err != nil {
		near.Close()
		return nil, err
	}
	return conn{near, to}, nil
}

// hand passes the far end of a connection to the server. It closes far if the server does not
// accept it.
func (n *network) hand(ctx context.Context, far net.Conn, to address, port string) error {
	far = conn{far, to}
	if isTLS(port) {
		far = tls.Server(far, &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return sharedAuthority().certify(to.host)
		}})
	}
	select {
	case n.conns <- far:
		return nil
	case <-n.closed:
		far.Close()
		return net.ErrClosed
	case <-ctx.Done():
		far.Close()
		return context.Cause(ctx)
	}
}

// isTLS reports whether a port uses https: 443 and every port that ends in 443, such as 8443.
func isTLS(port string) bool { return strings.HasSuffix(port, "443") }

// An address identifies a connection: the host that it leads to, and the proxy that opened it, or
// "".
type address struct{ host, proxy string }

func (address) Network() string  { return "robotstest" }
func (a address) String() string { return a.host }

// addressOf splits "host:port" and returns the normalized host and the port.
func addressOf(target string) (to address, port string, err error) {
	_, port, err = net.SplitHostPort(target)
	if err != nil {
		return to, "", err
	}
	to.host, err = hostName(target)
	return to, port, err
}

// tunnel answers a CONNECT request: it turns the connection of a proxy into one to the requested
// host.
func (w *Web) tunnel(out http.ResponseWriter, r *http.Request, proxy address) {
	to, port, err := addressOf(r.Host)
	if err != nil || !w.has(to.host) {
		http.Error(out, "the web has no such host", http.StatusBadGateway)
		return
	}
	far, _, err := http.NewResponseController(out).Hijack()
	if err != nil {
		panic(err) // the server of a web always supports Hijack
	}
	to.proxy = proxy.host
	if _, err := fmt.Fprint(far, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		far.Close()
		return
	}
	w.network.hand(r.Context(), far, to, port) // closes far on failure
}

// A conn is a connection that reports which host it leads to.
type conn struct {
	net.Conn
	to address
}

func (c conn) LocalAddr() net.Addr { return c.to }

// A pipe is one end of a net.Pipe.
type pipe struct{ net.Conn }

// SetWriteDeadline replaces every deadline by the current time. When a TLS connection is closed, it
// sends an alert with a deadline of 5 seconds. If both ends closed at once, each would wait 5
// seconds for the other, and would hold locks that stop the clock of a bubble.
func (p pipe) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		t = time.Now()
	}
	return p.Conn.SetWriteDeadline(t)
}

// A certificateAuthority signs the certificates of the hosts. No system trusts it.
type certificateAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
	issued      sync.Map // from host to *tls.Certificate
}

// sharedAuthority returns the certificate authority that all webs share. It panics only if this
// package has a bug.
var sharedAuthority = sync.OnceValue(func() *certificateAuthority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	ca := &certificateAuthority{key: key, certificate: certificateTemplate(), pool: x509.NewCertPool()}
	ca.certificate.IsCA = true
	ca.certificate.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, ca.certificate, ca.certificate, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	ca.certificate, err = x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	ca.pool.AddCert(ca.certificate)
	return ca
})

// certify returns a certificate for a host.
func (ca *certificateAuthority) certify(host string) (*tls.Certificate, error) {
	if c, ok := ca.issued.Load(host); ok {
		return c.(*tls.Certificate), nil
	}
	name := (&url.URL{Host: host}).Hostname()
	template := certificateTemplate()
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &ca.key.PublicKey, ca.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: ca.key}
	ca.issued.Store(host, c)
	return c, nil
}

// certificateTemplate returns the part that all certificates share. They are valid from 1990 on,
// because the clock of a bubble begins in 2000.
func certificateTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2990, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}
