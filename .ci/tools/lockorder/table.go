package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A lock is a lock in the table of ARCHITECTURE.md.
type lock struct {
	name   string // "Type.field" in the root package, and "package.Type.field" elsewhere
	level  int
	places []int  // its places in the row if the locks of its level have an order; otherwise nil
	kind   string // its type in package sync; "" if it was not found
}

var code = regexp.MustCompile("`([^` ]+)`")

// parseTable returns the locks in section "The locks" of ARCHITECTURE.md. A row with the word "then"
// names its locks in the order in which they are taken.
func parseTable(text string) ([]lock, error) {
	_, section, found := strings.Cut(text, "\n## The locks\n")
	if !found {
		return nil, errors.New(`ARCHITECTURE.md has no section "The locks"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var locks []lock
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		level, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // the head of the table
		}
		hasOrder := strings.Contains(cells[2], ", then ")
		for place, match := range code.FindAllStringSubmatch(cells[2], -1) {
			i := slices.IndexFunc(locks, func(l lock) bool { return l.name == match[1] })
			if i < 0 {
				i = len(locks)
				locks = append(locks, lock{name: match[1], level: level})
			}
			if hasOrder {
				locks[i].places = append(locks[i].places, place)
			}
		}
	}
	return locks, nil
}

//go:embed checked.go.txt
var checked []byte

// packageOf returns the source of package lockorder, which has a type for each lock.
func packageOf(locks []lock) []byte {
	text := bytes.NewBuffer(bytes.Clone(checked))
	fmt.Fprint(text, "\nvar locks = []lock{\n")
	for _, l := range locks {
		fmt.Fprintf(text, "\t{name: %q, level: %d, places: %#v},\n", l.name, l.level, l.places)
	}
	fmt.Fprint(text, "}\n")
	for i, l := range locks {
		fmt.Fprintf(text, "\ntype T%d struct{ real sync.%s }\n", i, l.kind)
		for _, method := range methods[l.kind] {
			fmt.Fprintf(text, "func (l *T%d) %s\n", i, strings.ReplaceAll(method, "$", strconv.Itoa(i)))
		}
	}
	return text.Bytes()
}

// methods has the methods of the types of package sync, as checked locks have them. $ is the index of a
// lock.
var methods = map[string][]string{
	"Mutex": {
		"Lock() { check($); l.real.Lock(); add($, l) }",
		"TryLock() bool { ok := l.real.TryLock(); if ok { add($, l) }; return ok }",
		"Unlock() { remove(l); l.real.Unlock() }",
	},
	"RWMutex": {
		"Lock() { check($); l.real.Lock(); add($, l) }",
		"TryLock() bool { ok := l.real.TryLock(); if ok { add($, l) }; return ok }",
		"Unlock() { remove(l); l.real.Unlock() }",
		"RLock() { check($); l.real.RLock(); add($, l) }",
		"TryRLock() bool { ok := l.real.TryRLock(); if ok { add($, l) }; return ok }",
		"RUnlock() { remove(l); l.real.RUnlock() }",
	},
	"Once": {
		"Do(f func()) { l.real.Do(func() { check($); add($, l); defer remove(l); f() }) }",
	},
}
