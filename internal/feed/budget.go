package feed

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/sitemap"
)

// A Budget bounds what the sitemaps of one site may cost in all, beside the number of files and of URLs
// ([sitemap.Limits]). A field that is 0 has its default. What is under way when it is met is finished.
type Budget struct {
	Octets    int64         // received; 16 GiB
	Failures  int64         // files that could not be read; 1,000
	Elsewhere int64         // requests to hosts of another registrable domain; 1,000
	Time      time.Duration // spent waiting for servers, several at once counted for each; 4 hours
}

func (b Budget) withDefaults() Budget {
	return Budget{
		Octets:    cmp.Or(b.Octets, 16<<30),
		Failures:  cmp.Or(b.Failures, 1000),
		Elsewhere: cmp.Or(b.Elsewhere, 1000),
		Time:      cmp.Or(b.Time, 4*time.Hour),
	}
}

// spending is what the sitemaps of one site have cost. It may be used from any goroutine.
type spending struct {
	limits *sitemap.Limits
	budget *Budget
	home   string // the registrable domain of the site

	mu          sync.Mutex
	files, urls int64
	cost        Budget
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
		{"URLs", s.urls, s.limits.URLs},
		{"Octets", s.cost.Octets, s.budget.Octets},
		{"Failures", s.cost.Failures, s.budget.Failures},
		{"Elsewhere", s.cost.Elsewhere, s.budget.Elsewhere},
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

// isHome reports whether host is of the site's own domain.
func (s *spending) isHome(host string) bool {
	return strings.EqualFold(registrable(strings.ToLower(host)), s.home)
}
