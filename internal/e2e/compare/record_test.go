package compare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// A record is what a crawl did. Its methods are safe for concurrent use.
type record struct {
	began time.Time

	mu         sync.Mutex
	lines      []line
	waiting    []string          // the counts of waiting events
	collectors map[uint32]uint32 // from the numbers that Colly gives to those of this crawl
}

// A line says what happened at an instant.
type line struct {
	at   time.Duration
	text string
}

func newRecord() *record {
	return &record{began: time.Now(), collectors: make(map[uint32]uint32)}
}

// unambiguous replaces the texts of an error that http.Client returns at the end of its Timeout,
// because a timer and a context end at the same instant, and either may be the first. It also
// replaces names of types that have moved.
var unambiguous = strings.NewReplacer(
	"\n", `\n`,
	"net/http: request canceled", "context deadline exceeded",
	" (Client.Timeout exceeded while awaiting headers)", "",
	" (Client.Timeout or context cancellation while reading body)", "",
	"urlstore.Store", "URLStore", // the name of the type in versions before
)

// add adds a line with the current instant.
func (r *record) add(source, format string, args ...any) {
	text := unambiguous.Replace(source + " " + fmt.Sprintf(format, args...))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line{time.Since(r.began), text})
}

// know gives a collector a number that does not depend on the crawls before.
func (r *record) know(c *colly.Collector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collectors[c.ID] = uint32(len(r.collectors) + 1)
}

// String returns the lines in chronological order. Lines of the same instant are sorted by their
// text, because the order in which goroutines run that wake at the same instant is not specified.
func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.lines, func(a, b line) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	for _, l := range r.lines {
		fmt.Fprintf(&b, "%14.6f %s\n", l.at.Seconds()*1000, l.text)
	}
	slices.Sort(r.waiting)
	for _, text := range r.waiting {
		fmt.Fprintln(&b, text)
	}
	return b.String()
}

// event records an Event, at its own time. The plugin delivers events later, several at once.
func (r *record) event(source string, from *collyrobots.Event) {
	recorded := *from // all listeners have the same event
	e := &recorded
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.collectors[e.Collector]; ok {
		e.Collector = n
	}
	e.Page = 0 // the order of pages that are requested at the same instant is not specified
	if e.Kind == report.EventStarted {
		e.Waited = 0 // it is not specified when the record of a page that waits for a LimitRule is dropped
		e.RobotsWait = 0
	}
	at := e.Time.Sub(r.began)
	if e.Kind == "waiting" {
		// These events are reported when the host cannot start them soon. Which of several pages that
		// are reported at the same instant is counted first is not specified. So the counts of a crawl
		// are recorded without their pages.
		r.waiting = append(r.waiting, fmt.Sprintf("%s waiting for %s: %d until %v", source, e.Host, e.Count, e.Until))
		e.Count = 0
		e.Until = time.Time{}
	}
	text := unambiguous.Replace(source + " " + encoded(e))
	if e.Body != nil {
		text += fmt.Sprintf(" body %x", sha256.Sum256(e.Body))
	}
	if time.Since(e.Time) > mostDelivery {
		text += " late"
	}
	r.lines = append(r.lines, line{at, text})
}

// mostDelivery is the longest time that the plugin takes to deliver an event. Some started events
// come late, because the transport did not report the start.
const mostDelivery = 100 * time.Millisecond

// encoded returns v in JSON with sorted keys, because their order is not specified.
func encoded(v any) string {
	b, err := json.Marshal(decoded(v))
	if err != nil {
		return "no JSON: " + err.Error()
	}
	return string(b)
}

// decoded returns what v is in JSON.
func decoded(v any) (value any) {
	b, err := json.Marshal(v)
	if err != nil {
		return "no JSON: " + err.Error()
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return "bad JSON: " + err.Error()
	}
	return value
}

// stats records Stats. A request counts again in Decisions if its robots.txt changes while it waits.
// Which requests find the new file is not specified if several wait. So of the reasons that allow
// pages only the presence is recorded. The pages that are denied also have events.
func (r *record) stats(source string, s collyrobots.Stats) {
	value, _ := decoded(s).(map[string]any)
	decisions, _ := value["decisions"].(map[string]any)
	for _, reason := range []string{"no_rule", "no_robots", "rule", "ignored"} {
		if decisions[reason] != nil {
			decisions[reason] = "some"
		}
	}
	r.add(source+" stats", "%s", encoded(value))
}

// faultOf describes an error by its text and by the errors that it wraps.
func faultOf(err error) string {
	if err == nil {
		return "ok"
	}
	text := fmt.Sprintf("error %q", err.Error())
	for _, known := range []struct {
		name string
		err  error
	}{
		{"blocked", colly.ErrRobotsTxtBlocked},
		{"closed", collyrobots.ErrClosed},
		{"redirect wait", collyrobots.ErrRedirectWait},
		{"lease ended", collyrobots.ErrLeaseEnded},
		{"not sent", collyrobots.ErrNotSent},
		{"canceled", context.Canceled},
		{"deadline", context.DeadlineExceeded},
	} {
		if errors.Is(err, known.err) {
			text += ", " + known.name
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		text += ", timeout"
	}
	if d := new(collyrobots.DeniedError); errors.As(err, &d) {
		text += ", decision " + encoded(d.Decision)
	}
	return text
}

// A logHandler records log messages.
type logHandler struct {
	rec    *record
	source string
	attrs  string
}

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs
	r.Attrs(func(a slog.Attr) bool {
		attrs += " " + a.String()
		return true
	})
	h.rec.add(h.source, "%v %s%s", r.Level, r.Message, attrs)
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += " " + a.String()
	}
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	h.attrs += " " + name + ":"
	return h
}

// firstDifference returns the first line in which two records differ, and the lines before it.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		if i < len(x) && i < len(y) && x[i] == y[i] {
			continue
		}
		at := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		return fmt.Sprintf("line %d, after\n\t%s\none record has\n\t%s\nthe other has\n\t%s",
			i+1, strings.Join(x[max(i-3, 0):i], "\n\t"), at(x), at(y))
	}
	return ""
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
