package resume

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/feed/hashset"
	"github.com/collyrobots/collyrobots/store"
)

// start returns the Journal of a run.
func start(records store.Store, unwritten int) *Journal {
	return NewJournal(Options{Store: records, Log: slog.New(slog.DiscardHandler), Scope: "ScopeHost", Least: unwritten, Most: unwritten})
}

// open records a response with a body for a file, and returns its Checkpoint.
func open(t *testing.T, j *Journal, file, body string) *Checkpoint {
	t.Helper()
	cs := Checkpoints{j.Recall(t.Context(), file, "a.test")}
	if _, err := cs.Opened(&Response{Sum: []byte(body), EndsEarly: func() error { return nil }}); err != nil {
		t.Fatal(err)
	}
	return cs[0]
}

// passed returns which of the first n pages of a file are done.
func passed(c *Checkpoint, n int) string {
	s := make([]byte, n)
	for i := range s {
		s[i] = '-'
		if c.passed(Mark{Pos: i}) {
			s[i] = 'x'
		}
	}
	return string(s)
}

// TestResults checks which pages the next run passes, by their results.
func TestResults(t *testing.T) {
	records := store.NewMemory()
	j := start(records, 1)
	c := open(t, j, "map.xml", "body")
	for pos, r := range []Result{Done, Failed, Skipped, Unfinished, Done} {
		ticket, isNew := j.Claim(uint64(pos+1), false, Place{Checkpoint: c, Mark: Mark{Pos: pos}})
		if !isNew {
			t.Fatalf("page %d is not new", pos)
		}
		ticket.Settle(r)
	}
	c.finish(true, time.Time{}, time.Now())
	next := open(t, start(records, 1), "map.xml", "body")
	if got := passed(next, 5); got != "x---x" {
		t.Errorf("the next run passes %s", got)
	}
	if changed := open(t, start(records, 1), "map.xml", "other body"); passed(changed, 5) != "-----" || !changed.Again() {
		t.Errorf("the next run passes %s of a file that has changed", passed(changed, 5))
	}
}

// TestPageOfTwoFiles checks that a page that two files list is done in both or in neither.
func TestPageOfTwoFiles(t *testing.T) {
	for _, r := range []Result{Done, Failed, Skipped, Unfinished} {
		for _, late := range []bool{false, true} { // the second file lists the page after it has a result
			records := store.NewMemory()
			j := start(records, 1)
			a := open(t, j, "a.xml", "a")
			b := open(t, j, "b.xml", "b")
			ticket, _ := j.Claim(7, false, Place{Checkpoint: a})
			if _, isNew := j.Claim(7, false, Place{Checkpoint: b}); isNew {
				t.Fatal("the page was claimed twice")
			}
			if late {
				ticket.Settle(r)
			}
			j.Join(7, Place{Checkpoint: b})
			if !late {
				ticket.Settle(r)
			}
			a.finish(true, time.Time{}, time.Now())
			b.finish(true, time.Time{}, time.Now())
			j = start(records, 1)
			for _, file := range []string{"a", "b"} {
				if got := open(t, j, file+".xml", file).passed(Mark{}); got != (r == Done) {
					t.Errorf("result %d, late %v: passed in %s = %v", r, late, file, got)
				}
			}
		}
	}
}

// TestGivenUp checks that a page that fails in three runs is given up.
func TestGivenUp(t *testing.T) {
	records := store.NewMemory()
	for run := range 4 {
		j := start(records, 1)
		c := open(t, j, "map.xml", "body")
		at := Place{Checkpoint: c}
		if at.Passed() != (run == 3) {
			t.Errorf("run %d: passed = %v", run, at.Passed())
		}
		if at.Passed() {
			continue
		}
		ticket, _ := j.Claim(7, false, at)
		if givenUp := ticket.Settle(Failed); givenUp != (run == 2) {
			t.Errorf("run %d: given up = %v", run, givenUp)
		}
	}
}

// TestCorrect checks that a page is done if that is known only after it has failed, also in a file
// that is read after that.
func TestCorrect(t *testing.T) {
	records := store.NewMemory()
	j := start(records, 1)
	a := open(t, j, "a.xml", "a")
	b := open(t, j, "b.xml", "b")
	ticket, _ := j.Claim(7, false, Place{Checkpoint: a})
	ticket.Settle(Failed)
	ticket.Correct()
	j.Join(7, Place{Checkpoint: b})
	b.finish(true, time.Time{}, time.Now())
	for _, file := range []string{"a", "b"} {
		if !open(t, start(records, 1), file+".xml", file).passed(Mark{}) {
			t.Errorf("the next run fetches the page of %s.xml", file)
		}
	}
}

// TestFinishOfAnEndedRun checks that the results are written when the run ends early, even while
// another page is in flight.
func TestFinishOfAnEndedRun(t *testing.T) {
	records := store.NewMemory()
	j := start(records, 100)
	c := open(t, j, "map.xml", "body")
	first, _ := j.Claim(1, false, Place{Checkpoint: c})
	j.Claim(2, false, Place{Checkpoint: c, Mark: Mark{Pos: 1}})
	first.Settle(Done)
	c.finish(false, time.Time{}, time.Now())
	if got := passed(open(t, start(records, 100), "map.xml", "body"), 2); got != "x-" {
		t.Errorf("the next run passes %s, want x-", got)
	}
}

// TestOrderChanges checks that a run cannot use the record of a run with another order of the
// pages, unless the file is done.
func TestOrderChanges(t *testing.T) {
	for _, newest := range []bool{false, true} {
		for _, done := range []bool{false, true} {
			records := store.NewMemory()
			j := start(records, 1)
			j.options.NewestFirst = newest
			c := open(t, j, "map.xml", "body")
			ticket, _ := j.Claim(1, false, Place{Checkpoint: c, Mark: Mark{Pos: 3}})
			ticket.Settle(Done)
			c.finish(done, time.Time{}, time.Now())
			next := start(records, 1)
			next.options.NewestFirst = !newest
			want := Fresh
			if done {
				want = Settled
			}
			if got := next.Recall(t.Context(), "map.xml", "a.test").level(); got != want {
				t.Errorf("newest first %v, done %v: level %d, want %d", newest, done, got, want)
			}
		}
	}
}

// TestConditions checks that a request is conditional only if the file is done. Otherwise the
// server could answer that the file has not changed, and the pages that are left would not be read.
func TestConditions(t *testing.T) {
	for _, done := range []bool{false, true} {
		records := store.NewMemory()
		j := start(records, 1)
		cs := Checkpoints{j.Recall(t.Context(), "map.xml", "a.test")}
		header := http.Header{"Etag": {`"1"`}, "Last-Modified": {"Sat, 01 Jan 2000 00:00:00 GMT"}}
		if _, err := cs.Opened(&Response{Header: header, Sum: []byte("body")}); err != nil {
			t.Fatal(err)
		}
		cs.Finish(done, time.Time{}, time.Now())
		asked := make(http.Header)
		Checkpoints{start(records, 1).Recall(t.Context(), "map.xml", "a.test")}.SetConditions(asked)
		if len(asked) != 0 != done {
			t.Errorf("done %v: the request has %v", done, asked)
		}
	}
}

// TestRecordIsRenewed checks that the store does not forget the record of a file that is spared in
// each run.
func TestRecordIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := store.NewMemory()
		listed := time.Now().Add(-48 * time.Hour)
		open(t, start(records, 1), "map.xml", "body").finish(true, listed, time.Now())
		for month := range 12 {
			time.Sleep(31 * 24 * time.Hour)
			cs := Checkpoints{start(records, 1).Recall(t.Context(), "map.xml", "a.test")}
			if !cs.Spares(listed) {
				t.Fatalf("the file is read again after %d months", month+1)
			}
		}
	})
}

// TestNewestFirst checks that a page that was joined to a page of another file is done when the
// file is, although it comes after all pages that were handed on.
func TestNewestFirst(t *testing.T) {
	records := store.NewMemory()
	newest := func() *Journal {
		j := start(records, 1)
		j.options.NewestFirst = true
		return j
	}
	newer := Mark{Age: 5, Pos: 1}
	older := Mark{Age: 9, Pos: 0}
	for _, whole := range []bool{false, true} {
		j := newest()
		a := open(t, j, "a.xml", "a")
		b := open(t, j, "b.xml", fmt.Sprint("b ", whole))
		failing, _ := j.Claim(1, false, Place{Checkpoint: b, Mark: newer})
		failing.Settle(Failed)
		both, _ := j.Claim(2, false, Place{Checkpoint: a, Mark: newer})
		j.Join(2, Place{Checkpoint: b, Mark: older})
		both.Settle(Done)
		b.finish(whole, time.Time{}, time.Now())
		next := open(t, newest(), "b.xml", fmt.Sprint("b ", whole))
		if next.passed(older) != whole || next.passed(newer) {
			t.Errorf("whole %v: passed = %v, %v, want %v, false", whole, next.passed(older), next.passed(newer), whole)
		}
	}
}

// A mortal is a store that fails after a number of writes.
type mortal struct {
	store.Store
	writes int
}

func (m *mortal) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	if m.writes == 0 {
		return errors.New("the process is dead")
	}
	m.writes--
	return m.Store.Update(ctx, key, ttl, f)
}

// TestCrash checks that after a crash, no page is lost, and that fewer pages than Options.Most are
// fetched again although they were done.
func TestCrash(t *testing.T) {
	const pages = 60
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		records := store.NewMemory()
		unwritten := 1 + r.IntN(8)
		window := 1 + r.IntN(8)
		die := &mortal{Store: records, writes: r.IntN(20)}
		j := start(die, unwritten)
		c := open(t, j, "map.xml", "body")
		done := make(map[int]bool)
		type delivery struct {
			pos    int
			ticket *Ticket
		}
		var inFlight []delivery
		begun := 0
		for die.writes > 0 && begun < pages {
			ticket, _ := j.Claim(uint64(begun+1), false, Place{Checkpoint: c, Mark: Mark{Pos: begun}})
			inFlight = append(inFlight, delivery{pos: begun, ticket: ticket})
			begun++
			for die.writes > 0 && (len(inFlight) == window || len(inFlight) > 0 && r.IntN(3) == 0) {
				i := r.IntN(len(inFlight))
				done[inFlight[i].pos] = true
				inFlight[i].ticket.Settle(Done)
				inFlight = append(inFlight[:i], inFlight[i+1:]...)
			}
		}
		next := open(t, start(records, unwritten), "map.xml", "body")
		again := 0
		for pos := range begun {
			switch {
			case next.passed(Mark{Pos: pos}) && !done[pos]:
				t.Errorf("seed %d: page %d is lost", seed, pos)
			case !next.passed(Mark{Pos: pos}) && done[pos]:
				again++
			}
		}
		if again >= unwritten {
			t.Errorf("seed %d: %d pages that were done are fetched again, want fewer than %d", seed, again, unwritten)
		}
	}
}

// A slow is a store whose writes take some time.
type slow struct {
	store.Store
	takes  time.Duration
	writes int
}

func (s *slow) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	time.Sleep(s.takes)
	s.writes++
	return s.Store.Update(ctx, key, ttl, f)
}

// TestWhenResultsAreWritten checks how many results are not recorded at most, which is how many
// pages a crash repeats, and how often they are written.
func TestWhenResultsAreWritten(t *testing.T) {
	const pages = 1000
	for _, test := range []struct {
		name           string
		page, write    time.Duration // how long each takes
		behind, writes int           // the most results that are not recorded, and the number of writes
	}{
		{"a write takes no time", time.Millisecond, 0, 4, pages / 4},
		{"slow pages", 9 * time.Millisecond, 4 * time.Millisecond, 4, pages / 4},
		{"fast pages", time.Millisecond, 4 * time.Millisecond, 36, 1 + (pages-4)/36},
		{"very fast pages", time.Millisecond, 40 * time.Millisecond, 100, 1 + (pages-4)/100},
	} {
		synctest.Test(t, func(t *testing.T) {
			records := &slow{Store: store.NewMemory(), takes: test.write}
			j := start(records, 4)
			j.options.Most = 100
			c := open(t, j, "map.xml", "body")
			behind := 0
			for i := range pages {
				ticket, _ := j.Claim(uint64(i+1), false, Place{Checkpoint: c, Mark: Mark{Pos: i}})
				time.Sleep(test.page)
				behind = max(behind, j.unwritten+1) // a crash at this moment repeats one more page, if it is done
				ticket.Settle(Done)
			}
			if behind != test.behind || records.writes != test.writes {
				t.Errorf("%s: at most %d results are not recorded, %d writes, want %d and %d", test.name, behind, records.writes, test.behind, test.writes)
			}
			j.Flush()
			if got := passed(open(t, start(records, 1), "map.xml", "body"), pages); strings.Contains(got, "-") {
				t.Errorf("%s: after Flush, the next run passes %s", test.name, got)
			}
		})
	}
}

// TestTooManyPages checks that the number of remembered pages is limited, that this is logged once,
// and that each page can be claimed nevertheless.
func TestTooManyPages(t *testing.T) {
	var log bytes.Buffer
	j := NewJournal(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	j.pages = hashset.New(32)
	for i := range uint64(200) {
		if _, isNew := j.Claim((i+1)*0x2545F4914F6CDD1D, false, Place{}); !isNew {
			t.Errorf("page %d is not new", i)
		}
	}
	if n := strings.Count(log.String(), "too many pages to remember"); n != 1 {
		t.Errorf("it was logged %d times, want once", n)
	}
}

// TestSampleOfRepeatedPages checks that a page that a file lists many times takes one place of the
// sample.
func TestSampleOfRepeatedPages(t *testing.T) {
	var s sample
	for range 10 * sampleSize {
		s.add("repeated")
		s.add("other")
	}
	if n := len(s.encode()); n != 2*8 {
		t.Errorf("%d bytes, want 16", n)
	}
}

// TestSamplesAreBounded checks that the number of hashes is limited, and that each file still has
// some.
func TestSamplesAreBounded(t *testing.T) {
	var s Samples[int]
	r := rand.New(rand.NewPCG(1, 1))
	const files = 3 * mostSamples / sampleSize
	for file := range files {
		var stored []byte
		for range sampleSize {
			stored = binary.BigEndian.AppendUint64(stored, r.Uint64())
		}
		s.Add(file, Checkpoints{{record: record{Sample: stored}}})
	}
	left := make(map[int]bool)
	for _, file := range s.files {
		left[file] = true
	}
	if len(s.files) > mostSamples || len(left) != files {
		t.Errorf("%d hashes of %d files, want at most %d of %d", len(s.files), len(left), mostSamples, files)
	}
}

// TestSamples checks that a file that was skipped is found by its pages, once.
func TestSamples(t *testing.T) {
	records := store.NewMemory()
	j := start(records, 1)
	for _, file := range []string{"a", "b"} {
		c := open(t, j, file, file)
		for i := range 1000 {
			c.Sample(fmt.Sprint(file, i))
			c.pass(Mark{Pos: i})
		}
		c.finish(true, time.Time{}, time.Now())
	}
	j = start(records, 1)
	var s Samples[string]
	if !s.IsEmpty() {
		t.Error("the zero value has files")
	}
	for _, file := range []string{"a", "b"} {
		s.Add(file, Checkpoints{j.Recall(t.Context(), file, "a.test")})
	}
	found := make(map[string]int)
	for _, file := range []string{"a", "b", "c"} {
		for i := range 1000 {
			if f, ok := s.Take(fmt.Sprint(file, i)); ok {
				found[f]++
				if f != file {
					t.Errorf("%s%d was found in %s", file, i, f)
				}
			}
		}
	}
	if found["a"] != 1 || found["b"] != 1 || !s.IsEmpty() {
		t.Errorf("found %v", found)
	}
}
