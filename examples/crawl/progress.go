package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
)

// A progress shows what happens while it happens: one line that is rewritten on a terminal, else a line for each event. It may be used
// by any number of goroutines.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	start    time.Time

	pages, denials, failures int
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), start: time.Now()}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) page(status int, url string) {
	p.event(&p.pages, fmt.Sprintf("%-8d %s", status, url))
}

func (p *progress) denied(d collyrobots.Decision) {
	p.event(&p.denials, fmt.Sprintf("denied   %s  (%s)", d.URL, why(d)))
}

func (p *progress) failed(url string, err error) {
	p.event(&p.failures, fmt.Sprintf("failed   %s  (%v)", url, err))
}

func (p *progress) sitemaps(s collyrobots.FeedStats) {
	p.event(new(int), fmt.Sprintf("sitemaps %d files, %d pages read", s.Files, s.Entries))
}

// lineWidth is how much of an event the status line shows: terminals of 80 columns are to keep it on one line.
const lineWidth = 32

func (p *progress) event(count *int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*count++
	elapsed := time.Since(p.start).Seconds()
	if !p.terminal {
		fmt.Fprintf(p.w, "%6.1fs  %s\n", elapsed, text)
		return
	}
	if line := []rune(text); len(line) > lineWidth {
		text = string(line[:lineWidth-1]) + "…"
	}
	fmt.Fprintf(p.w, "%s%5.1fs  %d pages, %d denied, %d failed  %s", clear, elapsed, p.pages, p.denials, p.failures, text)
}

// clear empties the line that the cursor is in.
const clear = "\r\x1b[K"

// Write prints what somebody else has to say, above the status line.
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		io.WriteString(p.w, clear)
	}
	return p.w.Write(text)
}

// close removes the status line.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		io.WriteString(p.w, clear)
	}
}
