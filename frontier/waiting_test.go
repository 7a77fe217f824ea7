package frontier_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

func TestWaitingFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		check := func(want string) {
			t.Helper()
			got, err := os.ReadFile(filepath.Join(dir, "waiting.jsonl"))
			if err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		}
		f := open(t, dir, frontier.MaxRecordedPerHost(2))
		const empty = `{"version":1,"written":"2000-01-01T00:00:00Z"}` + "\n"
		check(empty)
		add(t, f, "http://b.test/1", "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://c.test/1")
		finish(t, f, next(t, f, "http://b.test/1", 0), urlstore.Done)
		next(t, f, "http://a.test/1", 0)
		time.Sleep(59 * time.Second)
		check(empty)
		add(t, f, "http://d.test:8080/1")
		time.Sleep(2 * time.Second)
		check(`{"version":1,"written":"2000-01-01T00:01:00Z"}
{"host":"a.test","waiting":2}
{"host":"c.test","waiting":1}
{"host":"d.test:8080","waiting":1}
`)
		finish(t, f, next(t, f, "http://c.test/1", 0), urlstore.Done)
		time.Sleep(29 * time.Second)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		check(`{"version":1,"written":"2000-01-01T00:01:30Z"}
{"host":"a.test","waiting":2}
{"host":"d.test:8080","waiting":1}
`)
		if entries, err := os.ReadDir(dir); len(entries) != 3 || err != nil {
			t.Errorf("the folder has %v, %v", entries, err)
		}
	})
}
