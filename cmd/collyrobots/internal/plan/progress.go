package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// A progress shows the progress of the checks. On a terminal it rewrites two lines. Otherwise it
// writes a line for each host that is done, and a line from time to time while none is done.
type progress struct {
	display *term.Display
	hosts   int // the number of all hosts
	began   time.Time
	pages   atomic.Int64

	mu     sync.Mutex
	done   int
	failed int
	busy   map[string]time.Time // the starts of the checks that are in progress
	spoke  time.Time            // when the last permanent line was written
}

// quiet is the time without a line after which a line is written if w is not a terminal.
const quiet = 10 * time.Second

func newProgress(w io.Writer, hosts int) *progress {
	now := time.Now()
	p := &progress{display: term.NewDisplay(w), hosts: hosts, began: now, busy: make(map[string]time.Time), spoke: now}
	p.display.Every(200*time.Millisecond, p.tick)
	return p
}

// tick shows the state.
func (p *progress) tick(now time.Time) {
	p.mu.Lock()
	first, second := p.state()
	speak := !p.display.Live() && now.Sub(p.spoke) >= quiet
	if speak {
		p.spoke = now
	}
	p.mu.Unlock()
	p.display.Show(first, second)
	if speak {
		p.display.Printf("%s; %s", first, second)
	}
}

// state returns the lines for a terminal. p.mu must be held.
func (p *progress) state() (first, second string) {
	first = fmt.Sprintf("%s  %s of %s checked, %s listed", term.Duration(time.Since(p.began).Truncate(time.Second)),
		term.Count(p.done), term.Number(p.hosts, "host"), term.Number(int(p.pages.Load()), "page"))
	if p.failed > 0 {
		first += fmt.Sprintf(", %s without a response", term.Count(p.failed))
	}
	names := slices.SortedFunc(maps.Keys(p.busy), func(a, b string) int {
		return cmp.Or(p.busy[a].Compare(p.busy[b]), strings.Compare(a, b))
	})
	if len(names) == 0 {
		return first, ""
	}
	second = fmt.Sprintf("checking %s for %s", names[0], term.Duration(time.Since(p.busy[names[0]]).Truncate(time.Second)))
	if len(names) > 1 {
		second += fmt.Sprintf(", and %d more", len(names)-1)
	}
	return first, second
}

// begin records that the check of a host begins.
func (p *progress) begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[name] = time.Now()
}

// listed counts pages in sitemaps.
func (p *progress) listed(n int64) { p.pages.Add(n) }

// end records that the check of a host has ended.
func (p *progress) end(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, h.Host)
	p.done++
	p.spoke = time.Now()
	result := h.Error
	switch {
	case h.Error != "":
		p.failed++
	case h.Listed == 0 && h.Unread != "":
		result = h.Unread
	default:
		result = fmt.Sprintf("%s, %s", term.Number(h.Pages, "page"), duration(h.Time))
	}
	if !p.display.Live() {
		p.display.Printf("%d of %d  %s  %s", p.done, p.hosts, h.Host, result)
	}
}

// close removes the lines that are rewritten.
func (p *progress) close() { p.display.Close() }
