package frontier_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/frontier"
)

func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, frontier.MaxPages(2))
		found := time.Now()
		add(t, f, "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1", "http://c.test/1")
		next(t, f, "http://a.test/1", 0)
		finish(t, f, next(t, f, "http://b.test/1", 0), collyrobots.PageDone)
		if s, err := frontier.Read(dir); s != nil || !errors.Is(err, frontier.ErrInUse) {
			t.Errorf("Read = %+v, %v, want ErrInUse", s, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := frontier.Summary{
			FrontierStats: collyrobots.FrontierStats{Waiting: 3, Done: 1, OverBudget: 1, Hosts: 2, Oldest: found},
			Hosts:         []frontier.HostSummary{{Host: "a.test", Waiting: 2, OverBudget: 1}, {Host: "c.test", Waiting: 1}},
		}
		for range 2 {
			got, err := frontier.Read(dir)
			if err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
				t.Errorf("Read = %+v, %v, want %+v", got, err, want)
			}
		}
		if got := drain(t, open(t, dir)); len(got) != 4 {
			t.Errorf("got %v, want four pages", got)
		}
	})
}

func TestReadOfNoFrontier(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	var folder *frontier.FolderError
	if s, err := frontier.Read(dir); s != nil || !errors.As(err, &folder) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read = %+v, %v, want fs.ErrNotExist", s, err)
	}
	write(t, filepath.Join(filepath.Dir(dir), "collyrobots-frontier"), "collyrobots frontier 9\n")
	if s, err := frontier.Read(filepath.Dir(dir)); s != nil || !errors.Is(err, frontier.ErrVersion) {
		t.Errorf("Read = %+v, %v, want ErrVersion", s, err)
	}
}
