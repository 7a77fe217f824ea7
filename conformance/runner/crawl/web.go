package crawl

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/collyrobots/collyrobots/conformance"
)

// A web serves the two sites of a case on the loopback interface, for a run in one dialect.
type web struct {
	fetchCase *conformance.FetchCase
	dialect   string
	replacer  *strings.Replacer // from {site} and {other} to the URLs
	servers   []*http.Server
	running   sync.WaitGroup

	mu  sync.Mutex
	log []string       // as "GET {site}/path"
	n   map[string]int // number of requests by URL
}

// serve starts the servers of a case.
func serve(c *conformance.FetchCase, dialect string) (*web, error) {
	w := &web{fetchCase: c, dialect: dialect, n: make(map[string]int)}
	var urls []string
	for _, name := range []string{"{site}", "{other}"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.close()
			return nil, err
		}
		urls = append(urls, name, "http://"+listener.Addr().String())
		server := &http.Server{Handler: w.handler(name)}
		w.servers = append(w.servers, server)
		w.running.Go(func() { server.Serve(listener) })
	}
	w.replacer = strings.NewReplacer(urls...)
	return w, nil
}

func (w *web) close() {
	for _, s := range w.servers {
		s.Close()
	}
	w.running.Wait()
}

// question returns the question of the case.
func (w *web) question() conformance.FetchQuestion {
	q := conformance.FetchQuestion{
		ID:      w.fetchCase.ID,
		Dialect: w.dialect,
		Agent:   w.fetchCase.Agent,
		Site:    w.replacer.Replace("{site}"),
	}
	for _, u := range w.fetchCase.Fetch {
		q.Fetch = append(q.Fetch, w.replacer.Replace(u))
	}
	return q
}

// requests returns the requests that have arrived.
func (w *web) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.log...)
}

// result returns the result of the case from the requests that have arrived.
func (w *web) result() Result {
	requests := w.requests()
	return Result{
		Case:     w.fetchCase,
		Dialect:  w.dialect,
		Requests: requests,
		Faults:   w.fetchCase.Check(requests),
	}
}

// handler returns the handler of a site.
func (w *web) handler(name string) http.Handler {
	script := w.fetchCase.Site
	if name == "{other}" {
		script = w.fetchCase.Other
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		u := name + r.URL.RequestURI()
		w.mu.Lock()
		w.log = append(w.log, r.Method+" "+u)
		n := w.n[u]
		w.n[u]++
		w.mu.Unlock()
		replies := script[r.URL.RequestURI()]
		switch {
		case len(replies) > 0:
			w.reply(rw, &replies[min(n, len(replies)-1)])
		case r.URL.Path == "/robots.txt":
			http.NotFound(rw, r)
		default:
			fmt.Fprintln(rw, "a page")
		}
	})
}

// reply sends a reply.
func (w *web) reply(rw http.ResponseWriter, r *conformance.Reply) {
	if r.Drop {
		panic(http.ErrAbortHandler) // closes the connection
	}
	body, err := r.Content()
	if err != nil {
		panic(err) // ParseFetchCase has checked it
	}
	header := rw.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	for key, value := range r.Header {
		header.Set(key, w.replacer.Replace(value))
	}
	if r.Gzip {
		body = compressed(body)
		header.Set("Content-Encoding", "gzip")
	}
	if status := max(r.Status, 200); status != http.StatusNoContent && status != http.StatusNotModified {
		header.Set("Content-Length", strconv.Itoa(len(body)+r.Missing))
	}
	rw.WriteHeader(max(r.Status, 200))
	rw.Write(body)
	if r.Missing > 0 {
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body)
	z.Close()
	return b.Bytes()
}
