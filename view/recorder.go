package view

import (
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
)

// A recorder remembers the last of what Stats only counts: starts, denials, sitemaps, robots.txt
// files. All of it is bounded, however many hosts there are and however long their names.
type recorder struct {
	mu       sync.Mutex
	starts   starts
	denials  recent[denialKey, *denial]
	sitemaps recent[string, *sitemapFile]
	files    files
	heard    uint64         // events
	deniedBy map[string]int // denials by their reason
	lists    uint64         // changes of denials and sitemaps
	missed   int            // events that this recorder was too slow for
}

const (
	maxDenials  = 200  // rules, not requests: one line denies thousands
	maxSitemaps = 200  // files
	maxText     = 2000 // octets of a URL, a pattern or an error that are kept
)

func newRecorder() *recorder {
	return &recorder{
		deniedBy: make(map[string]int),
		starts:   starts{hosts: newRecent[string, *hostStarts](maxCharts)},
		denials:  newRecent[denialKey, *denial](maxDenials),
		sitemaps: newRecent[string, *sitemapFile](maxSitemaps),
		files:    newFiles(maxBodies),
	}
}

// hear is the plugin's listener.
func (r *recorder) hear(e collyrobots.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
	switch e.Kind {
	case collyrobots.EventStarted:
		r.starts.started(e)
	case collyrobots.EventAnswered:
		r.starts.answered(e)
	case collyrobots.EventDenied:
		r.denied(e)
	case collyrobots.EventSitemap:
		r.sitemap(e)
	case collyrobots.EventRobots:
		r.files.put(e)
	case collyrobots.EventMissed:
		r.missed += e.Count
	}
}

// A denial is a rule, or another reason, that has kept requests to a host from the wire.
type denial struct {
	Host      string    `json:"host"`
	RobotsURL string    `json:"robots_url,omitempty"`
	Reason    string    `json:"reason"` // a Reason of a Decision; "other": it was not robots.txt, see Error
	Allow     bool      `json:"allow,omitempty"`
	Pattern   string    `json:"pattern,omitempty"`
	Line      int       `json:"line,omitempty"`
	Group     string    `json:"group,omitempty"`
	Dialect   string    `json:"dialect,omitempty"`
	Status    int       `json:"status,omitempty"`
	Error     string    `json:"error,omitempty"`
	Count     int       `json:"count"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	URLs      []string  `json:"urls"` // the last ones, the newest first
}

type denialKey struct {
	host, robotsURL, reason, pattern, group, err string
	line                                         int
}

// maxExamples is how many URLs a denial names.
const maxExamples = 3

func (r *recorder) denied(e collyrobots.Event) {
	d := denial{Host: clip(e.Host), Reason: "other", First: e.Time}
	if e.Err != nil {
		d.Error = clip(e.Err.Error())
	}
	if v := e.Decision; v != nil {
		d.RobotsURL, d.Reason, d.Dialect, d.Status = clip(v.RobotsURL), string(v.Reason), v.Dialect.String(), v.Status
		d.Allow, d.Pattern, d.Line, d.Group = v.Rule.Allow, clip(v.Rule.Pattern), v.Rule.Line, clip(v.Group)
		if v.Err != nil {
			d.Error = clip(v.Err.Error())
		}
	}
	key := denialKey{d.Host, d.RobotsURL, d.Reason, d.Pattern, d.Group, d.Error, d.Line}
	if d.Reason == "other" {
		key.err = "" // it has the URL in it
	}
	known, _ := r.denials.touch(key, func() *denial { return &d })
	r.lists++
	r.deniedBy[d.Reason]++
	known.Count++
	known.Last, known.Error = e.Time, d.Error
	known.see(clip(e.URL))
}

// see notes a URL that was denied.
func (d *denial) see(url string) {
	urls := []string{url} // never changed: pages may be reading the old ones
	for _, u := range d.URLs {
		if u != url && len(urls) < maxExamples {
			urls = append(urls, u)
		}
	}
	d.URLs = urls
}

// A sitemapFile is a sitemap that was read.
type sitemapFile struct {
	URL     string    `json:"url"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitempty"`
	Entries int       `json:"entries"`
	Error   string    `json:"error,omitempty"`
}

func (r *recorder) sitemap(e collyrobots.Event) {
	f, _ := r.sitemaps.touch(clip(e.URL), func() *sitemapFile { return &sitemapFile{URL: clip(e.URL), Host: clip(e.Host)} })
	r.lists++
	f.Time, f.Status, f.Entries, f.Error = e.Time, e.Status, e.Count, ""
	if e.Err != nil {
		f.Error = clip(e.Err.Error())
	}
}

// clip returns a copy of as much of s as is kept: what is longer ends in an ellipsis.
func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return strings.Clone(s)
}

// count returns a number that grows whenever something happens.
func (r *recorder) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}
