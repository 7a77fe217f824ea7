package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is a program with three locks.
const program = `package program

import "sync"

type outer struct{ mu sync.Mutex }

type inner struct {
	mu   sync.RWMutex
	many [2]sync.Mutex
}

var once sync.Once
`

const table = `# Architecture

## The locks

A goroutine takes locks downwards.

| Level | Locks | What may run |
|---|---|---|
| 1 | ` + "`once`" + ` | |
| 2 | ` + "`outer.mu`" + ` | ` + "`anything`" + ` |
| 3 | ` + "`inner.mu` `inner.many`" + `, then ` + "`inner.mu`" + ` | |

## Other
`

// orders are tests that take these locks, with the fault that is reported.
var orders = []struct{ name, takes, want string }{
	{"downwards", "once.Do(func() { o.mu.Lock(); i.mu.RLock(); i.mu.RUnlock(); o.mu.Unlock() })", ""},
	{"one after the other", "i.mu.Lock(); i.mu.Unlock(); o.mu.Lock(); o.mu.Unlock()", ""},
	{"the order of a row", "i.mu.Lock(); i.many[0].Lock(); j.mu.Lock()", ""},
	{"two goroutines", "i.mu.Lock(); done := make(chan int); go func() { o.mu.Lock(); close(done) }(); <-done", ""},
	{"a condition", "o.mu.Lock(); c := sync.NewCond(&o.mu); go func() { o.mu.Lock(); c.Signal(); o.mu.Unlock() }(); c.Wait(); i.mu.Lock()", ""},
	{"upwards", "i.mu.Lock(); o.mu.Lock()", "outer.mu (level 2) is taken while inner.mu (level 3) is held"},
	{"upwards, for reading", "i.mu.RLock(); o.mu.Lock()", "outer.mu (level 2) is taken while inner.mu (level 3) is held"},
	{"two of one row", "p := &outer{}; o.mu.Lock(); p.mu.Lock()", "outer.mu (level 2) is taken while outer.mu (level 2) is held"},
	{"the wrong order of a row", "i.many[0].Lock(); i.many[1].Lock()", "inner.many (level 3) is taken while inner.many (level 3) is held"},
	{"a function that runs once", "o.mu.Lock(); once.Do(func() {})", "once (level 1) is taken while outer.mu (level 2) is held"},
}

// TestOrder takes locks in several orders.
func TestOrder(t *testing.T) {
	var tests strings.Builder
	tests.WriteString("package program\n\nimport (\n\"sync\"\n\"testing\"\n)\n\nvar _ sync.Locker\n")
	for n, order := range orders {
		fmt.Fprintf(&tests, "\nfunc Test%d(*testing.T) {\nvar o outer\nvar i, j inner\n_, _, _ = &o, &i, &j\n%s\n}\n", n, order.takes)
	}
	folder := module(t, table, tests.String())
	for n, order := range orders {
		out := new(strings.Builder)
		err := run(folder, []string{"-run", fmt.Sprintf("^Test%d$", n)}, out)
		if order.want == "" && err != nil {
			t.Errorf("%s: error %v:\n%s", order.name, err, out)
		}
		if order.want != "" && (err == nil || !strings.Contains(out.String(), "lockorder: "+order.want)) {
			t.Errorf("%s: error %v, want %q in the output:\n%s", order.name, err, order.want, out)
		}
	}
}

// TestUnknownLock checks that a lock of the table must be in the source.
func TestUnknownLock(t *testing.T) {
	folder := module(t, strings.ReplaceAll(table, "outer.mu", "other.mu"), "package program\n")
	err := run(folder, nil, new(strings.Builder))
	if err == nil || !strings.Contains(err.Error(), "other.mu") {
		t.Errorf("error %v, want one that names other.mu", err)
	}
}

// module returns the folder of a new module with the program, this ARCHITECTURE.md and these tests.
func module(t *testing.T, architecture, tests string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module program.test\n\ngo 1.25\n", "ARCHITECTURE.md": architecture, "program.go": program, "program_test.go": tests,
	} {
		err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
