package crawl

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// A progress shows the progress of a crawl. On a terminal it rewrites a few lines. Otherwise it
// writes a line for each event, and a line from time to time while there are no events. It may be
// used by several goroutines at once.
type progress struct {
	w       io.Writer
	display *term.Display
	began   time.Time

	mu                       sync.Mutex
	pages, denials, failures int
	last                     string        // the last event
	spoke                    time.Time     // when the last permanent line was written
	patience                 time.Duration // how long to wait for an event before a line about the waiting pages
}

// While there are no events, a line is written after leastPatience, then after twice that time and
// so on, up to mostPatience.
const (
	leastPatience = 5 * time.Second
	mostPatience  = time.Minute
)

func newProgress(w io.Writer) *progress {
	now := time.Now()
	return &progress{w: w, display: term.NewDisplay(w), began: now, spoke: now, patience: leastPatience}
}

// watch shows from time to time which hosts the crawl waits for, until close is called.
func (p *progress) watch(stats func() collyrobots.Stats) {
	p.display.Every(250*time.Millisecond, func(now time.Time) { p.tick(now, stats) })
}

// tick shows the state of the crawl at now.
func (p *progress) tick(now time.Time, stats func() collyrobots.Stats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.display.Live() {
		p.display.Show(p.state(now, stats())...)
	} else if now.Sub(p.spoke) >= p.patience {
		for _, line := range waits(stats(), now, 1) {
			p.say(now, line)
		}
		p.patience = min(2*p.patience, mostPatience)
	}
}

// state returns the lines for a terminal.
func (p *progress) state(now time.Time, s collyrobots.Stats) (lines []string) {
	first := fmt.Sprintf("%s  %s, %s denied, %s failed", term.Duration(now.Sub(p.began).Truncate(time.Second)),
		term.Number(p.pages, "page"), term.Count(p.denials), term.Count(p.failures))
	if s.Sitemaps.Entries > 0 {
		first += fmt.Sprintf(", %s in sitemaps", term.Count(s.Sitemaps.Entries))
	}
	for _, text := range append([]string{first}, waits(s, now, 3)...) {
		for i, line := range term.Wrap(term.Safe(text), term.Width(p.w)-3) {
			if i > 0 {
				line = "  " + line
			}
			lines = append(lines, line)
		}
	}
	return append(lines, p.last)
}

func (p *progress) page(status int, url string) {
	p.event(&p.pages, fmt.Sprintf("%-8d %s", status, url))
}

func (p *progress) denied(d collyrobots.Decision) {
	p.event(&p.denials, fmt.Sprintf("denied   %s  (%s)", d.URL, why(d)))
}

func (p *progress) failed(f failure) {
	p.event(&p.failures, fmt.Sprintf("failed   %s  (%s)", f.URL, f.why()))
}

// event counts an event and shows it.
func (p *progress) event(count *int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*count++
	p.last = text
	p.patience = leastPatience
	if !p.display.Live() {
		p.say(time.Now(), text)
	}
}

// say writes a permanent line. p.mu must be held.
func (p *progress) say(now time.Time, text string) {
	p.display.Printf("%6.1fs  %s", now.Sub(p.began).Seconds(), text)
	p.spoke = now
}

// Write writes permanent lines. The logger of the plugin calls it.
func (p *progress) Write(text []byte) (int, error) { return p.display.Write(text) }

// close ends watch and removes the lines that are rewritten.
func (p *progress) close() { p.display.Close() }
