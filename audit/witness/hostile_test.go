package witness_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/audit/internal/witnesstest"
	"github.com/collyrobots/collyrobots/audit/witness"
)

// TestHostile lets servers answer anything. Close returns, the error says why, and the log itself has
// no fault.
func TestHostile(t *testing.T) {
	other := witnesstest.New("witness.example/w1")
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	// cosign answers with lines that f makes from the text of the checkpoint.
	cosign := func(f func(checkpoint string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, checkpoint, _ := strings.Cut(string(body), "\n\n")
			checkpoint, _, _ = strings.Cut(checkpoint, "\n\n")
			io.WriteString(w, f(checkpoint+"\n"))
		}
	}
	wrongRoot := func(w *witnesstest.Witness) http.HandlerFunc {
		return cosign(func(checkpoint string) string {
			lines := strings.Split(checkpoint, "\n")
			return w.Cosign(lines[0] + "\n" + lines[1] + "\n" + strings.Repeat("A", 43) + "=\n")
		})
	}
	for _, test := range []struct {
		name string
		make func(w *witnesstest.Witness) http.HandlerFunc
		want string
	}{
		{"empty", func(*witnesstest.Witness) http.HandlerFunc { return text(200, "") }, "no valid cosignature with this key: malformed note"},
		{"garbage", func(*witnesstest.Witness) http.HandlerFunc { return text(200, "\x00\xff<html>") }, "no valid cosignature with this key: malformed note"},
		{"line without an end", func(*witnesstest.Witness) http.HandlerFunc { return text(200, "— witness.example/w1 AAAA") }, "malformed note"},
		{"short signature", func(*witnesstest.Witness) http.HandlerFunc { return text(200, "— witness.example/w1 AAAAAAAA\n") }, "no verifiable signatures"},
		{"key of another witness", func(*witnesstest.Witness) http.HandlerFunc { return cosign(other.Cosign) }, "no verifiable signatures"},
		{"another tree", wrongRoot, "no valid cosignature with this key: invalid signature for key witness.example/w1"},
		{"another text with a signature", func(w *witnesstest.Witness) http.HandlerFunc {
			return cosign(func(checkpoint string) string { return "\n" + w.Cosign(checkpoint+"\n") })
		}, "its answer"},
		{"a note of its own", func(w *witnesstest.Witness) http.HandlerFunc {
			return cosign(func(checkpoint string) string {
				return "more text\n\n" + w.Cosign(checkpoint+"\nmore text\n")
			})
		}, "its answer does not consist of signature lines"},
		{"huge body", func(*witnesstest.Witness) http.HandlerFunc { return text(200, strings.Repeat("x", 1<<20)) }, "its answer has more than 65536 bytes"},
		{"endless body", func(*witnesstest.Witness) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					w.Write(make([]byte, 1<<10))
				}
			}
		}, "its answer has more than 65536 bytes"},
		{"too many signatures", func(*witnesstest.Witness) http.HandlerFunc {
			return cosign(func(c string) string { return strings.Repeat(other.Cosign(c), 400) })
		}, "malformed note"},
		{"no answer", func(*witnesstest.Witness) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}, "EOF"},
		{"400", func(*witnesstest.Witness) http.HandlerFunc { return text(400, "old size\x1b[31m") }, `it has answered with the status 400 and the text "old size\x1b[31m"`},
		{"403", func(*witnesstest.Witness) http.HandlerFunc { return text(403, "") }, "it does not know the key of the log (status 403): give its operator the content of key.pub"},
		{"404", func(*witnesstest.Witness) http.HandlerFunc { return text(404, "") }, "it does not know the log, or its URL is wrong (status 404)"},
		{"422", func(*witnesstest.Witness) http.HandlerFunc { return text(422, "") }, "the log does not continue the first 0 entries"},
		{"500", func(*witnesstest.Witness) http.HandlerFunc { return text(500, strings.Repeat("x", 1000)) }, `status 500 and the text "` + strings.Repeat("x", 100) + `"`},
		{"409 without a size", func(*witnesstest.Witness) http.HandlerFunc { return text(409, "") }, "it has cosigned another tree (status 409)"},
		{"409 with a negative size", func(*witnesstest.Witness) http.HandlerFunc { return text(409, "-1\n") }, "it has cosigned another tree (status 409)"},
		{"409 with 2^63", func(*witnesstest.Witness) http.HandlerFunc { return text(409, "9223372036854775808\n") }, "it has cosigned another tree (status 409)"},
		{"409 with 2^63-1", func(*witnesstest.Witness) http.HandlerFunc { return text(409, "9223372036854775807\n") }, "it has cosigned 9223372036854775807 entries of this log"},
		{"409 again and again", func(*witnesstest.Witness) http.HandlerFunc { return text(409, "1\n") }, "it has cosigned another tree (status 409)"},
		{"redirect", func(*witnesstest.Witness) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
			}
		}, "it has answered with the status 307"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			var requests atomic.Int32
			handler := test.make(w.witness)
			server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				handler(out, r)
			}))
			defer server.Close()
			w.url = server.URL
			l := w.open()
			w.wantTold(test.want)
			add(l, 300)
			if err := l.Close(); !errors.Is(err, audit.ErrWitness) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Close returned the error %v", err)
			}
			want := int32(2) // one of Open and one of Close
			if strings.HasPrefix(test.name, "409 again") {
				want = 4
			}
			if n := requests.Load(); n != want || len(w.told) > 0 {
				t.Errorf("%d requests, want %d, and OnError was told %d more errors", n, want, len(w.told))
			}
			wantFaults(t, w.verify(audit.Verifier{}))
			wantFaults(t, w.verify(w.trusted()), "witness.example/w1 has not cosigned the last checkpoint")
		})
	}
}

// TestDead checks the error if nothing listens at the URL.
func TestDead(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(nil)
	w.url = server.URL
	server.Close()
	l := w.open()
	w.wantTold("connection refused")
	if err := l.Close(); !errors.Is(err, audit.ErrWitness) {
		t.Errorf("Close returned the error %v", err)
	}
}

// TestCloseDuringRequest closes a log while a server sends no header, and then while it sends a byte
// at a time. Close ends that request. The next one gets a cosignature.
func TestCloseDuringRequest(t *testing.T) {
	for _, sends := range []bool{false, true} {
		w := newWorld(t)
		arrived := make(chan bool, 1)
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > 1 {
				w.witness.ServeHTTP(out, r)
				return
			}
			io.Copy(io.Discard, r.Body)
			if sends {
				out.Write([]byte("x"))
				http.NewResponseController(out).Flush()
			}
			arrived <- true
			<-r.Context().Done()
		}))
		w.url = server.URL
		l := w.open()
		<-arrived
		w.close(l)
		w.wantCosigned(2)
		if len(w.told) > 0 {
			t.Errorf("OnError was told %v", <-w.told)
		}
		server.Close()
	}
}

func TestOptionFaults(t *testing.T) {
	key := witnesstest.New("witness.example/w1").Key()
	logKey := newWorld(t).public
	for _, test := range []struct {
		option audit.Option
		want   string
	}{
		{witness.At("witness.example", key), "the URL of the witness is malformed"},
		{witness.At("ftp://witness.example", key), "the URL of the witness is malformed"},
		{witness.At("https://witness.example/?a=b", key), "the URL of the witness is malformed"},
		{witness.At("http://[::1", key), "the URL of the witness is malformed"},
		{witness.At("https://witness.example/", ""), "the key of the witness is malformed"},
		{witness.At("https://witness.example/", "a+b"), "the key of the witness is malformed"},
		{witness.At("https://witness.example/", "a b"+key), "the key of the witness is malformed"},
		{witness.At("https://witness.example/", "w+00000000+"), "the key of the witness is malformed"},
		{witness.At("https://witness.example/", "x"+key), "the key of the witness does not have its hash"},
		{witness.At("https://witness.example/", logKey), "the key of the witness has the type 1, want 4"},
		{audit.Witness("https://witness.example/", key, nil), "the function is nil"},
	} {
		dir := filepath.Join(t.TempDir(), "log")
		if _, err := audit.Open(dir, test.option); err == nil || !strings.Contains(err.Error(), "audit: Witness: "+test.want) {
			t.Errorf("got the error %v, want %q", err, test.want)
		}
	}
	w := newWorld(t)
	w.extend(0, 10)
	wantFaults(t, w.verify(audit.Verifier{Witnesses: []string{"a+b"}}), `the key of the witness is malformed: want NAME+HASH+KEY: "a+b"`)
}

// through returns a Post that calls a handler without a network.
func through(h http.Handler) audit.Post {
	return func(_ context.Context, url string, body []byte) (int, []byte, error) {
		out := httptest.NewRecorder()
		h.ServeHTTP(out, httptest.NewRequest(http.MethodPost, url, bytes.NewReader(body)))
		return out.Code, out.Body.Bytes(), nil
	}
}

// TestSlowWitness lets a witness take its time. Neither Event nor a checkpoint waits for it, it gets
// one request at a time, and Close waits for ten seconds.
func TestSlowWitness(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var begins []time.Duration
		var atOnce atomic.Int32
		post := func(ctx context.Context, _ string, _ []byte) (int, []byte, error) {
			if atOnce.Add(1) > 1 {
				t.Error("two requests at once")
			}
			defer atOnce.Add(-1)
			begins = append(begins, time.Since(begin))
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}
		told := make(chan time.Duration, 100)
		l, err := audit.Open(w.dir, audit.Key(w.key), audit.Witness("https://witness.example/", w.witness.Key(), post), audit.OnError(func(err error) {
			told <- time.Since(begin)
			if want := "witness.example/w1 has not cosigned the 1 entries of " + w.dir + ": no answer within 10s"; !strings.Contains(err.Error(), want) {
				t.Errorf("OnError was told %v, want %q", err, want)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			before := time.Now()
			add(l, 10)
			if took := time.Since(before); took != 0 {
				t.Errorf("Event took %v", took)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if text := w.checkpoint(); !strings.Contains(text, "\n1001\n") {
			t.Errorf("after 100 s the checkpoint is\n%s", text)
		}
		before := time.Now()
		if err := l.Close(); !errors.Is(err, audit.ErrWitness) {
			t.Errorf("Close returned the error %v", err)
		}
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("Close took %v", took)
		}
		if at := <-told; at != 10*time.Second || len(told) > 0 {
			t.Errorf("OnError was told at %v, and %d times more", at, len(told))
		}
		// A request ends after ten seconds. The pauses are 10, 20, 40 s, and checkpoints come every ten.
		want := []time.Duration{0, 20 * time.Second, 50 * time.Second, 100 * time.Second, 100 * time.Second}
		if !slices.Equal(begins, want) {
			t.Errorf("requests at %v, want %v", begins, want)
		}
	})
	wantFaults(t, w.verify(audit.Verifier{}))
}

// TestFailingWitness checks that OnError is called once until the witness works again, and that the
// log asks again after pauses of at most five minutes.
func TestFailingWitness(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		sleepUntil := func(second time.Duration) {
			time.Sleep(time.Until(begin.Add(second * time.Second)))
			synctest.Wait()
		}
		working := through(w.witness)
		var fails atomic.Bool
		fails.Store(true)
		begins := make(chan time.Duration, 100)
		told := make(chan time.Duration, 100)
		post := func(ctx context.Context, url string, body []byte) (int, []byte, error) {
			begins <- time.Since(begin)
			if fails.Load() {
				return 503, nil, nil
			}
			return working(ctx, url, body)
		}
		l, err := audit.Open(w.dir, audit.Key(w.key), audit.Witness("https://witness.example/", w.witness.Key(), post),
			audit.OnError(func(error) { told <- time.Since(begin) }))
		if err != nil {
			t.Fatal(err)
		}
		sleepUntil(1000)
		wantTimes(t, "requests", begins, 0, 10, 30, 70, 150, 310, 610, 910)
		wantTimes(t, "calls of OnError", told, 0)
		fails.Store(false)
		sleepUntil(1300) // there is only one checkpoint
		wantTimes(t, "requests", begins, 1210)
		add(l, 10)
		sleepUntil(1310)
		wantTimes(t, "requests", begins, 1310)
		if seen := w.witness.Seen(origin); seen.N != 11 {
			t.Errorf("the witness has seen %d entries", seen.N)
		}
		fails.Store(true)
		add(l, 10)
		sleepUntil(1340)
		wantTimes(t, "requests", begins, 1320, 1330)
		wantTimes(t, "calls of OnError", told, 1320)
		fails.Store(false)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		wantTimes(t, "requests", begins, 1340)
	})
	w.wantCosignedBubble(22)
}

// TestWitnessClockStaysWrong checks that a clock that differs is reported once, also if there is nothing
// to cosign for a while.
func TestWitnessClockStaysWrong(t *testing.T) {
	w := newWorld(t)
	w.witness.SetClock(func() time.Time { return time.Now().Add(-time.Hour) })
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		told := make(chan time.Duration, 100)
		l, err := audit.Open(w.dir, audit.Key(w.key), audit.Witness("https://witness.example/", w.witness.Key(), through(w.witness)),
			audit.OnError(func(error) { told <- time.Since(begin) }))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Minute)
			add(l, 10)
		}
		if err := l.Close(); !errors.Is(err, audit.ErrWitness) {
			t.Errorf("Close returned the error %v", err)
		}
		wantTimes(t, "calls of OnError", told, 0)
	})
}

// wantTimes checks the times in a channel, in seconds, and removes them.
func wantTimes(t *testing.T, name string, times <-chan time.Duration, want ...time.Duration) {
	t.Helper()
	var got []time.Duration
	for len(times) > 0 {
		got = append(got, <-times)
	}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s at %v, want %v", name, got, want)
	}
}

// wantCosignedBubble is wantCosigned for cosignatures with the time of a bubble.
func (w *world) wantCosignedBubble(size uint64) {
	w.t.Helper()
	r := w.verify(w.trusted())
	wantFaults(w.t, r)
	if c := r.Logs[0].Cosignatures; len(c) != 1 || c[0].Entries != size {
		w.t.Errorf("the cosignatures are %+v, want one of %d entries", c, size)
	}
}

// TestEventsDuringRequests adds entries on several goroutines while a witness cosigns one checkpoint
// after the other. A cosignature that comes after the next checkpoint does not replace that one.
func TestEventsDuringRequests(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		working := through(w.witness)
		post := func(ctx context.Context, url string, body []byte) (int, []byte, error) {
			time.Sleep(4 * time.Second) // twice, if there is a conflict, so that the next checkpoint is there
			status, response, err := working(ctx, url, body)
			time.Sleep(5 * time.Second)
			return status, response, err
		}
		l, err := audit.Open(w.dir, audit.Key(w.key), audit.Witness("https://witness.example/", w.witness.Key(), post), audit.OnError(func(err error) { t.Error(err) }))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			go func() {
				for range 100 {
					add(l, 7)
					time.Sleep(137 * time.Millisecond)
				}
			}()
		}
		time.Sleep(35 * time.Second)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	w.wantCosignedBubble(2802)
}
