package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
)

// listen listens on an address or, after "unix:", on a socket. An address without a host is on the
// loopback interface. Without a token, no other address is possible, because other machines could
// use the service.
func listen(address string, hasToken bool) (net.Listener, error) {
	if name, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(name)
	}
	l, err := cli.Listen(address)
	if err != nil {
		return nil, err
	}
	if !hasToken && !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		l.Close()
		return nil, fmt.Errorf("%s is not a loopback address, so other machines could use the service; add -token-file", address)
	}
	return l, nil
}

// listenUnix listens on a socket. It replaces the socket that a killed service has left.
func listenUnix(name string) (net.Listener, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s exists and is not a socket", name)
	default:
		conn, err := net.Dial("unix", name)
		if err == nil {
			conn.Close()
			return nil, fmt.Errorf("another program listens on %s", name)
		}
		err = os.Remove(name)
		if err != nil {
			return nil, err
		}
	}
	return net.Listen("unix", name)
}

// nameOf returns the address of a listener as a user needs it.
func nameOf(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return "http://" + l.Addr().String() + "/"
}

// minToken is the length of the shortest token that is accepted.
const minToken = 16

// readToken reads the token of -token-file.
func readToken(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return "", fmt.Errorf("-token-file: the token in %s has fewer than %d characters", name, minToken)
	}
	return token, nil
}

// A guard decides which requests reach the service.
type guard struct {
	token string // "" if none is needed
	local bool   // only requests for localhost or an IP address are accepted
}

// refusal returns the status and the reason for a request that must be refused. It returns 0 for
// other requests.
func (g *guard) refusal(r *http.Request) (status int, why string) {
	switch {
	case g.token != "" && !g.knows(r):
		return http.StatusUnauthorized, "the request has no valid token; send the header Authorization: Bearer TOKEN"
	case g.token == "" && g.local && !isLocal(r.Host):
		return http.StatusMisdirectedRequest, "without -token-file, the service can only be reached as localhost or by an IP address, because any web site can point its own name here"
	case !strings.HasPrefix(r.URL.Path, pagePath) && isCrossSite(r):
		return http.StatusForbidden, "requests that a web site makes in a browser are not allowed"
	}
	return 0, ""
}

// knows reports whether a request has the token. A browser sends it as the password of its user.
func (g *guard) knows(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, token, _ = r.BasicAuth()
	}
	got := sha256.Sum256([]byte(token))
	want := sha256.Sum256([]byte(g.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// isLocal reports whether a Host header is localhost, a name below localhost, or an IP address.
func isLocal(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// isCrossSite reports whether a page of another web site has made the request in a browser.
func isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	if site == "" {
		return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
	}
	return site != "same-origin" && site != "none"
}
