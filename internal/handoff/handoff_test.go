package handoff

import (
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type record struct{ name string }

// newTable returns a table and the names of the records that it drops.
func newTable() (*Table[record], *[]string) {
	dropped := new([]string)
	return New(func(r *record) { *dropped = append(*dropped, r.name) }), dropped
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// An entry that is held cannot be taken, and one that was released can.
func TestTake(t *testing.T) {
	table, _ := newTable()
	u := parse(t, "http://a.test/")
	e := table.Open(u, time.Now())
	e.Record.name = "a"
	if table.Take(u) != nil {
		t.Error("an entry that is held was taken")
	}
	e.Release(time.Now())
	other := *u
	if table.Take(&other) != nil || table.Has(&other) {
		t.Error("an entry was found by an equal URL at another address")
	}
	taken := table.Take(u)
	if taken != e || taken.Record.name != "a" {
		t.Fatalf("took %v, want the entry that was released", taken)
	}
	if !table.Has(u) || table.Empty() {
		t.Error("an entry that was taken is not in the table")
	}
	taken.Close()
	if table.Has(u) || !table.Empty() {
		t.Error("an entry that was closed is still in the table")
	}
}

// An idle entry is dropped when its URL is opened again. One that is held stays with its holder.
func TestOpenAgain(t *testing.T) {
	table, dropped := newTable()
	u := parse(t, "http://a.test/")
	first := table.Open(u, time.Now())
	first.Record.name = "first"
	second := table.Open(u, time.Now())
	second.Record.name = "second"
	if len(*dropped) != 0 {
		t.Errorf("dropped %q while it was held", *dropped)
	}
	second.Release(time.Now())
	third := table.Open(u, time.Now())
	if len(*dropped) != 1 || (*dropped)[0] != "second" {
		t.Errorf("dropped %q, want the second", *dropped)
	}
	first.Close()
	if !table.Has(u) {
		t.Error("the end of the first removed the third")
	}
	third.Close()
	if !table.Empty() {
		t.Error("the table is not empty")
	}
}

// Entries that are idle for ten seconds are dropped when others are opened, and others are not.
func TestIdleEntriesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, dropped := newTable()
		var held []*Entry[record]
		var urls []*url.URL
		for range 1000 {
			u := parse(t, "http://a.test/")
			urls = append(urls, u)
			held = append(held, table.Open(u, time.Now()))
		}
		for _, e := range held[:500] {
			e.Release(time.Now())
		}
		time.Sleep(10*time.Second - 1)
		table.Open(parse(t, "http://a.test/"), time.Now()).Close()
		if len(*dropped) != 0 {
			t.Fatalf("dropped %d entries too early", len(*dropped))
		}
		time.Sleep(time.Nanosecond)
		for range 200_000 {
			table.Open(parse(t, "http://a.test/"), time.Now()).Close()
		}
		if len(*dropped) != 500 {
			t.Errorf("dropped %d entries, want the 500 that were idle", len(*dropped))
		}
		for i, u := range urls {
			if table.Has(u) != (i >= 500) {
				t.Fatalf("entry %d is in the table: %v", i, table.Has(u))
			}
		}
	})
}

// At most one goroutine holds an entry.
func TestOneHolder(t *testing.T) {
	table, _ := newTable()
	u := parse(t, "http://a.test/")
	table.Open(u, time.Now()).Release(time.Now())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				if e := table.Take(u); e != nil {
					e.Record.name += "x" // the race detector reports two holders
					e.Record.name = ""
					e.Release(time.Now())
				}
			}
		})
	}
	group.Wait()
}
