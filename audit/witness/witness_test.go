package witness_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/internal/witnesstest"
	"github.com/collyrobots/collyrobots/audit/witness"
	"github.com/collyrobots/collyrobots/report"
)

// origin is the name of the logs in the tests.
const origin = "example.com/crawl"

// A world is a log and a witness on loopback that knows it.
type world struct {
	t       *testing.T
	dir     string
	key     string // of the log
	public  string
	url     string
	witness *witnesstest.Witness
	told    chan error // what OnError was told
}

func newWorld(t *testing.T) *world {
	t.Helper()
	private, public, err := note.GenerateKey(nil, origin)
	w := &world{
		t:       t,
		dir:     filepath.Join(t.TempDir(), "log"),
		key:     private,
		public:  public,
		witness: witnesstest.New("witness.example/w1"),
		told:    make(chan error, 100),
	}
	if err == nil {
		err = w.witness.Know(public)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.witness)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// open opens the log with the witness.
func (w *world) open(opts ...audit.Option) *audit.Log {
	w.t.Helper()
	opts = append([]audit.Option{
		audit.Key(w.key),
		audit.OnError(func(err error) { w.told <- err }),
		witness.At(w.url, w.witness.Key()),
	}, opts...)
	l, err := audit.Open(w.dir, opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// add adds n events to a log.
func add(l *audit.Log, n int) {
	for range n {
		l.Event(report.Event{Kind: report.EventDenied, Time: time.Now(), Host: "a.test", URL: "http://a.test/"})
	}
}

// close closes the log, which must succeed.
func (w *world) close(l *audit.Log) {
	w.t.Helper()
	if err := l.Close(); err != nil {
		w.t.Error(err)
	}
}

// extend lets one process add entries until the log has size entries.
func (w *world) extend(from, size int) {
	w.t.Helper()
	l := w.open()
	w.witness.Wait(origin, int64(from)+1)
	add(l, size-from-2) // Open and Close add one each
	w.close(l)
}

// verify verifies the log with the keys of witnesses.
func (w *world) verify(v audit.Verifier) *audit.Report {
	w.t.Helper()
	v.Keys = []string{w.public}
	r, err := v.Verify(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// trusted returns a Verifier that trusts the witness.
func (w *world) trusted() audit.Verifier { return audit.Verifier{Witnesses: []string{w.witness.Key()}} }

func (w *world) checkpoint() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "checkpoint"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// wantCosigned checks that the witness has cosigned the whole log.
func (w *world) wantCosigned(size int) {
	w.t.Helper()
	r := w.verify(w.trusted())
	want := audit.Cosignature{Witness: "witness.example/w1", Entries: uint64(size)}
	for _, f := range r.Findings {
		w.t.Errorf("at %d entries: %v", size, f)
	}
	if len(r.Logs[0].Cosignatures) != 1 {
		w.t.Fatalf("at %d entries the cosignatures are %+v", size, r.Logs[0].Cosignatures)
	}
	got := r.Logs[0].Cosignatures[0]
	if got.Time.IsZero() || time.Since(got.Time) < 0 {
		w.t.Errorf("at %d entries the time is %v", size, got.Time)
	}
	got.Time = time.Time{}
	if got != want || r.Logs[0].Signed != want.Entries {
		w.t.Errorf("got %+v of %d entries, want %+v", got, r.Logs[0].Signed, want)
	}
}

// wantFaults checks that Verify finds faults with these texts, in this order, and no other ones.
func wantFaults(t *testing.T, r *audit.Report, want ...string) {
	t.Helper()
	for i, f := range r.Findings {
		if i >= len(want) || !strings.Contains(f.String(), want[i]) {
			t.Errorf("fault %d is %v, want %q", i, f, want)
		}
	}
	if len(r.Findings) != len(want) {
		t.Errorf("%d faults, want %q", len(r.Findings), want)
	}
}

// wantTold checks the next error for OnError.
func (w *world) wantTold(want string) {
	w.t.Helper()
	if err := <-w.told; !errors.Is(err, audit.ErrWitness) || !strings.Contains(err.Error(), want) {
		w.t.Errorf("OnError was told %v, want %q", err, want)
	}
}

// TestSizes lets processes continue a log at the sizes at which tiles begin and end. The first
// request has the old size 0, and each process finds out what the witness has.
func TestSizes(t *testing.T) {
	w := newWorld(t)
	size := 0
	for _, next := range []int{2, 255, 257, 512} {
		w.extend(size, next)
		w.wantCosigned(next)
		size = next
		statuses := maps.Collect(slices.All(w.witness.Statuses()))
		for i, status := range statuses {
			if status != 200 && status != 409 || i == len(statuses)-1 && status != 200 {
				t.Errorf("the statuses up to %d entries are %v", next, statuses)
			}
		}
	}
	if len(w.told) > 0 {
		t.Errorf("OnError was told %v", <-w.told)
	}
}

// TestOpenSizes lets Open cosign a log of 1, 256 and 65,536 entries, and continues the log without
// the witness in between. The proofs of entries have the cosignature.
func TestOpenSizes(t *testing.T) {
	w := newWorld(t)
	size := 0
	for _, next := range []int{1, 256, 65_536} {
		if size+1 < next {
			l, err := audit.Open(w.dir, audit.Key(w.key))
			if err != nil {
				t.Fatal(err)
			}
			add(l, next-size-3)
			w.close(l)
		}
		l := w.open()
		w.witness.Wait(origin, int64(next))
		w.close(l)
		size = next + 1
		w.wantCosigned(size)
	}
	for _, index := range []uint64{0, 255, 256, 65_535, 65_536} {
		proof, err := audit.Prove(w.dir, index)
		if err != nil || strings.Count(string(proof), "\n— witness.example/w1 ") != 1 {
			t.Errorf("the proof of entry %d is %v\n%s", index, err, proof)
		}
		if e, err := audit.CheckProof(proof, w.public); err != nil || e.Index != index {
			t.Errorf("the proof of entry %d: %v, entry %d", index, err, e.Index)
		}
	}
}

// TestSeveralWitnesses checks that each witness cosigns, and that one that fails does not matter to
// the other.
func TestSeveralWitnesses(t *testing.T) {
	w := newWorld(t)
	second := witnesstest.New("witness.example/w2")
	second.Know(w.public)
	unaware := witnesstest.New("witness.example/w3")
	var urls []string
	for _, one := range []*witnesstest.Witness{second, unaware} {
		server := httptest.NewServer(one)
		defer server.Close()
		urls = append(urls, server.URL)
	}
	l := w.open(witness.At(urls[0]+"/", second.Key()), witness.At(urls[1], unaware.Key()))
	w.wantTold("witness.example/w3 has not cosigned the 1 entries of " + w.dir + ": it does not know the log, or its URL is wrong (status 404)")
	if err := l.Close(); !errors.Is(err, audit.ErrWitness) || strings.Count(err.Error(), "has not cosigned") != 1 {
		t.Errorf("Close returned the error %v", err)
	}
	r := w.verify(audit.Verifier{Witnesses: []string{w.witness.Key(), second.Key()}})
	wantFaults(t, r)
	if len(r.Logs[0].Cosignatures) != 2 {
		t.Errorf("the cosignatures are %+v", r.Logs[0].Cosignatures)
	}
	r = w.verify(audit.Verifier{Witnesses: []string{unaware.Key(), second.Key()}})
	wantFaults(t, r, "tree: entry 2 of "+w.dir+": witness.example/w3 has not cosigned the last checkpoint")
	if text := w.checkpoint(); strings.Count(text, "\n— ") != 3 || !strings.Contains(text, "\n\n— "+origin) {
		t.Errorf("the checkpoint is\n%s", text)
	}
}

// TestWitnessLostState checks that a witness that is behind its cosignatures gets a proof from there.
func TestWitnessLostState(t *testing.T) {
	w := newWorld(t)
	w.extend(0, 300)
	at300 := w.witness.Seen(origin)
	w.extend(300, 700)
	w.witness.SetSeen(origin, at300)
	w.extend(700, 900)
	w.wantCosigned(900)
	if seen := w.witness.Seen(origin); seen.N != 900 {
		t.Errorf("the witness has seen %d entries", seen.N)
	}
}

// TestTruncated restores an old copy of a log and continues it. Nothing that the log has shows that,
// but the witness does not cosign it.
func TestTruncated(t *testing.T) {
	w := newWorld(t)
	w.extend(0, 300)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	w.extend(300, 700)
	earlier := []byte(w.checkpoint())

	w.dir = old
	l := w.open()
	w.wantTold("it has cosigned 700 entries of this log: the log was truncated or replaced, or another copy was continued")
	if err := l.Close(); !errors.Is(err, audit.ErrWitness) {
		t.Errorf("Close returned the error %v", err)
	}
	wantFaults(t, w.verify(audit.Verifier{}))
	trusted := w.trusted()
	trusted.Checkpoints = [][]byte{earlier}
	r := w.verify(trusted)
	wantFaults(t, r, "witness.example/w1 has not cosigned the last checkpoint", "the log has 302 entries, and another party holds a checkpoint of 700")
	if c := r.Logs[0].Cosignatures; len(c) != 1 || c[0].Entries != 700 {
		t.Errorf("the cosignatures are %+v", c)
	}

	l = w.open()
	w.wantTold("it has cosigned 700 entries")
	add(l, 700)
	if err := l.Close(); !errors.Is(err, audit.ErrWitness) || !strings.Contains(err.Error(), "the log does not continue the first 700 entries") {
		t.Errorf("Close returned the error %v", err)
	}
	wantFaults(t, w.verify(trusted), "witness.example/w1 has not cosigned the last checkpoint", "the first 700 entries are not those of an earlier checkpoint")
	if seen := w.witness.Seen(origin); seen.N != 700 {
		t.Errorf("the witness has seen %d entries", seen.N)
	}
}

// TestReplacedSameSize replaces a log by another one with the same key and the same size.
func TestReplacedSameSize(t *testing.T) {
	w := newWorld(t)
	w.extend(0, 300)
	w.dir = filepath.Join(t.TempDir(), "other")
	l, err := audit.Open(w.dir, audit.Key(w.key))
	if err != nil {
		t.Fatal(err)
	}
	add(l, 297)
	w.close(l)
	l = w.open()
	w.wantTold("it has cosigned another tree (status 409)")
	if err := l.Close(); !strings.Contains(fmt.Sprint(err), "the log does not continue the first 300 entries") {
		t.Errorf("Close returned the error %v", err)
	}
}

// TestRotatedKey checks that a log gets cosignatures with the new key of a witness, and that either
// key is enough for Verify. With the old key it gets none.
func TestRotatedKey(t *testing.T) {
	w := newWorld(t)
	w.extend(0, 300)
	oldKey := w.witness.Key()
	earlier := []byte(w.checkpoint())
	w.witness.Rotate()

	l, err := audit.Open(w.dir, audit.Key(w.key), audit.OnError(func(err error) { w.told <- err }), witness.At(w.url, oldKey))
	if err != nil {
		t.Fatal(err)
	}
	w.wantTold("its answer has no valid cosignature with this key")
	if err := l.Close(); !errors.Is(err, audit.ErrWitness) {
		t.Errorf("Close returned the error %v", err)
	}
	w.extend(302, 400)
	w.wantCosigned(400)
	wantFaults(t, w.verify(audit.Verifier{Witnesses: []string{w.witness.Key()}, Checkpoints: [][]byte{earlier}}))
	wantFaults(t, w.verify(audit.Verifier{Witnesses: []string{oldKey}}), "has not cosigned the last checkpoint")
	r := w.verify(audit.Verifier{Witnesses: []string{oldKey, w.witness.Key(), oldKey}, Checkpoints: [][]byte{earlier}})
	wantFaults(t, r)
	if c := r.Logs[0].Cosignatures; len(c) != 2 || c[0].Entries != 400 || c[1].Entries != 300 {
		t.Errorf("the cosignatures are %+v", c)
	}
}

// TestForgedCosignature changes the cosignature in the file, and moves one to another checkpoint.
func TestForgedCosignature(t *testing.T) {
	w := newWorld(t)
	w.extend(0, 300)
	good := w.checkpoint()
	at := strings.LastIndex(good, "\n— ")
	for name, lines := range map[string]string{
		"another tree": w.witness.Cosign("example.com/crawl\n300\n" + strings.Repeat("A", 43) + "=\n"),
		"changed":      good[at+1:len(good)-20] + "AAAA" + good[len(good)-16:],
	} {
		forged := good[:at+1] + lines
		if err := os.WriteFile(filepath.Join(w.dir, "checkpoint"), []byte(forged), 0o600); err != nil {
			t.Fatal(err)
		}
		r := w.verify(w.trusted())
		if r.OK() || len(r.Logs[0].Cosignatures) != 0 {
			t.Errorf("%s: no fault, %+v", name, r.Logs[0])
		}
	}
	// Open accepts a checkpoint with any cosignature, and replaces it.
	w.extend(300, 400)
	w.wantCosigned(400)
}

// TestClocks checks that times of entries and of cosignatures are compared. An entry may be a minute
// newer.
func TestClocks(t *testing.T) {
	behind := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(-d) } }
	fixed := func(seconds int64) func() time.Time { return func() time.Time { return time.Unix(seconds, 0) } }
	for _, test := range []struct {
		name      string
		clock     func() time.Time
		told      string // by OnError
		wantFault string
	}{
		{"a minute behind", behind(time.Minute), "", ""},
		{"61 seconds behind", behind(61 * time.Second), "the clock of witness.example/w1 is 1m1s behind", "complete: entry 0 of "},
		{"in 1970", fixed(1), "the clock of witness.example/w1 is", "it has cosigned the entry at 1970-01-01 00:00:01"},
		{"an hour ahead", behind(-time.Hour), "", ""},
		{"in the year 9999", fixed(253_402_300_799), "", ""},
		{"in the year 10000", fixed(253_402_300_800), "no valid cosignature", "has not cosigned the last checkpoint"},
		{"at 2^62", fixed(1 << 62), "no valid cosignature", "has not cosigned the last checkpoint"},
		{"before 1970", fixed(-1), "no valid cosignature", "has not cosigned the last checkpoint"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.witness.SetClock(test.clock)
			synctest.Test(t, func(t *testing.T) {
				told := make(chan error, 10)
				l, err := audit.Open(w.dir, audit.Key(w.key), audit.OnError(func(err error) { told <- err }),
					audit.Witness("https://witness.example/", w.witness.Key(), through(w.witness)))
				if err != nil {
					t.Fatal(err)
				}
				add(l, 600)
				synctest.Wait()
				switch {
				case test.told == "" && len(told) > 0:
					t.Errorf("OnError was told %v", <-told)
				case test.told != "":
					if err := <-told; !errors.Is(err, audit.ErrWitness) || !strings.Contains(err.Error(), test.told) {
						t.Errorf("OnError was told %v, want %q", err, test.told)
					}
				}
				if err := l.Close(); errors.Is(err, audit.ErrWitness) != (test.told != "") {
					t.Errorf("Close returned the error %v", err)
				}
			})
			r := w.verify(w.trusted())
			if test.wantFault == "" {
				wantFaults(t, r)
			} else {
				wantFaults(t, r, test.wantFault)
			}
			_, err := json.Marshal(r)
			if err != nil {
				t.Error(err)
			}
			var b strings.Builder
			if err := r.WriteText(&b); err != nil || test.wantFault == "" && !strings.Contains(b.String(), "  witness.example/w1 has cosigned the first 602 entries at ") {
				t.Errorf("%v, the report is\n%s", err, &b)
			}
		})
	}
}

// TestEarlierCosignature lets a clock run two hours ahead in the first or in the second process. The
// last cosignature, by a clock that is three hours ahead, does not show that. The one in between does,
// for the entries before it, and is reported once.
func TestEarlierCosignature(t *testing.T) {
	const ahead = 2 * time.Hour
	for _, test := range []struct {
		first, second time.Duration
		faults        []string
	}{
		{ahead, 0, []string{"complete: entry 1 of "}},
		{0, ahead, nil},
	} {
		w := newWorld(t)
		run := func(ahead time.Duration) {
			l := w.open()
			for range 300 {
				l.Event(report.Event{Kind: report.EventDenied, Time: time.Now().Add(ahead), Host: "a.test"})
			}
			w.close(l)
		}
		run(test.first)
		earlier := []byte(w.checkpoint())
		w.witness.SetClock(func() time.Time { return time.Now().Add(3 * time.Hour) })
		run(test.second)
		wantFaults(t, w.verify(w.trusted()))
		trusted := w.trusted()
		trusted.Checkpoints = [][]byte{earlier}
		wantFaults(t, w.verify(trusted), test.faults...)
	}
}

// crawlVariable has the arguments of crawlOnce, one in a line.
const crawlVariable = "COLLYROBOTS_WITNESS_CRAWL"

// crawlOnce is a process that adds entries to a log.
func crawlOnce() (status int) {
	args := strings.Split(os.Getenv(crawlVariable), "\n")
	l, err := audit.Open(args[0], witness.At(args[1], args[2]))
	if err == nil {
		add(l, 200)
		err = l.Close()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestTwoProcesses runs two processes one after the other with the key in the folder.
func TestTwoProcesses(t *testing.T) {
	w := newWorld(t)
	if l, err := audit.Open(w.dir); err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(w.dir, "key.pub"))
	if err == nil {
		err = w.witness.Know(string(public))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.public = string(public[:len(public)-1])
	for i := range 2 {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), crawlVariable+"="+strings.Join([]string{w.dir, w.url, w.witness.Key()}, "\n"))
		if out, err := process.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		w.wantCosigned(2 + (i+1)*202)
	}
}
