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

// A Request is a line of the access log: a request that reached a host. What a client sends to the
// target of a redirect, or once more after a dropped connection, is a Request of its own.
type Request struct {
	Time    time.Time     // when its header had arrived
	Elapsed time.Duration // the same, since the web was started or reset
	Method  string
	Scheme  string // "http" or "https"
	Host    string // as in Sites
	URI     string // path and query as they were on the wire
	Header  http.Header
	Proxy   string // the host that passed it on as a proxy; "": it came directly

	robots bool // asks for a robots.txt, or for what that redirects to
}

// authority returns what governs the request.
func (r Request) authority() dialect.Authority {
	return dialect.Authority{Scheme: r.Scheme, Host: r.Host}
}

// url returns what was asked for.
func (r Request) url() string { return r.authority().String() + r.URI }

// A Log is a list of requests in the order in which they arrived.
type Log []Request

// Log returns the requests that have reached a host, or all hosts if host is "". The result is a
// copy.
func (w *Web) Log(host string) Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	if host == "" {
		return slices.Clone(w.log)
	}
	name, _ := hostName(host) // of what is no host nothing was asked for
	var log Log
	for _, r := range w.log {
		if r.Host == name {
			log = append(log, r)
		}
	}
	return log
}

// Reset empties the log, and starts counting Elapsed anew. [Verify] remembers what each robots.txt
// said before.
func (w *Web) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log, w.began = nil, time.Now()
}

// URIs returns what was asked for, in order, separated by spaces.
func (l Log) URIs() string { return strings.Join(l.uris(), " ") }

// SortedURIs is URIs in alphabetical order, for requests that are made side by side.
func (l Log) SortedURIs() string {
	uris := l.uris()
	slices.Sort(uris)
	return strings.Join(uris, " ")
}

func (l Log) uris() []string {
	uris := make([]string, len(l))
	for i, r := range l {
		uris[i] = r.URI
	}
	return uris
}

// Schedule returns the log as text: a line for each request, with its Elapsed, rounded to the
// millisecond, and what it asked for, as in "1m30s /page". There is no newline after the last line.
func (l Log) Schedule() string {
	lines := make([]string, len(l))
	for i, r := range l {
		lines[i] = fmt.Sprint(r.Elapsed.Round(time.Millisecond), " ", r.URI)
	}
	return strings.Join(lines, "\n")
}

// MinGap returns the shortest time between two successive requests; in the log of one host, that is
// its pace. With fewer than two requests it is the largest Duration.
func (l Log) MinGap() time.Duration {
	gap := time.Duration(math.MaxInt64)
	for i := 1; i < len(l); i++ {
		gap = min(gap, l[i].Time.Sub(l[i-1].Time))
	}
	return gap
}
