package feed

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A Budget bounds the cost of the sitemaps of one site, in addition to the number of files and URLs
// ([sitemap.Limits]). A field that is 0 has its default. When a limit is reached, the remaining
// files are skipped, except for requests that are already under way.
type Budget struct {
	Bytes int64 // received; default 16 GiB
	// Failures is the number of files that could not be read minus the number of those that could.
	// The default is 1,000.
	Failures int64
	// Time is the time that requests took, summed over requests that run at the same time. The
	// default is four hours.
	Time time.Duration
}

func (b Budget) withDefaults() Budget {
	return Budget{
		Bytes:    cmp.Or(b.Bytes, 16<<30),
		Failures: cmp.Or(b.Failures, 1000),
		Time:     cmp.Or(b.Time, 4*time.Hour),
	}
}

// spending is what the sitemaps of one site have cost so far. It may be used from any goroutine.
type spending struct {
	limits *sitemap.Limits
	budget *Budget

	// mu protects the fields below it.
	mu    sync.Mutex
	files int64 // files that were requested
	read  int64 // files that were read
	cost  Budget
}

// over returns the limit that is reached, or nil.
func (s *spending) over() *sitemap.LimitError {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range []struct {
		name      string
		cost, max int64
	}{
		{"Files", s.files, s.limits.Files},
		{"Bytes", s.cost.Bytes, s.budget.Bytes},
		{"Failures", s.cost.Failures - s.read, s.budget.Failures},
		{"Time", int64(s.cost.Time), int64(s.budget.Time)},
	} {
		if x.cost >= x.max {
			return &sitemap.LimitError{Limit: x.name, Max: x.max}
		}
	}
	return nil
}

// spend changes s with f while it holds the lock.
func (s *spending) spend(f func(*spending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// Errors of [Crawl.Get], to be found with errors.Is.
var (
	// ErrNotForSite means that the site must not lead to the file. Other sites may.
	ErrNotForSite = errors.New("the site must not lead to this URL")

	// ErrElsewhere means that the site has led to other sites too often. It does not count as a
	// failure.
	ErrElsewhere = errors.New("too many requests to other sites")
)

// bytesLeft returns how many more bytes may be received.
func (s *spending) bytesLeft() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.budget.Bytes-s.cost.Bytes, 0)
}

// timeForFile returns how long a file may take.
func (s *spending) timeForFile() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(min(s.limits.Time, s.budget.Time-s.cost.Time), 1)
}
