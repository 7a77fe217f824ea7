package crawl

import (
	"io"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// The kinds of a record.
const (
	kindPage   = "page"   // a page that was fetched
	kindDenied = "denied" // a page that was not requested
	kindFailed = "failed" // a page without a response, or whose status is an error
	kindEnd    = "end"    // the end of the crawl
)

// A record is a JSON line about a page. The last line of a crawl is a record of kind "end".
type record struct {
	Time     time.Time             `json:"time"`
	Kind     string                `json:"kind"`
	URL      string                `json:"url,omitempty"`
	Status   int                   `json:"status,omitempty"` // 0 if there was no response
	Bytes    int                   `json:"bytes,omitempty"`  // the length of the body of a page
	Depth    int                   `json:"depth,omitempty"`  // of a page; 1 for a start page
	Error    string                `json:"error,omitempty"`  // of a failed page; empty if it is the text of the status
	Decision *collyrobots.Decision `json:"decision,omitempty"`
	End      *ending               `json:"end,omitempty"`
}

// lines writes records as JSON lines. A nil lines writes nothing. It may be used by several
// goroutines at once.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	err    error      // the first error
	broken chan error // gets the first error
}

func newLines(w io.Writer) *lines { return &lines{w: w, broken: make(chan error, 1)} }

// write writes a record and sets its time. After an error it writes nothing.
func (l *lines) write(r record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	r.Time = time.Now()
	l.err = term.JSONLine(l.w, r)
	if l.err != nil {
		l.broken <- l.err
	}
}

// failed returns a channel that gets the first error of write.
func (l *lines) failed() <-chan error {
	if l == nil {
		return nil
	}
	return l.broken
}

// fault returns the first error of write.
func (l *lines) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
