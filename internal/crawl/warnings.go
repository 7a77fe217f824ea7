package crawl

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
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
	add := func(a slog.Attr) bool {
		if a.Key != "" {
			facts = append(facts, fmt.Sprintf("%s %v", strings.ReplaceAll(a.Key, "_", " "), a.Value.Resolve()))
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	text := strings.ToLower(r.Level.String()) + ": " + strings.TrimPrefix(r.Message, "collyrobots: ")
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	_, err := io.WriteString(h.w, strings.ReplaceAll(text, "\n", " ")+"\n")
	return err
}

// WithAttrs implements slog.Handler.
func (h *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warnings{w: h.w, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. The plugin uses no groups.
func (h *warnings) WithGroup(string) slog.Handler { return h }
