package batch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// statuses keeps what the plugin decides if nothing is known about a site except the status code of
// its robots.txt.
type statuses struct {
	dialect dialect.Dialect

	mu    sync.Mutex
	known map[int]*dialect.Verdict // by status code
}

func newStatuses(d dialect.Dialect) *statuses {
	return &statuses{dialect: d, known: make(map[int]*dialect.Verdict)}
}

// decision returns the decision about all URLs of a site whose robots.txt has a status code, or nil
// if the rules of the file decide.
func (s *statuses) decision(status int) (fixed *dialect.Verdict, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fixed, known := s.known[status]
	if known {
		return fixed, nil
	}
	fixed, err = decisionAt(s.dialect, status)
	if err == nil {
		s.known[status] = fixed
	}
	return fixed, err
}

// decisionAt asks a plugin whose client answers each request with the status code.
func decisionAt(d dialect.Dialect, status int) (fixed *dialect.Verdict, err error) {
	robots, err := collyrobots.New(
		collyrobots.Dialect(d),
		collyrobots.RobotsClient(&http.Client{Transport: statusCode(status)}),
		collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	decision, err := robots.Check(context.Background(), anySite+"/")
	err = errors.Join(err, robots.Close())
	if err != nil || decision.Reason == report.ReasonRule {
		return nil, err
	}
	return &dialect.Verdict{Allowed: decision.Allowed}, nil
}

// A statusCode is a transport whose responses have this status code, and a robots.txt with a rule
// for all URLs.
type statusCode int

// RoundTrip implements http.RoundTripper.
func (s statusCode) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Request:    r,
		StatusCode: int(s),
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"text/plain"}},
		Body:       io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /\n")),
	}, nil
}
