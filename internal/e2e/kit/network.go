package kit

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An FTPServer is an http.RoundTripper for ftp URLs. It has the files of one host by their paths.
type FTPServer struct {
	Files map[string]string
	Began time.Time
	mu    sync.Mutex
	Log   []string
}

func (s *FTPServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Log = append(s.Log, fmt.Sprint(time.Since(s.Began), " ", req.URL.Path))
	text, found := s.Files[req.URL.Path]
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(text))}
	if !found {
		resp.StatusCode = http.StatusNotFound
	}
	return resp, nil
}

// An addressedConn is a connection that reports another remote address.
type addressedConn struct {
	net.Conn
	ip net.IP
}

func (c addressedConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 80} }

var (
	PublicIP   = net.IPv4(93, 184, 216, 34)
	PublicIPv6 = net.ParseIP("2606:2800:220:1::1")
	InternalIP = net.IPv4(10, 0, 0, 1)
)

// Names has the current address of each name. Names that it does not have are public.
type Names struct {
	mu sync.Mutex
	ip map[string]net.IP
}

// MovingNames makes transport dial a new connection for each request, with the address of the host in
// the names that it returns.
func MovingNames(transport *http.Transport) *Names {
	n := &Names{ip: make(map[string]net.IP)}
	transport.DisableKeepAlives = true
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, target string) (net.Conn, error) {
		conn, err := dial(ctx, network, target)
		if err != nil {
			return nil, err
		}
		return addressedConn{Conn: conn, ip: n.of(target)}, nil
	}
	return n
}

func (n *Names) of(target string) net.IP {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, _, _ := net.SplitHostPort(target)
	if ip := n.ip[host]; ip != nil {
		return ip
	}
	return PublicIP
}

// Set moves host to ip.
func (n *Names) Set(host string, ip net.IP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ip[host] = ip
}

// Then returns a handler that moves host to ip and then answers as answer does.
func (n *Names) Then(host string, ip net.IP, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.Set(host, ip)
		answer(w, r)
	}
}

// BrokenTransports panic, or break the contract of http.RoundTripper.
var BrokenTransports = map[string]RoundTripper{
	"panic":   func(*http.Request) (*http.Response, error) { panic("broken") },
	"nothing": func(*http.Request) (*http.Response, error) { return nil, nil },
	"no body": func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
	"length only": func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ContentLength: 5}, nil
	},
	"both": func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200}, io.ErrUnexpectedEOF
	},
}
