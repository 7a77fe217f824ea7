package robotstest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Request is an entry of the access log: a request that reached a host. A request to the target
// of a redirect, or a retry after a dropped connection, is a separate Request.
type Request struct {
	Time    time.Time     // when its header was received
	Elapsed time.Duration // the time from New, Open or Reset until Time
	Method  string
	Scheme  string // "http" or "https"
	Host    string // the name of the host, as in Sites
	URI     string // path and query, as sent on the wire
	Header  http.Header
	Proxy   string // the host that forwarded it as a proxy; "" if it came directly

	robots bool // whether it is a request for a robots.txt or for the target of its redirect
}

// authority returns the authority of the request's URL.
func (r Request) authority() dialect.Authority {
	return dialect.Authority{Scheme: r.Scheme, Host: r.Host}
}

// url returns the URL of the request.
func (r Request) url() string { return r.authority().String() + r.URI }

// A Log is a list of requests in the order of their arrival.
type Log []Request

// Log returns a copy of the requests that have reached a host, or of all requests if host is "".
func (w *Web) Log(host string) Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	if host == "" {
		return slices.Clone(w.log)
	}
	name, _ := hostName(host) // an invalid name yields "", and no request has that name
	var log Log
	for _, r := range w.log {
		if r.Host == name {
			log = append(log, r)
		}
	}
	return log
}

// Reset empties the log and restarts Elapsed at zero. [Verify] still knows what each robots.txt
// said before.
func (w *Web) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
	w.began = time.Now()
}

// URIs returns the URIs of the requests in order.
func (l Log) URIs() []string {
	uris := make([]string, len(l))
	for i, r := range l {
		uris[i] = r.URI
	}
	return uris
}

// SortedURIs is like URIs but sorted alphabetically, for requests that are made concurrently.
func (l Log) SortedURIs() []string {
	uris := l.URIs()
	slices.Sort(uris)
	return uris
}

// Schedule returns a line for each request: its Elapsed, rounded to a millisecond, and its URI. An
// example of a line is "1m30s /page".
func (l Log) Schedule() []string {
	lines := make([]string, len(l))
	for i, r := range l {
		lines[i] = fmt.Sprint(r.Elapsed.Round(time.Millisecond), " ", r.URI)
	}
	return lines
}

// String returns the Schedule as text, with a newline between two lines.
func (l Log) String() string { return strings.Join(l.Schedule(), "\n") }

// MinGap returns the shortest time between two successive requests. If there are fewer than two
// requests, it returns the largest Duration. Call it on the log of one host to see how fast the
// host was crawled.
func (l Log) MinGap() time.Duration {
	gap := time.Duration(math.MaxInt64)
	for i := 1; i < len(l); i++ {
		gap = min(gap, l[i].Time.Sub(l[i-1].Time))
	}
	return gap
}
