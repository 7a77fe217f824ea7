package backend

import (
	"reflect"

	"github.com/gocolly/colly/v2/debug"
)

// Debugger returns the collector's debugger; nil: it has none, or is of a Colly that keeps it
// elsewhere.
func (h *Handle) Debugger() debug.Debugger {
	d, err := field[debug.Debugger](h.collector, "debugger", reflect.Interface)
	if err != nil {
		return nil
	}
	return *d
}

// SameDebugger reports whether two debuggers are the same, as far as that can be known.
func SameDebugger(a, b debug.Debugger) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
