package typednil_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"testing"

	"github.com/collyrobots/collyrobots/internal/typednil"
)

func TestIs(t *testing.T) {
	for _, v := range []any{nil, (*net.OpError)(nil), (func())(nil), (map[string]int)(nil)} {
		if !typednil.Is(v) {
			t.Errorf("%T: not nil", v)
		}
	}
	for _, v := range []any{new(net.OpError), func() {}, map[string]int{}, "", struct{ p *int }{}, []int(nil)} {
		if typednil.Is(v) {
			t.Errorf("%T: nil", v)
		}
	}
}

func TestError(t *testing.T) {
	for _, err := range []error{nil, io.EOF, &fs.PathError{}, fmt.Errorf("x: %w", io.EOF), errors.Join(io.EOF, &fs.PathError{Err: io.EOF})} {
		if got := typednil.Error(err); got != err {
			t.Errorf("%v: got %v, want the same error", err, got)
		}
	}
	null := (*net.OpError)(nil)
	for want, err := range map[string]error{
		"<nil> (a nil *net.OpError)":         null,
		"dial: <nil> (a nil *net.OpError)":   fmt.Errorf("dial: %w", null),
		"EOF\n<nil> (a nil *net.OpError)":    errors.Join(io.EOF, null),
		"a: EOF, <nil> (a nil *net.OpError)": fmt.Errorf("a: %w, %w", io.EOF, null),
		"a: b: <nil> (a nil *fs.PathError)":  fmt.Errorf("a: %w", fmt.Errorf("b: %w", (*fs.PathError)(nil))),
		"read x: <nil> (a nil *net.OpError)": &fs.PathError{Op: "read", Path: "x", Err: null},
	} {
		got := typednil.Error(err)
		if got.Error() != want || errors.Unwrap(got) != nil {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
