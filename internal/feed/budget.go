package feed

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A Budget bounds what the sitemaps of one site may cost in all, beside the number of files and of
// URLs ([sitemap.Limits]). A field that is 0 has its default. When a limit is met, the rest is left
// out, except the requests that are under way.
type Budget struct {
	Octets   int64         // received; 16 GiB
	Failures int64         // files that could not be read, beyond the number of those that could; 1,000
	Time     time.Duration // spent waiting for servers, several at once counted for each; 4 hours
}

func (b Budget) withDefaults() Budget {
	return Budget{
		Octets:   cmp.Or(b.Octets, 16<<30),
		Failures: cmp.Or(b.Failures, 1000),
		Time:     cmp.Or(b.Time, 4*time.Hour),
	}
}

// spending is what the sitemaps of one site have cost. It may be used from any goroutine.
type spending struct {
	limits *sitemap.Limits
	budget *Budget

	mu    sync.Mutex
	files int64 // asked for
	read  int64 // and read
	cost  Budget
}

// over returns the limit that is met, or nil.
func (s *spending) over() *sitemap.LimitError {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range []struct {
		name      string
		cost, max int64
	}{
		{"Files", s.files, s.limits.Files},
		{"Octets", s.cost.Octets, s.budget.Octets},
		{"Failures", s.cost.Failures - s.read, s.budget.Failures},
		{"Time", int64(s.cost.Time), int64(s.budget.Time)},
	} {
		if x.cost >= x.max {
			return &sitemap.LimitError{Limit: x.name, Max: x.max}
		}
	}
	return nil
}

// spend changes what was spent.
func (s *spending) spend(f func(*spending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// Errors of [Crawl.Get], which errors.Is finds.
var (
	// ErrNotForSite says that the site must not lead to the file. Other sites may.
	ErrNotForSite = errors.New("the site must not lead there")

	// ErrElsewhere says that the site has led to other sites too often. This is not counted as a
	// failure.
	ErrElsewhere = errors.New("too many requests to other sites")
)

// octets returns how many more octets may be received.
func (s *spending) octets() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.budget.Octets-s.cost.Octets, 0)
}

// patience returns how long a file may take.
func (s *spending) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(min(s.limits.Time, s.budget.Time-s.cost.Time), 1)
}
