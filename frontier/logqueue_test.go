package frontier

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// A handler calls a function for each record.
type handler func(slog.Record)

func (handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (h handler) WithAttrs([]slog.Attr) slog.Handler             { return h }
func (h handler) WithGroup(string) slog.Handler                  { return h }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	h(r)
	return nil
}

// addDamaged adds a page whose record cannot be read, so that Add logs.
func addDamaged(t *testing.T, f *Frontier, url string) {
	t.Helper()
	p := &urlstore.Page{URL: url}
	if err := identify(p); err != nil {
		t.Fatal(err)
	}
	c := f.disk.change()
	c.set(hashOf(p).key(), []byte{0xff})
	if err := f.disk.apply(c); err != nil {
		t.Fatal(err)
	}
	if added, err := f.Add(p); !added || err != nil {
		t.Fatalf("Add: %v, %v", added, err)
	}
}

// TestHandlerCallsFrontier checks that the handler of the logger may call the methods of the Frontier.
func TestHandlerCallsFrontier(t *testing.T) {
	var f *Frontier
	waiting := make(chan int)
	log := slog.New(handler(func(slog.Record) {
		if _, err := f.Add(&urlstore.Page{URL: "http://a.test/logged"}); err != nil {
			t.Error(err)
		}
		waiting <- f.Stats().Waiting
	}))
	f, err := Open(filepath.Join(t.TempDir(), "frontier"), Logger(log))
	if err != nil {
		t.Fatal(err)
	}
	addDamaged(t, f, "http://a.test/damaged")
	if n := <-waiting; n != 2 {
		t.Errorf("%d pages wait, want 2", n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSlowHandler checks that a handler that does not return does not block the Frontier, and how many
// messages wait for it.
func TestSlowHandler(t *testing.T) {
	called := make(chan bool)
	resume := make(chan bool)
	messages := make(map[string]int)
	dropped := int64(0)
	log := slog.New(handler(func(r slog.Record) {
		if len(messages) == 0 {
			called <- true
			<-resume
		}
		messages[r.Message]++
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "count" {
				dropped = a.Value.Int64()
			}
			return true
		})
	}))
	f, err := Open(filepath.Join(t.TempDir(), "frontier"), Logger(log), Window(4*mostRecords))
	if err != nil {
		t.Fatal(err)
	}
	addDamaged(t, f, "http://a.test/first")
	<-called
	for i := range mostRecords + 7 {
		addDamaged(t, f, fmt.Sprintf("http://a.test/%d", i))
	}
	p, err := f.Next(t.Context())
	if err != nil || p.URL != "http://a.test/first" {
		t.Errorf("Next: %v, %v", p, err)
	}
	close(resume)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"record of a page cannot be read, the page counts as new":                      1 + mostRecords,
		"log messages of the frontier were dropped, the handler of the logger is slow": 1,
	}
	for text, n := range want {
		if messages[text] != n {
			t.Errorf("%d messages %q, want %d", messages[text], text, n)
		}
	}
	if dropped != 7 || len(messages) != len(want) {
		t.Errorf("%d messages dropped, want 7; the messages are %v", dropped, messages)
	}
}
