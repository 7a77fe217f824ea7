package serve

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/view"
)

const (
	maxMaxTurns = 1_000_000
	maxBody     = 64 << 10         // bytes of the body of a request
	maxHeader   = 64 << 10         // bytes of the header of a request
	maxStreams  = 16               // responses with stats, events or sitemaps at once
	spareConns  = 1000             // connections beside those that wait for a turn; further ones are accepted later
	readTime    = 10 * time.Second // for the header of a request, and for its body
	writeTime   = time.Minute      // for a part of a response
	stopTime    = 10 * time.Second // how long a service that ends waits for its open turns
)

// pagePath is the path of the live page.
const pagePath = "/robots/"

//go:embed openapi.json
var openAPI []byte

// The settings of a service.
type settings struct {
	token    string        // "" if none is needed
	maxTurns int           // open turns, and requests that wait for one
	expire   time.Duration // how long a turn may stay open

	// ping returns an error if Redis, which has the pace that several services share, does not
	// answer. It is nil without -redis.
	ping func(context.Context) error
}

// A service answers the requests of crawlers. It is an http.Handler.
type service struct {
	guard   guard
	robots  *collyrobots.Plugin
	turns   *turns
	ping    func(context.Context) error // see settings
	streams chan struct{}               // a place for each response that may be long
	mux     *http.ServeMux

	running context.Context // ends when the service stops
	stop    context.CancelFunc
}

// newService returns a service with a plugin of its own. Delays count from the end of a turn: a
// crawler may send its request at any time before that.
func newService(s settings, options ...collyrobots.Option) (*service, error) {
	robots, err := collyrobots.New(append(options, collyrobots.DelayFromEnd(true))...)
	if err != nil {
		return nil, err
	}
	x := &service{
		guard:   guard{token: s.token, local: true},
		robots:  robots,
		turns:   newTurns(s.maxTurns, s.expire),
		ping:    s.ping,
		streams: make(chan struct{}, maxStreams),
		mux:     http.NewServeMux(),
	}
	x.running, x.stop = context.WithCancel(context.Background())
	for _, e := range x.endpoints() {
		x.mux.HandleFunc(e.method+" "+e.path, e.serve)
		x.mux.HandleFunc(e.path, e.refuseMethod)
	}
	x.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "there is no such path; /v1/openapi.json lists all of them")
	})
	x.mux.Handle(pagePath, view.New(robots, view.Options{Name: "collyrobots serve", Control: robots}))
	return x, nil
}

// An endpoint is a method and a path that openapi.json describes.
type endpoint struct {
	method, path string
	serve        http.HandlerFunc
}

func (s *service) endpoints() []endpoint {
	return []endpoint{
		{method: http.MethodPost, path: "/v1/turns", serve: s.takeTurn},
		{method: http.MethodPost, path: "/v1/turns/{id}", serve: s.answerTurn},
		{method: http.MethodPost, path: "/v1/pause", serve: s.pause((*collyrobots.Plugin).Pause)},
		{method: http.MethodPost, path: "/v1/resume", serve: s.pause((*collyrobots.Plugin).Resume)},
		{method: http.MethodGet, path: "/v1/check", serve: s.check},
		{method: http.MethodGet, path: "/v1/sitemap", serve: s.limited(s.sitemap)},
		{method: http.MethodGet, path: "/v1/stats", serve: s.limited(s.stats)},
		{method: http.MethodGet, path: "/v1/events", serve: s.limited(s.events)},
		{method: http.MethodGet, path: "/v1/openapi.json", serve: s.openAPI},
	}
}

// refuseMethod responds to a request with another method.
func (e endpoint) refuseMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", e.method)
	fail(w, http.StatusMethodNotAllowed, fmt.Sprintf("the method is %.20s; %s needs %s", r.Method, e.path, e.method))
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	status, why := s.guard.refusal(r)
	if status != 0 {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="collyrobots"`)
		}
		fail(w, status, why)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// serve serves a listener until ctx ends, or until failed returns an error.
func (s *service) serve(ctx context.Context, l net.Listener, failed <-chan error, log *slog.Logger) error {
	s.guard.local = l.Addr().Network() != "unix"
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(l, cap(s.turns.places)+spareConns)) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	case err = <-ended:
	}
	s.close()
	return errors.Join(err, shutdown(server))
}

// close ends the requests that wait, gives crawlers some time to answer their open turns, and
// closes the plugin.
func (s *service) close() {
	s.stop()
	s.turns.drain(stopTime)
	s.robots.Close()
}

// shutdown ends a server. Responses that are written get a second to end.
func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}

// limited limits the number of responses that may be long or large.
func (s *service) limited(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
			serve(w, r)
			http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the connection may be used again
		default:
			retryAfter(w, time.Second)
			fail(w, http.StatusTooManyRequests, fmt.Sprintf("%d other requests for stats, events or sitemaps are under way", maxStreams))
		}
	}
}

func (s *service) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(openAPI)
}

// A fault of a request is an error with the status of the response that reports it.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

// read reads the JSON object that is the body of a request. It returns nil if the body is valid.
func read(w http.ResponseWriter, r *http.Request, to any) *fault {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // until the body was read
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return &fault{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the body has more than %d bytes", maxBody)}
	case err != nil:
		return &fault{status: http.StatusBadRequest, text: "the body could not be read"}
	}
	err = decode(body, to)
	if err != nil {
		return &fault{status: http.StatusBadRequest, text: "the body is not the expected JSON object: " + err.Error()}
	}
	return nil
}

// decode decodes a JSON object that has only the fields of to.
func decode(body []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == io.EOF:
		return errors.New("it is empty")
	case errors.As(err, &wrong):
		return fmt.Errorf("%s has the wrong type, %s", cmp.Or(wrong.Field, "the body"), wrong.Value)
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more after it")
	}
	return nil
}

// respond responds with a value as JSON.
func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encode(w, v)
}

// encode writes a value as one line of JSON.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// A problem is the body of a response with an error.
type problem struct {
	Error    string                `json:"error"`
	Decision *collyrobots.Decision `json:"decision,omitempty"`
}

// fail responds with an error.
func fail(w http.ResponseWriter, status int, why string) { respond(w, status, problem{Error: why}) }

// retryAfter sets the header Retry-After to a number of seconds of at least one.
func retryAfter(w http.ResponseWriter, d time.Duration) {
	seconds := math.Ceil(max(d, time.Second).Seconds())
	w.Header().Set("Retry-After", strconv.FormatFloat(seconds, 'f', 0, 64))
}
