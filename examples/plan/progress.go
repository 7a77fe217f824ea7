package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/examples/internal/term"
)

// A progress shows how far the looking is: on a terminal in two lines that are rewritten, else with
// a line for each host that is done, and one now and then while none is.
type progress struct {
	display *term.Display
	hosts   int
	began   time.Time
	pages   atomic.Int64

	mu     sync.Mutex
	done   int
	silent int
	busy   map[string]time.Time // since when a host is looked at
	spoke  time.Time            // when the last line was written that stays

	quit  chan struct{}
	ended sync.WaitGroup
}

// quiet is how long nothing is said elsewhere than on a terminal.
const quiet = 10 * time.Second

func newProgress(w io.Writer, hosts int) *progress {
	now := time.Now()
	p := &progress{display: term.NewDisplay(w), hosts: hosts, began: now, busy: make(map[string]time.Time), spoke: now, quit: make(chan struct{})}
	p.ended.Go(p.run)
	return p
}

// run shows the state from time to time, until close.
func (p *progress) run() {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
		}
		p.mu.Lock()
		first, second := p.state()
		speak := !p.display.Live() && time.Since(p.spoke) >= quiet
		if speak {
			p.spoke = time.Now()
		}
		p.mu.Unlock()
		if p.display.Show(first, second); speak {
			p.display.Printf("%s; %s", first, second)
		}
	}
}

// state says how far it is. p.mu is held.
func (p *progress) state() (first, second string) {
	first = fmt.Sprintf("%s  %s of %s looked at, %s listed", term.Duration(time.Since(p.began).Truncate(time.Second)), term.Count(p.done), term.Number(p.hosts, "host"), term.Number(int(p.pages.Load()), "page"))
	if p.silent > 0 {
		first += fmt.Sprintf(", %s without an answer", term.Count(p.silent))
	}
	names := make([]string, 0, len(p.busy))
	for name := range p.busy {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := p.busy[a].Compare(p.busy[b]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	if len(names) == 0 {
		return first, ""
	}
	second = fmt.Sprintf("looking at %s for %s", names[0], term.Duration(time.Since(p.busy[names[0]]).Truncate(time.Second)))
	if len(names) > 1 {
		second += fmt.Sprintf(", and at %d more", len(names)-1)
	}
	return first, second
}

func (p *progress) begin(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[name] = time.Now()
}

func (p *progress) listed(n int64) { p.pages.Add(n) }

// end notes that a host is done.
func (p *progress) end(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, h.Host)
	p.done++
	p.spoke = time.Now()
	says := h.Error
	switch {
	case says != "":
		p.silent++
	case h.Listed == 0 && h.Unread != "":
		says = h.Unread
	default:
		says = fmt.Sprintf("%s, %s", term.Number(h.Pages, "page"), term.Duration(time.Duration(h.Time)))
	}
	if !p.display.Live() {
		p.display.Printf("%d of %d  %s  %s", p.done, p.hosts, h.Host, says)
	}
}

// close ends the display.
func (p *progress) close() {
	close(p.quit)
	p.ended.Wait()
	p.display.Close()
}
