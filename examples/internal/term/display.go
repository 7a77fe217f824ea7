package term

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// A Display shows how a program gets on: a few lines that are rewritten in place on a terminal,
// below the lines that stay. Elsewhere only those that stay are written. It may be used by any
// number of goroutines.
type Display struct {
	w    io.Writer
	live bool
	size func() int // columns of the terminal

	mu    sync.Mutex
	shown []int // columns of the lines that are to be rewritten
}

// NewDisplay returns a display on w, which is live on a terminal that can move its cursor.
func NewDisplay(w io.Writer) *Display {
	kind := os.Getenv("TERM")
	return &Display{w: w, live: Width(w) > 0 && kind != "" && kind != "dumb", size: func() int { return Width(w) }}
}

// Live reports whether [Display.Show] shows anything. Where it does not, a program says with
// [Display.Printf] what is worth a line.
func (d *Display) Live() bool { return d.live }

// Show replaces the lines at the bottom. They are made [Safe] and cut to fit.
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
		line = cut(Safe(line), size-1) // the last column wraps on some terminals
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		d.shown = append(d.shown, columnsOf(line))
	}
	d.w.Write(b.Bytes())
}

// Printf writes a line that stays, above those that are rewritten. Its arguments are made [Safe].
// The line end is added.
func (d *Display) Printf(format string, args ...any) {
	var b bytes.Buffer
	Fprintf(&b, format, args...)
	b.WriteByte('\n')
	d.stay(b.Bytes())
}

// Write writes lines that stay, for a logger; what is no text in them is made safe.
func (d *Display) Write(text []byte) (int, error) {
	var b bytes.Buffer
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(&b, Safe(strings.TrimSuffix(line, "\n")))
	}
	if err := d.stay(b.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (d *Display) stay(text []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b bytes.Buffer
	d.erase(&b)
	b.Write(text)
	_, err := d.w.Write(b.Bytes())
	return err
}

// Close removes the lines that are rewritten.
func (d *Display) Close() {
	if d.live {
		d.Show()
	}
}

// erase empties the lines shown and goes to the first of them. It empties one after the other: some
// terminals keep what is cleared at once in their history.
func (d *Display) erase(b *bytes.Buffer) {
	if len(d.shown) == 0 {
		return
	}
	rows, size := 0, d.size()
	for _, columns := range d.shown {
		rows += 1 + max(columns-1, 0)/size // more than one if the terminal has become narrower
	}
	b.WriteString("\r\x1b[2K" + strings.Repeat("\x1b[1A\x1b[2K", rows-1))
	d.shown = d.shown[:0]
}
