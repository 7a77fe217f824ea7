// Package autothrottle compares AdaptiveDelay with AutoThrottle of Scrapy on the same slow server.
// The server is in this file, the spider of Scrapy in spider.py, and the one of Colly in the test.
package autothrottle

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// A phase is a period with the same computing time for each page.
type phase struct {
	length  time.Duration
	latency time.Duration
}

// A server computes capacity pages at once. Further requests wait for their turn. The first phase
// begins with the first page.
type server struct {
	phases []phase
	units  chan struct{} // its capacity

	mu       sync.Mutex
	began    time.Time // zero before the first page
	inFlight int
	log      []served
}

// served is one page in the log of a server.
type served struct {
	at       time.Duration // when the request came, since the first page
	took     time.Duration // until the response was written
	inFlight int           // requests at the server when it came, including this one
}

func newServer(capacity int, phases ...phase) *server {
	return &server{phases: phases, units: make(chan struct{}, capacity)}
}

// length returns the sum of the phases.
func (s *server) length() (sum time.Duration) {
	for _, p := range s.phases {
		sum += p.length
	}
	return sum
}

// latencyAt returns how long a page takes that is requested at a time.
func (s *server) latencyAt(at time.Duration) time.Duration {
	for _, p := range s.phases {
		if at < p.length {
			return p.latency
		}
		at -= p.length
	}
	return s.phases[len(s.phases)-1].latency
}

// ServeHTTP answers every URL with a page, except robots.txt, which does not exist.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	began, number := s.begin()
	s.units <- struct{}{}
	time.Sleep(s.latencyAt(began))
	<-s.units
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<html><title>%d</title>", number)
	s.end(number)
}

// begin records a request. It returns its time and its index in the log.
func (s *server) begin() (at time.Duration, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.inFlight++
	at = time.Since(s.began)
	s.log = append(s.log, served{at: at, inFlight: s.inFlight})
	return at, len(s.log) - 1
}

// end records a response.
func (s *server) end(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.log[number].took = time.Since(s.began) - s.log[number].at
}

// A figure says how a spider has treated the server in one period.
type figure struct {
	rate       float64 // requests per second
	mean, most time.Duration
	meanFlight float64 // requests in flight, on average over time (the rate times the mean, by Little's law)
	mostFlight int
	early      int // requests in the first two seconds
}

// figureOf returns the figure for the requests that came in [from, to).
func (s *server) figureOf(from, to time.Duration) (f figure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	n := 0
	for _, r := range s.log {
		if r.at < from || r.at >= to {
			continue
		}
		n++
		sum += r.took
		f.most = max(f.most, r.took)
		f.mostFlight = max(f.mostFlight, r.inFlight)
		if r.at < from+2*time.Second {
			f.early++
		}
	}
	f.rate = float64(n) / (to - from).Seconds()
	f.mean = sum / time.Duration(max(n, 1))
	f.meanFlight = f.rate * f.mean.Seconds()
	return f
}

// settled returns how long it took after the time from until the rate of requests was within a
// quarter of the rate in the last third of the phase that ends at to, and stayed there for two
// seconds.
func (s *server) settled(from, to time.Duration) time.Duration {
	const window = 2 * time.Second
	want := s.figureOf(to-(to-from)/3, to).rate
	for at := from; at < to-window; at += 100 * time.Millisecond {
		if rate := s.figureOf(at, at+window).rate; rate > want*0.75 && rate < want*1.25 {
			return at - from
		}
	}
	return to - from
}

// print writes a table with a row for each phase.
func (s *server) print(w io.Writer, name string) {
	var from time.Duration
	for _, p := range s.phases {
		to := from + p.length
		f := s.figureOf(from, to)
		columns := []any{
			name, p.latency, fmt.Sprintf("%.1f", f.rate), f.mean.Round(time.Millisecond), f.most.Round(time.Millisecond),
			fmt.Sprintf("%.1f", f.meanFlight), f.mostFlight, f.early, s.settled(from, to).Round(100 * time.Millisecond),
		}
		fmt.Fprintln(w, row(columns))
		from = to
	}
}

// row formats a row of a Markdown table.
func row(columns []any) string {
	line := "|"
	for _, c := range columns {
		line += fmt.Sprintf(" %v |", c)
	}
	return line
}
