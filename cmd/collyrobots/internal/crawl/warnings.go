package crawl

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/report"
)

// warnings is the slog.Handler of a crawl. It writes each warning as a sentence for people, such as
// "warning: host is throttling, slowing down (host a.test, delay 2s)".
type warnings struct {
	w     io.Writer
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h *warnings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle implements slog.Handler.
func (h *warnings) Handle(_ context.Context, r slog.Record) error {
	var facts []string
	unreachable := false
	add := func(a slog.Attr) bool {
		value := a.Value.Resolve()
		unreachable = unreachable || a.Key == "robots_status" && value.String() == string(report.RobotsUnreachable)
		if text, ok := textOf(value); ok {
			facts = append(facts, strings.ReplaceAll(a.Key, "_", " ")+" "+text)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if unreachable {
		return nil // the denials of the host say so
	}
	text := "warning: " + strings.TrimPrefix(r.Message, "collyrobots: ")
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	_, err := io.WriteString(h.w, strings.ReplaceAll(text, "\n", " ")+"\n")
	return err
}

// textOf returns the text of a value. If ok is false, the value says nothing: it is zero.
func textOf(v slog.Value) (text string, ok bool) {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().Local().Format(time.DateTime), !v.Time().IsZero()
	case slog.KindDuration:
		return term.Duration(v.Duration()), v.Duration() != 0
	}
	text = v.String()
	return text, text != "" && text != "0" && text != "false" && text != "<nil>"
}

// WithAttrs implements slog.Handler.
func (h *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w: h.w, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. The plugin uses no groups.
func (h *warnings) WithGroup(string) slog.Handler { return h }
