package term

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A Display shows the progress of a program. On a terminal, the last few lines are rewritten in
// place, and permanent lines are written above them. To a file or a pipe, only the permanent lines
// are written. A Display may be used by several goroutines at once.
type Display struct {
	w    io.Writer
	live bool
	size func() int // returns the number of columns of the terminal

	quit  chan struct{}  // closed by Close
	ended sync.WaitGroup // the goroutines of Every

	mu    sync.Mutex
	shown []int // the widths of the lines that the next Show rewrites
}

// NewDisplay returns a display on w. It is live if w is a terminal that can move its cursor.
func NewDisplay(w io.Writer) *Display {
	kind := os.Getenv("TERM")
	return &Display{
		w:    w,
		live: Width(w) > 0 && kind != "" && kind != "dumb",
		size: func() int { return Width(w) },
		quit: make(chan struct{}),
	}
}

// Every calls a function from time to time, until Close is called.
func (d *Display) Every(interval time.Duration, f func(now time.Time)) {
	d.ended.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-d.quit:
				return
			case now := <-ticker.C:
				f(now)
			}
		}
	})
}

// Live reports whether [Display.Show] shows anything. If not, a program should write important
// information with [Display.Printf].
func (d *Display) Live() bool { return d.live }

// Show replaces the last lines. It makes them [Safe] and cuts them to the width of the terminal.
func (d *Display) Show(lines ...string) {
	if !d.live {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var b bytes.Buffer
	d.erase(&b)
	size := d.size()
	for i, line := range lines {
		line = cut(Safe(line), size-1) // some terminals wrap a line that fills the last column
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		d.shown = append(d.shown, columnsOf(line))
	}
	d.w.Write(b.Bytes())
}

// Printf writes a permanent line above the lines that are rewritten. It makes its arguments [Safe]
// and adds a newline.
func (d *Display) Printf(format string, args ...any) {
	var b bytes.Buffer
	Fprintf(&b, format, args...)
	b.WriteByte('\n')
	d.keep(b.Bytes())
}

// Write writes permanent lines, for a logger. It makes them [Safe].
func (d *Display) Write(text []byte) (int, error) {
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(&b, Safe(strings.TrimSuffix(line, "\n")))
	}
	err := d.keep(b.Bytes())
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// keep writes permanent lines. The next Show writes the other lines again.
func (d *Display) keep(text []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b bytes.Buffer
	d.erase(&b)
	b.Write(text)
	_, err := d.w.Write(b.Bytes())
	return err
}

// Close ends Every and removes the lines that are rewritten. It must be called once.
func (d *Display) Close() {
	close(d.quit)
	d.ended.Wait()
	if d.live {
		d.Show()
	}
}

// erase clears the lines that Show has written, and moves the cursor to the first of them. It
// clears them one by one, because some terminals add text to their history that is cleared at once.
func (d *Display) erase(b *bytes.Buffer) {
	if len(d.shown) == 0 {
		return
	}
	size := d.size()
	rows := 0
	for _, columns := range d.shown {
		rows += 1 + max(columns-1, 0)/size // more than one row if the terminal has become narrower
	}
	b.WriteString("\r\x1b[2K" + strings.Repeat("\x1b[1A\x1b[2K", rows-1))
	d.shown = d.shown[:0]
}
