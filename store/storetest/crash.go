package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

const (
	childVariable = "STORETEST_CHILD" // if set, the process is the child and writes to this path
	crashKeys     = 40
)

// Kill tests a back end that claims to be durable. It starts a process that writes to the store
// that open opens, kills it at a random time, and checks that every write that the store
// acknowledged is there. It repeats this as often as rounds says. The process is the test binary,
// which runs the calling test again.
func Kill(t *testing.T, rounds int, open func(path string) (store.Store, error)) {
	if path := os.Getenv(childVariable); path != "" {
		write(t, path, open)
		return
	}
	path := filepath.Join(t.TempDir(), "store")
	kept := make(map[string]int)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	total := 0
	for range rounds {
		total += writeAndDie(t, path, time.Duration(random.Int64N(int64(60*time.Millisecond))), kept)
		check(t, path, open, kept)
	}
	t.Logf("%d acknowledged writes by %d processes", total, rounds)
	if total == 0 {
		t.Error("no process lived long enough to write anything")
	}
}

// write runs in the child process. It increments a counter under each key, and prints the new value
// when the store has acknowledged it.
func write(t *testing.T, path string, open func(path string) (store.Store, error)) {
	s, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		key := fmt.Sprint("key", i%crashKeys)
		n := 0
		err := s.Update(context.Background(), key, 0, func(old []byte) ([]byte, error) {
			n = number(old) + 1
			return value(key, n), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("kept %s %d\n", key, n)
	}
}

// value returns a value that is long enough that a crash can leave part of it.
func value(key string, n int) []byte {
	return []byte(strconv.Itoa(n) + " " + strings.Repeat(key, 1+n%2000))
}

func number(value []byte) int {
	head, _, _ := strings.Cut(string(value), " ")
	n, _ := strconv.Atoi(head)
	return n
}

// writeAndDie starts a child, kills it after the given time since its first write, and records in
// kept the writes that it reported.
func writeAndDie(t *testing.T, path string, life time.Duration, kept map[string]int) (writes int) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), childVariable+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	// Also kill a child that never writes.
	death := time.AfterFunc(20*time.Second, func() { _ = child.Process.Kill() })
	defer death.Stop()
	other := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var key string
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "kept %s %d", &key, &n); err != nil {
			other += lines.Text() + "\n"
			continue
		}
		kept[key] = n
		writes++
		if writes == 1 {
			death.Reset(life)
		}
	}
	var exit *exec.ExitError
	if err := child.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the child was not killed: %v\n%s", err, other)
	}
	return writes
}

// check checks that every value is complete, and that it is the last acknowledged one or the one
// after it.
func check(t *testing.T, path string, open func(path string) (store.Store, error), kept map[string]int) {
	t.Helper()
	s, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range crashKeys {
		key := fmt.Sprint("key", i)
		got, err := s.Get(context.Background(), key)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		n := number(got)
		if got != nil && string(got) != string(value(key, n)) {
			t.Fatalf("%s is incomplete: %.60q", key, got)
		}
		if n != kept[key] && n != kept[key]+1 {
			t.Fatalf("%s is %d, but %d was acknowledged", key, n, kept[key])
		}
		kept[key] = n
	}
}

// Damaged tests how a store that can detect damage reports it. The store must be empty. Damaged
// writes one record and calls damage, which must damage it. Then the first Get (or Update, if
// byUpdate is true) must report the damage, and the record must be gone.
func Damaged(t *testing.T, s store.Store, damage func(), byUpdate bool) {
	t.Helper()
	Put(t, s, "k", "value")
	damage()
	var got []byte
	var err error
	if byUpdate {
		err = s.Update(context.Background(), "k", 0, func([]byte) ([]byte, error) {
			t.Error("Update ran its function on a damaged record")
			return nil, nil
		})
	} else {
		got, err = s.Get(context.Background(), "k")
	}
	var corrupt *store.CorruptError
	if !errors.As(err, &corrupt) || got != nil || corrupt.Path == "" || corrupt.Aside == "" || corrupt.Err == nil {
		t.Errorf("a damaged record was returned as %q, %#v", got, err)
	} else if text := err.Error(); !strings.Contains(text, corrupt.Path) || !strings.Contains(text, corrupt.Aside) || !errors.Is(err, corrupt.Err) {
		t.Errorf("the message %q does not contain the path, where the data is now, or the reason", text)
	}
	want(t, s, "k", nil)
	Put(t, s, "k", "again")
	want(t, s, "k", []byte("again"))
}

// Put writes a record that does not expire.
func Put(t *testing.T, s store.Store, key, value string) {
	t.Helper()
	put(t, s, key, value)
}
